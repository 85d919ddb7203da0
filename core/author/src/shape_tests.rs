//! Shape functions as an author writes them, run by shape inference.

use crate::{ShapeContext, ShapeFunction, ShapeResult, shape_entry};
use tenon_abi::{Code, DType, DimId, ShapeCall, ShapeId};
use tenon_framework::{
    KernelError, PartialShape, Tensor,
    attr::{AttrMap, AttrValue},
    attr_view::AttrTable,
    infer::{Dimension, HandlePart, SHAPE_TABLE, SymbolicShape, Symbols, ValueInfo, infer},
    op::OpDef,
    testing,
};

fn op<F: ShapeFunction>(name: &str, inputs: &[&str], outputs: &[&str], shape: F) -> OpDef {
    testing::install_host();
    let mut op = OpDef::from_spec(name, inputs, outputs, &["T: type = DT_FLOAT"]).unwrap();
    op.shape = shape_entry(shape);
    op
}

fn attrs(op: &OpDef) -> AttrTable {
    AttrTable::with_defaults(op, AttrMap::new()).unwrap()
}

fn shaped(dims: &[i64], symbols: &mut Symbols) -> ValueInfo {
    ValueInfo::of_shape(&PartialShape::new(dims).unwrap(), symbols)
}

fn merges(c: &ShapeContext<'_>) -> ShapeResult {
    let merged = c.merge(c.input(0), c.input(1))?;
    c.set_output(0, merged)
}

fn merge_error(a: &[i64], b: &[i64]) -> String {
    let op = op("Merges", &["a: T", "b: T"], &["y: T"], merges);
    let mut symbols = Symbols::default();
    let (a, b) = (shaped(a, &mut symbols), shaped(b, &mut symbols));
    let error = infer(&op, &attrs(&op), &[&a, &b], &mut symbols).unwrap_err();
    assert_eq!(error.code, Code::INVALID_ARGUMENT);
    error.message
}

#[test]
fn contradictions_are_told_with_both_shapes() {
    assert_eq!(
        merge_error(&[2, 3], &[-1, 4]),
        "shapes [2,3] and [?,4] must be equal: dimension 1: expected 3, found 4: a is [2,3], b is [?,4]"
    );
    assert_eq!(
        merge_error(&[2, 3], &[2]),
        "shapes [2,3] and [2] must be equal: expected rank 2, found 1: a is [2,3], b is [2]"
    );
}

#[test]
fn merging_joins_what_both_know() {
    let op = op("Merges", &["a: T", "b: T"], &["y: T"], merges);
    let mut symbols = Symbols::default();
    let (a, b) = (shaped(&[2, -1, -1], &mut symbols), shaped(&[-1, 3, -1], &mut symbols));
    let merged = infer(&op, &attrs(&op), &[&a, &b], &mut symbols).unwrap();
    assert_eq!(merged[0].shape.to_string(), "[2,3,?]");
    // The older of the two symbols represents both.
    assert_eq!(merged[0].shape.dims().unwrap()[2], a.shape.dims().unwrap()[2]);
    let unknown = ValueInfo::default();
    let merged = infer(&op, &attrs(&op), &[&unknown, &b], &mut symbols).unwrap();
    assert_eq!(merged[0].shape, b.shape);
}

#[test]
fn what_is_merged_holds_for_the_whole_run_and_not_for_the_inputs() {
    // a ~ b, then b ~ 5: a is 5 too, in the outputs.
    let op = op("Chain", &["a: T", "b: T"], &["y: T"], |c| {
        let (a, b) = (c.dim(c.input(0), 0), c.dim(c.input(1), 0));
        c.merge_dim(a, b)?;
        c.merge_dim(b, c.make_dim(Some(5)))?;
        c.set_output(0, c.make_shape(&[a]))
    });
    let mut symbols = Symbols::default();
    let (a, b) = (shaped(&[-1], &mut symbols), shaped(&[-1], &mut symbols));
    let outputs = infer(&op, &attrs(&op), &[&a, &b], &mut symbols).unwrap();
    assert_eq!(outputs[0].shape.to_string(), "[5]");
    assert_eq!(a.shape.to_string(), "[?]");
    // And in a graph where they contradict each other, that is found through the third.
    let bad = shaped(&[4], &mut symbols);
    let error = infer(&op, &attrs(&op), &[&a, &bad], &mut symbols).unwrap_err();
    assert_eq!(error.message, "expected a dimension of 4, found 5: a is [?], b is [4]");
}

