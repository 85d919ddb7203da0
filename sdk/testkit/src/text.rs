//! Small forms of text.

use std::fmt::Write;

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The way back; `None` for anything but pairs of hexadecimal digits.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_goes_round() {
        assert_eq!(unhex(&hex(&[0, 10, 255])), Some(vec![0, 10, 255]));
        assert_eq!(unhex("0"), None);
        assert_eq!(unhex("0é"), None);
        assert_eq!(unhex("+1"), None);
    }
}
