//! What is printed, and where.

use crate::error::CliError;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::io::{self, Write};

/// Prints a result. A reader that has read enough is no error.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::Output(error)),
        _ => Ok(()),
    }
}

/// Prints a result as JSON.
///
/// # Errors
/// As [`print()`].
pub fn print_json(value: &Value) -> Result<(), CliError> {
    print(&format!("{value:#}\n"))
}

/// Tells the user something that is no result. Where standard error is closed, nobody listens.
pub fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// A bar on standard error; nothing when that is no terminal.
pub fn progress(steps: u64, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    let style = ProgressStyle::with_template("{msg:>12} [{bar:32}] {pos}/{len}  {eta}");
    if let Ok(style) = style {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_message(what)
}

/// A bar for steps that each have a name.
pub fn progress_by_name(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(0).with_prefix(what);
    let style =
        ProgressStyle::with_template("{prefix} [{bar:32}] {pos}/{len}  {elapsed}  {wide_msg}");
    if let Ok(style) = style {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// A time with three or four digits and its unit.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    match value {
        value if value >= 100.0 || unit == "ns" => format!("{value:.0} {unit}"),
        value if value >= 10.0 => format!("{value:.1} {unit}"),
        value => format!("{value:.2} {unit}"),
    }
}

/// A number of things: `1 kernel`, `3 kernels`.
pub fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// A device of this process by type and number; any other by its full name.
pub fn short_device(name: &str) -> &str {
    name.strip_prefix("/job:localhost/replica:0/task:0/device:").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_fitting_unit() {
        let shown: Vec<String> =
            [0.0, 850.0, 1234.0, 45_600.0, 789_000_000.0, 2.5e9].into_iter().map(time).collect();
        assert_eq!(shown, ["0 ns", "850 ns", "1.23 µs", "45.6 µs", "789 ms", "2.50 s"]);
    }

    #[test]
    fn only_devices_of_this_process_are_shortened() {
        assert_eq!(short_device("/job:localhost/replica:0/task:0/device:ACCEL:1"), "ACCEL:1");
        let other = "/job:worker/replica:0/task:1/device:CPU:0";
        assert_eq!(short_device(other), other);
    }
}
