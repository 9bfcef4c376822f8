//! The end of a process that was told to end.

use std::fs;
use std::time::Instant;

use anyhow::bail;
use rustix::process::Pid;

use super::{LOOK_EVERY, PATIENCE};

/// Waits until a process is over: its files are closed, and its ports free.
///
/// # Errors
/// It is not in time.
pub fn wait_until_over(process: Pid) -> anyhow::Result<()> {
    let number = process.as_raw_nonzero();
    let deadline = Instant::now() + PATIENCE;
    loop {
        // The state follows the name, which is in parentheses.
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        // Another thread may still wait for a disk, and keep the files open.
        let threads = fs::read_dir(format!("/proc/{number}/task")).map_or(0, Iterator::count);
        if matches!(state, None | Some('Z' | 'X')) && threads <= 1 {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("process {number} has not ended within {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
