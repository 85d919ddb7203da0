use super::*;
use crate::check::Argument;
use std::sync::Arc;
use tenon_framework::{DType, attr::AttrMap, registry::KernelDef};
use tenon_runtime::{Runtime, RuntimeOptions};

/// A subject of an op with one float input, one like output and these attributes; nothing calls the kernel.
fn subject(attrs: &[&str]) -> Subject {
    let none: [&str; 0] = [];
    let (runtime, _) = Runtime::new(RuntimeOptions::with_plugins(none)).unwrap();
    let kernel = KernelDef::clone(&runtime.registry().kernels_of("Identity")[0]);
    let op = OpDef::from_spec("Scaled", &["x: float"], &["y: float"], attrs).unwrap();
    Subject { op: Arc::new(op), kernel: Arc::new(kernel), types: AttrMap::new() }
}

fn case(dims: &[i64], fill: Fill, by: i64) -> CheckCase {
    let input = Argument { dtype: DType::FLOAT, dims: dims.to_vec(), fill, constant: false };
    CheckCase {
        name: format!("{}", dims.len()),
        tags: Vec::new(),
        attrs: AttrMap::from([("by".to_owned(), AttrValue::Int(by))]),
        inputs: vec![input],
    }
}

const ORDINARY: Fill = Fill::Uniform { low: -2.0, high: 2.0, seed: 1 };

#[test]
fn an_attribute_is_tried_far_from_its_default_on_a_small_case_that_has_the_others() {
    let cases = [
        case(&[4099], ORDINARY, 2),
        case(&[3, 5], ORDINARY, 2),
        case(&[7], ORDINARY, 2),
        case(&[5, 5, 5], ORDINARY, 3),
        case(&[0, 3], ORDINARY, 2),
    ];
    let made = far(&subject(&["by: int = 2"]), &cases);
    let names: Vec<&str> = made.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["2:by=0", "2:by=-1", "2:by=7", "2:by=64"]);
    assert!(made.iter().all(|case| case.inputs[0].dims == [3, 5] && case.is(Tag::Attribute)));
    let values: Vec<i64> = made.iter().filter_map(|case| case.attrs["by"].as_int()).collect();
    assert_eq!(values, [0, -1, 7, 64]);
}

#[test]
fn values_that_are_forbidden_or_tried_elsewhere_are_left_out() {
    let cases = [case(&[7], ORDINARY, 2), case(&[7], ORDINARY, 7)];
    let made = far(&subject(&["by: int >= 0 = 2"]), &cases);
    let values: Vec<i64> = made.iter().filter_map(|case| case.attrs["by"].as_int()).collect();
    // The op has no shape function: an output of unknown size may be as large as the attribute says.
    assert_eq!(values, [0, 64, 16]);
    assert!(far(&subject(&["by: float = 2.0"]), &cases).is_empty());
    let mut own = subject(&["by: int = 2"]);
    Arc::get_mut(&mut own.op).unwrap().set_cases(&["some; x: [n]"]).unwrap();
    assert!(far(&own, &cases).is_empty(), "the op's own cases say what is valid");
}

#[test]
fn special_numbers_are_replaced_by_huge_ones_and_nothing_else_is() {
    let mut special = case(&[91], Fill::Special { seed: 9 }, 2);
    special.name = "91:special".to_owned();
    special.inputs.push(Argument { dtype: DType::INT32, ..special.inputs[0].clone() });
    let made = huge(&[case(&[7], ORDINARY, 2), special]).unwrap();
    assert_eq!(made.name, "91:huge");
    assert!(matches!(made.inputs[0].fill, Fill::Huge { seed: 9 }));
    assert!(matches!(made.inputs[1].fill, Fill::Special { .. }), "an integer has no huge numbers");
    assert!(huge(&[case(&[7], ORDINARY, 2)]).is_none());
}
