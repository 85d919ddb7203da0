//! What a kernel's registration says.

use tenon_abi::{DType, Determinism, ToleranceKind};
use tenon_framework::{
    Code,
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
        assert_eq!(removed, "needs zoo-imaginary, which this cpu lacks");
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
