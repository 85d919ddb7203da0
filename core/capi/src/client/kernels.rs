//! Lists of kernels.

use crate::{
    client::{
        handle::Handle,
        runtime::Runtime,
        status::Status,
        versioned::{Filled, Versioned},
    },
    fail::Failure,
    raw::Text,
    status::c_text,
};
use std::ffi::{CString, c_char, c_int};
use tenon_framework::registry::KernelDef;

/// A list of kernels.
pub struct Kernels(Vec<Kernel>);

kept! { Kernels => "a list of kernels" }

struct Kernel {
    op: CString,
    device_type: CString,
    label: CString,
    plugin: CString,
    priority: i32,
}

/// What is known of a kernel. The texts stay until the list is deleted.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelInfo {
    /// sizeof(tn_kernel_info), which the caller sets.
    pub size: usize,
    /// The op.
    pub op: *const c_char,
    /// The type of device, such as "CPU".
    pub device_type: *const c_char,
    /// The label; empty for an ordinary kernel.
    pub label: *const c_char,
    /// The plugin that has it.
    pub plugin: *const c_char,
    /// The priority: of the kernels that fit a node, the one with the highest number is taken.
    pub priority: i64,
}

// SAFETY: `repr(C)`, the size comes first, and zeros are null pointers and numbers.
unsafe impl Versioned for KernelInfo {
    const NAME: &'static str = "tn_kernel_info";
}

fn kernel(def: &KernelDef) -> Kernel {
    Kernel {
        op: c_text(&def.op),
        device_type: c_text(&def.device_type),
        label: c_text(&def.label),
        plugin: c_text(&def.plugin_name),
        priority: def.priority,
    }
}

api! {
    /// The kernels of an op, or all kernels if "op" is null. The list is empty where an op has none. The caller deletes it.
    fn tn_runtime_kernels(
        runtime: Handle<Runtime>,
        op: Text<'_>,
        status: Option<&mut Status>,
    ) -> Handle<Kernels> [status] {
        let registry = runtime.get()?.0.registry();
        let found = match op.get() {
            None => registry.kernels().map(|def| kernel(def)).collect(),
            Some(_) => {
                let op = op.required("the name of the op")?;
                registry.kernels_of(op).iter().map(|def| kernel(def)).collect()
            }
        };
        Ok(Handle::new(Kernels(found)))
    }

    /// The number of kernels; 0 for no list.
    fn tn_kernels_count(kernels: Handle<Kernels>) -> usize {
        kernels.get().map_or(0, |kernels| kernels.0.len())
    }

    /// Writes what is known of kernel number index.
    fn tn_kernels_get(
        kernels: Handle<Kernels>,
        index: usize,
        info: Filled<'_, KernelInfo>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let kernels = kernels.get()?;
        let found = kernels.0.get(index).ok_or_else(|| {
            Failure::invalid(format!("the list has {} kernels, asked for number {index}", kernels.0.len()))
        })?;
        info.set(&KernelInfo {
            op: found.op.as_ptr(),
            device_type: found.device_type.as_ptr(),
            label: found.label.as_ptr(),
            plugin: found.plugin.as_ptr(),
            priority: i64::from(found.priority),
            ..KernelInfo::defaults()
        })?;
        Ok(true)
    }

    /// Deletes a list of kernels.
    fn tn_kernels_delete(kernels: Handle<Kernels>) -> c_int { kernels.delete() }
}
