//! How far a command is that takes long, on standard error.

use crate::output::{complain, plain};
use indicatif::{ProgressBar, ProgressStyle};
use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Time between two lines where standard error is not a terminal.
const PAUSE: Duration = Duration::from_secs(10);

/// A bar on standard error; nothing when that is not a terminal.
pub fn progress(steps: u64, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    let style = ProgressStyle::with_template("{msg:>12} [{bar:32}] {pos}/{len}  {eta}");
    if let Ok(style) = style {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_message(what)
}

/// Progress through steps that each have a name: a bar on a terminal; elsewhere, as in the log of continuous
/// integration, a line every ten seconds.
pub struct NamedSteps {
    what: &'static str,
    bar: ProgressBar,
    begin: Instant,
    /// When the last line was printed, as time since `begin`.
    printed: Mutex<Duration>,
}

impl NamedSteps {
    /// Nothing is done yet.
    pub fn new(what: &'static str) -> Self {
        let bar = ProgressBar::new(0).with_prefix(what);
        let style =
            ProgressStyle::with_template("{prefix} [{bar:32}] {pos}/{len}  {elapsed}  {wide_msg}");
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("=> "));
        }
        NamedSteps { what, bar, begin: Instant::now(), printed: Mutex::default() }
    }

    /// Says that `done` of `total` steps are done and that `name` is being worked on.
    pub fn at(&self, done: usize, total: usize, name: &str) {
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(plain(name).into_owned());
        if !self.bar.is_hidden() {
            return;
        }
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = line(self.what, (done, total), name, self.begin.elapsed(), &mut printed)
        {
            complain(&line);
        }
    }

    /// Takes the bar away.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// The line for a log, where the last one was printed long enough ago.
fn line(
    what: &str,
    (done, total): (usize, usize),
    name: &str,
    elapsed: Duration,
    printed: &mut Duration,
) -> Option<String> {
    if elapsed < *printed + PAUSE {
        return None;
    }
    *printed = elapsed;
    Some(format!("{what}: {done} of {total} after {} s, {}", elapsed.as_secs(), plain(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_a_line_every_ten_seconds() {
        let mut printed = Duration::ZERO;
        let mut at = |seconds| {
            let elapsed = Duration::from_secs_f64(seconds);
            line("checking", (3, 40), "Relu\n", elapsed, &mut printed)
        };
        assert_eq!(at(9.9), None);
        assert_eq!(at(12.5).as_deref(), Some("checking: 3 of 40 after 12 s, Relu\\n"));
        assert_eq!(at(22.4), None);
        assert!(at(22.5).is_some());
    }
}
