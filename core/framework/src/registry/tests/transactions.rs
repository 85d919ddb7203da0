use super::*;
use crate::knob::KnobDef;
use std::sync::Mutex;
use tenon_abi::{InPlace, KnobKind};

const F: DType = DType::FLOAT;
const I: DType = DType::INT32;

fn lines(registry: &Registry) -> Vec<u32> {
    registry.kernels_of("Add").iter().map(|kernel| kernel.source.line).collect()
}

#[test]
fn the_order_of_registration_does_not_matter() {
    let kernels = [kernel(&[F], 3), kernel(&[DType::DOUBLE], 1), kernel(&[I], 2)];
    let forward = committed(vec![with_kernels(0, "a", 0, kernels.to_vec())]);
    let backward =
        committed(vec![with_kernels(0, "a", 0, kernels.iter().rev().cloned().collect())]);
    assert_eq!(lines(&forward), [3, 1, 2], "by the numbers of their types");
    assert_eq!(lines(&forward), lines(&backward));
    let orders: Vec<_> = forward.kernels().map(|kernel| kernel.order).collect();
    assert_eq!(orders, [(0, 0), (0, 1), (0, 2)]);
}

#[test]
fn plugins_loaded_together_may_need_each_other() {
    let mut ops = plugin(1, "ops", 1);
    ops.add_op(add_op());
    let mut kernels = plugin(0, "kernels", 0);
    kernels.add_kernel(kernel(&[F], 1));
    let registry = committed(vec![kernels, ops]);
    assert_eq!(registry.kernels_of("Add").len(), 1);
    assert!(registry.op("Add").is_some());
    assert_eq!(registry.plugins().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["kernels", "ops"]);
    assert_eq!(registry.next_plugin_id(), PluginId(2));
}

#[test]
fn all_errors_are_reported_and_nothing_is_committed() {
    let mut bad = plugin(0, "bad", 0);
    bad.add_op(add_op());
    bad.add_kernel(kernel(&[F], 1));
    bad.add_kernel(KernelDef { op: "Sub".into(), ..kernel(&[F], 2) });
    bad.add_kernel(kernel(&[DType::BOOL], 3));
    bad.add_kernel(KernelDef { device_type: "cpu".into(), ..kernel(&[F], 4) });
    let handle = RegistryHandle::new(Registry::new());
    let errors = handle.commit(vec![bad]).unwrap_err();
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert_eq!(
        errors[0].to_string(),
        "kernel of op 'Add' on cpu (T: float; k math.rs:4): the device type follows \
         [A-Z][A-Z0-9_]*, found 'cpu'"
    );
    let all: String = errors.iter().map(|e| format!("{e}\n")).collect();
    assert!(all.contains("no op 'Sub' is registered"), "{all}");
    assert!(
        all.contains("constraint on 'T' takes bool, the op allows float, double, int32"),
        "{all}"
    );
    assert!(handle.load().op("Add").is_none());
}

#[test]
fn two_definitions_of_an_op_agree_or_are_refused() {
    let mut twice = plugin(0, "a", 0);
    twice.add_op(add_op());
    twice.add_op(add_op());
    let (registry, _) = twice.commit(&Registry::new()).unwrap();
    let mut same = plugin(1, "b", 1);
    same.add_op(OpDef { source: at("copy.rs", 9), ..add_op() });
    let (registry, warnings) = same.commit(&registry).unwrap();
    assert!(warnings.is_empty());
    let mut other = plugin(2, "c", 2);
    other.add_op(OpDef { source: at("other.rs", 5), stateful: true, ..add_op() });
    let errors = other.commit(&registry).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "op 'Add' is defined by k ops.rs:1 and otherwise by k other.rs:5: they differ in the flags"
    );
    assert_eq!(errors[0].code(), Code::ALREADY_EXISTS);
}

#[test]
fn constraints_must_fit_the_op() {
    let constrained = |attr: &str, types: &[DType]| {
        let attrs = ["T: type", "n: int", "L: list({float, int32})"];
        let mut op = OpDef::from_spec("Add", &["x: T"], &["z: T"], &attrs).unwrap();
        op.source = at("ops.rs", 1);
        let constraint = TypeConstraint { attr: attr.into(), types: types.to_vec() };
        let mut transaction = plugin(0, "a", 0);
        transaction.add_op(op);
        transaction.add_kernel(KernelDef { constraints: vec![constraint], ..kernel(&[], 1) });
        transaction.commit(&Registry::new()).map(|_| ()).map_err(|e| e[0].to_string())
    };
    assert!(constrained("T", &[DType::STRING]).is_ok());
    assert!(constrained("L", &[F]).is_ok());
    assert!(constrained("L", &[DType::BOOL]).unwrap_err().contains("the op allows float, int32"));
    assert!(constrained("U", &[F]).unwrap_err().contains("on 'U', which op 'Add' does not have"));
    assert!(constrained("n", &[F]).unwrap_err().contains("of type int, expected a type"));
    assert!(constrained("T", &[]).unwrap_err().contains("allows no type"));
    assert!(constrained("T", &[DType(99)]).unwrap_err().contains("the op allows every type"));
    let mut twice = kernel(&[F], 1);
    twice.constraints.push(twice.constraints[0].clone());
    assert!(errors_of(with_kernels(0, "a", 0, vec![twice]))[0].contains("is listed twice"));
}

