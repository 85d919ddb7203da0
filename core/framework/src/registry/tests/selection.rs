use super::*;
use crate::attr::AttrMap;

const F: DType = DType::FLOAT;
const I: DType = DType::INT32;

struct Ask<'a> {
    device_type: &'a str,
    dtype: DType,
    label: Option<&'a str>,
    features: &'a [&'a str],
}

const PLAIN: Ask<'static> = Ask { device_type: "CPU", dtype: F, label: None, features: &[] };

fn explain(registry: &Registry, ask: &Ask<'_>) -> Explanation {
    explain_with(registry, ask, &mut |_| SupportAnswer::Yes)
}

fn explain_with(
    registry: &Registry,
    ask: &Ask<'_>,
    supports: &mut dyn FnMut(&KernelDef) -> SupportAnswer,
) -> Explanation {
    let attrs = AttrMap::from([("T".to_owned(), ask.dtype.into())]);
    let features: FeatureSet = ask.features.iter().copied().collect();
    let query = KernelQuery {
        op: "Add",
        device_type: ask.device_type,
        attrs: &attrs,
        features: &features,
        label: ask.label,
    };
    let explanation = candidates(registry, &query, supports);
    let chosen = select(registry, &query, &mut |kernel| supports(kernel))
        .map(|chosen| (chosen.kernel, chosen.per_shape));
    let winner = explanation.winner.clone().map(|winner| (winner, explanation.per_shape.clone()));
    assert_eq!(format!("{chosen:?}"), format!("{winner:?}"), "with reasons and without");
    explanation
}

fn winner(registry: &Registry, ask: &Ask<'_>) -> u32 {
    explain(registry, ask).result().unwrap().source.line
}

fn reason(explanation: &Explanation, line: u32) -> String {
    let candidate = explanation.candidates.iter().find(|c| c.kernel.source.line == line).unwrap();
    candidate.removed.as_ref().map(Removal::to_string).unwrap_or_default()
}

fn family() -> Registry {
    let kernel = |line, label: &str, priority| KernelDef {
        label: label.into(),
        priority,
        ..kernel(&[F, DType::DOUBLE], line)
    };
    committed(vec![with_kernels(
        0,
        "cpu",
        0,
        vec![
            kernel(1, "", 0),
            KernelDef { features: vec!["avx512f".into()], ..kernel(2, "avx512", 5) },
            KernelDef { on_request: true, ..kernel(3, "reference", 9) },
            KernelDef { device_type: "GPU".into(), ..kernel(4, "", 0) },
        ],
    )])
}

#[test]
fn the_highest_priority_among_the_present_wins() {
    let registry = family();
    assert_eq!(winner(&registry, &PLAIN), 1);
    assert_eq!(winner(&registry, &Ask { features: &["avx512f"], ..PLAIN }), 2);
    let explanation = explain(&registry, &PLAIN);
    assert_eq!(reason(&explanation, 1), "");
    assert_eq!(reason(&explanation, 2), "needs avx512f, which this cpu lacks");
    assert_eq!(reason(&explanation, 3), "label 'reference' runs on request only");
    assert_eq!(reason(&explanation, 4), "is for GPU, the node is on CPU");
    let fast = explain(&registry, &Ask { features: &["avx512f"], ..PLAIN });
    assert_eq!(
        reason(&fast, 1),
        "lower priority (0 < 5) than kernel 'avx512' of op 'Add' on CPU (T: float, double; k math.rs:2)"
    );
}

#[test]
fn a_label_is_forced_or_the_error_lists_those_there_are() {
    let registry = family();
    assert_eq!(winner(&registry, &Ask { label: Some("reference"), ..PLAIN }), 3);
    assert_eq!(winner(&registry, &Ask { label: Some(""), features: &["avx512f"], ..PLAIN }), 1);
    let unknown = explain(&registry, &Ask { label: Some("neon"), ..PLAIN });
    assert_eq!(
        unknown.result().unwrap_err().to_string(),
        "op 'Add' has no kernel with label 'neon' on CPU: the labels are '', 'avx512', 'reference'"
    );
    assert_eq!(reason(&unknown, 1), "label 'neon' is asked for, this one is ''");
    let absent = explain(&registry, &Ask { label: Some("avx512"), ..PLAIN });
    let error = absent.result().unwrap_err();
    assert!(matches!(error, SelectError::NoKernel { .. }), "a feature is never forced: {error}");
    assert_eq!(error.code(), Code::NOT_FOUND);
}

