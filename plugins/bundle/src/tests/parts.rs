//! Parts of tensors, numbers of machines of the other byte order, and entries that cannot be.

use super::{any, read_bundle};
use crate::{
    Bundle, BundleWriter, Content, Entry, Extent, Files, Part, TensorSlice, data_file,
    files::Temporary, index_file, stored_size, table::TableWriter,
};
use proptest::prelude::*;
use prost::Message;
use std::{fs, path::Path};
use tenon_proto::checksum::{extend, mask};
use tenon_proto::{BundleEntryProto, BundleHeaderProto, VersionDef};
use tenon_sdk::{Code, DType};

/// Writes an index with these entries.
pub(super) fn write_index(prefix: &Path, header: &BundleHeaderProto, entries: &[(&[u8], Vec<u8>)]) {
    let access = any();
    let path = index_file(prefix);
    let file = Temporary::create(Files::new(&access, "prefix"), &path).unwrap();
    let mut table = TableWriter::new(file);
    table.add(b"", &header.encode_to_vec()).unwrap();
    for (key, value) in entries {
        table.add(key, value).unwrap();
    }
    let mut file = table.finish().unwrap();
    file.sync().unwrap();
    file.publish(&path).unwrap();
}

pub(super) fn header_of(endianness: i32, min_consumer: i32) -> BundleHeaderProto {
    let version = VersionDef { producer: 1, min_consumer, ..VersionDef::default() };
    BundleHeaderProto { num_shards: 1, endianness, version: Some(version) }
}

pub(super) fn entry(dtype: DType, dims: &[i64], offset: u64, bytes: &[u8]) -> Entry {
    Entry {
        dtype,
        dims: dims.to_vec(),
        shard: 0,
        offset,
        size: bytes.len() as u64,
        checksum: mask(extend(0, bytes)),
        slices: Vec::new(),
    }
}

#[test]
fn numbers_of_the_other_byte_order_are_swapped() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("big");
    let numbers = [1.5f64.to_be_bytes(), (-2.0f64).to_be_bytes()].concat();
    let complex = [3.0f32.to_be_bytes(), 4.0f32.to_be_bytes()].concat();
    let lengths = extend(extend(0, &2u32.to_be_bytes()), &1u32.to_be_bytes());
    let sum = mask(lengths).to_be_bytes();
    let text = [&[2, 1][..], &sum, b"abc"].concat();
    let text_sum = mask(extend(extend(lengths, &sum), b"abc"));
    let data = [&numbers[..], &complex, &text].concat();
    fs::write(data_file(&prefix, 0, 1), &data).unwrap();
    let proto = |entry: Entry| entry.to_proto().unwrap().encode_to_vec();
    let texts = Entry { checksum: text_sum, ..entry(DType::STRING, &[2], 24, &text) };
    let entries = [
        (&b"c"[..], proto(entry(DType::COMPLEX64, &[], 16, &complex))),
        (b"d", proto(entry(DType::DOUBLE, &[2], 0, &numbers))),
        (b"s", proto(texts)),
    ];
    write_index(&prefix, &header_of(1, 0), &entries);
    let found = read_bundle(&prefix).unwrap();
    let expected = [1.5f64.to_le_bytes(), (-2.0f64).to_le_bytes()].concat();
    assert_eq!(found[1].elements, super::Elements::Bytes(expected));
    let expected = [3.0f32.to_le_bytes(), 4.0f32.to_le_bytes()].concat();
    assert_eq!(found[0].elements, super::Elements::Bytes(expected));
    let super::Elements::Strings(texts) = &found[2].elements else { panic!("expected strings") };
    assert_eq!(texts.iter().collect::<Vec<_>>(), [&b"ab"[..], b"c"]);
}

