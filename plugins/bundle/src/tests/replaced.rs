//! Bundles that are replaced, merged and read at the same time, and names that would damage them.

use super::{
    any,
    interrupted::{save, saved},
    read_bundle,
};
use crate::{BundleWriter, Content, Files, Part, data_file, index_file, merge};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tenon_sdk::{Code, DType};

#[test]
fn names_that_an_index_has_no_place_for_leave_the_last_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let (access, prefix) = (any(), folder.path().join("model"));
    let files = Files::new(&access, "prefix");
    save(files, &prefix, 1).unwrap();
    let part = Part::parse(b"4 0,2").unwrap().unwrap();
    for name in [&b""[..], b"\0", b"\0name"] {
        let mut writer = BundleWriter::create(files, &prefix).unwrap();
        let content = Content::Bytes(&[1, 2]);
        let error = writer.add_part(name, &part, DType::UINT8, content).unwrap_err();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT);
        assert!(error.to_string().contains("names that are not empty"), "{error}");
        let error = writer.add(name, DType::UINT8, &[2], content).unwrap_err();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT);
    }
    assert_eq!(saved(&prefix), 1);
}

/// Reads a tensor by the steps of a restore; `between` is called whenever the index was opened, and before the reading.
#[cfg(unix)]
fn restored(prefix: &Path, mut between: impl FnMut(usize)) -> (u8, usize) {
    let access = any();
    let mut calls = 0;
    let (mut bundle, entry) =
        crate::Bundle::open_with(Files::new(&access, "prefix"), prefix, |bundle| {
            between(calls);
            calls += 1;
            let entry = bundle.find(b"large")?.expect("it was saved");
            bundle.check(b"large", &entry, None)?;
            Ok(entry)
        })
        .unwrap();
    // The files that were opened are read, whatever has their names now.
    between(usize::MAX);
    let mut out = vec![0; entry.elements() as usize];
    bundle.read(b"large", &entry, None, &mut out).unwrap();
    (out[0], calls)
}

#[cfg(unix)]
#[test]
fn a_reader_has_one_of_the_checkpoints_that_are_saved_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let (access, prefix) = (any(), folder.path().join("model"));
    let files = Files::new(&access, "prefix");
    save(files, &prefix, 1).unwrap();
    assert_eq!(restored(&prefix, |_| ()), (1, 1));
    // The data file of the index that was opened is removed; after two saves another one has its name.
    for (saves, expected) in [(1, 2), (2, 3)] {
        let again = |call: usize| {
            if call == 0 {
                (0..saves).for_each(|at| save(files, &prefix, 2 + at).unwrap());
            }
        };
        assert_eq!(restored(&prefix, again), (expected, 2));
    }
    let late = |call: usize| {
        if call == usize::MAX {
            save(files, &prefix, 8).unwrap();
            save(files, &prefix, 9).unwrap();
        }
    };
    assert_eq!(restored(&prefix, late), (3, 1));
    assert_eq!(saved(&prefix), 9);
}

#[test]
fn a_prefix_that_ends_in_a_separator_is_locked_by_its_own_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (access, inner) = (any(), folder.path().join("inner"));
    let mut prefix = inner.clone().into_os_string();
    prefix.push("/");
    let prefix = PathBuf::from(prefix);
    let held = access.folder_of("test", &inner).unwrap();
    assert!(held.try_lock("test").unwrap());
    // A save that asked for the lock of the outer folder would wait for a minute, and fail.
    save(Files::new(&access, "prefix"), &prefix, 5).unwrap();
    assert!(inner.join(".index").exists());
    assert_eq!(saved(&prefix), 5);
}

fn one(files: Files<'_>, prefix: &Path, name: &str) {
    let mut writer = BundleWriter::create(files, prefix).unwrap();
    writer.add(name.as_bytes(), DType::UINT8, &[2], Content::Bytes(&[1, 2])).unwrap();
    writer.finish().unwrap();
}

#[test]
fn a_merge_that_cannot_be_done_renames_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (access, merged) = (any(), folder.path().join("merged"));
    let files = Files::new(&access, "checkpoint_prefixes");
    let parts = [folder.path().join("a"), folder.path().join("b")];
    one(files, &parts[0], "x");
    one(files, &parts[1], "y");
    let data = data_file(&parts[1], 0, 1);
    let names = || fs::read_dir(folder.path()).unwrap().count();
    fs::write(&data, [1]).unwrap();
    let error = merge(files, &parts, &merged, true, false).unwrap_err();
    assert_eq!(error.code(), Code::OUT_OF_RANGE, "{error}");
    fs::remove_file(&data).unwrap();
    let error = merge(files, &parts, &merged, true, false).unwrap_err();
    assert_eq!(error.code(), Code::NOT_FOUND, "{error}");
    assert_eq!(names(), 3);
    assert_eq!(read_bundle(&parts[0]).unwrap().len(), 1);
    fs::write(&data, [1, 2]).unwrap();
    merge(files, &parts, &merged, true, false).unwrap();
    assert_eq!((read_bundle(&merged).unwrap().len(), names()), (2, 3));
}

#[cfg(unix)]
#[test]
fn a_merge_knows_a_bundle_by_other_names() {
    let folder = tempfile::tempdir().unwrap();
    let access = any();
    let files = Files::new(&access, "checkpoint_prefixes");
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    one(files, &a, "x");
    one(files, &b, "y");
    std::os::unix::fs::symlink(folder.path(), folder.path().join("link")).unwrap();
    let alias = folder.path().join("link/a");
    for other in [&a, &alias] {
        let error = merge(files, &[a.clone(), other.clone()], &b, true, false).unwrap_err();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{error}");
        assert!(error.to_string().starts_with("checkpoint_prefixes: "), "{error}");
    }
    // One of the bundles has the prefix of the result, by another name.
    merge(files, &[alias, b.clone()], &a, false, false).unwrap();
    assert_eq!(read_bundle(&a).unwrap().len(), 2);
    assert!(!index_file(&b).exists());
}
