//! Reads a worker's standard error and its log, with bounded memory.
//!
//! A line is cut at [`LINE`] bytes, and the rest of it is discarded. At most [`RATE`] lines a
//! second are logged; the number of lines left out is reported once the flood is over, or a second
//! later.

use std::{
    collections::VecDeque,
    io::{self, ErrorKind, Read},
    time::{Duration, Instant},
};

/// Bytes of a line that are kept.
const LINE: usize = 300;
/// Lines of standard error kept as the last words.
const LAST_LINES: usize = 4;
/// Bytes read at once.
const BLOCK: usize = 8 << 10;
/// Lines logged per second.
const RATE: u32 = 100;
const SECOND: Duration = Duration::from_secs(1);

/// A text cut to at most a number of bytes, at the end of a character.
pub(super) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LINE)]
}

/// Counts lines, and limits their rate.
#[derive(Default)]
pub(super) struct Rate {
    begin: Option<Instant>,
    lines: u32,
    dropped: u64,
}

impl Rate {
    /// Whether a line may be logged now; and, if a new second has begun, how many lines were left
    /// out.
    pub fn admit(&mut self, now: Instant) -> (bool, Option<u64>) {
        let mut left_out = None;
        if self.begin.is_none_or(|begin| now.duration_since(begin) >= SECOND) {
            left_out = self.flush();
            (self.begin, self.lines) = (Some(now), 0);
        }
        self.lines = self.lines.saturating_add(1);
        let admitted = self.lines <= RATE;
        self.dropped += u64::from(!admitted);
        (admitted, left_out)
    }

    /// Number of lines left out since the last call.
    pub fn flush(&mut self) -> Option<u64> {
        Some(std::mem::take(&mut self.dropped)).filter(|&dropped| dropped > 0)
    }
}

/// Splits input into lines.
#[derive(Default)]
struct Lines {
    line: Vec<u8>,
}

impl Lines {
    /// Takes a block; calls `tell` with each line that ends in it.
    fn take(&mut self, mut block: &[u8], tell: &mut impl FnMut(&str)) {
        while let Some(end) = block.iter().position(|&byte| byte == b'\n') {
            self.keep(&block[..end]);
            self.end(tell);
            block = &block[end + 1..];
        }
        self.keep(block);
    }

    fn keep(&mut self, part: &[u8]) {
        let room = LINE.saturating_sub(self.line.len());
        self.line.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn end(&mut self, tell: &mut impl FnMut(&str)) {
        let text = String::from_utf8_lossy(&self.line);
        let text = text.trim_end();
        if !text.is_empty() {
            tell(cut(text));
        }
        self.line.clear();
    }
}

/// Reads to the end; calls `tell` with each line.
pub(super) fn listen(mut from: impl Read, mut tell: impl FnMut(&str)) {
    let (mut block, mut lines) = (vec![0; BLOCK], Lines::default());
    loop {
        match from.read(&mut block) {
            Ok(0) => break,
            Ok(read) => lines.take(&block[..read], &mut tell),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    lines.end(&mut tell);
}

/// The last lines that are not frames of a backtrace, which are indented.
#[derive(Default)]
pub(super) struct LastWords(VecDeque<String>);

impl LastWords {
    /// Adds a line.
    pub fn add(&mut self, line: &str) {
        if line.starts_with(|first: char| !first.is_whitespace()) {
            if self.0.len() == LAST_LINES {
                self.0.pop_front();
            }
            self.0.push_back(line.to_owned());
        }
    }

    /// Takes the lines.
    pub fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.0).into()
    }
}

/// Reads `bytes` bytes, in blocks as they arrive: a large length alone allocates no memory.
pub(super) fn read_exactly(from: &mut impl Read, bytes: u64) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    from.take(bytes).read_to_end(&mut all)?;
    if all.len() as u64 == bytes { Ok(all) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(text: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        listen(text, |line| lines.push(line.to_owned()));
        lines
    }

    #[test]
    fn a_line_without_an_end_is_cut_and_takes_no_memory() {
        let endless = io::repeat(b'x').take(200 << 20);
        let (mut block, mut lines) = (vec![0; BLOCK], Lines::default());
        let (mut from, mut told) = (endless, Vec::new());
        while let Ok(read @ 1..) = from.read(&mut block) {
            lines.take(&block[..read], &mut |line: &str| told.push(line.to_owned()));
            assert!(lines.line.capacity() <= 2 * LINE, "{} bytes are kept", lines.line.capacity());
        }
        lines.end(&mut |line: &str| told.push(line.to_owned()));
        assert_eq!(told, ["x".repeat(LINE)]);
    }

    #[test]
    fn lines_are_told_whole_and_cut_between_characters() {
        assert_eq!(heard(b"a\n\n  b \nc"), ["a", "  b", "c"]);
        let long = "é".repeat(LINE);
        let lines = heard(format!("{long}\nshort\n").as_bytes());
        assert!(lines[0].len() <= LINE && lines[0].starts_with("éé"), "{lines:?}");
        assert_eq!(lines[1], "short");
        // Bytes that are not UTF-8 become a character of three bytes each.
        assert!(heard(&[0xff; 400])[0].len() <= LINE);
    }

    #[test]
    fn a_flood_of_lines_is_counted_and_most_of_it_left_out() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        let admitted = (0..10_000).filter(|_| rate.admit(start).0).count();
        assert_eq!(admitted, RATE as usize);
        let later = start + SECOND;
        assert_eq!(rate.admit(later), (true, Some(10_000 - u64::from(RATE))));
        assert_eq!((rate.admit(later), rate.flush()), ((true, None), None));
    }

    #[test]
    fn the_last_lines_that_are_words_are_kept() {
        let mut words = LastWords::default();
        for line in ["a", "b", "   at frame", "c", "d", "e"] {
            words.add(line);
        }
        assert_eq!(words.take(), ["b", "c", "d", "e"]);
        assert!(words.take().is_empty());
    }

    #[test]
    fn a_length_that_is_promised_takes_no_memory() {
        assert!(read_exactly(&mut &b"abc"[..], 1 << 40).is_err());
        assert_eq!(read_exactly(&mut &b"abcd"[..], 3).unwrap(), b"abc");
    }
}
