use super::*;
use crate::op::SourceInfo;

fn parse(pattern: &str, result: &str, conditions: &[&str]) -> Result<FusionDef, FusionError> {
    parse_fusion("f", pattern, result, conditions, SourceInfo::default())
}

#[test]
fn a_fusion_is_read() {
    let def = parse(
        "act:Relu|Tanh(p@_FusedMatMul(a, b, *args; fused_ops = $ops, transpose_a = false))",
        "_FusedMatMul(a, b, *args; fused_ops = [*$ops, $act])",
        &["rank(a, 2)", "same_type(a, p)"],
    )
    .unwrap();
    let Term::Call(outer) = &def.pattern.term else { panic!("{def:?}") };
    assert_eq!((outer.capture.as_deref(), outer.ops.len()), (Some("act"), 2));
    assert_eq!(def.pattern.names(), ["p", "a", "b", "args"]);
    assert_eq!(def.pattern.captures(), ["act", "ops"]);
    let inner = &outer.args[0];
    let Term::Call(call) = &inner.term else { panic!("{inner:?}") };
    assert_eq!(call.args[2].term, Term::Rest);
    assert_eq!(call.attrs[1], ("transpose_a".to_owned(), Value::Bool(false)));
    let items = vec![Value::Splice("ops".to_owned()), Value::Capture("act".to_owned())];
    assert_eq!(def.result.attrs, [("fused_ops".to_owned(), Value::List(items))]);
    assert_eq!(def.conditions[0].numbers, [2]);
}

#[test]
fn numbers_and_shared_values_are_read() {
    let def = parse(
        "Mul(Mul(0.5, x), AddV2(1, Erf(Mul(x, 7.0710677e-1))))",
        "_FusedGelu(x; approximate = false)",
        &[],
    )
    .unwrap();
    assert_eq!(def.pattern.names(), ["x", "x"]);
    let def = parse("AddV2(Mul(x, i@Mul(r, scale)), i)", "_F(x, scale; epsilon = number(r))", &[]);
    assert_eq!(def.unwrap().result.attrs[0].1, Value::Number("r".to_owned()));
}

#[test]
fn what_is_no_fusion_is_told_with_its_place() {
    let cases: &[(&str, &str, &[&str], &str)] = &[
        ("x", "_F(x)", &[], "pattern 'x' at byte 0: expected an op with its inputs"),
        ("Relu(x", "_F(x)", &[], "at byte 6: expected ','"),
        ("Relu(x))", "_F(x)", &[], "at byte 7: expected the end"),
        ("Relu(x; T = )", "_F(x)", &[], "at byte 12: expected a name"),
        ("Relu(x; T = 'a)", "_F(x)", &[], "expected a closing quote"),
        ("Relu(*x, y)", "_F(y)", &[], "expected nothing after all inputs"),
        ("Relu(a@b@x)", "_F(x)", &[], "expected one name"),
        ("Relu(x)", "_F(y)", &[], "result '_F(y)' at byte 0: expected inputs among x"),
        ("Relu(x)", "_F(x; a = $b)", &[], "expected $b to be taken"),
        ("Relu(x)", "_F(x; a = number(y))", &[], "expected 'y' among x"),
        ("Relu(x)", "_F|_G(x)", &[], "expected one op"),
        (
            "Relu(x)",
            "_F(x)",
            &["vector(y)"],
            "condition 'vector(y)' at byte 0: expected 'y' among x",
        ),
        ("Relu(x)", "_F(x)", &["small(x)"], "expected one of vector"),
        ("Relu(x)", "_F(x)", &["rank(x)"], "with its arguments"),
        ("Relu(x; a = [[1]])", "_F(x)", &[], "no list in a list"),
    ];
    for (pattern, result, conditions, expected) in cases {
        let error = parse(pattern, result, conditions).unwrap_err().to_string();
        assert!(error.contains(expected), "{pattern}: {error}");
    }
    let deep = format!("{}x{}", "Relu(".repeat(40), ")".repeat(40));
    assert!(parse(&deep, "_F(x)", &[]).unwrap_err().to_string().contains("at most 24"));
}

#[test]
fn any_text_is_read_or_refused() {
    let words = [
        "Relu", "(", ")", ",", ";", "x", "@", ":", "|", "*", "$a", "=", "1.5", "'t'", "[", "]",
        "é", " ",
    ];
    let mut state = 1u64;
    for _ in 0..2000 {
        let mut text = String::new();
        for _ in 0..12 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            text.push_str(words[(state >> 33) as usize % words.len()]);
        }
        let _ = parse(&text, &text, &[&text]);
    }
}
