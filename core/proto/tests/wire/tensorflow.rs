//! Bytes that TensorFlow wrote (`testdata/make.py`) are read and written back unchanged.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use prost::encoding::decode_varint;
use tenon_proto::{AttrValueKind, DataType, decode_graph_def, encode};

use crate::kinds::kinds;
use crate::order::{fields, in_our_order};
use crate::schema::schema;

pub fn testdata(file: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata").join(file);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The records of a message's file.
pub fn records(message: &str) -> Vec<Vec<u8>> {
    let data = testdata(&format!("{message}.bin"));
    let mut rest = data.as_slice();
    let mut records = Vec::new();
    while !rest.is_empty() {
        let length = decode_varint(&mut rest).expect("a length") as usize;
        let (record, after) = rest.split_at(length);
        records.push(record.to_vec());
        rest = after;
    }
    records
}

#[test]
fn every_field_is_in_the_data() {
    for (message, expected) in schema() {
        let records = records(&message);
        let present: BTreeSet<u32> =
            records.iter().flat_map(|record| fields(record)).map(|found| found.number).collect();
        let expected: BTreeSet<u32> = expected.iter().map(|field| field.number).collect();
        assert_eq!(present, expected, "{message}");
    }
}

/// Our bytes must be TensorFlow's, put in our order. Where TensorFlow's order is ours already,
/// nothing but equality is left.
#[test]
fn what_tensorflow_wrote_is_written_back_unchanged() {
    let schema = schema();
    let (mut total, mut equal) = (0, 0);
    for (message, round_trip) in kinds() {
        for (index, record) in records(message).iter().enumerate() {
            let written =
                round_trip(record).unwrap_or_else(|error| panic!("{message} {index}: {error}"));
            assert!(written == in_our_order(&schema, message, record), "{message} {index}");
            total += 1;
            equal += usize::from(written == *record);
        }
    }
    println!("{equal} of {total} records equal without reordering");
    assert!(equal > 0);
}

#[test]
fn a_program_of_tensorflow_is_understood() {
    let bytes = testdata("graph.pb");
    let graph = decode_graph_def(&bytes).unwrap();
    assert!(encode(&graph).unwrap() == in_our_order(&schema(), "GraphDef", &bytes));

    let node = |name: &str| graph.node.iter().find(|node| node.name == name).expect("a node");
    assert_eq!(node("x").op, "Placeholder");
    assert_eq!(node("x").attr["dtype"].value, Some(AttrValueKind::Type(DataType::Float as i32)));
    assert_eq!(node("text").op, "StringJoin");
    let Some(AttrValueKind::Tensor(end)) = &node("Const").attr["value"].value else {
        panic!("a constant holds a tensor");
    };
    assert_eq!(end.dtype(), DataType::String);
    assert_eq!(end.string_val, [b"\xff end".to_vec()]);
    let library = graph.library.as_ref().expect("the program has functions");
    assert!(library.function.iter().any(|f| f.node_def.iter().any(|n| n.op.ends_with("While"))));
}
