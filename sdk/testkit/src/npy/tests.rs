//! Tests of `.npy` files. The headers are written by hand, as NumPy writes them.

use super::*;
use proptest::prelude::*;
use tenon_framework::Code;

/// A file of format version 1 as NumPy writes it.
fn file(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    with_header(
        &format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"),
        data,
    )
}

fn with_header(text: &str, data: &[u8]) -> Vec<u8> {
    let mut header = text.to_owned();
    while !(header.len() + 11).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn refused(bytes: &[u8]) -> String {
    let error = parse(bytes, "x.npy", None).unwrap_err();
    assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{error}");
    let text = error.to_string();
    assert!(text.starts_with("x.npy: "), "{text}");
    text
}

#[test]
fn every_stored_type_goes_round_with_its_bits() {
    let types = DType::ALL.iter().filter(|dtype| file_type(**dtype).is_some());
    let mut count = 0;
    for &dtype in types {
        let size = dtype.size().unwrap();
        let bytes: Vec<u8> = (0..6 * size).map(|at| (at % 2) as u8).collect();
        let tensor = Tensor::from_bytes(dtype, &[3, 2], &bytes).unwrap();
        let back = parse(&encode(&tensor, "x").unwrap(), "x", Some(dtype)).unwrap();
        assert_eq!((back.dtype(), back.shape()), (dtype, tensor.shape()));
        assert_eq!(back.as_bytes().unwrap(), bytes, "{dtype}");
        count += 1;
    }
    assert_eq!(count, 20);
}

#[test]
fn scalars_and_empty_arrays_keep_their_shape() {
    for dims in [&[][..], &[0], &[2, 0, 3], &[1]] {
        let values = vec![1.5f32; Shape::new(dims).unwrap().elements()];
        let tensor = Tensor::from_slice(dims, &values).unwrap();
        let back = parse(&encode(&tensor, "x").unwrap(), "x", None).unwrap();
        assert_eq!(back.shape().dims(), dims);
        assert_eq!(back.as_slice::<f32>().unwrap(), values);
    }
}

#[test]
fn strings_are_fixed_width_bytes_padded_with_zeros() {
    let tensor = Tensor::from_strings(&[3], &[&b"a"[..], b"", b"l\xffng"]).unwrap();
    let bytes = encode(&tensor, "x").unwrap();
    assert!(String::from_utf8_lossy(&bytes).contains("'|S4'"));
    let back = parse(&bytes, "x", Some(DType::STRING)).unwrap();
    assert_eq!(back.as_strings().unwrap(), [&b"a"[..], b"", b"l\xffng"]);
    let ends = Tensor::from_strings(&[2], &[&b"a"[..], b"b\0"]).unwrap();
    let error = encode(&ends, "x.npy").unwrap_err();
    assert_eq!(
        error.to_string(),
        "x.npy: string 1 ends in a zero byte, which .npy files cannot keep"
    );
}

#[test]
fn texts_become_utf8() {
    let units = |text: &str| -> Vec<u8> {
        let mut units: Vec<u32> = text.chars().map(u32::from).collect();
        units.resize(3, 0);
        units.into_iter().flat_map(u32::to_le_bytes).collect()
    };
    let data = [units("né"), units("")].concat();
    let tensor = parse(&file("'<U3'", false, "(2,)", &data), "x", None).unwrap();
    assert_eq!(tensor.as_strings().unwrap(), ["né".as_bytes(), b""]);
    let text = refused(&file("'<U1'", false, "(1,)", &0xd800u32.to_le_bytes()));
    assert!(text.contains("element 0 holds 0xd800"), "{text}");
}

#[test]
fn big_endian_and_fortran_order_are_converted() {
    let data: Vec<u8> = [1i32, 4, 2, 5, 3, 6].into_iter().flat_map(i32::to_be_bytes).collect();
    let tensor = parse(&file("'>i4'", true, "(2, 3)", &data), "x", None).unwrap();
    assert_eq!(tensor.as_slice::<i32>().unwrap(), [1, 2, 3, 4, 5, 6]);
    let data: Vec<u8> = [1f32, -2.0].into_iter().flat_map(f32::to_be_bytes).collect();
    let tensor = parse(&file("'>c8'", false, "()", &data), "x", None).unwrap();
    let back: Vec<u8> = [1f32, -2.0].into_iter().flat_map(f32::to_le_bytes).collect();
    assert_eq!(tensor.as_bytes().unwrap(), back);
}

#[test]
fn quantised_integers_are_told_by_what_is_expected() {
    let bytes = file("'|i1'", false, "(2,)", &[1, 255]);
    assert_eq!(parse(&bytes, "x", None).unwrap().dtype(), DType::INT8);
    assert_eq!(parse(&bytes, "x", Some(DType::QINT8)).unwrap().dtype(), DType::QINT8);
    let error = parse(&bytes, "x.npy", Some(DType::QUINT8)).unwrap_err();
    assert_eq!(error.to_string(), "x.npy: expected elements of type quint8, found int8");
}

#[test]
fn a_bool_is_0_or_1() {
    let text = refused(&file("'|b1'", false, "(2,)", &[1, 2]));
    assert_eq!(text, "x.npy: a bool is 0 or 1, found 2 as element 1");
}

#[test]
fn types_that_no_tensor_has_are_refused_by_name() {
    for (descr, name) in [("'<M8[s]'", "<M8[s]"), ("'|O'", "|O"), ("'|V3'", "|V3")] {
        let text = refused(&file(descr, false, "(1,)", &[0; 8]));
        assert!(text.contains(name), "{text}");
    }
    let text = refused(&file("[('a', '<i4')]", false, "(1,)", &[0; 4]));
    assert!(text.contains("found elements of type"), "{text}");
}

#[test]
fn a_file_of_the_wrong_length_is_refused_before_anything_is_allocated() {
    let text = refused(&file("'<f4'", false, "(1000000000000,)", &[0; 4]));
    assert!(text.contains("need 4000000000000 bytes after the header, found 4"), "{text}");
    refused(&file("'<f4'", false, "(1,)", &[0; 5]));
    for width in ["|S9223372036854775807", "<U9223372036854775807", "<U4611686018427387904"] {
        refused(&file(&format!("'{width}'"), false, "(4,)", &[]));
    }
}

#[test]
fn headers_that_would_overflow_or_nest_are_refused() {
    for shape in
        ["(4294967296, 4294967296)", "(0, 99999999999999999999)", "(-1,)", "(0x10,)", "(1e3,)"]
    {
        refused(&file("'<f4'", false, shape, &[]));
    }
    refused(&file("'<f4'", false, &"(".repeat(30_000), &[]));
    refused(&file("'<f4'", false, "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)", &[0; 4]));
    refused(&with_header("{'descr': '<f4', 'shape': (1,)}", &[0; 4]));
    refused(&with_header("{'descr': '\\x41', 'fortran_order': False, 'shape': ()}", &[0; 4]));
}

#[test]
fn what_is_cut_or_random_is_refused() {
    let whole = file("'<f4'", false, "(2,)", &[0; 8]);
    for end in 0..whole.len() {
        refused(&whole[..end]);
    }
    refused(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}");
    refused(b"\x93NUMPY\x09\x00\x00\x00{}");
    refused(b"PK\x03\x04 an archive");
}

#[test]
fn a_missing_file_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.npy");
    assert_eq!(read(&path, None).unwrap_err().code(), Code::NOT_FOUND);
    let tensor = Tensor::scalar(7i64).unwrap();
    write(&path, &tensor).unwrap();
    assert_eq!(read(&path, Some(DType::INT64)).unwrap().as_slice::<i64>().unwrap(), [7]);
    assert!(write(folder.path().join("no/such/folder.npy"), &tensor).is_err());
}

