//! Text from outside, in messages.
//!
//! The name of a node or an op, the value of an attribute, the text of a plugin: each may be megabytes long, and an error
//! that repeats it would be too. Messages show such text through [`cut`] and [`cut_text`].

use std::fmt::{self, Write as _};

/// Most bytes of a name that a message shows.
pub const NAME_BYTES: usize = 160;

/// Most bytes that a message shows of a longer text, such as a list of names or a reason.
pub const TEXT_BYTES: usize = 1000;

/// The largest number of bytes that a message shows of a whole message of other code, such as a kernel.
pub const MESSAGE_BYTES: usize = 8192;

/// Text that shows at most a number of bytes of itself, and its length if that is not all of it.
///
/// ```
/// use tenon_framework::text::cut;
///
/// assert_eq!(cut("conv1/weights").to_string(), "conv1/weights");
/// let long = cut(&"n".repeat(50_000_000)).to_string();
/// assert!(long.ends_with("nnn... (50000000 bytes)") && long.len() < 200);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cut<'a> {
    text: &'a str,
    limit: usize,
}

/// A name, of which a message shows at most [`NAME_BYTES`] bytes.
pub fn cut(name: &str) -> Cut<'_> {
    Cut { text: name, limit: NAME_BYTES }
}

/// A text, of which a message shows at most [`TEXT_BYTES`] bytes.
pub fn cut_text(text: &str) -> Cut<'_> {
    cut_to(text, TEXT_BYTES)
}

/// A message of other code, of which a message shows at most [`MESSAGE_BYTES`] bytes.
pub fn cut_message(text: &str) -> Cut<'_> {
    cut_to(text, MESSAGE_BYTES)
}

/// A text, of which a message shows at most `limit` bytes.
pub fn cut_to(text: &str, limit: usize) -> Cut<'_> {
    Cut { text, limit }
}

impl<'a> Cut<'a> {
    /// The part of the text that is shown, and whether it is less than all.
    fn shown(self) -> (&'a str, bool) {
        if self.text.len() <= self.limit {
            return (self.text, false);
        }
        (&self.text[..self.text.floor_char_boundary(self.limit)], true)
    }

    fn note_length(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "... ({} bytes)", self.text.len())
    }
}

impl fmt::Display for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shown, is_cut) = self.shown();
        if !is_cut {
            return f.pad(shown);
        }
        f.write_str(shown)?;
        self.note_length(f)
    }
}

/// In quotes, with escapes.
impl fmt::Debug for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shown, is_cut) = self.shown();
        f.write_char('"')?;
        write!(f, "{}", shown.escape_debug())?;
        f.write_char('"')?;
        if is_cut { self.note_length(f) } else { Ok(()) }
    }
}

/// Names in quotes, at most `most` of them, then how many more there are: `'a', 'b' and 3 more`.
pub fn some_of<'a>(names: impl IntoIterator<Item = &'a str>, most: usize) -> String {
    let mut text = String::new();
    let mut names = names.into_iter();
    for (at, name) in names.by_ref().take(most).enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}'{}'", cut(name));
    }
    match names.count() {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// How many items are to be added, taken out, replaced or exchanged with their neighbour to make one sequence of the
/// other (the distance of optimal string alignment, in which no item is touched twice). Names are compared by bytes or by
/// characters, as the caller has them. Takes time by the product of the lengths.
///
/// ```
/// use tenon_framework::text::edit_distance;
///
/// assert_eq!(edit_distance(b"avx-2", b"avx2"), 1);
/// assert_eq!(edit_distance(b"Rleu", b"Relu"), 1);
/// ```
pub fn edit_distance<T: PartialEq>(from: &[T], to: &[T]) -> usize {
    // The rows of the table for the items before the last one, before this one, and for this one.
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (at, a) in from.iter().enumerate() {
        let mut row = vec![at + 1];
        for (place, b) in to.iter().enumerate() {
            let replaced = last[place] + usize::from(a != b);
            let mut least = replaced.min(last[place + 1] + 1).min(row[place] + 1);
            if at > 0 && place > 0 && *a == to[place - 1] && from[at - 1] == *b {
                least = least.min(before[place - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut_to("abc", 3).to_string(), "abc");
        assert_eq!(cut_to("abcd", 3).to_string(), "abc... (4 bytes)");
        assert_eq!(cut_to("aéé", 2).to_string(), "a... (5 bytes)");
        assert_eq!(format!("{:?}", cut_to("a\"b", 9)), r#""a\"b""#);
        assert_eq!(format!("{:?}", cut_to("a\nbc", 2)), r#""a\n"... (4 bytes)"#);
        assert_eq!(format!("{:>5}|", cut("abc")), "  abc|");
    }

    #[test]
    fn lists_of_names_end() {
        assert_eq!(some_of(["a"], 2), "'a'");
        assert_eq!(some_of(["a", "b"], 2), "'a', 'b'");
        assert_eq!(some_of(["a", "b", "c", "d"], 2), "'a', 'b' and 2 more");
    }

    #[test]
    fn neighbours_that_changed_places_are_one_edit() {
        let distance = |from: &str, to: &str| edit_distance(from.as_bytes(), to.as_bytes());
        assert_eq!((distance("rleu", "relu"), distance("rleu", "elu")), (1, 2));
        assert_eq!((distance("ab", "ba"), distance("abc", "ca"), distance("a", "b")), (1, 3, 1));
        assert_eq!((distance("", "abc"), distance("abc", ""), distance("abc", "abc")), (3, 3, 0));
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
