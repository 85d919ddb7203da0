//! Files of TensorFlow, as `tests/goldens/checkpoints/generate.py` made them.

use super::{Elements, Named, any, golden, read_bundle, read_old, with_content};
use crate::{
    Bundle, BundleWriter, Content, Entry, Files, Part, SafeFile, SafeTensor, SafeWriter, Saved,
    Strings, data_file, element_count, index_file, merge, write_slices,
};
use serde_json::Value;
use std::{fs, path::Path};
use tenon_sdk::{Code, DType};

fn bytes(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..][..2], 16).unwrap()).collect()
}

/// What a checkpoint holds, in the order of the names.
fn expected(name: &str) -> Vec<Named> {
    let text = fs::read_to_string(golden("expected.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let mut found: Vec<Named> = all[name].as_array().unwrap().iter().map(named).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn named(row: &Value) -> Named {
    let elements = match row.get("strings") {
        Some(texts) => {
            let mut strings = Strings::default();
            let texts = texts.as_array().unwrap().iter();
            texts.for_each(|text| strings.push(&bytes(text)).unwrap());
            Elements::Strings(strings)
        }
        None => Elements::Bytes(bytes(&row["hex"])),
    };
    Named {
        name: row["name"].as_str().unwrap().as_bytes().to_vec(),
        dtype: DType::from_name(row["dtype"].as_str().unwrap()).unwrap(),
        dims: row["shape"].as_array().unwrap().iter().map(|dim| dim.as_i64().unwrap()).collect(),
        elements,
    }
}

/// A name, a type, a shape and the elements.
type Compared = (Vec<u8>, DType, Vec<i64>, Vec<Vec<u8>>);

/// Strings are equal by their elements: where they are in memory does not count.
fn elements(named: &[Named]) -> Vec<Compared> {
    let of = |named: &Named| match &named.elements {
        Elements::Bytes(bytes) => vec![bytes.clone()],
        Elements::Strings(strings) => strings.iter().map(<[u8]>::to_vec).collect(),
    };
    named.iter().map(|one| (one.name.clone(), one.dtype, one.dims.clone(), of(one))).collect()
}

#[test]
fn bundles_of_tensorflow_are_read() {
    for name in ["whole", "strings", "sliced", "sharded"] {
        let found = read_bundle(&golden(name)).unwrap();
        assert_eq!(elements(&found), elements(&expected(name)), "{name}");
    }
    let mut found = read_bundle(&golden("objects")).unwrap();
    let graph = found.iter().position(|one| one.name == b"_CHECKPOINTABLE_OBJECT_GRAPH").unwrap();
    assert_eq!(found.remove(graph).dtype, DType::STRING);
    assert_eq!(elements(&found), elements(&expected("objects")));
    let mut found = read_bundle(&golden("variants")).unwrap();
    let Elements::Strings(list) = found.remove(0).elements else { panic!("expected a variant") };
    let message: Vec<u8> = list.iter().flatten().copied().collect();
    assert!(message.windows(22).any(|part| part == b"tensorflow::TensorList"), "{message:?}");
    assert_eq!(elements(&found), elements(&expected("variants")));
}

#[test]
fn old_files_of_tensorflow_are_read() {
    for name in ["old", "old_strings", "old_sliced", "old_sharded-?????-of-?????"] {
        let found = read_old(&golden(name)).unwrap();
        assert_eq!(elements(&found), elements(&expected(name)), "{name}");
    }
}

/// The tensors of a bundle, in the order in which they were written.
fn in_order(prefix: &Path) -> Vec<Named> {
    let access = any();
    let mut bundle = Bundle::open(Files::new(&access, "prefix"), prefix).unwrap();
    let entries: Vec<(Vec<u8>, Entry)> = bundle.entries().unwrap();
    let mut tensors = read_bundle(prefix).unwrap();
    let place = |name: &[u8]| {
        let entry = &entries.iter().find(|(known, _)| known == name).unwrap().1;
        (entry.offset, entry.size)
    };
    tensors.sort_by_key(|one| place(&one.name));
    tensors
}

#[test]
fn the_same_tensors_give_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let access = any();
    for name in ["whole", "strings", "objects", "variants"] {
        let prefix = folder.path().join(name);
        let mut writer = BundleWriter::create(Files::new(&access, "prefix"), &prefix).unwrap();
        for one in in_order(&golden(name)) {
            let add = |content: Content<'_>| writer.add(&one.name, one.dtype, &one.dims, content);
            with_content(&one.elements, add).unwrap();
        }
        writer.finish().unwrap();
        same_files(&prefix, &golden(name));
    }
}

#[track_caller]
fn same_files(found: &Path, expected: &Path) {
    for file in [index_file, |prefix: &Path| data_file(prefix, 0, 1)] {
        let (found, expected) = (file(found), file(expected));
        assert!(fs::read(&found).unwrap() == fs::read(expected).unwrap(), "{}", found.display());
    }
}

/// The parts of `generate.py`, of float and of strings.
const PARTS: [(&str, &str); 8] = [
    ("rows", "4 3 0,1:-"),
    ("rows", "4 3 1,3:-"),
    ("boxes", "4 3 0,4:0,2"),
    ("boxes", "4 3 0,2:2,1"),
    ("boxes", "4 3 2,2:2,1"),
    ("words", "70 0,64"),
    ("words", "70 64,6"),
    ("full", "4 3 0,4:0,3"),
];

/// A part of a golden tensor, read as such.
fn part_of(name: &str, part: &Part) -> (DType, Elements) {
    let access = any();
    let mut bundle = Bundle::open(Files::new(&access, "prefix"), &golden("sliced")).unwrap();
    let entry = bundle.find(name.as_bytes()).unwrap().unwrap();
    let elements = match entry.dtype {
        DType::STRING => {
            Elements::Strings(bundle.read_strings(name.as_bytes(), &entry, Some(part)).unwrap())
        }
        _ => {
            let mut out = vec![0; 4 * element_count(&part.part).unwrap() as usize];
            bundle.read(name.as_bytes(), &entry, Some(part), &mut out).unwrap();
            Elements::Bytes(out)
        }
    };
    (entry.dtype, elements)
}

#[test]
fn the_same_parts_give_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let (access, prefix) = (any(), folder.path().join("sliced"));
    let mut writer = BundleWriter::create(Files::new(&access, "prefix"), &prefix).unwrap();
    for (name, spec) in PARTS {
        let part = Part::parse(spec.as_bytes()).unwrap().unwrap();
        let (dtype, elements) = part_of(name, &part);
        with_content(&elements, |content| writer.add_part(name.as_bytes(), &part, dtype, content))
            .unwrap();
    }
    writer.finish().unwrap();
    same_files(&prefix, &golden("sliced"));
}

