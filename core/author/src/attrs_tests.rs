//! Attributes as an author reads them from the table that the host makes.

use crate::AttrReader;
use tenon_abi::{Code, DType, Slot, Str};
use tenon_framework::{
    PartialShape, Tensor, View,
    attr::{AttrList, AttrValue, FuncValue},
    attr_view::{AttrTable, TensorType, attr_entry},
    testing,
};

fn table() -> AttrTable {
    let func = FuncValue { name: "f".into(), call: vec![1, 2], definition: vec![3] };
    let tensor = Tensor::from_slice(&[2], &[7i32, 8]).unwrap();
    let shapes = vec![PartialShape::UNKNOWN, PartialShape::new(&[2, -1]).unwrap()];
    let entries = [
        ("i", AttrValue::Int(-3)),
        ("f", AttrValue::Float(0.5)),
        ("b", AttrValue::Bool(true)),
        ("s", AttrValue::from("text")),
        ("t", AttrValue::Type(DType::HALF)),
        ("shape", AttrValue::Shape(shapes[1].clone())),
        ("tensor", AttrValue::Tensor(tensor.clone())),
        ("func", AttrValue::Func(func.clone())),
        ("is", AttrValue::List(AttrList::Int(vec![1, 2]))),
        ("fs", AttrValue::List(AttrList::Float(vec![1.5]))),
        ("bs", AttrValue::List(AttrList::Bool(vec![false, true]))),
        ("ss", AttrValue::List(AttrList::String(vec![b"a".to_vec(), b"".to_vec()]))),
        ("ts", AttrValue::List(AttrList::Type(vec![DType::INT8]))),
        ("shapes", AttrValue::List(AttrList::Shape(shapes))),
        ("tensors", AttrValue::List(AttrList::Tensor(vec![tensor]))),
        ("funcs", AttrValue::List(AttrList::Func(vec![func]))),
        ("none", AttrValue::List(AttrList::Int(vec![]))),
    ];
    AttrTable::new(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

#[test]
fn every_kind_is_read_back_through_the_boundary() {
    testing::install_host();
    let table = Box::new(table());
    // SAFETY: the table outlives the reader.
    let attrs = unsafe { AttrReader::new(table.as_raw()) };
    assert_eq!(attrs.get::<i64>("i"), Ok(-3));
    assert_eq!(attrs.get::<f32>("f"), Ok(0.5));
    assert_eq!(attrs.get::<bool>("b"), Ok(true));
    assert_eq!(attrs.get::<&str>("s"), Ok("text"));
    assert_eq!(attrs.get::<DType>("t"), Ok(DType::HALF));
    assert_eq!(attrs.get::<PartialShape>("shape").unwrap().to_string(), "[2,?]");
    assert_eq!(attrs.get::<FuncValue>("func").unwrap().call, [1, 2]);
    assert_eq!(attrs.get::<Vec<i64>>("is"), Ok(vec![1, 2]));
    assert_eq!(attrs.get::<Vec<f32>>("fs"), Ok(vec![1.5]));
    assert_eq!(attrs.get::<Vec<bool>>("bs"), Ok(vec![false, true]));
    assert_eq!(attrs.get::<Vec<&str>>("ss"), Ok(vec!["a", ""]));
    assert_eq!(attrs.get::<Vec<DType>>("ts"), Ok(vec![DType::INT8]));
    let shapes = attrs.get::<Vec<PartialShape>>("shapes").unwrap();
    assert_eq!(format!("{shapes:?}"), "[<unknown>, [2,?]]");
    assert_eq!(attrs.get::<Vec<FuncValue>>("funcs").unwrap()[0].definition, [3]);
    assert_eq!(attrs.get::<Vec<i64>>("none"), Ok(vec![]));
}

#[test]
fn tensors_are_shown_as_slots_of_their_own_memory() {
    testing::install_host();
    let table = table();
    // SAFETY: the table outlives the reader and stays in place.
    let attrs = unsafe { AttrReader::new(table.as_raw()) };
    let slot = attrs.get::<Slot>("tensor").unwrap();
    assert_eq!((slot.dtype, slot.elements, slot.rank), (DType::INT32, 2, 1));
    // SAFETY: two `int32` values in host memory that the table keeps.
    assert_eq!(unsafe { std::slice::from_raw_parts(slot.data.cast::<i32>(), 2) }, [7, 8]);
    // SAFETY: as above.
    assert_eq!(unsafe { *slot.dims }, 2);
    assert_eq!(attrs.get::<Vec<Slot>>("tensors").unwrap().len(), 1);
    let kind = attrs.get::<TensorType>("tensor").unwrap();
    assert_eq!((kind.dtype, kind.shape.dims()), (DType::INT32, &[2][..]));
    let view = attrs.get::<View<'_, i32>>("tensor").unwrap();
    assert_eq!((view.dims, view.data), (&[2][..], &[7, 8][..]));
    let mistyped = attrs.get::<View<'_, f32>>("tensor").unwrap_err();
    assert_eq!(
        mistyped.message,
        "attribute tensor: a tensor of another element type than the kernel reads"
    );
}

#[test]
fn missing_and_mistyped_attributes_are_refused() {
    testing::install_host();
    let table = table();
    // SAFETY: the table outlives the reader and stays in place.
    let attrs = unsafe { AttrReader::new(table.as_raw()) };
    let missing = attrs.get::<i64>("j").unwrap_err();
    assert_eq!(missing.code, Code::NOT_FOUND);
    assert_eq!(missing.message, "attribute j: the node has none");
    let mistyped = attrs.get::<f32>("i").unwrap_err();
    assert_eq!(mistyped.message, "attribute i: expected float, found int");
    assert!(attrs.has("i") && !attrs.has("j"));
    assert!(table.was_asked("i") && !table.was_asked("j") && !table.was_asked("f"));
    // SAFETY: null is refused.
    let code = unsafe { attr_entry(std::ptr::null(), Str::new("i"), std::ptr::null_mut()) };
    assert_eq!(code, Code::INVALID_ARGUMENT);
}
