//! Indices that name more than their files have: each is refused before memory is taken for it.

use super::{
    any,
    parts::{entry, header_of, write_index},
    read_bundle, read_old,
};
use crate::{
    Entry, Extent, Files, TensorSlice, data_file,
    files::Temporary,
    messages::{
        SavedSlice, SavedSliceMeta, SavedTensorSliceMeta, SavedTensorSlices, TensorSliceProto,
    },
    ordered::slice_key,
    table::TableWriter,
};
use prost::Message;
use std::{fs, path::Path};
use tenon_proto::TensorProto;
use tenon_sdk::{Code, DType};

fn slice(start: i64, length: i64) -> TensorSlice {
    TensorSlice(vec![Extent { start, length: Some(length) }])
}

/// Writes an index of one tensor `x`, whose slices have these entries.
fn write_slices(prefix: &Path, dtype: DType, dim: i64, slices: &[(TensorSlice, Entry)]) {
    let mut whole = entry(dtype, &[dim], 0, &[]);
    whole.slices = slices.iter().map(|(slice, _)| slice.clone()).collect();
    let encoded = |entry: &Entry| entry.to_proto().unwrap().encode_to_vec();
    let keys: Vec<_> = slices.iter().map(|(slice, _)| slice_key(b"x", &slice.0)).collect();
    let mut entries: Vec<(&[u8], Vec<u8>)> =
        keys.iter().zip(slices).map(|(key, (_, entry))| (&key[..], encoded(entry))).collect();
    entries.push((b"x", encoded(&whole)));
    write_index(prefix, &header_of(0, 0), &entries);
}

#[test]
fn strings_of_slices_that_no_file_has() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("x");
    fs::write(data_file(&prefix, 0, 1), [0; 8]).unwrap();
    for count in [2, 3, 4] {
        let dim = 1i64 << 32;
        let length = dim / count;
        let one = |at: i64| {
            let size = i64::MAX as u64;
            (slice(at * length, length), Entry { size, ..entry(DType::STRING, &[length], 0, &[]) })
        };
        let slices: Vec<_> = (0..count).map(one).collect();
        write_slices(&prefix, DType::STRING, dim, &slices);
        let error = read_bundle(&prefix).unwrap_err();
        assert_eq!(error.code(), Code::OUT_OF_RANGE, "{error}");
        assert!(error.to_string().contains("expected 9223372036854775807 bytes"), "{error}");
    }
}

#[test]
fn slices_that_are_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (access, prefix) = (any(), folder.path().join("x"));
    let bytes = [7; 8];
    fs::write(data_file(&prefix, 0, 1), bytes).unwrap();
    let write = |slices: i64| {
        let one = |at: i64| (slice(at * 4, 4), entry(DType::UINT8, &[4], 0, &bytes[..4]));
        let slices: Vec<_> = (0..slices).map(one).collect();
        write_slices(&prefix, DType::UINT8, 4 * slices.len() as i64, &slices);
        let mut bundle = crate::Bundle::open(Files::new(&access, "prefix"), &prefix).unwrap();
        let entry = bundle.find(b"x").unwrap().unwrap();
        bundle.check(b"x", &entry, None)
    };
    assert!(write(2).is_ok());
    let error = write(3).unwrap_err();
    assert_eq!(error.code(), Code::DATA_LOSS);
    let expected = "expected the slices of tensor 'x' to have at most the 8 bytes of their data files, found 12 bytes";
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn an_old_file_that_lists_one_slice_often() {
    let folder = tempfile::tempdir().unwrap();
    let (access, path) = (any(), folder.path().join("x"));
    let one = TensorSliceProto::of(&slice(0, 1).0);
    let data = TensorProto {
        dtype: DType::STRING.0 as i32,
        string_val: vec![vec![b'a'; 64]],
        ..TensorProto::default()
    };
    let data = SavedSlice { name: b"t".to_vec(), slice: Some(one.clone()), data: Some(data) };
    let write = |dim: i64, times: usize| {
        let tensor = SavedSliceMeta {
            name: b"t".to_vec(),
            shape: Some(crate::entry::shape_of(&[dim])),
            r#type: DType::STRING.0 as i32,
            slice: vec![one.clone(); times],
        };
        let meta = SavedTensorSliceMeta { tensor: vec![tensor], versions: None };
        let meta = SavedTensorSlices { meta: Some(meta), data: None };
        let data = SavedTensorSlices { meta: None, data: Some(data.clone()) };
        let files = Files::new(&access, "filename");
        let mut table = TableWriter::new(Temporary::create(files, &path).unwrap());
        table.add(b"", &meta.encode_to_vec()).unwrap();
        table.add(&slice_key(b"t", &slice(0, 1).0), &data.encode_to_vec()).unwrap();
        let mut file = table.finish().unwrap();
        file.sync().unwrap();
        file.publish(&path).unwrap();
    };
    write(1, 1);
    assert_eq!(read_old(&path).unwrap().len(), 1);
    write(100, 100_000);
    let begin = std::time::Instant::now();
    let error = read_old(&path).unwrap_err();
    assert_eq!(error.code(), Code::INVALID_ARGUMENT);
    assert!(error.to_string().starts_with("Overlapping slices of tensor t"), "{error}");
    // Decoding all of them would take longer than reading the list.
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
}
