//! The list of everything that this plugin registers, as `manifest.txt` has it: proof that the linker dropped
//! nothing. Run with `TENON_UPDATE=1` to rewrite the file.

use std::{collections::BTreeSet, slice};
use tenon_cpu as _;
use tenon_sdk::{
    Code,
    abi::{DeviceTypeDef, ExtHeader, KernelDef, KnobDef, OpDef, Registrar, RegistrarTable, Str},
    reg::{registrations, submit_all},
};

/// What was submitted so far.
type Lines = BTreeSet<String>;

fn text(text: &Str) -> &str {
    // SAFETY: the definition lends its texts for the time of the call.
    unsafe { text.text() }.expect("UTF-8")
}

unsafe fn add(to: *mut Registrar, line: String) -> Code {
    // SAFETY: the test gives its set as the registrar.
    let lines = unsafe { &mut *to.cast::<Lines>() };
    assert!(lines.insert(line.clone()), "registered twice: {line}");
    Code::OK
}

unsafe extern "C" fn kernel(to: *mut Registrar, def: *const KernelDef) -> Code {
    // SAFETY: the registration lends its definition and lists for the time of the call.
    unsafe {
        let def = &*def;
        let constraints = slice::from_raw_parts(def.constraints, def.constraint_count);
        let constraints: Vec<String> = constraints
            .iter()
            .map(|constraint| {
                let types = slice::from_raw_parts(constraint.types, constraint.count);
                let types: Vec<&str> = types.iter().map(|dtype| dtype.name()).collect();
                format!("{}={}", text(&constraint.attr), types.join(","))
            })
            .collect();
        let label = match text(&def.label) {
            "" => "-",
            label => label,
        };
        let line = format!("kernel {} {label} {}", text(&def.op), constraints.join(" "));
        add(to, line)
    }
}

unsafe extern "C" fn device(to: *mut Registrar, def: *const DeviceTypeDef) -> Code {
    // SAFETY: as in `kernel`.
    unsafe { add(to, format!("device {}", text(&(*def).name))) }
}

unsafe extern "C" fn op(to: *mut Registrar, def: *const OpDef) -> Code {
    // SAFETY: as in `kernel`.
    unsafe { add(to, format!("op {}", text(&(*def).name))) }
}

unsafe extern "C" fn knob(to: *mut Registrar, def: *const KnobDef) -> Code {
    // SAFETY: as in `kernel`.
    unsafe { add(to, format!("knob {}", text(&(*def).name))) }
}

unsafe extern "C" fn extension(_to: *mut Registrar, _link: *const ExtHeader) -> Code {
    Code::UNIMPLEMENTED
}

#[test]
fn registrations_are_those_of_the_manifest() {
    let table = RegistrarTable {
        struct_size: size_of::<RegistrarTable>() as u32,
        reserved: 0,
        op: Some(op),
        kernel: Some(kernel),
        device_type: Some(device),
        knob: Some(knob),
        extension: Some(extension),
    };
    let mut lines = Lines::new();
    // SAFETY: the entries take the set as their registrar.
    let code = unsafe { submit_all((&raw mut lines).cast(), &table, |_| true) };
    assert_eq!(code, Code::OK);
    assert_eq!(lines.len(), registrations().len());
    let found = lines.into_iter().collect::<Vec<_>>().join("\n") + "\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/manifest.txt");
    if std::env::var_os("TENON_UPDATE").is_some() {
        std::fs::write(path, &found).expect("manifest.txt can be written");
    }
    let expected = std::fs::read_to_string(path).expect("manifest.txt can be read");
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "run with TENON_UPDATE=1 to accept");
    }
    assert_eq!(
        found.lines().count(),
        expected.lines().count(),
        "run with TENON_UPDATE=1 to accept"
    );
}