#[test]
fn no_kernel_lists_every_candidate_with_its_reason() {
    let error = explain(&family(), &Ask { dtype: I, ..PLAIN }).result().unwrap_err().to_string();
    assert!(
        error.starts_with("no kernel of op 'Add' runs this node on CPU:\n  kernel of op 'Add'")
    );
    assert!(error.contains("T is int32, the kernel takes float, double"), "{error}");
    assert_eq!(error.lines().count(), 5);
    let empty = committed(vec![with_kernels(0, "a", 0, vec![])]);
    let none = explain(&empty, &PLAIN).result().unwrap_err().to_string();
    assert_eq!(none, "no kernel of op 'Add' runs this node on CPU: none is registered");
    let unknown = explain(&Registry::new(), &PLAIN).result().unwrap_err();
    assert_eq!(unknown, SelectError::UnknownOp { op: "Add".into() });
}

#[test]
fn a_kernel_of_the_type_beats_a_default_one_and_priority_beats_both() {
    let default = |line, priority| KernelDef {
        device_type: "DEFAULT".into(),
        priority,
        ..kernel(&[F], line)
    };
    let registry = committed(vec![with_kernels(0, "a", 0, vec![default(1, 0), kernel(&[F], 2)])]);
    assert_eq!(winner(&registry, &PLAIN), 2);
    let removed = reason(&explain(&registry, &PLAIN), 1);
    assert!(removed.starts_with("is for every device type, at equal priority with"), "{removed}");
    assert_eq!(winner(&registry, &Ask { device_type: "ACCEL", ..PLAIN }), 1);
    let higher = committed(vec![with_kernels(0, "a", 0, vec![default(1, 1), kernel(&[F], 2)])]);
    assert_eq!(winner(&higher, &PLAIN), 1);
}

#[test]
fn at_equal_priority_the_declared_order_decides() {
    let registry = committed(vec![
        with_kernels(0, "late", 7, vec![kernel(&[F], 1)]),
        with_kernels(1, "early", 2, vec![kernel(&[F], 2)]),
    ]);
    assert_eq!(winner(&registry, &PLAIN), 2);
    let removed = reason(&explain(&registry, &PLAIN), 1);
    assert!(removed.starts_with("is declared later, at equal priority with"), "{removed}");
    let same_order = committed(vec![
        with_kernels(5, "b", 0, vec![kernel(&[F], 1)]),
        with_kernels(3, "a", 0, vec![kernel(&[F], 2)]),
    ]);
    assert_eq!(winner(&same_order, &PLAIN), 2, "then the number of the plugin");
}

#[test]
fn supports_is_asked_last_and_its_answers_count() {
    let registry = family();
    let ask = Ask { features: &["avx512f"], ..PLAIN };
    let mut asked = Vec::new();
    let explanation = explain_with(&registry, &ask, &mut |kernel| {
        asked.push(kernel.source.line);
        match kernel.source.line {
            2 => SupportAnswer::No("rank above 4".into()),
            _ => SupportAnswer::DependsOnShapes,
        }
    });
    asked.sort_unstable();
    // Once with reasons and once without.
    assert_eq!(asked, [1, 1, 2, 2], "never those that another rule removed");
    assert_eq!(explanation.result().unwrap().source.line, 1);
    assert_eq!(reason(&explanation, 2), "supports says no: rank above 4");
    assert!(explanation.depends_on_shapes());
    let below = explain_with(&registry, &ask, &mut |kernel| match kernel.source.line {
        2 => SupportAnswer::Yes,
        _ => SupportAnswer::DependsOnShapes,
    });
    assert!(!below.depends_on_shapes(), "a kernel that loses has no say");
}

fn lines(kernels: &[Arc<KernelDef>]) -> Vec<u32> {
    kernels.iter().map(|kernel| kernel.source.line).collect()
}

/// Kernels 1 to 5 in falling priority; 3 has a label of its own.
fn falling() -> Registry {
    let kernel = |line: u32, label: &str| KernelDef {
        label: label.into(),
        priority: 10 - line as i32,
        ..kernel(&[F], line)
    };
    let kernels =
        vec![kernel(1, "a"), kernel(2, "b"), kernel(3, "c"), kernel(4, "d"), kernel(5, "")];
    committed(vec![with_kernels(0, "cpu", 0, kernels)])
}

