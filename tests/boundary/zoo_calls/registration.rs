//! What a kernel's registration says.

use tenon_abi::{DType, Determinism, ToleranceKind};
use tenon_framework::{
    Code, Tensor,
    op::{
        Case, Formula, GradientRule, Item, OpFacts, Passed, Refusal, Symmetry, TensorCase,
        ValueRule, Values,
    },
    registry::{KernelDef, Removal},
};
use tenon_tests::{
    bench::{Bench, elements, floats, texts},
    zoo::Language,
};

#[test]
fn labels() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let op = language.op("Label");
        let ran = |node: tenon_tests::bench::Node<'_>| texts(&node.call(&[]).unwrap()[0]);
        assert_eq!(ran(bench.node(&op)), ["fast"], "{language:?}: the highest that is automatic");
        assert_eq!(ran(bench.node(&op).label("")), [""]);
        assert_eq!(ran(bench.node(&op).label("reference")), ["reference"], "on request");
        let removed = |label: &str| {
            let candidates = bench.node(&op).explain().candidates;
            candidates.into_iter().find(|c| c.kernel.label == label).and_then(|c| c.removed)
        };
        let label = "reference".to_owned();
        assert_eq!(removed("reference"), Some(Removal::OnRequest { label }));
        assert!(matches!(removed(""), Some(Removal::LowerPriority { own: 0, higher: 1, .. })));
        let error = bench.node(&op).label("none").call(&[]).unwrap_err();
        assert_eq!(error.code, Code::NOT_FOUND);
        assert!(error.message.contains("the labels are '', 'fast', 'reference'"), "{error}");
    }
}

#[test]
fn missing_feature() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = bench.node(&language.op("Feature"));
        assert_eq!(texts(&node.call(&[]).unwrap()[0]), [""], "{language:?}");
        let candidates = node.explain().candidates;
        let imaginary = candidates.iter().find(|c| c.kernel.label == "imaginary").unwrap();
        let removed = imaginary.removed.as_ref().unwrap().to_string();
        let lacks = if cfg!(target_arch = "aarch64") { "sse2" } else { "neon" };
        assert_eq!(removed, format!("needs {lacks}, which this cpu lacks"));
        let asked = bench.node(&language.op("Feature")).label("imaginary");
        assert_eq!(asked.call(&[]).unwrap_err().code, Code::NOT_FOUND, "not even when asked for");
    }
}

fn only<R>(bench: &Bench, op: &str, body: impl FnOnce(&KernelDef) -> R) -> R {
    let registry = bench.plugins.registry();
    let [kernel] = registry.kernels_of(op) else { panic!("one kernel of {op}") };
    body(kernel)
}

#[test]
fn numerics_contract() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let op = language.op("Numerics");
        only(&bench, &op, |kernel| {
            let numerics = &kernel.numerics;
            assert_eq!(numerics.tolerance, ToleranceKind::ABSOLUTE_RELATIVE, "{language:?}");
            assert_eq!(numerics.determinism, Determinism::BITWISE);
            assert_eq!((numerics.absolute, numerics.relative), (0.0, 1e-6));
            assert_eq!(numerics.accumulation, DType::DOUBLE);
        });
        let outputs = bench.node(&op).call(&[floats(&[0.1; 1000])]).unwrap();
        let exact = f64::from(0.1f32) * 1000.0;
        let found = f64::from(elements::<f32>(&outputs[0])[0]);
        assert!((found - exact).abs() <= 1e-6 * exact, "{language:?}: {found}");
    }
}

#[test]
fn cost_link() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let cost = only(&bench, &language.op("Cost"), |kernel| {
            kernel.cost.map(|cost| (cost.fixed_ns, cost.per_element_ns))
        });
        assert_eq!(cost, Some((5.0, 0.25)), "{language:?}");
        let none = only(&bench, &language.op("Numerics"), |kernel| kernel.cost.is_none());
        assert!(none, "a link that is missing");
    }
}

#[test]
fn links_of_a_plugin_s_own() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let op = language.op("Links");
        // Unknown links stand in front of one that the host reads, and behind one.
        let cost = only(&bench, &op, |kernel| {
            kernel.cost.map(|cost| (cost.fixed_ns, cost.per_element_ns))
        });
        assert_eq!(cost, Some((7.0, 0.5)), "{language:?}");
        let registry = bench.plugins.registry();
        assert_eq!(registry.op(&op).unwrap().cases()[0].to_string(), "any; x: [n]");
        let outputs = bench.node(&op).call(&[floats(&[1.0, 2.0])]).unwrap();
        assert_eq!(elements::<f32>(&outputs[0]), [3.0], "{language:?}");
    }
    // The registration that is one link is in the manifest; loading has compared it with what was registered.
    let bench = Bench::zoo(Language::Rust);
    let inspection = bench.plugins.inspect(&Language::Rust.zoo()).unwrap();
    let tags: Vec<u32> = inspection.manifest.extensions.iter().map(|line| line.tag).collect();
    let variant = tenon_abi::ext_tags::VARIANT;
    assert_eq!(tags, [variant, variant, 0x8000_0151]);
}