#[test]
fn identities_last_from_node_to_node() {
    let op = op("Same", &["x: T"], &["y: T", "z: T"], |c| {
        c.set_output(0, c.input(0))?;
        c.set_output(1, c.unknown_of_rank(1))
    });
    let mut symbols = Symbols::default();
    let x = shaped(&[-1, -1], &mut symbols);
    let first = infer(&op, &attrs(&op), &[&x], &mut symbols).unwrap();
    let second = infer(&op, &attrs(&op), &[&first[0]], &mut symbols).unwrap();
    assert_eq!(second[0].shape, x.shape);
    assert_ne!(x.shape.dims().unwrap()[0], x.shape.dims().unwrap()[1]);
    assert_ne!(first[1].shape, second[1].shape, "fresh dimensions are new in every run");
}

#[test]
fn equal_symbols_are_equal_handles() {
    let op = op("Check", &["x: T", "y: T"], &[], |c| {
        assert_eq!(c.dim(c.input(0), 0), c.dim(c.input(1), 0));
        assert_eq!(c.dim(c.input(0), 1), c.dim(c.input(1), 1));
        Ok(())
    });
    let mut symbols = Symbols::default();
    let x = shaped(&[-1, 7], &mut symbols);
    infer(&op, &attrs(&op), &[&x, &x], &mut symbols).unwrap();
}

#[test]
fn ranks_are_asked_for() {
    let op = op("Rank2", &["x: T"], &["y: T"], |c| c.set_output(0, c.with_rank(c.input(0), 2)?));
    let mut symbols = Symbols::default();
    let unknown = infer(&op, &attrs(&op), &[&ValueInfo::default()], &mut symbols).unwrap();
    assert_eq!(unknown[0].shape.to_string(), "[?,?]");
    let x = shaped(&[2, -1, 4], &mut symbols);
    let error = infer(&op, &attrs(&op), &[&x], &mut symbols).unwrap_err();
    assert_eq!(error.message, "expected a shape of rank 2, found [2,?,4] of rank 3: x is [2,?,4]");
}

#[test]
fn a_panic_and_a_refusal_are_errors() {
    let panics = op("Panics", &["x: T"], &["y: T"], |_| panic!("no shape for you"));
    let mut symbols = Symbols::default();
    let x = ValueInfo::default();
    let error = infer(&panics, &attrs(&panics), &[&x], &mut symbols).unwrap_err();
    assert_eq!(error.code, Code::INTERNAL);
    assert!(error.message.starts_with("the shape function panicked: no shape for you"));
    let refuses = op("Refuses", &["x: T"], &["y: T"], |_| {
        Err(KernelError::unimplemented("images of 5 dimensions are not supported"))
    });
    let error = infer(&refuses, &attrs(&refuses), &[&x], &mut symbols).unwrap_err();
    assert_eq!(error.code, Code::UNIMPLEMENTED);
    assert_eq!(error.message, "images of 5 dimensions are not supported: x is <unknown>");
}

#[test]
fn a_merge_that_is_tried_and_dropped_leaves_nothing_behind() {
    let op = op("Tries", &["a: T", "b: T"], &["y: T"], |c| {
        c.set_output(0, c.merge(c.input(0), c.input(1)).unwrap_or(c.input(0)))
    });
    let mut symbols = Symbols::default();
    let (a, b) = (shaped(&[-1, 2], &mut symbols), shaped(&[5, 3], &mut symbols));
    let outputs = infer(&op, &attrs(&op), &[&a, &b], &mut symbols).unwrap();
    assert_eq!(outputs[0].shape, a.shape);
}

#[test]
fn mistakes_of_a_shape_function_are_errors() {
    let error = |op: OpDef| {
        let mut symbols = Symbols::default();
        let x = ValueInfo::default();
        infer(&op, &attrs(&op), &[&x], &mut symbols).unwrap_err().message
    };
    let third = op("Third", &["x: T"], &["y: T"], |c| c.set_output(2, c.scalar()));
    assert_eq!(error(third), "the shape function sets output 2 of 1");
    let deep = op("Deep", &["x: T"], &["y: T"], |c| c.set_output(0, c.shape_of(&[1; 17])));
    assert_eq!(error(deep), "a tensor has at most 16 dimensions, found 17: x is <unknown>");
    let below = op("Below", &["x: T"], &["y: T"], |c| {
        c.set_output(0, c.make_shape(&[c.make_dim(Some(-4))]))
    });
    assert_eq!(
        error(below),
        "a dimension is at least 0, or -1 if unknown, found -4: x is <unknown>"
    );
    let large = op("Large", &["x: T"], &["y: T"], |c| c.set_output(0, c.shape_of(&[i64::MAX, 2])));
    assert!(error(large).starts_with("output 0: the number of elements or bytes"));
}