#[test]
fn arguments_that_a_kernel_names_must_exist_and_agree() {
    let attrs = ["S: type", "D: type"];
    let cast = OpDef::from_spec("Cast", &["x: S", "n: int32"], &["y: D"], &attrs).unwrap();
    let try_kernel = |host: &str, input, output, types: [&[DType]; 2]| {
        let constraint = |(attr, types): (&str, &[DType])| TypeConstraint {
            attr: attr.into(),
            types: types.to_vec(),
        };
        let constraints = [("D", types[1]), ("S", types[0])].map(constraint).to_vec();
        let mut transaction = plugin(0, "a", 0);
        transaction.add_op(cast.clone());
        transaction.add_kernel(KernelDef {
            op: "Cast".into(),
            constraints,
            host_memory: vec![host.into()],
            in_place: vec![InPlace { input, output }],
            ..kernel(&[], 1)
        });
        transaction.commit(&Registry::new()).map(|_| ()).map_err(|e| e[0].to_string())
    };
    assert!(try_kernel("n", 0, 0, [&[F, I], &[I]]).is_ok());
    assert!(try_kernel("y", 1, 0, [&[F], &[I]]).is_ok());
    let unknown = try_kernel("z", 0, 0, [&[F], &[F]]).unwrap_err();
    assert!(
        unknown.contains("host memory for argument 'z', the arguments are x, n, y"),
        "{unknown}"
    );
    let range = try_kernel("n", 0, 1, [&[F], &[F]]).unwrap_err();
    assert!(range.contains("(0, 1) is out of range: the op has 2 inputs and 1 outputs"), "{range}");
    let types = try_kernel("n", 0, 0, [&[F], &[I]]).unwrap_err();
    assert!(types.contains("in-place pair of 'x' and 'y'"), "{types}");
    assert!(try_kernel("n", 1, 0, [&[F], &[F]]).is_err());
}

#[test]
fn equal_keys_are_an_error_inside_a_plugin_and_a_warning_between_two() {
    let inside = vec![kernel(&[F, I], 1), kernel(&[I], 2)];
    let errors = errors_of(with_kernels(0, "a", 0, inside));
    assert!(errors[0].contains("have the same key and priority 0"), "{errors:?}");
    let apart = vec![
        kernel(&[F], 1),
        kernel(&[I], 2),
        KernelDef { priority: 1, ..kernel(&[F], 3) },
        KernelDef { label: "fast".into(), ..kernel(&[F], 4) },
        KernelDef { device_type: "GPU".into(), ..kernel(&[F], 5) },
    ];
    let (registry, warnings) = with_kernels(0, "a", 5, apart).commit(&Registry::new()).unwrap();
    assert!(warnings.is_empty());
    let (registry, warnings) =
        with_kernels(1, "b", 2, vec![kernel(&[F], 9)]).commit(&registry).unwrap();
    assert_eq!(warnings.len(), 1);
    assert_eq!(
        warnings[0].to_string(),
        "plugins b and a offer the same kernel at priority 0: kernel of op 'Add' on CPU \
         (T: float; k math.rs:9) is used before kernel of op 'Add' on CPU (T: float; k math.rs:1), \
         since its plugin is declared first"
    );
    assert_eq!(registry.kernels_of("Add")[0].source.line, 9);
}

#[test]
fn an_identical_kernel_again_is_harmless() {
    let registry = committed(vec![with_kernels(0, "a", 0, vec![kernel(&[F], 1), kernel(&[F], 1)])]);
    assert_eq!(registry.kernels_of("Add").len(), 1);
}

#[test]
fn replacing_takes_over_the_place_and_retires_the_old() {
    let before = committed(vec![
        with_kernels(0, "a", 0, vec![kernel(&[F], 1)]),
        with_kernels(1, "b", 1, vec![kernel(&[F], 2)]),
    ]);
    let new = with_kernels(2, "a", 77, vec![kernel(&[F], 3)]);
    let (after, warnings) = before.replace(PluginId(0), new).unwrap();
    assert_eq!(lines(&before), [1, 2], "the old snapshot is as it was");
    assert_eq!(lines(&after), [3, 2]);
    assert_eq!(after.kernels_of("Add")[0].order.0, 0);
    assert!(matches!(&warnings[..], [Warning::SameKey { .. }]));
    assert!(after.plugin(PluginId(0)).unwrap().retired);
    assert!(!after.plugin(PluginId(2)).unwrap().retired);
    let again = after.replace(PluginId(0), plugin(3, "x", 0)).unwrap_err();
    assert_eq!(again[0].to_string(), "no active plugin has number 0");
    let taken = plugin(0, "x", 0).commit(&after).unwrap_err();
    assert!(taken[0].to_string().contains("number 0 is taken by a"));
}

