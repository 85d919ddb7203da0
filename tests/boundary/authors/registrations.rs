//! What registrations in C and C++ say, and that the manifest says the same: else the libraries were refused.

use tenon_abi::{DType, Determinism, ToleranceKind};
use tenon_framework::registry::KernelDef;
use tenon_tests::{bench::Bench, fixtures::authors, zoo::cpp_zoo};

/// The kernels of an op with this label.
fn kernels(bench: &Bench, op: &str, label: &str) -> Vec<KernelDef> {
    let registry = bench.plugins.registry();
    let kernels = registry.kernels_of(op).iter().filter(|kernel| kernel.label == label);
    kernels.map(|kernel| KernelDef::clone(kernel)).collect()
}

#[test]
fn a_macro_over_types_and_several_registrations_on_a_line_do_not_collide() {
    let bench = Bench::with([authors("words")]);
    let mut types: Vec<DType> = kernels(&bench, "WordsCopy", "")
        .iter()
        .flat_map(|kernel| kernel.constraints[0].types.clone())
        .collect();
    types.sort_by_key(|dtype| dtype.0);
    let mut expected = [
        DType::FLOAT,
        DType::DOUBLE,
        DType::HALF,
        DType::BFLOAT16,
        DType::BOOL,
        DType::INT8,
        DType::INT16,
        DType::INT32,
        DType::INT64,
    ];
    expected.sort_by_key(|dtype| dtype.0);
    assert_eq!(types, expected);
    assert_eq!(kernels(&bench, "WordsNothing", "").len(), 1);

    let copies = kernels(&Bench::with([cpp_zoo()]), "ZooCppCopy", "");
    assert_eq!(copies.len(), 20, "each type of the lists has a kernel of its own");
}

#[test]
fn a_registration_in_c_says_all_that_one_in_rust_can_say() {
    let bench = Bench::with([authors("words")]);
    let found = kernels(&bench, "WordsCopy", "slow");
    let [slow] = &found[..] else { panic!("one kernel is slow, not {}", found.len()) };
    assert_eq!((slow.priority, slow.on_request), (-3, true), "the priority is a macro");
    assert_eq!(slow.features, ["sse", "sse2"]);
    assert_eq!(slow.host_memory, ["n"]);
    assert_eq!((slow.in_place[0].input, slow.in_place[0].output), (0, 0));
    assert_eq!(slow.numerics.tolerance, ToleranceKind::ABSOLUTE_RELATIVE);
    assert_eq!((slow.numerics.absolute, slow.numerics.relative), (1e-6, 2e-6));
    let cost = slow.cost.expect("the kernel says what it costs");
    assert_eq!((cost.fixed_ns, cost.per_element_ns), (5.0, 0.25));

    let found = kernels(&bench, "WordsPairs", "");
    let [pairs] = &found[..] else { panic!("one kernel of pairs, not {}", found.len()) };
    let limits: Vec<(&str, &[DType])> =
        pairs.constraints.iter().map(|limit| (limit.attr.as_str(), &limit.types[..])).collect();
    assert_eq!(
        limits,
        [("I", &[DType::INT32, DType::INT64][..]), ("T", &[DType::FLOAT, DType::HALF])]
    );
    assert_eq!(pairs.in_place.len(), 2);

    let registry = bench.plugins.registry();
    let copy = registry.op("WordsCopy").expect("the op is registered");
    assert_eq!(copy.cases().len(), 2);
    assert_eq!(copy.bench().calls.len(), 1);
    assert!(copy.bench().flops.is_some() && copy.bench().bytes.is_some());
    assert!(registry.op("WordsPairs").expect("the op is registered").stateful);
}

#[test]
fn a_registration_in_cpp_says_all_that_one_in_rust_can_say() {
    let bench = Bench::with([cpp_zoo()]);
    let square = &kernels(&bench, "ZooCppSquare", "")[0];
    assert_eq!((square.in_place[0].input, square.in_place[0].output), (0, 0));
    assert_eq!((square.numerics.tolerance, square.numerics.ulps), (ToleranceKind::ULPS, 1.0));
    assert_eq!(square.numerics.determinism, Determinism::RUN_TO_RUN);
    assert_eq!(square.cost.map(|cost| cost.fixed_ns), Some(50.0));
    assert!(square.source.to_string().contains("elements.cpp"), "{}", square.source);
}