#[test]
fn handles_of_another_run_are_refused() {
    unsafe extern "C" fn forges(_: *const tenon_abi::Host, call: *mut ShapeCall) -> Code {
        let (mut dim, mut shape) = (DimId(0), ShapeId(0));
        // SAFETY: entries with the run that was lent; the handles are wrong on purpose.
        unsafe {
            assert_eq!((SHAPE_TABLE.value.unwrap())(call, DimId(900)), -1);
            assert_eq!((SHAPE_TABLE.rank.unwrap())(call, ShapeId(900)), -1);
            let fresh = (SHAPE_TABLE.dim.unwrap())(call, ShapeId(900), 3);
            assert_eq!((SHAPE_TABLE.value.unwrap())(call, fresh), -1);
            let code = (SHAPE_TABLE.merge.unwrap())(call, ShapeId(0), ShapeId(900), &mut shape);
            assert_eq!(code, Code::OK);
            (SHAPE_TABLE.merge_dim.unwrap())(call, DimId(900), fresh, &mut dim)
        }
    }
    let mut op = op("Forges", &["x: T"], &["y: T"], |_| Ok(()));
    op.shape = tenon_abi::ShapeFn { run: Some(forges) };
    let mut symbols = Symbols::default();
    let error = infer(&op, &attrs(&op), &[&ValueInfo::default()], &mut symbols).unwrap_err();
    assert_eq!(error.message, "merge of a dimension that is not of this run: make it again");
}

#[test]
fn handles_of_resources_are_carried() {
    let op = op("Through", &["x: resource"], &["y: resource"], |c| {
        let parts = c.input_handle(0);
        assert_eq!(parts.len(), 2);
        c.add_output_handle(0, parts[1].0, parts[1].1)
    });
    let mut symbols = Symbols::default();
    let part = |dtype, dims: &[i64], symbols: &mut Symbols| HandlePart {
        dtype,
        shape: shaped(dims, symbols).shape,
    };
    let x = ValueInfo {
        handle: vec![
            part(DType::FLOAT, &[1], &mut symbols),
            part(DType::INT32, &[-1, 2], &mut symbols),
        ],
        ..ValueInfo::default()
    };
    let outputs = infer(&op, &attrs(&op), &[&x], &mut symbols).unwrap();
    assert_eq!(outputs[0].handle, x.handle[1..]);
}

#[test]
fn another_number_of_inputs_is_refused_and_no_shape_function_is_unknown() {
    let mut op = op("Plain", &["x: T"], &["y: T"], |_| Ok(()));
    op.shape = tenon_abi::ShapeFn { run: None };
    let mut symbols = Symbols::default();
    let error = infer(&op, &attrs(&op), &[], &mut symbols).unwrap_err();
    assert_eq!(error.message, "op Plain: expected 1 inputs, found 0");
    let outputs = infer(&op, &attrs(&op), &[&ValueInfo::default()], &mut symbols).unwrap();
    assert_eq!(outputs[0].shape, SymbolicShape::UNKNOWN);
}

#[test]
fn constants_are_read_as_values_and_as_shapes() {
    let op = op("Reads", &["x: T", "s: int32"], &["y: T"], |c| {
        if let Some(values) = c.constant_integers(1) {
            assert_eq!(values, [2, -1]);
        }
        c.set_output(0, c.constant_as_shape(1)?)
    });
    let read = |given: &ValueInfo| {
        let mut symbols = Symbols::default();
        let x = ValueInfo::default();
        infer(&op, &attrs(&op), &[&x, given], &mut symbols).map(|o| o[0].shape.to_string())
    };
    let tensor = |dims: &[i64], values: &[i32]| {
        ValueInfo::of_constant(Tensor::from_slice(dims, values).unwrap())
    };
    let mut symbols = Symbols::default();
    assert_eq!(read(&tensor(&[2], &[2, -1])).unwrap(), "[2,?]");
    assert_eq!(read(&shaped(&[3], &mut symbols)).unwrap(), "[?,?,?]");
    assert_eq!(read(&shaped(&[-1], &mut symbols)).unwrap(), "<unknown>");
    assert_eq!(read(&ValueInfo::default()).unwrap(), "<unknown>");
    assert_eq!(
        read(&shaped(&[2, 2], &mut symbols)).unwrap_err().message,
        "a shape is given as a vector, found a tensor of [2,2]: x is <unknown>, s is [2,2]"
    );
    assert_eq!(
        read(&shaped(&[17], &mut symbols)).unwrap_err().message,
        "a tensor has at most 16 dimensions, found 17: x is <unknown>, s is [17]"
    );
}

