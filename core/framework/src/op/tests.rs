use super::*;
use crate::attr::{AttrList, AttrMap, AttrValue};
use tenon_abi::{Code, DType, Range, ShapeFn, Source, Str, Strs};

const F: DType = DType::FLOAT;
const I: DType = DType::INT32;

fn op(inputs: &[&str], outputs: &[&str], attrs: &[&str]) -> OpDef {
    OpDef::from_spec("Op", inputs, outputs, attrs).unwrap()
}

fn op_error(inputs: &[&str], outputs: &[&str], attrs: &[&str]) -> String {
    OpDef::from_spec("Op", inputs, outputs, attrs).unwrap_err().to_string()
}

fn attrs(items: &[(&str, AttrValue)]) -> AttrMap {
    items.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
}

fn inferred(op: &OpDef, inputs: &[DType]) -> Result<AttrMap, OpError> {
    let mut attrs = AttrMap::new();
    infer_attrs(op, inputs, &mut attrs)?;
    Ok(attrs)
}

#[test]
fn names_of_ops_follow_the_rule() {
    for name in ["Add", "_Send", "Conv2D", "Dataset>Map", "_Fused_X"] {
        assert!(OpDef::from_spec::<&str>(name, &[], &[], &[]).is_ok(), "{name}");
    }
    for name in ["", "add", "_", "__Send", "Add ", "Dataset>", ">Map", "A-B", "É", "Dataset>map"] {
        let error = OpDef::from_spec::<&str>(name, &[], &[], &[]).unwrap_err();
        assert!(matches!(error, OpError::Name { .. }), "{name}");
    }
}

#[test]
fn arguments_are_tied_to_declared_attributes() {
    let def = op(&["x: N * T", "y: L"], &["z: Ref(T)"], &["N: int", "T: type", "L: list(type)"]);
    assert_eq!(def.inputs[1].ty, ArgType::ListAttr("L".into()));
    assert_eq!(def.attr("N").unwrap().minimum, Some(1), "a number of values is at least 1");
    assert_eq!(def.attr("L").unwrap().minimum, Some(1));
    let open = op(&["x: N * T"], &[], &["N: int >= 0", "T: type"]);
    assert_eq!(open.attr("N").unwrap().minimum, Some(0));
    assert_eq!(
        op_error(&["x: T"], &[], &[]),
        "op 'Op': argument 'x' names attribute 'T', which the op does not declare"
    );
    assert!(op_error(&["x: N * float"], &[], &[]).contains("names attribute 'N'"));
    assert!(
        op_error(&["x: T"], &[], &["T: int"])
            .contains("needs attribute 'T' to be type or list(type), it is int")
    );
    assert!(op_error(&["x: N * T"], &[], &["T: type", "N: type"]).contains("'N' to be int"));
    assert!(
        op_error(&["x: N * T"], &[], &["N: int", "T: list(type)"]).contains("to be type, it is")
    );
    assert!(op_error(&["x: float", "x: float"], &[], &[]).contains("two inputs are named 'x'"));
    assert!(op_error(&[], &[], &["T: type", "T: int"]).contains("two attributes are named 'T'"));
    assert!(OpDef::from_spec("Op", &["x: float"], &["x: float"], &[]).is_ok());
}

#[test]
fn signatures_have_ranges_for_variadic_arguments_and_marks_for_references() {
    let def = op(
        &["a: T", "b: N * T", "c: L", "d: Ref(T)"],
        &["x: N * int32", "y: L"],
        &["T: type", "N: int >= 0", "L: list(type) >= 0"],
    );
    let list = AttrValue::List(AttrList::Type(vec![I, DType::STRING]));
    let values = attrs(&[("T", F.into()), ("N", AttrValue::Int(3)), ("L", list)]);
    let signature = Signature::resolve(&def, &values).unwrap();
    assert_eq!(signature.inputs, [F, F, F, F, I, DType::STRING, F.as_ref_type()]);
    assert_eq!(signature.outputs, [I, I, I, I, DType::STRING]);
    let range = |start, len| Range { start, len };
    assert_eq!(signature.input_args, [range(0, 1), range(1, 3), range(4, 2), range(6, 1)]);
    assert_eq!(signature.output_args, [range(0, 3), range(3, 2)]);
    assert_eq!(signature.input_arg_of(&def, 5), Some("c"));
    assert_eq!(signature.output_arg_of(&def, 5), None);

    let none =
        attrs(&[("T", F.into()), ("N", AttrValue::Int(0)), ("L", Vec::<DType>::new().into())]);
    let empty = Signature::resolve(&def, &none).unwrap();
    assert_eq!(empty.input_args, [range(0, 1), range(1, 0), range(1, 0), range(1, 1)]);
    assert_eq!(empty.input_arg_of(&def, 1), Some("d"), "an empty range owns no position");
}

