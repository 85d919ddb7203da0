use std::path::Path;

use tenon_framework::abi::AttrKind;
use tenon_framework::attr::{AttrList, AttrType, AttrValue, FuncValue};
use tenon_framework::op::OpDef;
use tenon_framework::shape::PartialShape;
use tenon_framework::{Code, DType, Tensor};

use super::*;
use crate::{
    AttrValue as AttrProto, AttrValueKind, Dim, FunctionDef, FunctionDefLibrary, FunctionLibrary,
    ListValue, NameAttrList, OpDef as OpProto, TensorProto, TensorShapeProto, decode,
};

fn shape(dims: &[i64]) -> Option<TensorShapeProto> {
    let dim = dims.iter().map(|&size| Dim { size, name: String::new() }).collect();
    Some(TensorShapeProto { dim, unknown_rank: false })
}

fn proto(dtype: DType, dims: &[i64]) -> TensorProto {
    TensorProto {
        dtype: dtype_to_proto(dtype),
        tensor_shape: shape(dims),
        ..TensorProto::default()
    }
}

fn refused(proto: &TensorProto) -> String {
    let error = tensor_from_proto(proto).unwrap_err();
    assert!(error.code() != Code::OK);
    error.to_string()
}

fn unhex(text: &str) -> Vec<u8> {
    let text = if text == "-" { "" } else { text };
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
        .collect()
}

/// TensorFlow's Python names of the types that differ from those of op definitions.
fn python_dtype(name: &str) -> DType {
    let name = match name {
        "float32" => "float",
        "float64" => "double",
        "float16" => "half",
        other => other,
    };
    DType::from_name(name).unwrap()
}

#[test]
fn tensors_are_read_as_tensorflow_reads_them() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/tensors.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = 0;
    for line in text.lines() {
        let [name, dtype, dims, message, data] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let message: TensorProto = decode(&unhex(message)).unwrap();
        let tensor = tensor_from_proto(&message).unwrap_or_else(|e| panic!("{name} {dtype}: {e}"));
        let dims: Vec<i64> =
            dims.split(',').filter(|d| *d != "-").map(|d| d.parse().unwrap()).collect();
        assert_eq!(tensor.shape().dims(), dims, "{name} {dtype}");
        assert_eq!(tensor.dtype(), python_dtype(dtype));
        check_data(&tensor, data, line);
        let again = tensor_from_proto(&tensor_to_proto(&tensor).unwrap()).unwrap();
        assert_eq!(again.shape(), tensor.shape());
        check_data(&again, data, line);
        lines += 1;
    }
    assert_eq!(lines, 123);
}

fn check_data(tensor: &Tensor, data: &str, line: &str) {
    if tensor.dtype() != DType::STRING {
        assert_eq!(tensor.as_bytes().unwrap(), unhex(data), "{line}");
        return;
    }
    let expected: Vec<Vec<u8>> = data
        .split(',')
        .filter(|part| *part != "-" && *part != "0")
        .map(|part| unhex(part.split_once(':').unwrap().1))
        .collect();
    assert_eq!(tensor.as_strings().unwrap(), expected, "{line}");
}

#[test]
fn packed_strings_are_read_and_checked() {
    let packed = |content: &[u8]| TensorProto {
        tensor_content: content.to_vec().into(),
        ..proto(DType::STRING, &[2])
    };
    let tensor = tensor_from_proto(&packed(&[1, 2, b'a', b'b', b'c'])).unwrap();
    assert_eq!(tensor.as_strings().unwrap(), vec![&b"a"[..], b"bc"]);
    assert!(refused(&packed(&[1])).contains("fewer bytes than lengths"));
    assert!(refused(&packed(&[0xff; 12])).contains("not a varint"));
    assert!(refused(&packed(&[1, 2, b'a', b'b'])).contains("a length beyond the data"));
    assert!(refused(&packed(&[1, 0, b'a', b'b'])).contains("bytes after the last string"));
}

