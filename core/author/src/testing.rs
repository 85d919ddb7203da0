//! The ops and fusions that are linked into a process, without a registry, for tests of the crates that define them.

use crate::reg;
use std::{collections::BTreeMap, mem::size_of, ptr};
use tenon_abi::{Code, ExtHeader, Registrar, RegistrarTable, ext_tags};
use tenon_framework::{fusion::FusionDef, op::OpDef};

unsafe extern "C" fn collect(to: *mut Registrar, op: *const tenon_abi::OpDef) -> Code {
    // SAFETY: `registered_ops` gives its own map, and registrations give whole definitions.
    unsafe {
        let ops = &mut *to.cast::<BTreeMap<String, OpDef>>();
        match OpDef::from_abi(op) {
            Ok(op) => {
                let earlier = ops.insert(op.name.clone(), op);
                earlier.map_or(Code::OK, |_| Code::ALREADY_EXISTS)
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// The ops that are linked into this process, by name.
///
/// # Panics
/// When one of them is malformed, or two have one name.
pub fn registered_ops() -> BTreeMap<String, OpDef> {
    let table = RegistrarTable {
        struct_size: size_of::<RegistrarTable>() as u32,
        reserved: 0,
        op: Some(collect),
        kernel: None,
        device_type: None,
        knob: None,
        extension: None,
    };
    let mut ops = BTreeMap::new();
    // SAFETY: the registrar is the map that `collect` takes it for.
    let code = unsafe {
        let to = ptr::from_mut(&mut ops).cast();
        reg::submit_all(to, &table, |entry| matches!(entry, reg::Registration::Op(_)))
    };
    assert!(code.is_ok(), "two ops of one name");
    ops
}

unsafe extern "C" fn collect_fusion(to: *mut Registrar, link: *const ExtHeader) -> Code {
    // SAFETY: `registered_fusions` gives its own list, and registrations give whole links.
    unsafe {
        if (*link).tag != ext_tags::FUSION {
            return Code::UNIMPLEMENTED;
        }
        match FusionDef::from_abi(link) {
            Ok(fusion) => (*to.cast::<Vec<FusionDef>>()).push(fusion),
            Err(error) => panic!("{error}"),
        }
    }
    Code::OK
}

/// The fusions that are linked into this process, in the order of their sources.
///
/// # Panics
/// When one of them is malformed.
pub fn registered_fusions() -> Vec<FusionDef> {
    let table = RegistrarTable {
        struct_size: size_of::<RegistrarTable>() as u32,
        reserved: 0,
        op: None,
        kernel: None,
        device_type: None,
        knob: None,
        extension: Some(collect_fusion),
    };
    let mut fusions: Vec<FusionDef> = Vec::new();
    // SAFETY: the registrar is the list that `collect_fusion` takes it for.
    let code = unsafe {
        let to = ptr::from_mut(&mut fusions).cast();
        reg::submit_all(to, &table, |entry| matches!(entry, reg::Registration::Extension(_)))
    };
    assert!(code.is_ok(), "{code}");
    fusions
}
