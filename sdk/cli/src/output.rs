//! Printing: which text goes where.

use crate::error::CliError;
use serde_json::Value;
use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, Write},
};

/// Text for one line of a terminal: characters that a terminal takes for a command, that end the line or that change
/// the direction of what follows are shown as escapes such as `\u{1b}`. Names and messages of plugins, graphs and other
/// processes pass through here before they are printed; [`print()`] and [`complain`] do the same for all but line ends.
pub fn plain(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_command(c) || matches!(c, '\n' | '\t'))
}

/// A terminal obeys these in the middle of text: control characters of both blocks, and Unicode's marks that embed,
/// override or isolate a direction. Line ends and tabs are layout.
fn is_command(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control() && !matches!(c, '\n' | '\t')
}

fn escaped(text: &str, is_shown_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_shown_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_shown_escaped(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Prints a result. A reader that has read enough is not an error. Commands for the terminal are shown as escapes.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(text: &str) -> Result<(), CliError> {
    write(&escaped(text, is_command))
}

fn write(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::Output(error)),
        _ => Ok(()),
    }
}

/// Prints a result as JSON. What a terminal could take for a command is escaped as JSON does it, so that the value is
/// the same.
///
/// # Errors
/// As [`print()`].
pub fn print_json(value: &Value) -> Result<(), CliError> {
    let text = format!("{value:#}\n");
    if !text.contains(is_command) {
        return write(&text);
    }
    // Outside of strings there is none of these characters, and all are of sixteen bits.
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_command(c) {
            true => drop(write!(shown, "\\u{:04x}", u32::from(c))),
            false => shown.push(c),
        }
    }
    write(&shown)
}

/// Tells the user something beside the results, on standard error, with commands for the terminal shown as escapes.
/// If standard error is closed, nothing is printed.
pub fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{}", escaped(text, is_command));
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
    fn commands_for_a_terminal_are_shown_as_escapes() {
        let name = "a\u{1b}]0;owned\u{7}\u{9b}2J\r\u{202e}b";
        let shown = "a\\u{1b}]0;owned\\u{7}\\u{9b}2J\\r\\u{202e}b";
        assert_eq!(plain(name), shown);
        assert_eq!(plain("two\nlines\tand µ, 数"), "two\\nlines\\tand µ, 数");
        assert_eq!(escaped("two\nlines\t\u{7f}", is_command), "two\nlines\t\\u{7f}");
        assert!(matches!(plain("plain"), Cow::Borrowed("plain")));
    }

    #[test]
    fn only_devices_of_this_process_are_shortened() {
        assert_eq!(short_device("/job:localhost/replica:0/task:0/device:ACCEL:1"), "ACCEL:1");
        let other = "/job:worker/replica:0/task:1/device:CPU:0";
        assert_eq!(short_device(other), other);
    }
}
