//! Reading of calls to measure and of formulas.

use super::*;
use crate::attr::{AttrMap, AttrValue};
use tenon_abi::DType;

fn op() -> OpDef {
    let attrs = ["T: {float, double}", "N: int >= 1", "groups: int = 2", "mode: string = 'a'"];
    OpDef::from_spec("Some", &["a: T", "rest: N * T"], &["y: T"], &attrs).unwrap()
}

fn value(flops: &str) -> Option<f64> {
    let mut op = op();
    op.set_bench::<&str>(&[], flops, "").unwrap();
    let attrs = AttrMap::from([
        ("T".to_owned(), DType::FLOAT.into()),
        ("N".to_owned(), AttrValue::Int(2)),
        ("groups".to_owned(), AttrValue::Int(4)),
    ]);
    let of = |dims: &[i64]| (DType::FLOAT, dims.to_vec());
    let inputs = [of(&[2, 3]), of(&[5]), of(&[7, 1])];
    let outputs = [of(&[2, 5])];
    let tensors = Tensors { inputs: &inputs, outputs: &outputs };
    op.bench().flops.as_ref().unwrap().value(&op, &attrs, tensors)
}

#[test]
fn formulas_count_elements_sizes_bytes_and_attributes() {
    assert_eq!(value("2 * y * a[-1]"), Some(60.0));
    assert_eq!(value("a + rest"), Some(6.0 + 5.0 + 7.0), "all tensors of an argument");
    assert_eq!(value("bytes(rest) - bytes(y)"), Some(8.0));
    assert_eq!(value("a[0]*a[1] / groups + 0.5"), Some(2.0));
    assert_eq!(value("2 * (a - 1) / (1 + 1)"), Some(5.0));
    assert_eq!(value("8 - 4 - 2"), Some(2.0), "from the left");
}

#[test]
fn a_formula_without_a_value_is_none() {
    for text in ["a[2]", "a[-3]", "a - y * 2", "y / (a - 6)", "a[-9223372036854775808]"] {
        assert_eq!(value(text), None, "{text}");
    }
}

#[test]
fn a_formula_that_is_none_says_where() {
    let deep = format!("{}1", "(".repeat(40));
    for (text, expected) in [
        ("2 * z", "at byte 4: expected a number, an input"),
        ("mode", "at byte 0: expected a number"),
        ("2 *", "found the end"),
        ("a[x]", "the number of a size"),
        ("bytes(groups)", "at byte 6: expected the name of an input or output"),
        ("a y", "at byte 2: expected '+'"),
        ("1.2.3", "a number"),
        (&deep, "at most 32 nested"),
    ] {
        let error = op().set_bench::<&str>(&[], text, "").unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("op 'Some'"), "{text}: {error}");
    }
}

#[test]
fn sizes_of_a_call_are_lists_and_doubling_ranges() {
    let mut op = op();
    let text = "rows; N = 2; n in 3..20; m in {1, 5}; a: [n, m]; rest: [m]";
    op.set_bench(&[text], "", "").unwrap();
    let sizes = op.bench().calls[0].sizes();
    let shown: Vec<(i64, i64)> = sizes.iter().map(|row| (row["n"], row["m"])).collect();
    assert_eq!(shown, [(3, 1), (3, 5), (6, 1), (6, 5), (12, 1), (12, 5)]);
    assert_eq!(doubled(0, 5), [0, 1, 2, 4]);
    assert_eq!(doubled(i64::MAX - 1, i64::MAX), [i64::MAX - 1]);
}

#[test]
fn a_call_that_leaves_something_open_is_refused() {
    for (text, expected) in [
        ("one; N = 2; a: [n]; rest: [4]", "values of size 'n'"),
        ("one; N = 2; a: [4]", "input 'rest' described"),
        ("one; N = 2; a: [groups]; rest: [4]; other: [1]", "the name of an input"),
        (
            "many; N = 2; p in {1,2,3,4,5,6,7,8,9}; q in {1,2,3,4,5,6,7,8}; a: [p, q]; rest: [1]",
            "at most 64",
        ),
    ] {
        let error = op().set_bench(&[text], "", "").unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    op().set_bench(&["one; N = 2; a: [groups]; rest: [4]"], "", "").unwrap();
}

/// The examples of core/abi/docs/bench.md: an op, a call, formulas.
#[test]
fn what_is_documented_is_read() {
    let text = include_str!("../../../../abi/docs/bench.md");
    let blocks: Vec<&str> = text.split("```bench\n").skip(1).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let lines: Vec<&str> = block.lines().take_while(|line| !line.starts_with("```")).collect();
        let [op, call, flops, bytes] = lines[..] else { panic!("{block}") };
        let head = op.strip_prefix("op ").unwrap();
        let (name, rest) = head.split_once('(').unwrap();
        let (inputs, attrs) = rest.split_once(") with ").unwrap();
        let (inputs, attrs): (Vec<&str>, Vec<&str>) =
            (inputs.split(", ").collect(), attrs.split("; ").collect());
        let mut op = OpDef::from_spec(name, &inputs, &["y: T"], &attrs).unwrap();
        let formula = |line: &str| line.split_once(':').unwrap().1.trim().to_owned();
        op.set_bench(&[call], &formula(flops), &formula(bytes)).unwrap();
    }
}
