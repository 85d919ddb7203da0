//! Files of seeds: golden ones with some changes, which every reader has to survive. Fuzzing tries the same judge with more.

use super::{any, golden};
use crate::{Files, SafeTensor, SafeWriter, fuzzing};
use std::fs;
use tenon_sdk::DType;

/// Files of one kind; more by hand.
const COUNT: u64 = 400;
const SEEDS: &str = "TENON_TEST_FUZZ_CHECKPOINTS";

/// Numbers of a seed.
struct Random(u64);

impl Random {
    fn of(seed: u64) -> Random {
        Random(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 24) as usize % end.max(1)
    }
}

/// Changes some bytes, cuts the end off, or repeats a part.
fn changed(random: &mut Random, mut bytes: Vec<u8>) -> Vec<u8> {
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len());
        match random.below(8) {
            0 => bytes.truncate(at),
            1 => {
                let part = bytes[at..(at + random.below(40)).min(bytes.len())].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, part);
            }
            2 if at < bytes.len() => bytes[at] = [0, 0x7f, 0x80, 0xff][random.below(4)],
            _ if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            _ => {}
        }
    }
    bytes
}

fn safetensors(folder: &std::path::Path) -> Vec<u8> {
    let (access, path) = (any(), folder.join("x.safetensors"));
    let files = Files::new(&access, "file");
    let one = |name: &str, dtype, dims| SafeTensor { name: name.to_owned(), dtype, dims };
    let tensors = [one("w", DType::FLOAT, vec![2, 3]), one("n", DType::INT64, vec![])];
    let mut writer = SafeWriter::create(files, &path, &tensors).unwrap();
    writer.add(&[1; 24]).unwrap();
    writer.add(&[2; 8]).unwrap();
    writer.finish(files, &path).unwrap();
    fs::read(path).unwrap()
}

#[test]
fn files_at_random_end_with_tensors_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let count = std::env::var(SEEDS).ok().and_then(|count| count.parse().ok()).unwrap_or(COUNT);
    let mut whole: Vec<(&str, Vec<u8>)> =
        ["whole.index", "sliced.index", "strings.index", "variants.index", "old", "old_strings"]
            .map(|name| (name, fs::read(golden(name)).unwrap()))
            .to_vec();
    whole.push(("safetensors", safetensors(folder.path())));
    for (name, whole) in whole {
        let mut read = 0;
        for seed in 0..count {
            let mut random = Random::of(seed);
            let bytes = changed(&mut random, whole.clone());
            read += fuzzing::judge(&[&[0], &bytes[..]].concat(), folder.path());
        }
        // Otherwise all files are refused before a tensor is looked at. An index has no data file here.
        assert!(read > 0 || name.ends_with(".index"), "{name}: no tensor was read");
    }
    for seed in 0..count {
        let mut random = Random::of(seed);
        let bytes: Vec<u8> = (0..random.below(300)).map(|_| random.below(256) as u8).collect();
        fuzzing::judge(&bytes, folder.path());
    }
}
