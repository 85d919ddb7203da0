//! Tests of `.npz` archives.

use super::*;
use std::{fs, io::Write};
use tempfile::TempDir;
use tenon_framework::Code;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

/// An archive of files.
fn archive(
    folder: &TempDir,
    method: CompressionMethod,
    files: &[(&str, Vec<u8>)],
) -> std::path::PathBuf {
    let path = folder.path().join("x.npz");
    let mut zip = ZipWriter::new(File::create(&path).unwrap());
    for (name, bytes) in files {
        let options = SimpleFileOptions::default().compression_method(method);
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
    path
}

fn floats(values: &[f32]) -> Vec<u8> {
    let tensor = Tensor::from_slice(&[values.len() as i64], values).unwrap();
    npy::encode(&tensor, "x").unwrap()
}

/// The problem with the bytes of an archive with an array `a`.
fn error(folder: &TempDir, bytes: &[u8]) -> NpyError {
    let path = folder.path().join("bad.npz");
    fs::write(&path, bytes).unwrap();
    let read = Npz::open(&path).and_then(|mut npz| npz.tensor("a", None));
    let error = read.unwrap_err();
    assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
    error
}

#[test]
fn arrays_are_read_by_name() {
    let folder = TempDir::new().unwrap();
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let codes = Tensor::from_slice(&[2], &[1i8, -1]).unwrap();
        let files = [
            ("b/c.npy", floats(&[1.0, 2.0])),
            ("a.npy", npy::encode(&codes, "x").unwrap()),
            ("read.me", b"no array".to_vec()),
        ];
        let mut npz = Npz::open(archive(&folder, method, &files)).unwrap();
        assert_eq!(npz.names(), ["a", "b/c"]);
        assert!(npz.has("b/c") && !npz.has("read.me") && !npz.has("c"));
        let read = npz.tensor("b/c", Some(DType::INT32)).unwrap();
        assert_eq!(read.as_slice::<f32>().unwrap(), [1.0, 2.0], "of its own type");
        assert_eq!(npz.tensor("a", Some(DType::QINT8)).unwrap().dtype(), DType::QINT8);
        assert_eq!(npz.tensor("a", None).unwrap().dtype(), DType::INT8);
        let error = npz.tensor("z", None).unwrap_err();
        assert_eq!(error.code(), Code::NOT_FOUND);
        assert!(error.to_string().contains("expected an array 'z', found none of this name"));
    }
}

#[test]
fn what_is_no_archive_is_invalid() {
    let folder = TempDir::new().unwrap();
    let missing = Npz::open(folder.path().join("none.npz")).unwrap_err();
    assert_eq!(missing.code(), Code::NOT_FOUND);
    for bytes in [&b""[..], b"PK", b"PK\x03\x04 and then nothing", &[0; 1000]] {
        let error = error(&folder, bytes);
        assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{error}");
        assert!(error.to_string().contains("expected a .npz archive, found a file that is none"));
    }
    let path = archive(&folder, CompressionMethod::Deflated, &[("a.npy", b"no array".to_vec())]);
    let error = Npz::open(&path).unwrap().tensor("a", None).unwrap_err().to_string();
    assert!(error.contains("x.npz: array 'a': expected a .npy file, found"), "{error}");
}

/// The numbers in an archive's directory, each changed; CRCs find what else is damaged.
#[test]
fn damaged_archives_are_refused() {
    let folder = TempDir::new().unwrap();
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let path = archive(&folder, method, &[("a.npy", floats(&[1.5; 40]))]);
        let good = fs::read(&path).unwrap();
        let (mut refused, tried) = (0, good.len() - 1);
        for at in 0..tried {
            let mut bytes = good.clone();
            bytes[at] ^= 0x40;
            let bad = folder.path().join("bad.npz");
            fs::write(&bad, &bytes).unwrap();
            // Times, versions and the like may be anything; the values are those that were written.
            match Npz::open(&bad).and_then(|mut npz| npz.tensor("a", None)) {
                Ok(tensor) => assert_eq!(tensor.as_slice::<f32>().unwrap(), [1.5; 40], "{at}"),
                Err(_) => refused += 1,
            }
            error(&folder, &good[..at]);
        }
        assert!(refused > tried / 3, "{refused} of {tried}");
    }
}

/// Two MB that expand to two GB.
#[test]
fn an_archive_that_expands_too_far_is_refused_when_it_is_opened() {
    let folder = TempDir::new().unwrap();
    let path = archive(&folder, CompressionMethod::Deflated, &[("a.npy", floats(&[0.0; 40]))]);
    let good = fs::read(&path).unwrap();
    let size = floats(&[0.0; 40]).len() as u32;
    for promised in [u32::MAX - 1, (ALWAYS + 1) as u32] {
        let mut bytes = good.clone();
        // Where the size stands, in the entry and in the directory.
        for at in 0..bytes.len() - 4 {
            if bytes[at..at + 4] == size.to_le_bytes() {
                bytes[at..at + 4].copy_from_slice(&promised.to_le_bytes());
            }
        }
        let error = error(&folder, &bytes);
        assert_eq!(error.code(), Code::RESOURCE_EXHAUSTED, "{error}");
        let text =
            format!("have {promised} bytes, while a file of its size may have {ALWAYS}: split it");
        assert!(error.to_string().contains(&text), "{error}");
    }
    assert_eq!((most_bytes(100), most_bytes(1 << 30)), (ALWAYS, 16 << 30));
}

/// An entry that says it is smaller than it is would make more than was looked at.
#[test]
fn an_array_is_as_long_as_its_archive_says() {
    let folder = TempDir::new().unwrap();
    let path = archive(&folder, CompressionMethod::Deflated, &[("a.npy", floats(&[0.0; 40]))]);
    let good = fs::read(&path).unwrap();
    let size = floats(&[0.0; 40]).len() as u32;
    for promised in [size - 1, size + 1, 0] {
        let mut bytes = good.clone();
        for at in 0..bytes.len() - 4 {
            if bytes[at..at + 4] == size.to_le_bytes() {
                bytes[at..at + 4].copy_from_slice(&promised.to_le_bytes());
            }
        }
        assert_eq!(error(&folder, &bytes).code(), Code::INVALID_ARGUMENT);
    }
}

/// Archives and arrays of seeds: golden ones with some changes. Fuzzing tries the same judge with more.
#[test]
fn bytes_at_random_end_with_arrays_or_an_error() {
    let (folder, judged) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = archive(&folder, CompressionMethod::Deflated, &[("a.npy", floats(&[1.5; 40]))]);
    let (whole, array) = (fs::read(&path).unwrap(), floats(&[2.5; 6]));
    let file = judged.path().join("x.npz");
    let mut read = [0; 3];
    for seed in 0..600u64 {
        let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |end: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as usize % end.max(1)
        };
        let kind = below(3);
        let mut bytes = if kind == 0 { whole.clone() } else { array.clone() };
        for _ in 0..below(4) {
            let at = below(bytes.len());
            match below(6) {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => bytes[at] = [0, 0x7f, 0x80, 0xff][below(4)],
                _ if at < bytes.len() => bytes[at] ^= 1 << below(8),
                _ => {}
            }
        }
        read[kind] += fuzzing::judge(&[&[kind as u8], &bytes[..]].concat(), &file);
    }
    assert!(read.iter().all(|&read| (1..200).contains(&read)), "{read:?}");
}
