//! CRC-32C (Castagnoli), masked as TensorFlow's files have it.

/// What masking adds after the rotation.
const DELTA: u32 = 0xa282_ead8;

/// A checksum in the form of files: so that the checksum of bytes that contain checksums is still one.
pub fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(DELTA)
}

/// The checksum of which `masked` is the form in files.
pub fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(DELTA).rotate_left(15)
}

/// The checksum of bytes that follow those with checksum `crc`; 0 before the first.
pub fn extend(crc: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, bytes)
}

#[cfg(test)]
mod tests {
    use super::{extend, mask, unmask};

    /// The vectors of RFC 3720, appendix B.4.
    #[test]
    fn known_answers() {
        assert_eq!(extend(0, &[0; 32]), 0x8a91_36aa);
        assert_eq!(extend(0, &[0xff; 32]), 0x62a8_ab43);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(extend(extend(0, &ascending[..7]), &ascending[7..]), 0x46dd_794e);
        assert_eq!(unmask(mask(0x1234_5678)), 0x1234_5678);
        assert_ne!(mask(0x1234_5678), 0x1234_5678);
    }
}