#[test]
fn entries_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("x");
    fs::write(data_file(&prefix, 0, 1), [0; 8]).unwrap();
    let right = entry(DType::FLOAT, &[2], 0, &[0; 8]).to_proto().unwrap();
    let refused = |change: &dyn Fn(&mut BundleEntryProto)| {
        let mut wrong = right.clone();
        change(&mut wrong);
        write_index(&prefix, &header_of(0, 0), &[(b"x", wrong.encode_to_vec())]);
        let error = read_bundle(&prefix).unwrap_err();
        (error.code(), error.to_string())
    };
    let shape = |sizes: &[i64]| Some(crate::entry::shape_of(sizes));
    type Change<'c> = (&'c dyn Fn(&mut BundleEntryProto), &'c str);
    let changes: [Change<'_>; 8] = [
        (&|e| e.size = i64::MAX, "its size is 9223372036854775807"),
        (&|e| e.size = -1, "its size is negative"),
        (&|e| e.offset = -8, "its offset is negative"),
        (&|e| e.shard_id = 1, "it is in data file 1 of 1"),
        (&|e| e.dtype = 77, "it has the unknown type 77"),
        (&|e| e.shape = shape(&[-1]), "its shape is not complete"),
        (&|e| e.shape = shape(&[1 << 40, 1 << 40]), "its shape is not complete"),
        (&|e| e.shape = shape(&[0, i64::MAX, i64::MAX]), "its shape is not complete"),
    ];
    for (change, expected) in changes {
        let (code, message) = refused(change);
        assert_eq!(code, Code::DATA_LOSS);
        assert!(message.contains(expected), "{message}");
    }
    let (code, message) = refused(&|e| (e.offset, e.size) = (i64::MAX - 4, 8));
    assert_eq!(code, Code::OUT_OF_RANGE);
    assert!(message.contains("expected 8 bytes from byte"), "{message}");
    write_index(&prefix, &header_of(0, 2), &[(b"x", right.encode_to_vec())]);
    let error = read_bundle(&prefix).unwrap_err();
    assert_eq!(error.code(), Code::UNIMPLEMENTED);
    assert!(error.to_string().contains("it needs a reader of version 2"), "{error}");
}

#[test]
fn a_table_of_many_blocks_finds_each_key() {
    let folder = tempfile::tempdir().unwrap();
    let (access, prefix) = (any(), folder.path().join("many"));
    let files = Files::new(&access, "prefix");
    let mut writer = BundleWriter::create(files, &prefix).unwrap();
    let name = |at: i32| format!("layer/{at:06}/kernel_of_a_network_with_a_long_name");
    for at in 0..20_000 {
        writer
            .add(name(at).as_bytes(), DType::INT32, &[], Content::Bytes(&at.to_le_bytes()))
            .unwrap();
    }
    writer.finish().unwrap();
    assert!(fs::metadata(index_file(&prefix)).unwrap().len() > 1 << 19);
    let mut bundle = Bundle::open(files, &prefix).unwrap();
    for at in (0..20_000).step_by(97) {
        let entry = bundle.find(name(at).as_bytes()).unwrap().unwrap();
        let mut out = [0; 4];
        bundle.read(b"x", &entry, None, &mut out).unwrap();
        assert_eq!(i32::from_le_bytes(out), at);
        assert_eq!(bundle.find(format!("{}x", name(at)).as_bytes()).unwrap(), None);
    }
    assert_eq!(bundle.entries().unwrap().len(), 20_000);
}

/// The shape, the dimension, the lengths of the cuts, and start and length of the part in each dimension.
type Cut = (Vec<i64>, usize, Vec<i64>, Vec<(i64, i64)>);

/// A tensor, cut along one dimension, and a part of it to read.
fn cut() -> impl Strategy<Value = Cut> {
    prop::collection::vec(1i64..6, 1..4).prop_flat_map(|dims| {
        let parts =
            dims.iter().map(|&dim| (0..dim).prop_flat_map(move |at| (Just(at), 1..=dim - at)));
        let parts: Vec<_> = parts.collect();
        let (axis, rank) = (0..dims.len(), dims.len());
        (Just(dims), axis, prop::collection::vec(1i64..4, rank), parts)
    })
}