#[test]
fn old_files_are_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let (access, file) = (any(), folder.path().join("old"));
    for name in ["old", "old_strings"] {
        let tensors = read_old(&golden(name)).unwrap();
        let texts: Vec<Vec<&[u8]>> = tensors
            .iter()
            .map(|one| match &one.elements {
                Elements::Strings(strings) => strings.iter().collect(),
                Elements::Bytes(_) => Vec::new(),
            })
            .collect();
        let saved = tensors.iter().zip(&texts).map(|(one, texts)| Saved {
            name: &one.name,
            part: None,
            dtype: one.dtype,
            dims: &one.dims,
            content: match &one.elements {
                Elements::Bytes(bytes) => Content::Bytes(bytes),
                Elements::Strings(_) => Content::Strings(texts),
            },
        });
        let saved: Vec<Saved<'_>> = saved.collect();
        write_slices(Files::new(&access, "filename"), &file, &saved).unwrap();
        assert_eq!(elements(&read_old(&file).unwrap()), elements(&expected(name)), "{name}");
    }
    let one = Saved {
        name: b"x",
        part: None,
        dtype: DType::BFLOAT16,
        dims: &[1],
        content: Content::Bytes(&[0, 0]),
    };
    let error = write_slices(Files::new(&access, "filename"), &file, &[one]).unwrap_err();
    assert_eq!(error.code(), Code::UNIMPLEMENTED);
    let twice = [Saved { dtype: DType::HALF, ..one }, Saved { dtype: DType::HALF, ..one }];
    let error = write_slices(Files::new(&access, "filename"), &file, &twice).unwrap_err();
    assert_eq!(error.to_string(), "Adding duplicate key: x");
}