/// Inputs of a case, in the simplest way: `n` has this size, other symbols are 2; of a range the last.
fn made(tensor: &TensorCase, n: i64, integers: bool) -> Tensor {
    let size = |symbol: &str| Some(if symbol == "n" { n } else { 2 });
    let dims: Vec<i64> = tensor.dims.iter().map(|dim| dim.value(size).unwrap()).collect();
    let count = tensor.elements(size).unwrap();
    if !integers {
        let values: Vec<f32> = (0..count).map(|at| at as f32).collect();
        return Tensor::from_slice(&dims, &values).unwrap();
    }
    let value = match &tensor.values {
        Values::Integers(range) => range.bounds(size).unwrap().1 - 1,
        Values::List(items) => {
            items.iter().filter_map(Item::term).next().unwrap().value(size).unwrap()
        }
        other => panic!("{other:?}"),
    };
    Tensor::from_slice(&dims, &vec![value; count as usize]).unwrap()
}

#[test]
fn bench_link() {
    for language in Language::ALL {
        let host = Bench::zoo(language);
        let registry = host.plugins.registry();
        let op = registry.op(&language.op("Cases")).unwrap();
        let bench = op.bench();
        let calls: Vec<String> = bench.calls.iter().map(Case::to_string).collect();
        let expected = "many; n in {8, 64}; x: [n,3]; rows: [16] integers(0..n)";
        assert_eq!(calls, [expected], "{language:?}");
        let text = |formula: &Option<Formula>| formula.as_ref().unwrap().text().to_owned();
        assert_eq!(text(&bench.flops), "2 * y", "{language:?}");
        assert_eq!(text(&bench.bytes), "2 * bytes(y) + bytes(rows)", "{language:?}");
        assert_eq!(op.cases().len(), 2, "the other link is there too");
        assert!(registry.op(&language.op("Numerics")).unwrap().bench().flops.is_none());
    }
}

#[test]
fn cases_link() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let registry = bench.plugins.registry();
        let op = registry.op(&language.op("Cases")).unwrap();
        let texts: Vec<String> = op.cases().iter().map(Case::to_string).collect();
        let expected = [
            "some; n in 1..9; x: [n,3] uniform(-1.0, 1.0); rows: [k] integers(0..n)",
            "last; n in {1, 4}; x: [n,d]; rows: [1] values(n-1)",
        ];
        assert_eq!(texts, expected, "{language:?}");
        for case in op.cases() {
            let [x, rows] = &case.inputs[..] else { panic!("two inputs") };
            let inputs = [made(&x.tensors[0], 4, false), made(&rows.tensors[0], 4, true)];
            let width = inputs[0].shape().dims()[1] as f32;
            let last: Vec<f32> = (0..width as usize).map(|at| 3.0 * width + at as f32).collect();
            let outputs = bench.node(&op.name).call(&inputs).unwrap();
            let found = elements::<f32>(&outputs[0]);
            assert_eq!(found, last.repeat(inputs[1].shape().elements()), "{language:?}: {case}");
        }
        assert!(registry.op(&language.op("Numerics")).unwrap().cases().is_empty());
    }
}

#[test]
fn facts_link() {
    let passed = Some(Passed { input: 0, output: 0, reshaped: false });
    let pass = OpFacts { passed, refusal: Refusal::Nothing, ..OpFacts::NONE };
    let sum =
        OpFacts { refusal: Refusal::UnequalShapes, symmetry: Symmetry::Bits, ..OpFacts::NONE };
    let shape = OpFacts {
        value: ValueRule::Shape,
        refusal: Refusal::Nothing,
        gradient: GradientRule::None,
        ..OpFacts::NONE
    };
    let check = OpFacts { checks: true, passed, ..OpFacts::NONE };
    let expected =
        [("FactsPass", pass), ("FactsSum", sum), ("FactsShape", shape), ("FactsCheck", check)];
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let registry = bench.plugins.registry();
        for (op, facts) in expected {
            let op = registry.op(&language.op(op)).unwrap();
            assert_eq!(op.facts(), &facts, "{language:?}: {}", op.name);
        }
        assert_eq!(registry.op(&language.op("Cases")).unwrap().facts(), &OpFacts::NONE);
        let x = floats(&[1.0, -2.0]);
        let call = |op: &str, inputs: &[Tensor]| bench.node(&language.op(op)).call(inputs);
        let only = |op: &str, inputs: &[Tensor]| elements::<f32>(&call(op, inputs).unwrap()[0]);
        assert_eq!(only("FactsPass", std::slice::from_ref(&x)), [1.0, -2.0], "{language:?}");
        assert_eq!(only("FactsSum", &[x.clone(), x.clone()]), [2.0, -4.0], "{language:?}");
        let dims = call("FactsShape", std::slice::from_ref(&x)).unwrap();
        assert_eq!(elements::<i64>(&dims[0]), [2], "{language:?}");
        let error = call("FactsCheck", &[x]).unwrap_err();
        assert!(error.message.contains("x is below zero at 1"), "{language:?}: {error}");
    }
}