/// 128 bytes that promise any number of strings without a width.
#[test]
fn strings_without_a_width_are_refused() {
    for descr in ["'|S0'", "'<U0'", "'>U0'"] {
        for shape in ["(1,)", "(100000000,)", "(1000000, 1000000)"] {
            let text = refused(&file(descr, false, shape, &[]));
            assert!(text.contains("expected strings of at least one byte, found"), "{text}");
            assert!(text.contains("astype('S1')"), "{text}");
        }
        let none = parse(&file(descr, false, "(0, 5)", &[]), "x", None).unwrap();
        assert_eq!((none.dtype(), none.shape().dims()), (DType::STRING, &[0, 5][..]));
    }
}

fn descriptions() -> impl Strategy<Value = String> {
    let kind = "[<>|=][bBiufcSUVOmMx]";
    let width = prop_oneof![
        Just(String::new()),
        (0u64..20).prop_map(|width| width.to_string()),
        any::<u64>().prop_map(|width| width.to_string()),
    ];
    prop_oneof![
        9 => (kind, width).prop_map(|(kind, width)| format!("'{kind}{width}'")),
        1 => "[ -~]{0,12}",
    ]
}

fn shapes() -> impl Strategy<Value = String> {
    let dim = prop_oneof![
        6 => (0u64..4).prop_map(|dim| dim.to_string()),
        2 => any::<u64>().prop_map(|dim| dim.to_string()),
        1 => "[-0-9a-z()]{0,5}",
    ];
    let dims = prop::collection::vec(dim, 0..6);
    dims.prop_map(|dims| {
        format!("({})", dims.iter().map(|dim| format!("{dim}, ")).collect::<String>())
    })
}

/// Elements that a tensor has, each of at least one byte of the file.
fn check_promise(bytes: &[u8]) {
    if let Ok(tensor) = parse(bytes, "x.npy", None) {
        assert!(tensor.shape().elements() <= bytes.len());
    }
}

proptest! {
    /// Were memory asked for by what a header says, this would not end.
    #[test]
    fn a_header_promises_nothing(
        descr in descriptions(),
        fortran: bool,
        shape in shapes(),
        data in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        check_promise(&file(&descr, fortran, &shape, &data));
    }

    #[test]
    fn damaged_files_are_refused_or_read(
        descr in descriptions(),
        shape in shapes(),
        data in prop::collection::vec(any::<u8>(), 0..64),
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        kept in any::<prop::sample::Index>(),
    ) {
        let mut bytes = file(&descr, false, &shape, &data);
        for (at, byte) in damages {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        check_promise(&bytes);
        bytes.truncate(kept.index(bytes.len()));
        check_promise(&bytes);
    }
}
