//! Created kernels: one [`KernelInstance`] per node and device, and single calls.
//!
//! States of an instance: *created* (its state exists, constants may be packed) → *ready* (shared;
//! calls run, even concurrently) → *gone*: it drops its state first, then its packed constants
//! unless another instance shares them, then its reference to the device.
//!
//! The executor creates its own records of calls from [`KernelInstance::node`]; [`call_once`] and
//! [`PreparedCall`] are for calling a kernel without a graph: in tests, benchmarks and constant
//! folding.
//!
//! # Invariants
//! - A state is used only while its device is open.
//! - From a kernel's creation to its destruction every entry of its table stays the same: libraries
//!   are never unmapped.

mod call;
mod packed;
mod spec;

use crate::{
    bools,
    call::{NodeInfo, OutputSpec},
    devices::PluginDevice,
    fpu::FpGuard,
    sink::MessageSink,
};
use std::{ptr, sync::Arc};
use tenon_abi::{Call, Code, DType, KernelState, Slot, kernel_flags};
use tenon_framework::{KernelError, Tensor, registry::KernelDef, tensor::Memory};

pub use call::{PreparedCall, call_donating, call_once, call_planned};
pub use packed::{PackCache, PackedForm};
pub use spec::KernelSpec;

/// The entry that computes.
pub type ComputeFn = unsafe extern "C" fn(state: *mut KernelState, call: *const Call) -> Code;

/// A kernel with work before or after its calls, as a state of its own, so that other kernels do
/// not pay for it.
struct Wrapped {
    compute: ComputeFn,
    state: *mut KernelState,
    /// Owner of `state`, if that is another wrapper.
    _inner: Option<Box<Wrapped>>,
}

/// Computes, and normalises the bools of the outputs. Bools of a kernel that completes later are
/// normalised on completion ([`CallFrame`](crate::call::CallFrame)).
///
/// # Safety
/// - `state` is a [`Wrapped`].
/// - `call` is a call of its kernel.
unsafe extern "C" fn compute_normalising(state: *mut KernelState, call: *const Call) -> Code {
    // SAFETY: the caller guarantees that `state` is a `Wrapped` and `call` a call of its kernel; a
    // call that ended with `OK` belongs to the caller again.
    unsafe {
        let kernel = &*state.cast::<Wrapped>();
        let code = (kernel.compute)(kernel.state, call);
        if code.is_ok() {
            bools::normalise_outputs(&*call);
        }
        code
    }
}

/// Computes with denormals, whatever other calls do. Loops of `parallel_for` run with the state of
/// the thread that starts them.
///
/// # Safety
/// - `state` is a [`Wrapped`].
/// - `call` is a call of its kernel.
unsafe extern "C" fn compute_keeping(state: *mut KernelState, call: *const Call) -> Code {
    let _state = FpGuard::for_kernels(true);
    // SAFETY: the caller guarantees that `state` is a `Wrapped` and `call` a call of its kernel.
    unsafe {
        let kernel = &*state.cast::<Wrapped>();
        (kernel.compute)(kernel.state, call)
    }
}

/// The entry and the state for calls: the kernel's own, or those of a wrapper.
struct Entry {
    compute: ComputeFn,
    state: *mut KernelState,
    wrapped: Option<Box<Wrapped>>,
}

impl Entry {
    fn wrap(&mut self, compute: ComputeFn) {
        let (inner, own) = (self.wrapped.take(), self.compute);
        let wrapped = Box::new(Wrapped { compute: own, state: self.state, _inner: inner });
        (self.compute, self.state) = (compute, ptr::from_ref(&*wrapped).cast_mut().cast());
        self.wrapped = Some(wrapped);
    }
}

/// A kernel for one node on one device.
pub struct KernelInstance {
    /// The kernel's own state.
    own: *mut KernelState,
    entry: Entry,
    def: Arc<KernelDef>,
    node: Arc<NodeInfo>,
    input_types: Vec<tenon_abi::DType>,
    input_memories: Vec<Arc<dyn Memory>>,
    // Dropped after the state and before the device: fields are dropped in order.
    packed: Vec<Arc<PackedForm>>,
    device: Option<Arc<PluginDevice>>,
}

// SAFETY: the contract of kernel tables says that calls for one state run on any thread, also at
// the same time; what changes a state takes `&mut self`.
unsafe impl Send for KernelInstance {}
// SAFETY: as for `Send`.
unsafe impl Sync for KernelInstance {}