#[test]
fn a_few_bytes_do_not_expand_without_limit() {
    let splat = TensorProto { float_val: vec![1.0], ..proto(DType::FLOAT, &[1 << 20, 1 << 20]) };
    let error = tensor_from_proto(&splat).unwrap_err();
    assert_eq!(error.code(), Code::RESOURCE_EXHAUSTED);
    assert!(
        error.to_string().starts_with(
            "a tensor of float [1048576, 1048576] from 1 values needs 4398046511100 bytes beyond"
        ),
        "{error}"
    );
    let huge = proto(DType::COMPLEX128, &[i64::MAX]);
    assert_eq!(tensor_from_proto(&huge).unwrap_err().code(), Code::RESOURCE_EXHAUSTED);
    let strings =
        TensorProto { string_val: vec![vec![b'x'; 1 << 20]], ..proto(DType::STRING, &[1 << 20]) };
    assert_eq!(tensor_from_proto(&strings).unwrap_err().code(), Code::RESOURCE_EXHAUSTED);
}

#[test]
fn the_limit_holds_for_all_that_one_decoder_reads() {
    let splat = TensorProto { int_val: vec![7], ..proto(DType::UINT8, &[65]) };
    let mut decoder = Decoder::new().with_expansion_limit(128);
    assert!(decoder.tensor(&splat).is_ok());
    assert!(decoder.tensor(&splat).is_ok());
    let error = decoder.tensor(&splat).unwrap_err();
    assert!(
        error.to_string().contains("needs 64 bytes beyond what is encoded, and 0 are left"),
        "{error}"
    );
}

#[test]
fn what_is_no_tensor_is_refused_with_the_reason() {
    let floats = |dims: &[i64], values: usize| TensorProto {
        float_val: vec![0.5; values],
        ..proto(DType::FLOAT, dims)
    };
    assert!(refused(&floats(&[2], 3)).contains("has at most 2 values, found 3"));
    assert!(refused(&floats(&[-1], 1)).contains("is complete, found [?]"));
    assert!(refused(&floats(&[-2], 1)).contains("found -2 as dimension 0"));
    assert!(refused(&floats(&[i64::MAX, i64::MAX], 1)).contains("exceeds 2^63 - 1"));
    assert!(refused(&floats(&[1; 255], 1)).contains("at most 16 dimensions"));
    let content = TensorProto { tensor_content: vec![0; 7].into(), ..proto(DType::FLOAT, &[2]) };
    assert!(refused(&content).contains("has 8 bytes, found 7"));
    let content = TensorProto { tensor_content: vec![1, 2].into(), ..proto(DType::BOOL, &[2]) };
    assert!(refused(&content).contains("a bool is 0 or 1, found 2 as element 1"));
    let ints = TensorProto { int_val: vec![1, -129], ..proto(DType::INT8, &[2]) };
    assert!(refused(&ints).contains("value 1 of a tensor of int8 does not fit: found -129"));
    let odd = TensorProto { scomplex_val: vec![1.0], ..proto(DType::COMPLEX64, &[]) };
    assert!(refused(&odd).contains("pairs of real and imaginary parts, found 1"));
    let number = |dtype| TensorProto { dtype, ..TensorProto::default() };
    assert!(refused(&number(0)).contains("the number of an element type, found 0"));
    assert!(refused(&number(34)).contains("found 34"));
    assert!(refused(&number(-7)).contains("found -7"));
    assert!(refused(&number(101)).contains("plain element type, found float_ref"));
    for dtype in [DType::RESOURCE, DType::VARIANT, DType::INT4, DType::FLOAT8_E5M2] {
        let error = tensor_from_proto(&proto(dtype, &[])).unwrap_err();
        assert_eq!(error, ConvertError::Unsupported { dtype });
        assert_eq!(error.code(), Code::UNIMPLEMENTED);
    }
}

#[test]
fn half_bits_may_be_extended_by_the_sign() {
    let half = |bits| TensorProto { half_val: vec![bits], ..proto(DType::HALF, &[]) };
    for bits in [0xbc00, 0xbc00 - 0x1_0000] {
        let tensor = tensor_from_proto(&half(bits)).unwrap();
        assert_eq!(tensor.as_slice::<half::f16>().unwrap()[0].to_f32(), -1.0);
    }
    assert!(refused(&half(0x1_0000)).contains("does not fit"));
}

#[test]
fn shapes_go_there_and_back() {
    for dims in [None, Some(&[][..]), Some(&[0, 3]), Some(&[-1, 7])] {
        let shape = match dims {
            None => PartialShape::UNKNOWN,
            Some(dims) => PartialShape::new(dims).unwrap(),
        };
        assert_eq!(shape_from_proto(&shape_to_proto(&shape)).unwrap(), shape);
    }
    let both = TensorShapeProto { dim: vec![Dim::default()], unknown_rank: true };
    assert_eq!(shape_from_proto(&both), Err(ConvertError::UnknownRank { dims: 1 }));
    assert!(full_shape_from_proto(None).unwrap().dims().is_empty());
}

