//! Keys whose order as bytes is that of what they encode (TensorFlow's `OrderedCode`).
//!
//! The data of a slice is under such a key: a number 0, the name of the tensor, the number of dimensions, and the start and
//! length of each.

use crate::slice::Extent;

/// Appends a number: the count of its bytes, and these from the highest on.
fn number(key: &mut Vec<u8>, value: u64) {
    let bytes = value.to_be_bytes();
    let zeros = value.leading_zeros() as usize / 8;
    key.push((bytes.len() - zeros) as u8);
    key.extend_from_slice(&bytes[zeros..]);
}

/// Appends a text: 00 and FF within it have a byte more, and 00 01 is its end.
fn text(key: &mut Vec<u8>, value: &[u8]) {
    for &byte in value {
        match byte {
            0 => key.extend_from_slice(&[0, 0xff]),
            0xff => key.extend_from_slice(&[0xff, 0]),
            byte => key.push(byte),
        }
    }
    key.extend_from_slice(&[0, 1]);
}

/// Appends a signed number: as many leading ones as it has bytes, then its bits; all inverted if it is negative.
fn signed(key: &mut Vec<u8>, value: i64) {
    let magnitude = if value < 0 { !value } else { value };
    let bits = (u64::BITS - magnitude.leading_zeros()) as usize;
    let len = bits / 7 + 1;
    let header = u16::MAX.checked_shl(16 - len as u32).unwrap_or(0).to_be_bytes();
    let mut bytes = [if value < 0 { 0xff } else { 0 }; 10];
    bytes[2..].copy_from_slice(&value.to_be_bytes());
    let begin = bytes.len() - len;
    bytes[begin] ^= header[0];
    if len > 1 {
        bytes[begin + 1] ^= header[1];
    }
    key.extend_from_slice(&bytes[begin..]);
}

/// The key of a slice of a tensor.
pub fn slice_key(name: &[u8], extents: &[Extent]) -> Vec<u8> {
    let mut key = Vec::new();
    number(&mut key, 0);
    text(&mut key, name);
    number(&mut key, extents.len() as u64);
    for extent in extents {
        signed(&mut key, extent.start);
        signed(&mut key, extent.length.unwrap_or(-1));
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: i64) -> Vec<u8> {
        let mut key = Vec::new();
        signed(&mut key, value);
        key
    }

    /// What TensorFlow wrote for `p`, shape [4, 3], slice `0,2:-`.
    #[test]
    fn a_key_of_tensorflow() {
        let extents = [Extent { start: 0, length: Some(2) }, Extent { start: 0, length: None }];
        assert_eq!(slice_key(b"p", &extents), [0, b'p', 0, 1, 1, 2, 0x80, 0x82, 0x80, 0x7f]);
    }

    #[test]
    fn signed_numbers_keep_their_order() {
        assert_eq!(of(63), [0xbf]);
        assert_eq!(of(64), [0xc0, 0x40]);
        assert_eq!(of(-64), [0x40]);
        assert_eq!(of(-65), [0x3f, 0xbf]);
        let mut values: Vec<i64> = (0..63).map(|bit| 1i64 << bit).collect();
        values.extend((0..63).flat_map(|bit| [(1i64 << bit) - 1, -(1i64 << bit), !(1i64 << bit)]));
        values.extend([i64::MAX, i64::MIN]);
        values.sort_unstable();
        values.dedup();
        for pair in values.windows(2) {
            assert!(of(pair[0]) < of(pair[1]), "{pair:?}: {:x?} {:x?}", of(pair[0]), of(pair[1]));
        }
        assert_eq!(of(i64::MAX).len(), 10);
    }

    #[test]
    fn names_are_escaped() {
        let mut key = Vec::new();
        text(&mut key, b"a\0\xffb");
        assert_eq!(key, *b"a\0\xff\xff\0b\0\x01");
    }
}