#[test]
fn inputs_are_checked_against_the_signature() {
    let def = op(&["a: Ref(float)", "b: float"], &[], &[]);
    let signature = Signature::resolve(&def, &AttrMap::new()).unwrap();
    let reference = F.as_ref_type();
    assert!(signature.check_inputs(&def, &[reference, F]).is_ok());
    assert!(signature.check_inputs(&def, &[reference, reference]).is_ok(), "read as its value");
    assert_eq!(
        signature.check_inputs(&def, &[F, F]).unwrap_err().to_string(),
        "op 'Op': input 0 (argument 'a') is float_ref, found float"
    );
    assert_eq!(
        signature.check_inputs(&def, &[reference]).unwrap_err().to_string(),
        "op 'Op' takes 2 (a, b) inputs, found 1"
    );
}

#[test]
fn signatures_refuse_numbers_that_no_node_has() {
    let def = op(&["x: N * float"], &[], &["N: int"]);
    let resolve = |value: AttrValue| Signature::resolve(&def, &attrs(&[("N", value)]));
    assert!(matches!(resolve(AttrValue::Int(i64::MAX)), Err(OpError::TooMany { .. })));
    assert!(matches!(resolve(AttrValue::Int(-5)), Err(OpError::BelowMinimum { .. })));
    assert!(matches!(resolve(AttrValue::Float(1.0)), Err(OpError::AttrType { .. })));
    assert!(matches!(Signature::resolve(&def, &AttrMap::new()), Err(OpError::MissingAttr { .. })));
    let two = op(&["x: N * float", "y: N * float"], &[], &["N: int"]);
    let values = attrs(&[("N", AttrValue::Int(MAX_VALUES as i64))]);
    assert!(matches!(Signature::resolve(&two, &values), Err(OpError::TooMany { .. })));
}

#[test]
fn attributes_are_inferred_from_inputs() {
    let def = op(&["x: N * T", "y: T"], &[], &["N: int", "T: type"]);
    let found = inferred(&def, &[F, F, F.as_ref_type()]).unwrap();
    assert_eq!(found["N"].as_int(), Some(2));
    assert_eq!(found["T"].as_type(), Some(F));
    let list = op(&["x: L", "y: int32"], &[], &["L: list(type)"]);
    let found = inferred(&list, &[F, DType::STRING, I]).unwrap();
    assert!(matches!(&found["L"], AttrValue::List(AttrList::Type(t)) if t == &[F, DType::STRING]));
    let pairs = op(&["x: N * T", "y: N * int32"], &[], &["N: int", "T: type"]);
    assert_eq!(inferred(&pairs, &[F, F, I, I]).unwrap()["N"].as_int(), Some(2));
    assert!(inferred(&pairs, &[F, F, I]).is_err(), "three inputs are not pairs");
}

#[test]
fn inference_refuses_what_contradicts() {
    let def = op(&["x: T", "y: T"], &[], &["T: {float, int32}"]);
    assert_eq!(
        inferred(&def, &[F, I]).unwrap_err().to_string(),
        "op 'Op': input 1 (argument 'y') is float, found int32"
    );
    assert!(inferred(&def, &[F]).unwrap_err().to_string().contains("takes 2 (x, y) inputs"));
    assert!(matches!(inferred(&def, &[DType::BOOL; 2]), Err(OpError::NotAllowed { .. })));
    let mut set = attrs(&[("T", I.into())]);
    assert!(matches!(infer_attrs(&def, &[F, F], &mut set), Err(OpError::InputType { .. })));
    let mut wrong = attrs(&[("T", AttrValue::Int(1))]);
    assert!(matches!(infer_attrs(&def, &[F, F], &mut wrong), Err(OpError::AttrType { .. })));
    let two = op(&["x: N * float", "y: M * float"], &[], &["N: int", "M: int"]);
    assert_eq!(
        inferred(&two, &[F, F, F]).unwrap_err().to_string(),
        "op 'Op': the lengths M, N cannot be told from 3 inputs: set all but one"
    );
    let mut one_set = attrs(&[("N", AttrValue::Int(2))]);
    infer_attrs(&two, &[F, F, F], &mut one_set).unwrap();
    assert_eq!(one_set["M"].as_int(), Some(1));
    let mut huge = attrs(&[("N", AttrValue::Int(i64::MAX))]);
    assert!(matches!(infer_attrs(&two, &[F], &mut huge), Err(OpError::TooMany { .. })));
    let reference = op(&["x: Ref(T)"], &[], &["T: type"]);
    assert!(
        inferred(&reference, &[F]).unwrap_err().to_string().contains("is float_ref, found float")
    );
    let none = op(&["x: N * float"], &[], &["N: int"]);
    assert!(matches!(inferred(&none, &[]), Err(OpError::BelowMinimum { .. })));
}