#[test]
fn a_plain_tensor_is_written_as_it_was_read() {
    let content = vec![0, 0, 128, 63, 0, 0, 0, 64];
    let plain = TensorProto { tensor_content: content.clone().into(), ..proto(DType::FLOAT, &[2]) };
    assert!(is_plain(&plain));
    let tensor = Decoder::new().tensor(&plain).unwrap();
    assert_eq!(tensor_to_proto(&tensor).unwrap(), plain);
    let listed = TensorProto { float_val: vec![1.0, 2.0], ..proto(DType::FLOAT, &[2]) };
    let both = TensorProto { float_val: vec![1.0], ..plain.clone() };
    let versioned = TensorProto { version_number: 1, ..plain.clone() };
    let mut named = plain.clone();
    named.tensor_shape.as_mut().unwrap().dim[0].name = "n".to_owned();
    let strings = TensorProto { tensor_content: vec![1, 97].into(), ..proto(DType::STRING, &[1]) };
    for other in [listed, both, versioned, named, strings] {
        assert!(!is_plain(&other), "{other:?}");
    }
}

fn sample_attrs() -> Vec<AttrValue> {
    let call = NameAttrList { name: "f".to_owned(), ..NameAttrList::default() };
    let func = FuncValue {
        name: "f".to_owned(),
        call: prost::Message::encode_to_vec(&call),
        definition: Vec::new(),
    };
    let shape = PartialShape::new(&[-1, 2]).unwrap();
    let tensor = Tensor::from_slice(&[2], &[1.0f32, f32::NAN]).unwrap();
    vec![
        AttrValue::Int(-3),
        AttrValue::Float(-0.0),
        AttrValue::Bool(true),
        AttrValue::String(vec![0xff, 0]),
        AttrValue::Type(DType::FLOAT.as_ref_type()),
        AttrValue::Shape(shape.clone()),
        AttrValue::Tensor(tensor.clone()),
        AttrValue::Func(func.clone()),
        AttrValue::List(AttrList::Int(vec![0, i64::MIN])),
        AttrValue::List(AttrList::Float(vec![1.5])),
        AttrValue::List(AttrList::Bool(vec![false, true])),
        AttrValue::List(AttrList::String(vec![Vec::new()])),
        AttrValue::List(AttrList::Type(vec![DType::INT4])),
        AttrValue::List(AttrList::Shape(vec![shape, PartialShape::UNKNOWN])),
        AttrValue::List(AttrList::Tensor(vec![tensor])),
        AttrValue::List(AttrList::Func(vec![func])),
    ]
}

#[test]
fn attributes_go_there_and_back() {
    for value in sample_attrs() {
        let message = attr_to_proto(&value).unwrap();
        let back = Decoder::new().attr(&message, value.attr_type()).unwrap().unwrap();
        // Tensors print their type and shape; their bytes show in the message.
        assert_eq!(format!("{back:?}"), format!("{value:?}"));
        let bytes = prost::Message::encode_to_vec(&message);
        assert_eq!(prost::Message::encode_to_vec(&attr_to_proto(&back).unwrap()), bytes);
        let undeclared = Decoder::new().undeclared_attr(&message).unwrap().unwrap();
        assert_eq!(undeclared.attr_type(), value.attr_type());
    }
}

#[test]
fn an_empty_list_is_of_the_declared_kind() {
    let empty = AttrProto { value: Some(AttrValueKind::List(Box::default())) };
    for value in sample_attrs().iter().filter(|value| matches!(value, AttrValue::List(_))) {
        let read = Decoder::new().attr(&empty, value.attr_type()).unwrap().unwrap();
        assert_eq!(read.attr_type(), value.attr_type());
    }
    assert!(Decoder::new().undeclared_attr(&empty).unwrap().is_none());
    let error = Decoder::new().attr(&empty, AttrType::one(AttrKind::INT)).unwrap_err();
    assert_eq!(error.to_string(), "expected a value of type int, found list(int)");
}

