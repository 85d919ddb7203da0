//! Describes an address with respect to guarded buffers.

use std::fmt;

/// The role of a guarded buffer in a call, as far as it was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Not set: an output, scratch memory, or a plugin's own memory.
    #[default]
    Unnamed,
    /// An input of the call.
    Input(u32),
    /// An output of the call.
    Output(u32),
}

impl Role {
    pub(super) fn to_word(self) -> u64 {
        match self {
            Role::Unnamed => 0,
            Role::Input(at) => 1 << 32 | u64::from(at),
            Role::Output(at) => 2 << 32 | u64::from(at),
        }
    }

    pub(super) fn from_word(word: u64) -> Role {
        match (word >> 32, word as u32) {
            (1, at) => Role::Input(at),
            (2, at) => Role::Output(at),
            _ => Role::Unnamed,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Unnamed => f.write_str("a buffer"),
            Role::Input(at) => write!(f, "input {at}, a buffer"),
            Role::Output(at) => write!(f, "output {at}, a buffer"),
        }
    }
}

/// The permitted use of a guarded buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockState {
    /// It may be read and written.
    Writable,
    /// It may be read.
    ReadOnly,
    /// It was given back.
    Freed,
}

impl BlockState {
    pub(super) fn to_word(self) -> u64 {
        match self {
            BlockState::Writable => 1,
            BlockState::ReadOnly => 2,
            BlockState::Freed => 3,
        }
    }

    pub(super) fn from_word(word: u64) -> Option<BlockState> {
        match word {
            1 => Some(BlockState::Writable),
            2 => Some(BlockState::ReadOnly),
            3 => Some(BlockState::Freed),
            _ => None,
        }
    }
}

/// An address with respect to the guarded buffer whose mapping contains it.
///
/// Its text is, for example, `byte 400 of a buffer of 400 bytes, just beyond its end`; `byte 8 of
/// input 1, a buffer of 400 bytes that is read-only`; `byte 0 of a buffer of 64 bytes that was
/// given back`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Offset from the buffer's first byte.
    pub offset: i64,
    /// Size of the buffer.
    pub bytes: u64,
    /// The permitted use of the buffer.
    pub state: BlockState,
    /// The buffer's role.
    pub role: Role,
}

impl Place {
    /// Whether the address is within the buffer.
    pub fn is_inside(&self) -> bool {
        u64::try_from(self.offset).is_ok_and(|offset| offset < self.bytes)
    }

    /// The place as numbers, for a record that is written where nothing can be allocated.
    pub fn to_words(self) -> [u64; 4] {
        [self.offset as u64, self.bytes, self.state.to_word(), self.role.to_word()]
    }

    /// The place that [`Place::to_words`] encoded; `None` for anything else.
    pub fn from_words(words: [u64; 4]) -> Option<Place> {
        let [offset, bytes, state, role] = words;
        let (state, role) = (BlockState::from_word(state)?, Role::from_word(role));
        Some(Place { offset: offset as i64, bytes, state, role })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { offset, bytes, state, role } = self;
        write!(f, "byte {offset} of {role} of {bytes} bytes")?;
        match state {
            BlockState::Freed => f.write_str(" that was given back")?,
            BlockState::ReadOnly => f.write_str(" that is read-only")?,
            BlockState::Writable => {}
        }
        let beyond = offset.saturating_sub_unsigned(*bytes);
        match (*offset, beyond) {
            (..0, _) => write!(f, ", {} before its start", -offset),
            (_, 0) => f.write_str(", just beyond its end"),
            (_, 1..) => write!(f, ", {beyond} beyond its end"),
            _ => Ok(()),
        }
    }
}

/// Overwritten bytes beside a guarded buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// The first of them.
    pub place: Place,
    /// Number of overwritten bytes on this side.
    pub count: u64,
    /// Current value of the first one.
    pub found: u8,
    /// Its original value.
    pub expected: u8,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { place, count, found, expected } = self;
        write!(f, "{place}, was written: expected 0x{expected:02x}, found 0x{found:02x}")?;
        if *count > 1 {
            write!(f, ", as {} further bytes there", count - 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_in_words_and_pass_as_numbers() {
        let place = |offset, state, role| Place { offset, bytes: 400, state, role };
        let cases = [
            (
                place(400, BlockState::Writable, Role::Unnamed),
                "byte 400 of a buffer of 400 bytes, just beyond its end",
            ),
            (
                place(412, BlockState::ReadOnly, Role::Input(1)),
                "byte 412 of input 1, a buffer of 400 bytes that is read-only, 12 beyond its end",
            ),
            (
                place(-4, BlockState::Writable, Role::Output(0)),
                "byte -4 of output 0, a buffer of 400 bytes, 4 before its start",
            ),
            (
                place(0, BlockState::Freed, Role::Unnamed),
                "byte 0 of a buffer of 400 bytes that was given back",
            ),
        ];
        for (place, words) in cases {
            assert_eq!(place.to_string(), words);
            assert_eq!(Place::from_words(place.to_words()), Some(place));
        }
        assert_eq!(Place::from_words([0; 4]), None);
    }

    #[test]
    fn a_violation_tells_what_it_found() {
        let place =
            Place { offset: 8, bytes: 8, state: BlockState::Writable, role: Role::Output(0) };
        let violation = Violation { place, count: 4, found: 0, expected: 0xcb };
        assert_eq!(
            violation.to_string(),
            "byte 8 of output 0, a buffer of 8 bytes, just beyond its end, was written: expected 0xcb, \
             found 0x00, as 3 further bytes there"
        );
    }
}