#[test]
fn defaults_are_filled_and_attributes_checked() {
    let def = op(
        &[],
        &[],
        &[
            "T: {float, int32} = DT_FLOAT",
            "p: {'A', 'B'}",
            "n: int >= 2 = 3",
            "l: list(int) >= 1 = [1]",
        ],
    );
    let mut values = AttrMap::new();
    assert_eq!(
        apply_defaults(&def, &mut values).unwrap_err().to_string(),
        "op 'Op': attribute 'p' of type string is missing and has no default: set it"
    );
    values.insert("p".into(), "A".into());
    values.insert("_kernel".into(), AttrValue::Int(1));
    apply_defaults(&def, &mut values).unwrap();
    assert_eq!(values["T"].as_type(), Some(F));
    check_attrs(&def, &values).unwrap();
    let with = |name: &str, value: AttrValue| {
        let mut values = values.clone();
        values.insert(name.into(), value);
        check_attrs(&def, &values).unwrap_err().to_string()
    };
    assert_eq!(with("p", "C".into()), "op 'Op': attribute 'p' is one of 'A', 'B', found 'C'");
    assert_eq!(
        with("T", DType::BOOL.into()),
        "op 'Op': attribute 'T' is one of float, int32, found bool"
    );
    assert!(with("T", DType(77).into()).contains("type number 77"));
    assert_eq!(with("n", AttrValue::Int(1)), "op 'Op': attribute 'n' is at least 2, found 1");
    assert!(
        with("l", Vec::<i64>::new().into()).contains("the length of attribute 'l' is at least 1")
    );
    assert_eq!(
        with("n", AttrValue::Bool(true)),
        "op 'Op': attribute 'n' is of type int, found bool"
    );
    assert!(with("q", AttrValue::Int(1)).contains("has no attribute 'q': it has T, p, n, l"));
    values.remove("n");
    assert!(matches!(check_attrs(&def, &values), Err(OpError::MissingAttr { .. })));
}

#[test]
fn definitions_differ_by_what_they_say() {
    let a = op(&["x: T"], &["y: T"], &["T: {float, int32} = DT_FLOAT"]);
    let spaced = op(&["x : T"], &["y:T"], &["T: {DT_FLOAT,int32} = float"]);
    assert_eq!(a.difference(&spaced), None);
    let default = op(&["x: T"], &["y: T"], &["T: {float, int32} = DT_INT32"]);
    assert_eq!(a.difference(&default).as_deref(), Some("attribute 'T'"));
    let input = op(&["z: T"], &["y: T"], &["T: {float, int32} = DT_FLOAT"]);
    assert_eq!(a.difference(&input).as_deref(), Some("the inputs"));
    let stateful = OpDef { stateful: true, ..a.clone() };
    assert_eq!(a.difference(&stateful).as_deref(), Some("the flags"));
}

#[test]
fn definitions_are_read_from_the_boundary() {
    let inputs = [Str::new("x: T")];
    let list = [Str::new("T: type")];
    let mut raw = tenon_abi::OpDef {
        struct_size: size_of::<tenon_abi::OpDef>() as u32,
        flags: tenon_abi::op_flags::STATEFUL | tenon_abi::op_flags::COMMUTATIVE,
        name: Str::new("Twice"),
        inputs: Strs::new(&inputs),
        outputs: Strs::new(&[]),
        attrs: Strs::new(&list),
        summary: Str::new("Doubles."),
        description: Str::EMPTY,
        shape: ShapeFn { run: None },
        source: Source { krate: Str::new("zoo"), file: Str::new("z.rs"), line: 7 },
        ext: std::ptr::null(),
    };
    // SAFETY: a whole struct whose texts live.
    let def = unsafe { OpDef::from_abi(&raw) }.unwrap();
    assert!(def.stateful && def.commutative && !def.aggregate);
    assert_eq!((def.name.as_str(), def.summary.as_str()), ("Twice", "Doubles."));
    assert_eq!(def.source.to_string(), "zoo z.rs:7");
    raw.name = Str { ptr: std::ptr::null(), len: 5 };
    // SAFETY: as above; the null name is refused.
    let error = unsafe { OpDef::from_abi(&raw) }.unwrap_err();
    assert_eq!(error.to_string(), "field 'name' of op definition is null, expected a value");
    assert_eq!(error.code(), Code::INVALID_ARGUMENT);
    raw.struct_size = 4;
    // SAFETY: as above.
    let error = unsafe { OpDef::from_abi(&raw) }.unwrap_err();
    assert!(matches!(error, OpError::Raw(RawError::StructSize { found: 4, .. })));
}
