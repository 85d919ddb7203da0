//! Limits and the words of errors.

use std::collections::BTreeMap;

use tenon_proto::{
    AttrValue, AttrValueKind, GraphDef, MAX_MESSAGE_BYTES, NameAttrList, NodeDef, ProtoError,
    TensorProto, decode, decode_graph_def, encode,
};

/// An attribute that is a function with an attribute that is a function, `depth` times.
fn nested(depth: usize) -> AttrValue {
    (0..depth).fold(AttrValue::default(), |inner, _| AttrValue {
        value: Some(AttrValueKind::Func(NameAttrList {
            name: "f".into(),
            attr: BTreeMap::from([("a".into(), inner)]),
        })),
    })
}

#[test]
fn nesting_beyond_the_limit_is_refused() {
    let deep = encode(&nested(30)).unwrap();
    assert_eq!(decode::<AttrValue>(&deep), Ok(nested(30)));
    let error = decode::<AttrValue>(&encode(&nested(200)).unwrap()).unwrap_err();
    assert!(error.to_string().contains("recursion limit reached"), "{error}");
}

/// Written by hand, since a message this deep would overflow the stack when it is dropped.
#[test]
fn bottomless_nesting_is_refused() {
    let mut bytes = Vec::new();
    for _ in 0..50_000 {
        // AttrValue.list = 1 holds ListValue.func = 9, which holds NameAttrList.attr = 2 ...
        for key in [0x12, 0x12, 0x4a, 0x0a] {
            let mut outer = vec![key];
            prost::encoding::encode_varint(bytes.len() as u64, &mut outer);
            outer.reverse();
            bytes.extend(outer);
        }
    }
    bytes.reverse();
    let error = decode::<AttrValue>(&bytes).unwrap_err();
    assert!(error.to_string().contains("recursion limit reached"), "{error}");
}

#[test]
fn too_many_bytes_are_refused_before_they_are_read() {
    let bytes = vec![0; MAX_MESSAGE_BYTES + 1];
    let error = decode_graph_def(&bytes).unwrap_err();
    assert_eq!(
        error,
        ProtoError::TooLarge {
            message: "GraphDef",
            limit: MAX_MESSAGE_BYTES,
            found: MAX_MESSAGE_BYTES + 1
        }
    );
    assert_eq!(error.code(), tenon_framework::Code::INVALID_ARGUMENT);
    let tensor = TensorProto { tensor_content: bytes.into(), ..TensorProto::default() };
    let error = encode(&tensor).unwrap_err();
    assert_eq!(
        error.to_string(),
        "tensorflow.TensorProto: expected at most 2147483647 encoded bytes, found 2147483654; \
         keep large constants outside the graph, in variables or feeds"
    );
}

#[test]
fn an_error_names_message_field_and_place() {
    let node = NodeDef { name: "x".into(), op: "NoOp".into(), ..NodeDef::default() };
    let mut bytes = encode(&GraphDef { node: vec![node], ..GraphDef::default() }).unwrap();
    let op = bytes.windows(4).position(|window| window == b"NoOp").expect("the op's name");
    bytes[op] = 0xff;
    let error = decode_graph_def(&bytes).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("tensorflow.GraphDef: expected its binary protobuf form"), "{text}");
    assert!(text.contains(&format!("byte {} of {}", op + 4, bytes.len())), "{text}");
    for part in ["NodeDef.op", "GraphDef.node", "UTF-8", "check that the data is complete"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert_eq!(error.code(), tenon_framework::Code::INVALID_ARGUMENT);
}

#[test]
fn text_form_is_refused() {
    let error = decode_graph_def(b"node {\n  name: \"x\"\n}\n").unwrap_err();
    assert!(matches!(error, ProtoError::Malformed { message: "GraphDef", .. }), "{error}");
}

#[test]
fn defaults_in_map_entries_are_read_and_left_out() {
    use tenon_proto::ConfigProto;
    let bytes = [0x0a, 7, 0x0a, 3, b'G', b'P', b'U', 0x10, 0];
    let config: ConfigProto = decode(&bytes).unwrap();
    assert_eq!(config.device_count, BTreeMap::from([("GPU".to_owned(), 0)]));
    let written = encode(&config).unwrap();
    assert_eq!(written, [0x0a, 5, 0x0a, 3, b'G', b'P', b'U']);
    assert_eq!(decode(&written), Ok(config));
}
