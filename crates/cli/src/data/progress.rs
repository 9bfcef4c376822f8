//! What is said beside what goes to standard output: how far something has come, and notes.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use muesli::transfer::TransferProgress;

/// How often it is shown how far something has come.
const SHOWN_EVERY: Duration = Duration::from_millis(500);

/// Says on a terminal how far something has come.
pub struct ProgressLine {
    verb: &'static str,
    begun: Instant,
    shown: Option<Instant>,
}

impl ProgressLine {
    /// Nothing was shown yet.
    pub fn new(verb: &'static str) -> ProgressLine {
        ProgressLine { verb, begun: Instant::now(), shown: None }
    }

    /// It has come so far.
    pub fn show(&mut self, progress: TransferProgress) {
        let TransferProgress { rows, bytes } = progress;
        let (verb, seconds) = (self.verb, self.begun.elapsed().as_secs_f64());
        self.show_text(|| {
            let mib = bytes >> 20;
            let each = (bytes as f64 / seconds / f64::from(1 << 20)).round();
            format!("{verb} {rows} rows, {mib} MiB, {each} MiB/s")
        });
    }

    /// It has come so far, as this text says.
    pub fn show_text(&mut self, text: impl FnOnce() -> String) {
        let since = self.shown.unwrap_or(self.begun);
        if !stderr().is_terminal() || since.elapsed() < SHOWN_EVERY {
            return;
        }
        self.shown = Some(Instant::now());
        // A reader that has gone away is no matter.
        let _ = write!(stderr(), "\r{} \x1b[K", text());
    }

    /// What comes next stands on a line of its own; how long it took.
    pub fn end(self) -> Duration {
        if self.shown.is_some() {
            let _ = write!(stderr(), "\r\x1b[K");
        }
        self.begun.elapsed()
    }
}

/// Says something beside what goes to standard output.
pub fn note(line: &str) {
    let _ = writeln!(stderr(), "{line}"); // A reader that has gone away is no matter.
}
