//! Waiting for what other threads do: what does not happen is a failure, and no hang.

use std::time::{Duration, Instant};

/// Far longer than anything here takes.
const AT_MOST: Duration = Duration::from_secs(600);

/// Waits until this holds, and fails where it never does.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < AT_MOST, "still waiting: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