impl KernelInstance {
    /// Creates the kernel.
    ///
    /// # Errors
    /// The kernel's error about the node; `UNAVAILABLE` on a lost device.
    pub fn create(spec: &KernelSpec<'_>) -> Result<KernelInstance, KernelError> {
        if let Some(device) = spec.device {
            device.check()?;
        }
        let compute = spec
            .def
            .table
            .compute
            .ok_or_else(|| KernelError::internal(format!("{} has no `compute`", spec.def)))?;
        let mut state = std::ptr::null_mut();
        if spec.def.table.create.is_some() || spec.def.remote.is_some() {
            let sink = MessageSink::new();
            let parts = spec.parts();
            let raw = spec.raw(&parts, &sink);
            // SAFETY: the kernel's own entry with a filled struct; the result pointer is valid for
            // writes.
            let code = unsafe {
                match (&spec.def.remote, spec.def.table.create) {
                    (Some(remote), _) => remote.create(&raw, &mut state),
                    (None, Some(create)) => create(&raw, &mut state),
                    (None, None) => Code::OK,
                }
            };
            sink.check(code).map_err(|error| spec.naming_inputs(error))?;
        }
        let (node, input_memories) = spec.places();
        let is_bool = |output: &OutputSpec| output.dtype == DType::BOOL;
        let normalises = spec.def.foreign && node.outputs.iter().any(is_bool);
        let mut entry = Entry { compute, state, wrapped: None };
        if normalises {
            entry.wrap(compute_normalising);
        }
        if spec.def.keeps_denormals {
            entry.wrap(compute_keeping);
        }
        Ok(KernelInstance {
            own: state,
            entry,
            def: Arc::clone(spec.def),
            node: Arc::new(node),
            input_types: spec.signature.inputs.clone(),
            input_memories,
            packed: Vec::new(),
            device: spec.device.cloned(),
        })
    }

    /// Packs a constant input, or attaches the packed form that another instance made of it. `key`
    /// names node and constant: instances with the same key share a form. False when the kernel
    /// packs nothing: then it uses the constant itself. If true the constant may be freed, although
    /// its slot in later calls still shows type and shape.
    ///
    /// # Errors
    /// The kernel's error about the constant; out of memory on the device.
    pub fn prepack(
        &mut self,
        input: u32,
        constant: &Tensor,
        cache: &PackCache,
        key: &str,
    ) -> Result<bool, KernelError> {
        let table = self.def.table;
        let (Some(prepack), Some(attach), Some(release)) =
            (table.prepack, table.attach_packed, table.release_packed)
        else {
            return Ok(false);
        };
        let state = self.own;
        let device = self.device.clone();
        let form = cache.find_or_make(table, input, key, || {
            let view = Slot { flags: tenon_abi::slot_flags::CONSTANT, ..constant.slot() };
            let sink = MessageSink::new();
            let (mut packed, mut bytes) = (std::ptr::null_mut(), 0);
            // SAFETY: the kernel's own entry and state, a filled view, and two result pointers that
            // are valid for writes.
            let code =
                unsafe { prepack(state, input, &view, &mut packed, &mut bytes, sink.as_sink()) };
            sink.check(code)?;
            // SAFETY: the kernel gave the form away, and its own entry releases it.
            Ok(unsafe { PackedForm::new(packed, bytes, release, device) })
        })?;
        let Some(form) = form else { return Ok(false) };
        // SAFETY: the kernel's own entry and state, before any call, and a form that lives until
        // the state is destroyed.
        unsafe { attach(self.own, input, form.as_raw()) };
        self.packed.push(form);
        Ok(true)
    }

    /// Bytes of its packed constants, including shared ones.
    pub fn packed_bytes(&self) -> u64 {
        self.packed.iter().map(|form| form.bytes()).sum()
    }

    /// The registration.
    pub fn def(&self) -> &Arc<KernelDef> {
        &self.def
    }

    /// The data that calls for the node share.
    pub fn node(&self) -> &Arc<NodeInfo> {
        &self.node
    }

    /// The device; `None` for the host's own memory.
    pub fn device(&self) -> Option<&Arc<PluginDevice>> {
        self.device.as_ref()
    }

    /// The state to pass to [`KernelInstance::compute`].
    pub fn state(&self) -> *mut KernelState {
        self.entry.state
    }

    /// The entry that computes.
    pub fn compute(&self) -> ComputeFn {
        self.entry.compute
    }

    /// Element types of the inputs.
    pub fn input_types(&self) -> &[tenon_abi::DType] {
        &self.input_types
    }

    /// The memory of an input for this kernel; `None` when there is no such input.
    pub fn input_memory(&self, input: usize) -> Option<&Arc<dyn Memory>> {
        self.input_memories.get(input)
    }

    fn has(&self, flag: u32) -> bool {
        self.def.table.flags & flag != 0
    }

    /// Whether a call may return `PENDING`.
    pub fn is_async(&self) -> bool {
        self.has(kernel_flags::ASYNC)
    }

    /// Whether a call may block.
    pub fn is_blocking(&self) -> bool {
        self.has(kernel_flags::BLOCKING)
    }

    /// Whether a call is worth another thread before it has been measured.
    pub fn is_expensive(&self) -> bool {
        self.has(kernel_flags::EXPENSIVE)
    }
}

impl Drop for KernelInstance {
    fn drop(&mut self) {
        if let Some(destroy) = self.def.table.destroy {
            // SAFETY: the state that `create` made; nothing calls the kernel any more.
            unsafe { destroy(self.own) }
        }
    }
}

impl std::fmt::Debug for KernelInstance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} for node '{}'", self.def, self.node.name)
    }
}

#[cfg(all(test, not(loom)))]
#[path = "instance/tests.rs"]
mod tests;