#[test]
fn bad_shapes_in_constants_are_refused() {
    let op = op("Shapes", &["s: int64"], &["y: T"], |c| c.set_output(0, c.constant_as_shape(0)?));
    let read = |dims: &[i64], values: &[i64]| {
        let given = ValueInfo::of_constant(Tensor::from_slice(dims, values).unwrap());
        infer(&op, &attrs(&op), &[&given], &mut Symbols::default()).map(|o| o[0].shape.to_string())
    };
    assert_eq!(read(&[], &[-1]).unwrap(), "<unknown>");
    assert!(read(&[], &[3]).unwrap_err().message.contains("found another scalar"));
    assert_eq!(
        read(&[2], &[1, -3]).unwrap_err().message,
        "dimension 1 of a shape is at least 0, or -1 if unknown, found -3: s is [2]"
    );
    assert!(read(&[2], &[i64::MAX, 2]).unwrap_err().message.contains("exceeds 2^63 - 1"));
}

#[test]
fn symbols_are_not_spent_by_a_refused_node() {
    let op = op("Merges", &["a: T", "b: T"], &["y: T"], merges);
    let mut symbols = Symbols::default();
    let (a, b) = (shaped(&[2, -1], &mut symbols), shaped(&[3, -1], &mut symbols));
    infer(&op, &attrs(&op), &[&a, &b], &mut symbols).unwrap_err();
    let next = symbols.fresh();
    let taken = [a, b].map(|value| value.shape.dims().unwrap()[1]);
    assert!(!taken.contains(&Dimension::Unknown(next)));
}

#[test]
fn an_attribute_is_read_in_a_shape_function() {
    testing::install_host();
    let mut op = OpDef::from_spec("Attr", &[], &["y: float"], &["n: int"]).unwrap();
    fn shape(c: &ShapeContext<'_>) -> ShapeResult {
        c.set_output(0, c.shape_of(&[c.attr::<i64>("n")?]))
    }
    op.shape = shape_entry(shape);
    let map = AttrMap::from([("n".to_owned(), AttrValue::Int(6))]);
    let table = AttrTable::with_defaults(&op, map).unwrap();
    let outputs = infer(&op, &table, &[], &mut Symbols::default()).unwrap();
    assert_eq!(outputs[0].shape.to_string(), "[6]");
}

#[test]
fn a_null_pointer_to_dimensions_is_refused() {
    unsafe extern "C" fn forges(_: *const tenon_abi::Host, call: *mut ShapeCall) -> Code {
        // SAFETY: entries with the run that was lent; null is wrong on purpose.
        unsafe {
            let shape = (SHAPE_TABLE.make_shape.unwrap())(call, std::ptr::null(), 3);
            assert_eq!(shape, ShapeId(0));
            (SHAPE_TABLE.merge.unwrap())(call, shape, shape, std::ptr::null_mut())
        }
    }
    let mut op = op("Null", &["x: T"], &["y: T"], |_| Ok(()));
    op.shape = tenon_abi::ShapeFn { run: Some(forges) };
    let run = |op: &OpDef| {
        infer(op, &attrs(op), &[&ValueInfo::default()], &mut Symbols::default()).unwrap_err()
    };
    assert_eq!(run(&op).message, "expected a place for the result, found null");
    unsafe extern "C" fn null(_: *const tenon_abi::Host, call: *mut ShapeCall) -> Code {
        // SAFETY: as above.
        unsafe { (SHAPE_TABLE.make_shape.unwrap())(call, std::ptr::null(), 3) };
        Code::OK
    }
    op.shape = tenon_abi::ShapeFn { run: Some(null) };
    assert_eq!(
        run(&op).message,
        "expected 3 dimensions of a shape, found a null pointer: x is <unknown>"
    );
}