#[test]
fn an_open_choice_ends_with_the_first_that_takes_every_shape() {
    let registry = falling();
    let explanation = explain_with(&registry, &PLAIN, &mut |kernel| match kernel.source.line {
        1 | 3 => SupportAnswer::DependsOnShapes,
        2 => SupportAnswer::No("not this one".into()),
        _ => SupportAnswer::Yes,
    });
    assert_eq!(lines(&explanation.per_shape), [1, 3, 4]);
    assert_eq!(explanation.result().unwrap().source.line, 1, "the one that is asked first");
    assert_eq!(reason(&explanation, 2), "supports says no: not this one");
    assert_eq!(reason(&explanation, 3), "", "it may run");
    let last = explanation.per_shape[2].to_string();
    assert_eq!(reason(&explanation, 5), format!("lower priority (5 < 6) than {last}"));
}

#[test]
fn an_open_choice_goes_on_where_another_question_has_answers() {
    let registry = falling();
    let asked = |label: Option<&str>, answers: &[u32]| {
        explain_with(&registry, &Ask { label, ..PLAIN }, &mut |kernel| {
            if answers.contains(&kernel.source.line) {
                return SupportAnswer::DependsOnShapes;
            }
            SupportAnswer::Yes
        })
    };
    let both = asked(Some("c"), &[3]).or(asked(None, &[1, 3]));
    assert_eq!(lines(&both.per_shape), [3, 1, 2]);
    assert_eq!(both.label.as_deref(), Some("c"));
    assert_eq!(both.winner.as_ref().unwrap().source.line, 3);
    assert_eq!((reason(&both, 1), reason(&both, 2)), (String::new(), String::new()));
    assert!(reason(&both, 4).starts_with("lower priority"), "{}", reason(&both, 4));
    // The same kernel is not asked twice.
    let same = asked(Some("a"), &[1]).or(asked(None, &[1]));
    assert_eq!(lines(&same.per_shape), [1, 2]);
    let certain = asked(Some("c"), &[]).or(asked(None, &[1]));
    assert_eq!((lines(&certain.per_shape), certain.winner.unwrap().source.line), (vec![], 3));
    let none = asked(Some("z"), &[]).or(asked(None, &[1]));
    assert_eq!(lines(&none.per_shape), [1, 2]);
}

#[test]
fn an_open_choice_is_between_kernels_that_agree_on_host_memory() {
    let memory = |line: u32, host: &[&str]| KernelDef {
        host_memory: host.iter().map(|name| (*name).to_owned()).collect(),
        priority: 10 - line as i32,
        label: line.to_string(),
        ..kernel(&[F], line)
    };
    let kernels = vec![memory(1, &["x"]), memory(2, &[]), memory(3, &["x"])];
    let registry = committed(vec![with_kernels(0, "cpu", 0, kernels)]);
    let mut explanation = explain_with(&registry, &PLAIN, &mut |kernel| {
        if kernel.source.line == 3 { SupportAnswer::Yes } else { SupportAnswer::DependsOnShapes }
    });
    assert_eq!(lines(&explanation.per_shape), [1, 2, 3]);
    explanation.keep_same_memory();
    assert_eq!(lines(&explanation.per_shape), [1, 3]);
    assert!(reason(&explanation, 2).starts_with("takes other arguments in host memory than "));
}

#[test]
fn a_type_list_fits_when_each_of_its_types_does() {
    let op = OpDef::from_spec("Many", &["x: L"], &[], &["L: list(type)"]).unwrap();
    let mut transaction = plugin(0, "a", 0);
    transaction.add_op(op);
    let constraints = vec![TypeConstraint { attr: "L".into(), types: vec![F, I] }];
    transaction.add_kernel(KernelDef { op: "Many".into(), constraints, ..kernel(&[], 1) });
    let registry = committed(vec![transaction]);
    let features = FeatureSet::default();
    let select = |attrs: &AttrMap| {
        let query =
            KernelQuery { op: "Many", device_type: "CPU", attrs, features: &features, label: None };
        let explanation = candidates(&registry, &query, &mut |_| SupportAnswer::Yes);
        explanation.candidates[0].removed.as_ref().map(Removal::to_string)
    };
    let list = |types: &[DType]| AttrMap::from([("L".to_owned(), types.to_vec().into())]);
    assert_eq!(select(&list(&[F, I, F])), None);
    let bad = select(&list(&[F, DType::BOOL])).unwrap();
    assert_eq!(bad, "L is bool, the kernel takes float, int32");
    assert_eq!(select(&AttrMap::new()).unwrap(), "the node has no type attribute L");
}
