use super::*;
use crate::op::{OpDef, OpError};
use proptest::prelude::*;

fn op() -> OpDef {
    let attrs = [
        "T: {float, int32}",
        "N: int >= 1",
        "axis: int = 0",
        "mode: {'a', 'b c'} = 'a'",
        "scale: float = 1.0",
        "flag: bool = false",
        "to: type = DT_FLOAT",
        "shape: shape = ?",
        "table: tensor = { dtype: DT_INT32 }",
        "sizes: list(int) = []",
        "shapes: list(shape) = []",
        "names: list(string) = []",
    ];
    let inputs = ["x: T", "index: int64", "xs: N * T", "text: string", "mask: bool", "v: variant"];
    OpDef::from_spec("Op", &inputs, &["y: T"], &attrs).unwrap()
}

fn read(text: &str) -> Result<Case, OpError> {
    let mut op = op();
    op.set_cases(&[text]).map(|()| op.cases[0].clone())
}

fn case(text: &str) -> Case {
    read(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Where the text is wrong, and what is expected there.
fn wrong(text: &str) -> (usize, String) {
    match read(text) {
        Err(OpError::Case { position, expected, number: 1, .. }) => (position, expected),
        other => panic!("{text}: {other:?}"),
    }
}

#[track_caller]
fn refused(text: &str, at: usize, expected: &str) {
    let (position, found) = wrong(text);
    assert!(found.contains(expected), "{text}: expected {expected:?} in {found:?}");
    assert_eq!(position, at, "{text}: {found}");
}

fn tensor(values: &str) -> Values {
    case(&format!("a; x: [n] {values}")).inputs[0].tensors[0].values.clone()
}

#[test]
fn every_part_of_a_case_is_read() {
    let all = case(
        "all; axis in {0, -1}; mode = 'b c'; n in 1..=8; m in {0,7}; k in 0..1; x: [2*n-1, m, 3] uniform(-1, 1e3); \
         index: [k] integers(-n..n+1); xs: [n], []; text: [] strings('a', \"b\")",
    );
    assert_eq!(all.name, "all");
    assert_eq!(all.attr("axis").unwrap().iter().filter_map(AttrValue::as_int).sum::<i64>(), -1);
    assert_eq!(all.attr("mode").unwrap()[0].as_text(), Some("b c"));
    assert_eq!(all.symbols[0].sizes, Sizes::Range(1, 9));
    assert_eq!(all.symbols[1].sizes, Sizes::List(vec![0, 7]));
    let x = &all.input("x").unwrap().tensors[0];
    let size = |symbol: &str| [("n", 3), ("m", 5)].into_iter().find(|s| s.0 == symbol).map(|s| s.1);
    assert_eq!(x.elements(size), Some(5 * 5 * 3));
    assert_eq!(x.elements(|_| None), None);
    assert_eq!(x.values, Values::Uniform(-1.0, 1000.0));
    let index = &all.input("index").unwrap().tensors[0].values;
    let Values::Integers(range) = index else { panic!("{index:?}") };
    assert_eq!(range.bounds(size), Some((-3, 4)));
    assert_eq!(all.input("xs").unwrap().tensors.len(), 2);
    assert_eq!(all.used_symbols().into_iter().collect::<Vec<_>>(), ["k", "m", "n"]);
    assert!(all.input("mask").is_none() && all.attr("flag").is_none());
}

#[test]
fn elements_are_made_in_every_way() {
    let n = |factor, offset| Term { symbol: Some((factor, "n".to_owned())), offset };
    assert_eq!(tensor(""), Values::Any);
    let to = |end| TermRange { start: Term::number(0), end };
    assert_eq!(tensor("integers(0..=n)"), Values::Integers(to(n(1, 1))));
    assert_eq!(tensor("distinct(0..n)"), Values::Distinct(to(n(1, 0))));
    assert_eq!(tensor("permutation"), Values::Permutation);
    let items = [Item::Term(n(-1, 0)), Item::Term(n(3, -2)), Item::Float(1.0), Item::Float(-1e-3)];
    assert_eq!(tensor("values(-n, 3*n - 2, 1., -1e-3)"), Values::List(items.to_vec()));
    let Values::List(items) = tensor("values(nan, -inf, NaN)") else { panic!("a list") };
    assert!(matches!(items[..], [Item::Float(a), Item::Float(b), _] if a.is_nan() && b < -1e300));
    // A word that only begins like a number is a size; the name of an attribute of type int is one too.
    let words = case("a; x: [infants, axis] values(nano)");
    assert_eq!(words.used_symbols().into_iter().collect::<Vec<_>>(), ["axis", "infants", "nano"]);
    let bools = case("a; mask: [2] values(true, false)");
    let bools = &bools.inputs[0].tensors[0].values;
    assert_eq!(*bools, Values::List(vec![Item::Bool(true), Item::Bool(false)]));
}

#[test]
fn sizes_that_do_not_fit_have_no_value() {
    let Values::Integers(range) = tensor("integers(0..9223372036854775807*n)") else {
        panic!("a range")
    };
    assert_eq!(range.bounds(|_| Some(1)), Some((0, i64::MAX)));
    assert_eq!(range.bounds(|_| Some(2)), None);
    let huge = case("a; x: [n, n]").inputs[0].tensors[0].clone();
    assert_eq!(huge.elements(|_| Some(1 << 32)), None);
    assert_eq!(huge.elements(|_| Some(-1)), None);
}

#[test]
fn texts_that_do_not_follow_the_grammar_say_where() {
    refused("", 0, "the name of the case");
    refused("a b", 2, "';' or the end of the case");
    refused("a;", 2, "the name of an attribute, of a size or of an input");
    refused("a; x", 4, "':' after an input, 'in' after a size");
    refused("a; x: 3", 6, "'[' and the dimensions");
    refused("a; x: [n", 8, "',' or ']'");
    refused("a; x: [?]", 7, "an integer or the name of a size");
    refused("a; x: [n + m]", 11, "an integer that fits 64 bits after");
    refused("a; x: [n] normal(0, 1)", 10, "uniform, integers, distinct");
    refused("a; x: [n] uniform(0; 1)", 19, "',' and the upper bound");
    refused("a; x: [n] integers(0, 3)", 20, "'..' and the end of the range");
    refused("a; x: [n] values(1 2)", 19, "',' or ')'");
    refused("a; text: [n] strings(a)", 21, "text in quotes");
    refused("a; axis: [n]", 3, "the name of an input of the op");
    refused("a; axis 3", 8, "'=' and a value");
    refused("a; axis in 0..3", 11, "'=' and a value, or 'in {'");
    refused("a; axis = x", 10, "an integer that fits 64 bits");
    refused("a; other = 3; x: [n]", 3, "the name of an attribute of the op before '='");
    refused("a; n in x; x: [n]", 8, "an integer, or '{'");
}

#[test]
fn what_a_case_says_must_suit_the_op_and_itself() {
    refused("a; x: [n]; x: [n]", 11, "an input that is not described yet");
    refused("a; axis = 1; axis = 2", 13, "an attribute that is not set yet");
    refused("a; n in 0..3; n in 1..2; x: [n]", 14, "a size that is not limited yet");
    refused("a; n in 0..3", 3, "a size that an input has");
    refused("a; n in 3..3; x: [n]", 8, "a range with a size in it");
    refused("a; n in -1..3; x: [n]", 8, "a size of at least 0");
    refused("a; mode = 'c'", 10, "mode' is one of 'a', 'b c', found 'c'");
    refused("a; N = 0", 7, "'N' is at least 1, found 0");
    refused("a; x: [-1]", 7, "a dimension of at least 0");
    refused("a; x: [0*n]", 7, "a factor other than 0");
    refused("a; x: [T]", 3, "without 'T', which is an attribute of type type");
    refused("a; x: [n] uniform(1, 0)", 18, "two finite numbers, the lower one first");
    refused("a; x: [n] uniform(0, inf)", 18, "two finite numbers");
    refused("a; x: [n] integers(3..3)", 19, "a range with an integer in it");
    refused("a; x: [2, 2] distinct(0..3)", 13, "a range of 4 integers or more");
    refused("a; x: [n, n] permutation", 13, "a vector");
    refused("a; x: [2] values(1, 2, 3)", 10, "2 values, or one");
    refused("a; x: [n], [n]", 3, "as many descriptions as 'x' has values (1)");
    refused("a; xs: [n], [n]; N in {2, 3}", 3, "as many descriptions as 'xs' has values (2, 3)");
    refused("a; x: [n] strings('a')", 10, "values of float or int32");
    refused("a; T = int32; x: [n] values(0.5)", 21, "values of int32");
    refused("a; x: [n] values(true)", 10, "values of float or int32");
    refused("a; mask: [n] uniform(0, 1)", 13, "values of bool");
    refused("a; v: [] values(0)", 9, "values of variant");
    // One of the types suffices; one value fills whatever shape.
    case("a; x: [n] values(0.5); index: [2, 2] values(3)");
}

#[test]
fn what_has_no_default_is_set_or_taken_from_the_inputs() {
    let inputs = ["x: T", "xs: L"];
    let attrs = ["T: type", "L: list(type)", "limit: int"];
    let mut op = OpDef::from_spec("Op", &inputs, &["y: to"], &[&attrs[..], &["to: type"]].concat());
    let op = op.as_mut().unwrap();
    let error = op.set_cases(&["one; limit = 3", "two; x: [n]"]).unwrap_err().to_string();
    assert_eq!(
        error,
        "op 'Op': case 2 \"two; x: [n]\" at byte 11: expected '; limit = ...', since it has no \
         default, found the end"
    );
    let error = op.set_cases(&["one; limit = 3", "one; limit = 4"]).unwrap_err().to_string();
    assert!(error.contains("case 2 ") && error.contains("a name that no case before has"));
}

#[test]
fn the_page_for_authors_is_right() {
    let page = include_str!("../../../../abi/docs/cases.md");
    let blocks = page.split("```cases\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut read = 0;
    for block in blocks {
        let (head, cases) = block.split_once('\n').unwrap();
        let (name, rest) = head.strip_prefix("op ").unwrap().split_once('(').unwrap();
        let (inputs, attrs) = rest.split_once(") with ").unwrap();
        let inputs: Vec<&str> = inputs.split(", ").collect();
        let attrs: Vec<&str> = attrs.split("; ").collect();
        let mut op = OpDef::from_spec(name, &inputs, &[], &attrs).unwrap();
        let cases: Vec<&str> = cases.lines().collect();
        op.set_cases(&cases).unwrap_or_else(|error| panic!("{error}"));
        read += op.cases().len();
    }
    assert!(read >= 10, "{read} cases on the page");
}

fn word() -> impl Strategy<Value = String> {
    "[a-zA-Z][a-zA-Z0-9_]{0,5}"
        .prop_filter("a size", |word| op().attr(word).is_none() && word != "in")
        .prop_filter("no number", |w| !["true", "false", "inf", "nan", "NaN"].contains(&&**w))
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![any::<String>().prop_map(String::into_bytes), any::<Vec<u8>>()]
}

fn one_term() -> impl Strategy<Value = Term> {
    let factor = prop_oneof![Just(1), Just(-1), any::<i64>().prop_filter("a factor", |f| *f != 0)];
    let symbol = (factor, word(), -i64::MAX..i64::MAX);
    prop_oneof![
        any::<i64>().prop_map(Term::number),
        symbol.prop_map(|(factor, name, offset)| Term { symbol: Some((factor, name)), offset }),
    ]
}

fn dims(rank: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Term>> {
    let dim = one_term().prop_filter("a dimension", |dim| dim.constant().is_none_or(|d| d >= 0));
    prop::collection::vec(dim, rank)
}

fn range() -> impl Strategy<Value = TermRange> {
    (one_term(), one_term())
        .prop_map(|(start, end)| TermRange { start, end })
        .prop_filter("not empty", |range| {
            range.bounds(|_| None).is_none_or(|(start, end)| start < end)
        })
}

fn numbers() -> impl Strategy<Value = Values> {
    let finite = || any::<f64>().prop_filter("finite", |value| value.is_finite());
    let item = prop_oneof![
        one_term().prop_map(Item::Term),
        any::<f64>().prop_map(|x| Item::Float(if x.is_nan() { f64::NAN } else { x })),
    ];
    prop_oneof![
        Just(Values::Any),
        (finite(), finite()).prop_map(|(a, b)| Values::Uniform(a.min(b), a.max(b))),
        range().prop_map(Values::Integers),
        // The range of a distinct one is checked against the number of elements, where both are known.
        (one_term(), word()).prop_map(|(start, end)| {
            let end = Term { symbol: Some((1, end)), offset: 0 };
            Values::Distinct(TermRange { start, end })
        }),
        prop::collection::vec(item, 1..4).prop_map(Values::List),
    ]
}

fn described(name: &str, values: BoxedStrategy<Values>) -> BoxedStrategy<InputCase> {
    let name = name.to_owned();
    let tensor = (dims(0..4), values).prop_filter_map("fitting", |(dims, values)| {
        let count = match &values {
            Values::List(items) if items.len() > 1 => Some(items.len() as i64),
            _ => None,
        };
        let tensor = TensorCase { dims, values };
        let fits = count.is_none() || tensor.elements(|_| None).is_none_or(|e| Some(e) == count);
        fits.then_some(tensor)
    });
    tensor.prop_map(move |tensor| InputCase { name: name.clone(), tensors: vec![tensor] }).boxed()
}

fn attr_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|axis| format!("axis = {axis}")),
        prop::collection::vec(any::<i64>(), 1..4)
            .prop_map(|axes| format!("axis in {{ {axes:?} }}"))
            .prop_map(|text| text.replace(['[', ']'], "")),
        Just("mode in { 'a', \"b c\", }".to_owned()),
        any::<f32>().prop_map(|scale| format!("scale = {scale:?}")),
        Just("to in {DT_BOOL, bfloat16}".to_owned()),
        Just("shape = [2, ?]".to_owned()),
        Just("shape = { unknown_rank: true }".to_owned()),
        Just(
            "table = { dtype: DT_DOUBLE tensor_shape { dim { size: 2 } } double_val: 0.5 }"
                .to_owned()
        ),
        Just("table = { dtype: DT_BOOL bool_val: true }".to_owned()),
        prop::collection::vec(any::<i64>(), 0..4).prop_map(|sizes| format!("sizes = {sizes:?}")),
        Just("shapes = [[1], ?, []]".to_owned()),
        Just(r#"names = ['it\'s', "\x00\xff", 'ü']"#.to_owned()),
        any::<bool>().prop_map(|flag| format!("flag = {flag}")),
    ]
}

fn same(a: &Case, b: &Case) -> bool {
    let attrs = a.attrs.iter().zip(&b.attrs).all(|(a, b)| {
        let values = a.values.iter().zip(&b.values);
        a.name == b.name
            && a.values.len() == b.values.len()
            && values.into_iter().all(|(a, b)| crate::op::value::same_value(a, b))
    });
    let rest = |case: &Case| format!("{} {:?} {:?}", case.name, case.symbols, case.inputs);
    attrs && a.attrs.len() == b.attrs.len() && rest(a) == rest(b)
}

proptest! {
    #[test]
    fn a_case_that_is_written_is_read_back(
        name in word(),
        attrs in prop::collection::vec(attr_text(), 0..3),
        x in described("x", numbers().boxed()),
        index in described("index", range().prop_map(Values::Integers).boxed()),
        text in described("text", prop::collection::vec(text(), 1..4).prop_map(Values::Strings).boxed()),
        xs in prop::collection::vec(dims(0..3), 1..4),
        perm in dims(1..2),
        sizes in prop_oneof![
            (0..i64::MAX).prop_map(|first| Sizes::Range(first, i64::MAX)),
            prop::collection::vec(0..i64::MAX, 1..4).prop_map(Sizes::List),
        ],
    ) {
        // The attributes come from their texts: a name at most once.
        let mut all = op();
        let mut known = std::collections::BTreeSet::new();
        let attrs: Vec<String> = attrs
            .into_iter()
            .filter(|text| known.insert(text.split(' ').next().map(str::to_owned)))
            .collect();
        all.set_cases(&[["a".to_owned()].into_iter().chain(attrs).collect::<Vec<_>>().join("; ")])?;
        let tensor = |dims| TensorCase { dims, values: Values::Any };
        let xs = InputCase { name: "xs".to_owned(), tensors: xs.into_iter().map(tensor).collect() };
        let mut inputs = vec![x, text, xs];
        inputs.push(if index.tensors[0].dims.len() == 2 {
            let values = Values::Permutation;
            InputCase { tensors: vec![TensorCase { dims: perm, values }], ..index }
        } else {
            index
        });
        let mut case = Case { name, attrs: all.cases[0].attrs.clone(), symbols: vec![], inputs };
        let symbol = case.used_symbols().into_iter().next().map(str::to_owned);
        case.symbols.extend(symbol.map(|symbol| SizeChoice { symbol, sizes }));

        let written = case.to_string();
        let read = read(&written)?;
        prop_assert!(same(&case, &read), "{written}\n{case:?}\n{read:?}");
        prop_assert_eq!(read.to_string(), written);
    }

    #[test]
    fn any_text_is_read_or_refused_within_it(text in any::<String>(), near in "[a-z0-9;:=\\[\\]().,{}'* -]{0,40}") {
        for text in [text, near.clone(), format!("a; x: {near}"), format!("a; axis in {{{near}")] {
            match read(&text) {
                Ok(case) => { prop_assert!(read(&case.to_string()).is_ok()); }
                Err(OpError::Case { position, .. }) => { prop_assert!(position <= text.len()); }
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}
