//! Bytes that are no message, or hardly one, give an error and nothing worse.

use proptest::prelude::*;
use prost::encoding::{WireType, encode_key, encode_varint};
use tenon_proto::fuzzing::fuzz_graph_def;
use tenon_proto::{ProtoError, decode_graph_def};

use crate::kinds::kinds;
use crate::schema::schema;
use crate::tensorflow::{records, testdata};

#[test]
fn a_truncated_graph_is_refused_or_a_prefix() {
    let bytes = testdata("graph.pb");
    let whole = decode_graph_def(&bytes).unwrap();
    for length in 0..bytes.len() {
        fuzz_graph_def(&bytes[..length]);
        match decode_graph_def(&bytes[..length]) {
            Ok(graph) => assert!(whole.node.starts_with(&graph.node), "cut at {length}"),
            Err(ProtoError::Malformed { offset, length: found, .. }) => {
                assert!(offset <= length && found == length, "cut at {length}: {offset}");
            }
            Err(other) => panic!("cut at {length}: {other}"),
        }
    }
}

#[test]
fn a_length_beyond_the_end_is_refused() {
    let kinds = kinds();
    for (message, fields) in schema() {
        for field in fields {
            let mut bytes = Vec::new();
            encode_key(field.number, WireType::LengthDelimited, &mut bytes);
            encode_varint(u64::MAX, &mut bytes);
            bytes.push(1);
            assert!(kinds[message.as_str()](&bytes).is_err(), "{message}.{}", field.name);
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzz_graph_def(&bytes);
        for round_trip in kinds().values() {
            if let Ok(written) = round_trip(&bytes) {
                prop_assert_eq!(round_trip(&written), Ok(written));
            }
        }
    }

    #[test]
    fn a_changed_graph_never_panics(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = testdata("graph.pb");
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        fuzz_graph_def(&bytes);
        fuzz_graph_def(&bytes[..cut.index(bytes.len())]);
    }

    #[test]
    fn a_changed_record_never_panics(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let kinds = kinds();
        let message = *which.get(&kinds.keys().copied().collect::<Vec<_>>());
        for mut record in records(message) {
            if record.is_empty() {
                continue;
            }
            let at = at.index(record.len());
            record[at] = value;
            if let Ok(written) = kinds[message](&record) {
                prop_assert_eq!(kinds[message](&written), Ok(written), "{}", message);
            }
        }
    }
}
