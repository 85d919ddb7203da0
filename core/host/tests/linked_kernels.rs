//! The host's own kernels are there for whoever links the host: the linker keeps their
//! registrations.

use tenon_host::Plugins;

#[test]
fn every_op_that_moves_no_elements_has_a_kernel_for_every_device_type() {
    let registry = Plugins::new().unwrap().registry();
    let ops = [
        "Const",
        "ControlTrigger",
        "EnsureShape",
        "ExpandDims",
        "FakeParam",
        "GuaranteeConst",
        "Identity",
        "IdentityN",
        "NoOp",
        "Placeholder",
        "PlaceholderV2",
        "PlaceholderWithDefault",
        "PreventGradient",
        "Rank",
        "Reshape",
        "Shape",
        "ShapeN",
        "Size",
        "Snapshot",
        "Squeeze",
        "StopGradient",
        "ToBool",
    ];
    for op in ops {
        let kernels = registry.kernels_of(op);
        assert!(kernels.iter().any(|kernel| kernel.device_type == "DEFAULT"), "{op}");
    }
    let mut found: Vec<&str> = registry
        .kernels()
        .filter(|kernel| &*kernel.plugin_name == "tenon-host")
        .map(|kernel| kernel.op.as_str())
        .collect();
    found.dedup();
    assert_eq!(found, ops);
}