#[test]
fn an_attribute_without_value_is_none_whatever_its_kind() {
    for value in sample_attrs() {
        let read = Decoder::new().attr(&AttrProto { value: None }, value.attr_type());
        assert!(read.unwrap().is_none());
    }
    assert!(Decoder::new().undeclared_attr(&AttrProto { value: None }).unwrap().is_none());
}

#[test]
fn attributes_of_another_kind_are_refused() {
    let int = AttrType::one(AttrKind::INT);
    let refused = |value| {
        let error = Decoder::new().attr(&AttrProto { value }, int).unwrap_err();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT);
        error.to_string()
    };
    assert!(refused(Some(AttrValueKind::F(1.0))).ends_with("found float"));
    let name = "T".to_owned();
    assert!(refused(Some(AttrValueKind::Placeholder(name))).contains("the placeholder 'T'"));
    let mixed = ListValue { i: vec![1], b: vec![true], ..ListValue::default() };
    assert!(
        refused(Some(AttrValueKind::List(Box::new(mixed)))).ends_with("a list of several kinds")
    );
}

#[test]
fn a_function_brings_its_definition() {
    let function = FunctionDef {
        signature: Some(OpProto { name: "f".to_owned(), ..OpProto::default() }),
        ..FunctionDef::default()
    };
    let encoded = prost::Message::encode_to_vec(&function);
    let add = FunctionDefLibrary { function: vec![function], ..FunctionDefLibrary::default() };
    let mut library = FunctionLibrary::default();
    library.merge(&add).unwrap();
    let call = |name: &str| AttrProto {
        value: Some(AttrValueKind::Func(NameAttrList {
            name: name.to_owned(),
            ..Default::default()
        })),
    };
    let kind = AttrType::one(AttrKind::FUNC);
    let mut decoder = Decoder::new().with_library(&library).with_expansion_limit(encoded.len());
    let Some(AttrValue::Func(found)) = decoder.attr(&call("f"), kind).unwrap() else { panic!() };
    assert_eq!((found.name.as_str(), &found.definition), ("f", &encoded));
    let Some(AttrValue::Func(unknown)) = decoder.attr(&call("g"), kind).unwrap() else { panic!() };
    assert!(unknown.definition.is_empty());
    let error = decoder.attr(&call("f"), kind).unwrap_err();
    assert!(error.to_string().starts_with("the definition of function 'f' needs"), "{error}");
}

#[test]
fn op_definitions_are_written() {
    let op = OpDef::from_spec(
        "Sample",
        &["x: T", "many: N * T", "any: Tin", "ref: Ref(int32)"],
        &["y: float"],
        &[
            "T: {float, int32} = DT_FLOAT",
            "N: int >= 2",
            "Tin: list(type)",
            "mode: {'a', 'b'} = 'a'",
        ],
    )
    .unwrap();
    let proto = op_def_to_proto(&op).unwrap();
    assert_eq!(proto.input_arg[0].type_attr, "T");
    assert_eq!(proto.input_arg[1].number_attr, "N");
    assert_eq!(proto.input_arg[2].type_list_attr, "Tin");
    assert!(proto.input_arg[3].is_ref && proto.input_arg[3].r#type == 3);
    assert_eq!(proto.output_arg[0].r#type, 1);
    assert_eq!((proto.attr[1].has_minimum, proto.attr[1].minimum), (true, 2));
    assert_eq!(proto.attr[2].r#type, "list(type)");
    let value = |attr: &Option<AttrProto>| attr.as_ref().and_then(|a| a.value.clone());
    assert_eq!(value(&proto.attr[3].default_value), Some(AttrValueKind::S(b"a".to_vec())));
    let Some(AttrValueKind::List(types)) = value(&proto.attr[0].allowed_values) else { panic!() };
    assert_eq!(types.r#type, [1, 3]);
}

#[test]
fn devices_go_there_and_back() {
    let device = DeviceSummary {
        name: tenon_framework::device::DeviceName::local("CPU", 0),
        device_type: "CPU".to_owned(),
        memory_limit: u64::MAX,
        numa_node: Some(1),
        bus_id: None,
        incarnation: 42,
        description: "host".to_owned(),
    };
    let proto = device_to_proto(&device);
    assert_eq!(proto.name, "/job:localhost/replica:0/task:0/device:CPU:0");
    let limit = i64::MAX as u64;
    assert_eq!(device_from_proto(&proto), Ok(DeviceSummary { memory_limit: limit, ..device }));
}