#[test]
fn bundles_are_merged_as_tensorflow_merges_them() {
    let folder = tempfile::tempdir().unwrap();
    let access = any();
    let files = Files::new(&access, "checkpoint_prefixes");
    let tensors = expected("sharded");
    let parts = [folder.path().join("p0/part"), folder.path().join("p1/part")];
    for (prefix, names) in parts.iter().zip([&[0, 2][..], &[1]]) {
        let mut writer = BundleWriter::create(files, prefix).unwrap();
        for &at in names {
            let one = &tensors[at];
            let add = |content: Content<'_>| writer.add(&one.name, one.dtype, &one.dims, content);
            with_content(&one.elements, add).unwrap();
        }
        writer.finish().unwrap();
    }
    let merged = folder.path().join("sharded");
    let missing = folder.path().join("missing");
    let with = [parts[0].clone(), missing.clone()];
    let error = merge(files, &with, &merged, true, false).unwrap_err();
    assert_eq!(error.code(), Code::INVALID_ARGUMENT);
    assert!(error.to_string().contains("missing did not exist"), "{error}");
    let error = merge(files, &[missing], &merged, true, true).unwrap_err();
    assert!(error.to_string().starts_with("At least one prefix checkpoint"), "{error}");
    merge(files, &parts, &merged, true, false).unwrap();
    assert_eq!(fs::read(index_file(&merged)).unwrap(), fs::read(golden("sharded.index")).unwrap());
    assert_eq!(read_bundle(&merged).unwrap(), tensors);
    assert!(!folder.path().join("p0").exists() && !folder.path().join("p1").exists());
}

#[test]
fn safetensors_are_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let (access, file) = (any(), folder.path().join("x.safetensors"));
    let files = Files::new(&access, "file");
    let no_place = [DType::COMPLEX128, DType::QINT8, DType::QUINT8, DType::QINT32];
    let tensors: Vec<Named> =
        expected("whole").into_iter().filter(|one| !no_place.contains(&one.dtype)).collect();
    let one = |one: &Named| SafeTensor {
        name: String::from_utf8(one.name.clone()).unwrap(),
        dtype: one.dtype,
        dims: one.dims.clone(),
    };
    let mut all: Vec<SafeTensor> = tensors.iter().map(one).collect();
    SafeWriter::sort(&mut all);
    let mut writer = SafeWriter::create(files, &file, &all).unwrap();
    let bytes = |name: &str| {
        let one = tensors.iter().find(|one| one.name == name.as_bytes()).unwrap();
        match &one.elements {
            Elements::Bytes(bytes) => bytes,
            Elements::Strings(_) => panic!("safetensors have no strings"),
        }
    };
    all.iter().for_each(|one| writer.add(bytes(&one.name)).unwrap());
    writer.finish(files, &file).unwrap();
    // As the crate itself reads it.
    let contents = fs::read(&file).unwrap();
    let parsed = safetensors::SafeTensors::deserialize(&contents).unwrap();
    assert_eq!(parsed.len(), tensors.len());
    let ours = SafeFile::open(files, &file).unwrap();
    for (at, one) in ours.tensors().enumerate() {
        assert_eq!(parsed.tensor(&one.name).unwrap().data(), bytes(&one.name));
        assert_eq!(&ours.read(at).unwrap(), bytes(&one.name));
    }
    let text = SafeTensor { name: "t".to_owned(), dtype: DType::STRING, dims: vec![] };
    let error = SafeWriter::create(files, &file, &[text]).unwrap_err();
    assert_eq!(error.code(), Code::UNIMPLEMENTED);
}