#[test]
fn a_bad_replacement_changes_nothing() {
    let handle =
        RegistryHandle::new(committed(vec![with_kernels(0, "a", 0, vec![kernel(&[F], 1)])]));
    let bad = with_kernels(1, "a", 0, vec![kernel(&[DType::BOOL], 2)]);
    assert!(handle.replace(PluginId(0), bad).is_err());
    assert_eq!(lines(&handle.load()), [1]);
    assert!(!handle.load().plugin(PluginId(0)).unwrap().retired);
}

#[test]
fn retiring_an_op_leaves_its_kernels_dormant_until_it_is_back() {
    let mut ops = plugin(0, "ops", 0);
    ops.add_op(add_op());
    let mut kernels = plugin(1, "kernels", 1);
    kernels.add_kernel(kernel(&[F], 1));
    let registry = committed(vec![ops, kernels]);
    let (without, warnings) = registry.retire(PluginId(0)).unwrap();
    assert!(without.op("Add").is_none() && without.kernels_of("Add").is_empty());
    assert_eq!(
        warnings[0].to_string(),
        "kernel of op 'Add' on CPU (T: float; k math.rs:1) of plugin kernels is dormant: kernel of \
         op 'Add' on CPU (T: float; k math.rs:1): no op 'Add' is registered: load the plugin that \
         defines it first or too"
    );
    let mut back = plugin(2, "ops", 0);
    back.add_op(add_op());
    let (back, _) = back.commit(&without).unwrap();
    assert_eq!(back.kernels_of("Add").len(), 1);
    assert!(without.retire(PluginId(0)).is_err());
}

#[test]
fn a_replacement_with_the_same_op_leaves_no_kernel_dormant() {
    let mut ops = plugin(0, "ops", 0);
    ops.add_op(add_op());
    let mut kernels = plugin(1, "kernels", 1);
    kernels.add_kernel(kernel(&[F], 1));
    let registry = committed(vec![ops, kernels]);
    let mut same = plugin(2, "ops", 0);
    same.add_op(add_op());
    let (after, warnings) = registry.replace(PluginId(0), same).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(after.kernels_of("Add").len(), 1);
    let (_, warnings) = after.replace(PluginId(2), plugin(3, "ops", 0)).unwrap();
    assert!(matches!(&warnings[..], [Warning::Dormant { .. }]));
}

#[test]
fn knobs_of_two_plugins_do_not_clash() {
    let knob = |default: &str| {
        KnobDef::new("a", "tile", KnobKind::INT, default, "", at("k.rs", 1)).unwrap()
    };
    let mut first = plugin(0, "a", 0);
    first.add_knob(knob("1"));
    first.add_knob(knob("1"));
    let (registry, _) = first.commit(&Registry::new()).unwrap();
    assert_eq!(registry.knobs().defs().count(), 1);
    let mut second = plugin(1, "b", 1);
    second.add_knob(knob("2"));
    let errors = second.commit(&registry).unwrap_err();
    assert!(errors[0].to_string().contains("'a.tile' is declared twice as TENON_A_TILE"));
}

#[test]
fn subscribers_are_told_of_what_was_published_until_they_go() {
    let handle = Arc::new(RegistryHandle::new(Registry::new()));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (log, inner) = (seen.clone(), handle.clone());
    let subscription = handle.subscribe(move |event| {
        // Reading and subscribing from inside do not lock up.
        drop(inner.subscribe(|_| {}));
        log.lock().unwrap().push((event.clone(), inner.load().plugins().count()));
    });
    handle.commit(vec![plugin(0, "a", 0)]).unwrap();
    handle.replace(PluginId(0), plugin(1, "a", 0)).unwrap();
    handle.retire(PluginId(1)).unwrap();
    assert!(handle.retire(PluginId(1)).is_err());
    drop(subscription);
    handle.commit(vec![plugin(2, "b", 0)]).unwrap();
    let expected = [
        (RegistryEvent::PluginAdded(PluginId(0)), 1),
        (RegistryEvent::PluginReplaced { old: PluginId(0), new: PluginId(1) }, 2),
        (RegistryEvent::PluginRetired(PluginId(1)), 2),
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[test]
fn scopes_of_knobs_come_from_the_name_of_the_plugin() {
    let scope = |name| PluginInfo::linked(PluginId(0), name, "1", 0).scope();
    assert_eq!(scope("tenon-cpu"), "cpu");
    assert_eq!(scope("My-Ops"), "my_ops");
}
