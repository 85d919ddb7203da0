//! Compares the registered definitions with TensorFlow's.
//!
//! For each op of the standard set, `testdata/standard_ops.json` has the definition in TensorFlow
//! 2.21.0: arguments, attributes in order, types, allowed values, defaults, minima and flags. It
//! also has the family, and the types that TensorFlow's CPU kernels support.

use serde_json::{Map, Value, json};
use std::collections::HashMap;
use tenon_author::testing::registered_ops;
use tenon_framework::{
    attr::{AttrList, AttrValue},
    op::{Allowed, ArgDef, ArgType, AttrDef, OpDef},
};

const SIGNATURES: &str = include_str!("../testdata/standard_ops.json");
/// Ops with state that are not in the standard set, in the same form.
const STATE: &str = include_str!("../testdata/state_ops.json");
/// The keys of an entry that are not part of the signature.
const BESIDES: [&str; 5] =
    ["family", "tier", "cpu_dtypes", "deprecated_at", "is_distributed_communication"];

fn expected() -> Vec<Value> {
    let mut file: Value = serde_json::from_str(SIGNATURES).unwrap();
    let mut ops = std::mem::take(file["ops"].as_array_mut().unwrap());
    let mut state: Value = serde_json::from_str(STATE).unwrap();
    ops.append(state["ops"].as_array_mut().unwrap());
    for op in &mut ops {
        op.as_object_mut().unwrap().retain(|key, _| !BESIDES.contains(&&**key));
    }
    ops
}

fn arg(arg: &ArgDef) -> Value {
    let mut entry = Map::new();
    entry.insert("name".into(), json!(arg.name));
    match &arg.ty {
        ArgType::Fixed(dtype) => entry.insert("type".into(), json!(dtype.to_string())),
        ArgType::Attr(name) => entry.insert("type_attr".into(), json!(name)),
        ArgType::ListAttr(name) => entry.insert("type_list_attr".into(), json!(name)),
    };
    if let Some(number) = &arg.number_attr {
        entry.insert("number_attr".into(), json!(number));
    }
    if arg.is_ref {
        entry.insert("is_ref".into(), json!(true));
    }
    Value::Object(entry)
}

fn default(value: &AttrValue) -> Value {
    match value {
        AttrValue::Int(value) => json!(value),
        AttrValue::Float(value) => json!(f64::from(*value)),
        AttrValue::Bool(value) => json!(value),
        AttrValue::String(_) => json!(value.as_text().unwrap()),
        AttrValue::Type(dtype) => json!(dtype.to_string()),
        AttrValue::Shape(shape) => shape.dims().map_or_else(|| json!("?"), |dims| json!(dims)),
        AttrValue::List(AttrList::Int(items)) => json!(items),
        AttrValue::List(AttrList::Float(items)) => {
            items.iter().map(|&item| json!(f64::from(item))).collect()
        }
        AttrValue::Tensor(_) => json!("tensor"),
        AttrValue::List(list) if list.is_empty() => json!([]),
        other => panic!("a default of a kind that no op of the file has: {other:?}"),
    }
}

fn attr(attr: &AttrDef) -> Value {
    let mut entry = Map::new();
    entry.insert("name".into(), json!(attr.name));
    entry.insert("type".into(), json!(attr.ty.to_string()));
    if let Some(value) = &attr.default {
        entry.insert("default".into(), default(value));
    }
    if let Some(minimum) = attr.minimum {
        entry.insert("minimum".into(), json!(minimum));
    }
    match &attr.allowed {
        Some(Allowed::Types(types)) => {
            let names: Vec<String> = types.iter().map(ToString::to_string).collect();
            entry.insert("allowed".into(), json!(names));
        }
        Some(Allowed::Strings(texts)) => {
            entry.insert("allowed".into(), json!(texts));
        }
        None => {}
    }
    Value::Object(entry)
}

fn signature(op: &OpDef) -> Value {
    let mut entry = Map::new();
    entry.insert("op".into(), json!(op.name));
    entry.insert("inputs".into(), op.inputs.iter().map(arg).collect());
    entry.insert("outputs".into(), op.outputs.iter().map(arg).collect());
    entry.insert("attrs".into(), op.attrs.iter().map(attr).collect());
    let flags = [
        ("is_stateful", op.stateful),
        ("is_commutative", op.commutative),
        ("is_aggregate", op.aggregate),
        ("allows_uninitialized_input", op.allows_uninitialized_input),
    ];
    for (name, _) in flags.iter().filter(|(_, set)| *set) {
        entry.insert((*name).into(), json!(true));
    }
    Value::Object(entry)
}

#[test]
fn every_definition_is_tensorflow_s() {
    let expected = expected();
    let expected: HashMap<&str, &Value> =
        expected.iter().map(|op| (op["op"].as_str().unwrap(), op)).collect();
    // Fused ops are not part of the standard set.
    let is_fused = |op: &OpDef| op.source.file.replace('\\', "/").contains("/fused/");
    for (name, op) in registered_ops().into_iter().filter(|(_, op)| !is_fused(op)) {
        let expected =
            expected.get(&*name).unwrap_or_else(|| panic!("op {name} is not a standard op"));
        assert_eq!(signature(&op), **expected, "{name}");
    }
}

#[test]
fn every_op_has_a_shape_function_and_a_summary() {
    for op in registered_ops().values() {
        assert!(op.shape.run.is_some() && !op.summary.is_empty(), "{}", op.name);
        assert!(op.source.krate == "tenon-ops" && op.source.line > 0, "{}", op.source);
    }
}
