//! Tests of transactions, snapshots and selection, on tables that compute nothing.

mod boundary;
mod selection;
mod transactions;

use super::*;
use crate::op::{OpDef, SourceInfo};
use std::sync::Arc;
use tenon_abi::{
    Call, Code, DType, Determinism, KernelState, KernelTable, Numerics, ToleranceKind,
};

unsafe extern "C" fn compute(_: *mut KernelState, _: *const Call) -> Code {
    Code::OK
}

const fn table() -> KernelTable {
    KernelTable {
        struct_size: size_of::<KernelTable>() as u32,
        flags: 0,
        create: None,
        compute: Some(compute),
        destroy: None,
        prepack: None,
        attach_packed: None,
        release_packed: None,
        supports: None,
        ext: std::ptr::null(),
    }
}

static TABLE: KernelTable = table();

const EXACT: Numerics = Numerics {
    tolerance: ToleranceKind::EXACT,
    determinism: Determinism::BITWISE,
    ulps: 0.0,
    absolute: 0.0,
    relative: 0.0,
    accumulation: DType::INVALID,
    reserved: 0,
};

fn at(file: &str, line: u32) -> SourceInfo {
    SourceInfo { krate: "k".into(), file: file.into(), line }
}

fn add_op() -> OpDef {
    let attrs = ["T: {float, double, int32}"];
    let mut op = OpDef::from_spec("Add", &["x: T", "y: T"], &["z: T"], &attrs).unwrap();
    op.source = at("ops.rs", 1);
    op
}

/// A kernel of `Add` for these types; the line identifies the kernel.
fn kernel(types: &[DType], line: u32) -> KernelDef {
    KernelDef {
        op: "Add".into(),
        device_type: "CPU".into(),
        label: String::new(),
        priority: 0,
        on_request: false,
        keeps_denormals: false,
        checks_shapes: false,
        constraints: vec![TypeConstraint { attr: "T".into(), types: types.to_vec() }],
        host_memory: Vec::new(),
        in_place: Vec::new(),
        features: Vec::new(),
        numerics: EXACT,
        table: &TABLE,
        remote: None,
        cost: None,
        source: at("math.rs", line),
        plugin: PluginId(0),
        plugin_name: Arc::from(""),
        foreign: false,
        order: (0, 0),
    }
}

fn plugin(id: u32, name: &str, order: u32) -> Transaction {
    Transaction::new(PluginInfo::linked(PluginId(id), name, "1.0.0", order))
}

/// A plugin with op `Add` and these kernels.
fn with_kernels(id: u32, name: &str, order: u32, kernels: Vec<KernelDef>) -> Transaction {
    let mut transaction = plugin(id, name, order);
    transaction.add_op(add_op());
    kernels.into_iter().for_each(|kernel| transaction.add_kernel(kernel));
    transaction
}

fn committed(transactions: Vec<Transaction>) -> Registry {
    commit_all(&Registry::new(), transactions).unwrap().0
}

fn errors_of(transaction: Transaction) -> Vec<String> {
    let errors = transaction.commit(&Registry::new()).unwrap_err();
    errors.iter().map(RegistryError::to_string).collect()
}
