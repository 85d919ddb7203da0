//! FarmHash's `Fingerprint64`: a number for a text, the same on every machine.
//!
//! It follows the published algorithm: google/farmhash, `src/farmhash.cc`, namespace `farmhashna`.
//! The crate of that name has not been maintained since 2018.

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;

/// Arithmetic modulo 2^64.
type Word = std::num::Wrapping<u64>;

fn word(value: u64) -> Word {
    std::num::Wrapping(value)
}

fn rotated(value: Word, by: u32) -> Word {
    word(value.0.rotate_right(by))
}

fn mixed(value: Word) -> Word {
    value ^ (value >> 47)
}

/// The fingerprint of a text.
pub fn fingerprint64(text: &[u8]) -> u64 {
    match text.len() {
        0..=16 => upto_16(text),
        17..=32 => upto_32(text),
        33..=64 => upto_64(text),
        _ => long(text),
    }
    .0
}

/// The 8 bytes at a place, as a little-endian number.
fn at(text: &[u8], place: usize) -> Word {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&text[place..place + 8]);
    word(u64::from_le_bytes(bytes))
}

fn half_at(text: &[u8], place: usize) -> Word {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&text[place..place + 4]);
    word(u32::from_le_bytes(bytes).into())
}

fn joined(u: Word, v: Word, factor: Word) -> Word {
    let a = mixed((u ^ v) * factor);
    mixed((v ^ a) * factor) * factor
}

fn factor_of(len: usize) -> Word {
    word(K2) + word(len as u64) * word(2)
}

fn upto_16(text: &[u8]) -> Word {
    let len = text.len();
    let length = word(len as u64);
    if len >= 8 {
        let factor = factor_of(len);
        let (a, b) = (at(text, 0) + word(K2), at(text, len - 8));
        let c = rotated(b, 37) * factor + a;
        let d = (rotated(a, 25) + b) * factor;
        return joined(c, d, factor);
    }
    if len >= 4 {
        let first = half_at(text, 0);
        return joined(length + (first << 3), half_at(text, len - 4), factor_of(len));
    }
    if len == 0 {
        return word(K2);
    }
    let byte = |place: usize| word(text[place].into());
    let y = byte(0) + (byte(len >> 1) << 8);
    let z = length + (byte(len - 1) << 2);
    mixed((y * word(K2)) ^ (z * word(K0))) * word(K2)
}

fn upto_32(text: &[u8]) -> Word {
    let len = text.len();
    let factor = factor_of(len);
    let (a, b) = (at(text, 0) * word(K1), at(text, 8));
    let (c, d) = (at(text, len - 8) * factor, at(text, len - 16) * word(K2));
    let u = rotated(a + b, 43) + rotated(c, 30) + d;
    joined(u, a + rotated(b + word(K2), 18) + c, factor)
}

fn upto_64(text: &[u8]) -> Word {
    let len = text.len();
    let factor = factor_of(len);
    let (a, b) = (at(text, 0) * word(K2), at(text, 8));
    let (c, d) = (at(text, len - 8) * factor, at(text, len - 16) * word(K2));
    let y = rotated(a + b, 43) + rotated(c, 30) + d;
    let z = joined(y, a + rotated(b + word(K2), 18) + c, factor);
    let (e, f) = (at(text, 16) * factor, at(text, 24));
    let g = (y + at(text, len - 32)) * factor;
    let h = (z + at(text, len - 24)) * factor;
    let u = rotated(e + f, 43) + rotated(g, 30) + h;
    joined(u, e + rotated(f + a, 18) + g, factor)
}

/// 56 bytes of state.
struct State {
    x: Word,
    y: Word,
    z: Word,
    v: (Word, Word),
    w: (Word, Word),
}

impl State {
    /// Adds 64 bytes; the last block has factors of its own.
    fn take(&mut self, block: &[u8], factor: Word, weight: Word) {
        let State { x, y, z, v, w } = self;
        *x = rotated(*x + *y + v.0 + at(block, 8), 37) * factor;
        *y = rotated(*y + v.1 + at(block, 48), 42) * factor;
        *x ^= w.1 * weight;
        *y += v.0 * weight + at(block, 40);
        *z = rotated(*z + w.0, 33) * factor;
        *v = weak(block, v.1 * factor, *x + w.0);
        *w = weak(&block[32..], *z + w.1, *y + at(block, 16));
        std::mem::swap(z, x);
    }
}

fn weak(block: &[u8], a: Word, b: Word) -> (Word, Word) {
    let [w, x, y, z] = [0, 8, 16, 24].map(|place| at(block, place));
    let first = a + w;
    let b = rotated(b + first + z, 21);
    let a = first + x + y;
    (a + z, b + rotated(a, 44) + first)
}

fn long(text: &[u8]) -> Word {
    let len = text.len();
    let y = word(81) * word(K1) + word(113);
    let none = (word(0), word(0));
    let mut state = State {
        x: word(81) * word(K2) + at(text, 0),
        y,
        z: mixed(y * word(K2) + word(113)) * word(K2),
        v: none,
        w: none,
    };
    let whole = (len - 1) / 64 * 64;
    for block in text[..whole].chunks_exact(64) {
        state.take(block, word(K1), word(1));
    }
    let factor = word(K1) + ((state.z & word(0xff)) << 1);
    state.w.0 += word(((len - 1) & 63) as u64);
    state.v.0 += state.w.0;
    state.w.0 += state.v.0;
    state.take(&text[len - 64..], factor, word(9));
    let State { x, y, z, v, w } = state;
    let u = joined(v.0, w.0, factor) + mixed(y) * word(K0) + z;
    joined(u, joined(v.1, w.1, factor) + x, factor)
}

#[cfg(test)]
mod tests {
    use super::fingerprint64;

    /// Values of TensorFlow's `StringToHashBucketFast` with 2^62 buckets, for each length that is
    /// computed differently.
    #[test]
    fn each_form_gives_the_published_number() {
        let repeated = |byte: u8, count: usize| vec![byte; count];
        let cases: [(Vec<u8>, u64); 8] = [
            (Vec::new(), 1936946117179621455),
            (b"a".to_vec(), 3694432073954588131),
            (b"hello world".to_vec(), 1769834696496558107),
            (repeated(b'x', 20), 3621402210320469444),
            (repeated(b'y', 40), 276292113409495006),
            (repeated(b'z', 64), 294799756062990872),
            (repeated(b'w', 65), 3272011567211491968),
            (repeated(b'q', 200), 3537263014797593713),
        ];
        for (text, expected) in cases {
            assert_eq!(fingerprint64(&text) % (1 << 62), expected, "{} bytes", text.len());
        }
    }
}