fn part(dims: &[i64], slice: Vec<Extent>) -> Part {
    let slice = TensorSlice(slice);
    let part = slice.dims(dims).unwrap();
    Part { dims: dims.to_vec(), slice, part }
}

/// The elements of a part of a tensor whose elements are their positions.
fn elements(part: &Part) -> Vec<u8> {
    let mut out = Vec::new();
    for number in 0..part.part.iter().product::<i64>() {
        let (mut rest, mut at, mut size) = (number, 0, 1);
        for (axis, &dim) in part.dims.iter().enumerate().rev() {
            at += (part.slice.0[axis].start + rest % part.part[axis]) * size;
            rest /= part.part[axis];
            size *= dim;
        }
        out.extend_from_slice(&(at as i32).to_le_bytes());
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_part_is_read_from_any_slices((dims, axis, steps, wanted) in cut()) {
        let folder = tempfile::tempdir().unwrap();
        let (access, prefix) = (any(), folder.path().join("x"));
        let files = Files::new(&access, "prefix");
        let mut writer = BundleWriter::create(files, &prefix).unwrap();
        let mut start = 0;
        while start < dims[axis] {
            let length = steps[0].min(dims[axis] - start);
            let mut slice = vec![crate::WHOLE; dims.len()];
            slice[axis] = Extent { start, length: Some(length) };
            let piece = part(&dims, slice);
            writer.add_part(b"x", &piece, DType::INT32, Content::Bytes(&elements(&piece))).unwrap();
            start += length;
        }
        writer.finish().unwrap();
        let mut bundle = Bundle::open(files, &prefix).unwrap();
        let entry = bundle.find(b"x").unwrap().unwrap();
        let extents = wanted.iter().map(|&(start, length)| Extent { start, length: Some(length) });
        let wanted = part(&dims, extents.collect());
        let expected = elements(&wanted);
        let mut out = vec![0; expected.len()];
        bundle.read(b"x", &entry, Some(&wanted), &mut out).unwrap();
        prop_assert_eq!(&out, &expected);
        prop_assert_eq!(stored_size(entry.dtype), Some(4));
    }
}

#[test]
fn what_slices_do_not_have_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let (access, prefix) = (any(), folder.path().join("x"));
    let files = Files::new(&access, "prefix");
    let parse = |text: &str| Part::parse(text.as_bytes()).unwrap().unwrap();
    let mut writer = BundleWriter::create(files, &prefix).unwrap();
    let bytes = [1, 2, 3];
    writer.add_part(b"x", &parse("8 0,3"), DType::UINT8, Content::Bytes(&bytes)).unwrap();
    writer.add_part(b"x", &parse("8 2,3"), DType::UINT8, Content::Bytes(&bytes)).unwrap();
    let wrong = |writer: &mut BundleWriter<'_>, spec: &str, dtype| {
        let error = writer.add_part(b"x", &parse(spec), dtype, Content::Bytes(&bytes)).unwrap_err();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT);
        error.to_string()
    };
    assert_eq!(wrong(&mut writer, "8 0,3", DType::UINT8), "Adding duplicate key: x");
    assert!(wrong(&mut writer, "9 5,3", DType::UINT8).contains("expected a slice of type uint8"));
    assert!(wrong(&mut writer, "8 5,3", DType::INT8).contains("found type int8"));
    writer.finish().unwrap();
    let mut bundle = Bundle::open(files, &prefix).unwrap();
    let entry = bundle.find(b"x").unwrap().unwrap();
    let mut read = |spec: &str, len: usize| {
        bundle.read(b"x", &entry, Some(&parse(spec)), &mut vec![0; len]).map_err(|e| e.to_string())
    };
    assert_eq!(read("8 0,2", 2), Ok(()));
    let sufficient =
        "Does not have sufficient slices for partitioned tensor x to restore in slice_spec: 4,3";
    assert_eq!(read("8 4,3", 3), Err(sufficient.to_owned()));
    assert!(read("8 1,3", 3).unwrap_err().starts_with("Overlapping slices"));
    assert!(read("7 1,3", 3).unwrap_err().contains("does not match the shape stored"));
}
