//! Damaged files: every cut and every changed bit is an error.

use super::{Named, any, golden, read_bundle, read_old};
use crate::{BundleError, Files, SafeFile, SafeTensor, SafeWriter, fuzzing, table::varint};
use std::{
    fs,
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};
use tenon_sdk::{Code, DType};

type Read = fn(&Path) -> Result<Vec<Named>, BundleError>;

/// Copies a checkpoint, and changes each of its files in every way; each reading has to fail.
fn every_change_is_found(name: &str, ends: &[&str], read: Read) {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("x");
    let file = |end: &str| PathBuf::from(format!("{}{end}", prefix.display()));
    for end in ends {
        fs::copy(golden(&format!("{name}{end}")), file(end)).unwrap();
    }
    read(&prefix).unwrap();
    for end in ends {
        let whole = fs::read(file(end)).unwrap();
        // Files are changed in place, since some file systems make one durable that is written anew.
        let open = fs::OpenOptions::new().write(true).open(file(end)).unwrap();
        let put = |at: usize, bytes: &[u8]| {
            let mut open = &open;
            open.seek(SeekFrom::Start(at as u64)).and_then(|_| open.write_all(bytes)).unwrap();
        };
        let fails = |what: &str| {
            let error = read(&prefix).map(drop).expect_err(what);
            assert!(
                matches!(error.code(), Code::DATA_LOSS | Code::OUT_OF_RANGE),
                "{what}: {error}"
            );
            assert!(error.to_string().contains(&format!("x{end}")), "{what}: {error}");
        };
        for at in 0..whole.len() {
            for bit in 0..8 {
                put(at, &[whole[at] ^ 1 << bit]);
                fails(&format!("{name}{end} with bit {bit} of byte {at} changed"));
            }
            put(at, &whole[at..=at]);
        }
        for at in (0..whole.len()).rev() {
            open.set_len(at as u64).unwrap();
            fails(&format!("{name}{end} cut at {at}"));
        }
        put(0, &whole);
    }
}

#[test]
fn of_strings() {
    every_change_is_found("strings", &[".index", ".data-00000-of-00001"], read_bundle);
}

#[test]
fn of_slices() {
    every_change_is_found("sliced", &[".index", ".data-00000-of-00001"], read_bundle);
}

#[test]
fn of_variants() {
    every_change_is_found("variants", &[".index", ".data-00000-of-00001"], read_bundle);
}

#[test]
fn of_shards() {
    let ends = [".index", ".data-00000-of-00002", ".data-00001-of-00002"];
    every_change_is_found("sharded", &ends, read_bundle);
}

#[test]
fn of_old_files() {
    every_change_is_found("old_sliced", &[""], read_old);
    every_change_is_found("old_strings", &[""], read_old);
}

/// The blocks of golden files, each byte changed and the checksum made right: what checksums cannot find ends with an
/// error or with tensors.
#[test]
fn of_what_checksums_do_not_find() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["sliced.index", "strings.index", "old_sliced", "old_strings"] {
        let file = fs::read(golden(name)).unwrap();
        // The first block ends where that of no entries begins, which the footer names.
        let mut footer = &file[file.len() - 48..];
        let meta = usize::try_from(varint(&mut footer).unwrap()).unwrap();
        let (kind, block) = (file[meta - 5], &file[..meta - 5]);
        for at in 0..block.len() {
            for change in [1, 0x80, 0xff] {
                let mut wrong = [&[1 + kind], block].concat();
                wrong[1 + at] ^= change;
                fuzzing::judge(&wrong, folder.path());
            }
        }
    }
}

/// The header of safetensors has no checksum: a cut is found, and a changed byte never ends the process.
#[test]
fn of_safetensors() {
    let folder = tempfile::tempdir().unwrap();
    let (access, path) = (any(), folder.path().join("x.safetensors"));
    let files = Files::new(&access, "file");
    let one = |name: &str, dims| SafeTensor { name: name.to_owned(), dtype: DType::INT16, dims };
    let tensors = [one("a", vec![2]), one("b", vec![1, 3])];
    let mut writer = SafeWriter::create(files, &path, &tensors).unwrap();
    writer.add(&[1, 2, 3, 4]).unwrap();
    writer.add(&[5; 6]).unwrap();
    writer.finish(files, &path).unwrap();
    let whole = fs::read(&path).unwrap();
    let put = |bytes: &[u8]| fs::OpenOptions::new().write(true).open(&path)?.write_all(bytes);
    let read = || {
        let file = SafeFile::open(files, &path)?;
        (0..file.tensors().len()).map(|at| file.read(at)).collect::<Result<Vec<_>, _>>()
    };
    assert_eq!(read().unwrap(), [vec![1, 2, 3, 4], vec![5; 6]]);
    let mut refused = 0;
    for at in 0..8 * whole.len() {
        let mut wrong = whole.clone();
        wrong[at / 8] ^= 1 << (at % 8);
        put(&wrong).unwrap();
        refused += usize::from(read().is_err());
    }
    assert!(refused > 4 * whole.len(), "{refused}");
    put(&whole).unwrap();
    let open = fs::OpenOptions::new().write(true).open(&path).unwrap();
    for at in (0..whole.len()).rev() {
        open.set_len(at as u64).unwrap();
        assert!(read().is_err(), "cut at {at}");
    }
}
