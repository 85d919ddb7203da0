//! `StringToHashBucketFast`, `StringToHashBucketStrong` and the older `StringToHashBucket`, which differ in the hash;
//! and `Fingerprint`.

use crate::{farmhash::fingerprint64, text};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    growth,
    reg::{COPYABLE, Numerics, join_types},
    register_kernel,
};

/// How a text becomes a number.
enum Hash {
    /// FarmHash's fingerprint.
    Fast,
    /// MurmurHash64A with TensorFlow's seed.
    Old,
    /// SipHash-2-4 under a key.
    Strong([u64; 2]),
}

impl Hash {
    fn of(&self, text: &[u8]) -> u64 {
        match self {
            Hash::Fast => fingerprint64(text),
            Hash::Old => murmur(text, 0x00de_cafc_affe),
            Hash::Strong(key) => sip(text, *key),
        }
    }
}

struct Bucket {
    hash: Hash,
    buckets: u64,
}

impl Kernel for Bucket {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let buckets: i64 = c.attr("num_buckets")?;
        let buckets =
            u64::try_from(buckets).ok().filter(|&buckets| buckets > 0).ok_or_else(|| {
                KernelError::invalid_argument(format!(
                    "num_buckets must be at least 1, found {buckets}"
                ))
            })?;
        let hash = match c.op() {
            "StringToHashBucketFast" => Hash::Fast,
            "StringToHashBucket" => Hash::Old,
            _ => Hash::Strong(key(c)?),
        };
        Ok(Bucket { hash, buckets })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let y = c.output::<i64>(0, c.dims(0))?.data;
        for (y, x) in y.iter_mut().zip(c.strings(0)?) {
            *y = (self.hash.of(x) % self.buckets) as i64;
        }
        Ok(())
    }
}

/// The bytes of each row's fingerprint. A row of several strings has that of the fingerprints of its strings.
fn fingerprint(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let method = text(c, 1, "method")?;
    if method != b"farmhash64" {
        return Err(KernelError::invalid_argument(format!(
            "method must be 'farmhash64', found '{}'",
            crate::shown(method)
        )));
    }
    let Some(&rows) = c.dims(0).first() else {
        return Err(KernelError::invalid_argument(
            "data must have at least 1 dimension, found a scalar",
        ));
    };
    let y = c.output::<u8>(0, &[rows, 8])?.data.as_chunks_mut().0;
    if c.slot(0)?.dtype == DType::STRING {
        let texts = c.strings(0)?;
        let width = texts.len() / y.len().max(1);
        for (row, y) in y.iter_mut().enumerate() {
            *y = of_texts(&texts[row * width..][..width])?;
        }
        return Ok(());
    }
    let bytes = c.input_bytes(0)?;
    let width = bytes.len() / y.len().max(1);
    for (row, y) in y.iter_mut().enumerate() {
        *y = fingerprint64(&bytes[row * width..][..width]).to_le_bytes();
    }
    Ok(())
}

fn of_texts(texts: &[&[u8]]) -> Result<[u8; 8], KernelError> {
    if let [text] = texts {
        return Ok(fingerprint64(text).to_le_bytes());
    }
    let each = texts.iter().map(|text| fingerprint64(text).to_le_bytes());
    let all = growth::collected(each)?;
    Ok(fingerprint64(all.as_flattened()).to_le_bytes())
}

/// The types of elements whose bytes are read, and strings.
const READ: &[DType] = &join_types::<{ COPYABLE.len() + 1 }>(COPYABLE, &[DType::STRING]);

register_kernel!("Fingerprint" on "CPU": fn fingerprint, types = ("T", READ),
    host_memory = &["method"], numerics = Numerics::EXACT);

fn key(c: &CreateContext<'_>) -> Result<[u64; 2], KernelError> {
    let key: Vec<i64> = c.attr("key")?;
    match key[..] {
        [first, second] => Ok([first as u64, second as u64]),
        _ => Err(KernelError::invalid_argument(format!(
            "key must have 2 elements, found {}",
            key.len()
        ))),
    }
}

/// The number in up to eight bytes, of which the first counts least.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// MurmurHash64A of Austin Appleby.
fn murmur(text: &[u8], seed: u64) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut hash = seed ^ (text.len() as u64).wrapping_mul(FACTOR);
    let blocks = text.chunks_exact(8);
    let rest = blocks.remainder();
    for block in blocks {
        let mut block = word(block).wrapping_mul(FACTOR);
        block ^= block >> SHIFT;
        hash = (hash ^ block.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        hash = (hash ^ word(rest)).wrapping_mul(FACTOR);
    }
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ hash >> SHIFT
}

/// SipHash-2-4 of Jean-Philippe Aumasson and Daniel J. Bernstein.
pub fn sip(text: &[u8], [k0, k1]: [u64; 2]) -> u64 {
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let blocks = text.chunks_exact(8);
    let last = word(blocks.remainder()) | (text.len() as u64) << 56;
    for block in blocks.map(word).chain([last]) {
        v[3] ^= block;
        sip_rounds(&mut v, 2);
        v[0] ^= block;
    }
    v[2] ^= 0xff;
    sip_rounds(&mut v, 4);
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn sip_rounds(v: &mut [u64; 4], rounds: usize) {
    for _ in 0..rounds {
        v[0] = v[0].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[2] = v[2].rotate_left(32);
    }
}

register_kernel!("StringToHashBucketFast" on "CPU": Bucket, numerics = Numerics::EXACT);
register_kernel!("StringToHashBucket" on "CPU": Bucket, numerics = Numerics::EXACT);
register_kernel!("StringToHashBucketStrong" on "CPU": Bucket, numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::sip;

    #[test]
    fn sip_gives_the_published_number() {
        let text: Vec<u8> = (0..15).collect();
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        assert_eq!(sip(&text, key), 0xa129_ca61_49be_45e5);
    }
}
