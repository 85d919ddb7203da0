//! The host's side of kernels of isolated plugins.
//!
//! States of a kernel's state: *created* in a worker → *gone* with that worker → created again,
//! from the same message, in the next worker when it is called there. What a stateful kernel kept
//! between calls is lost with the worker.

use super::{
    compute::compute,
    plugin::Isolated,
    values::{self, Copies, cannot_cross},
    wire::{Creation, Reply, Request, encode},
    worker_call::WorkerCall,
};
use std::{
    slice,
    sync::{Arc, LazyLock},
};
use tenon_abi::{
    Code, Create, DType, KernelState, KernelTable, Range, ShapeView, Slot, Str, Strs, Support,
    kernel_flags,
};
use tenon_framework::{
    KernelError,
    attr_view::AttrTable,
    registry::RemoteKernel,
    sync::{Mutex, Rank},
    tensor::Memory,
};
use tenon_host::{PluginContext, sink::report_entry};

/// Outside the plugin's state lock: the state is created in the current worker.
const MADE: Rank = Rank(24);

/// A kernel of an isolated plugin.
pub(super) struct Kernel {
    plugin: Arc<Isolated>,
    /// Index of the kernel among those that the plugin registers.
    number: u32,
    /// For messages.
    name: Arc<str>,
    memory: Arc<dyn Memory>,
}

/// The type behind the state's pointer.
pub(super) struct RemoteState {
    pub plugin: Arc<Isolated>,
    /// The kernel, for messages.
    pub name: Arc<str>,
    /// The message that creates it.
    creation: Vec<u8>,
    /// Memory to which the message refers.
    _copies: Copies,
    /// Generation of the worker that has the state, and the state's number there.
    made: Mutex<(u64, u64)>,
    /// Copies of constant inputs that the worker cannot read in place: the input's address, and the
    /// copy.
    pub constants: Mutex<Vec<(usize, tenon_framework::tensor::Buffer)>>,
}

impl RemoteState {
    /// The state's number in the worker of this call; creates the state there if necessary.
    pub fn in_worker(&self, call: &mut WorkerCall<'_>) -> Result<u64, KernelError> {
        let mut made = self.made.lock();
        if made.0 != call.generation() {
            let number = match call.request(&self.creation)? {
                Reply::Created(number) => number,
                other => return Err(unexpected(&other)),
            };
            *made = (call.generation(), number);
        }
        Ok(made.1)
    }
}

impl Drop for RemoteState {
    fn drop(&mut self) {
        let (generation, number) = *self.made.lock();
        self.plugin.destroy(generation, number);
    }
}

/// The error of a reply that does not match the request.
pub(super) fn unexpected(reply: &Reply<'_>) -> KernelError {
    match reply {
        Reply::Failed(code, message) => KernelError::new(Code(*code), *message),
        other => KernelError::internal(format!("the worker's reply is out of order: {other:?}")),
    }
}

impl Kernel {
    pub fn new(plugin: &Arc<Isolated>, number: u32, name: Arc<str>) -> Kernel {
        let memory: Arc<dyn Memory> = plugin.memory().clone();
        Kernel { plugin: Arc::clone(plugin), number, name, memory }
    }

    /// The message that creates the kernel's state, or asks about it.
    ///
    /// # Safety
    /// - `raw` was filled by the host: its arrays have the given lengths, and its table of
    ///   attributes and its context are the host's.
    unsafe fn creation(
        &self,
        raw: &Create,
        supports: bool,
    ) -> Result<(Vec<u8>, Copies), KernelError> {
        let (inputs, outputs) = (raw.input_count as usize, raw.output_count as usize);
        let mut copies = Copies::new();
        // SAFETY: the host filled the struct, as the caller guarantees: arrays of these lengths,
        // its own table of attributes and its own context.
        let creation = unsafe {
            let input_types = types(slice_of(raw.input_types, inputs))?;
            let output_types = types(slice_of(raw.output_types, outputs))?;
            let attrs = values::attrs(&self.plugin, &*raw.attrs.cast::<AttrTable>(), &mut copies)?;
            let mut constants = Vec::with_capacity(inputs);
            for slot in slice_of::<Slot>(raw.constants, inputs) {
                constants.push(match slot.data.is_null() {
                    true => None,
                    false => Some(values::value(&self.plugin, slot, &mut copies)?),
                });
            }
            Creation {
                kernel: self.number,
                op: text(raw.op),
                node: text(raw.node),
                device: text(raw.device),
                attrs,
                input_types,
                output_types,
                input_shapes: slice_of(raw.input_shapes, inputs)
                    .iter()
                    .map(|view| shape(view))
                    .collect(),
                constants,
                input_args: args(raw.input_args, raw.input_ranges),
                output_args: args(raw.output_args, raw.output_ranges),
                knobs: match PluginContext::of(raw.context) {
                    Some(context) => self.plugin.settings(&context.knobs()),
                    None => Vec::new(),
                },
            }
        };
        let request =
            if supports { Request::Supports(creation) } else { Request::Create(creation) };
        Ok((encode(&request), copies))
    }

    /// Creates a state in a worker.
    ///
    /// # Safety
    /// - The caller upholds what [`Kernel::creation`] requires.
    unsafe fn make(&self, raw: &Create) -> Result<RemoteState, KernelError> {
        // SAFETY: the host filled `raw`, as the caller guarantees.
        let (creation, copies) = unsafe { self.creation(raw, false)? };
        let made = self.plugin.ask(&self.name, &creation, |reply, generation| match reply {
            Reply::Created(number) => Ok((generation, number)),
            other => Err(unexpected(&other)),
        })?;
        let made = Mutex::ranked(MADE, made);
        Ok(RemoteState {
            plugin: Arc::clone(&self.plugin),
            name: Arc::clone(&self.name),
            creation,
            _copies: copies,
            made,
            constants: Mutex::default(),
        })
    }

    /// Asks a worker whether the kernel supports the node.
    ///
    /// # Safety
    /// - The caller upholds what [`Kernel::creation`] requires.
    unsafe fn asked(&self, raw: &Create) -> Result<(Support, String), KernelError> {
        // SAFETY: the host filled `raw`, as the caller guarantees.
        let (request, _copies) = unsafe { self.creation(raw, true)? };
        self.plugin.ask(&self.name, &request, |reply, _| match reply {
            Reply::Supports(answer, reason) => Ok((Support(answer), reason.to_owned())),
            other => Err(unexpected(&other)),
        })
    }
}

/// # Safety
/// - `first` is null or points to `count` elements that are readable for `'a`.
unsafe fn slice_of<'a, T>(first: *const T, count: usize) -> &'a [T] {
    // SAFETY: `first` is null or points to `count` elements, which are readable for `'a`, as the
    // caller guarantees.
    if first.is_null() || count == 0 { &[] } else { unsafe { slice::from_raw_parts(first, count) } }
}

/// # Safety
/// - The text is readable for `'a`.
unsafe fn text<'a>(text: Str) -> &'a str {
    // SAFETY: the text is readable for `'a`, as the caller guarantees.
    unsafe { text.text() }.unwrap_or_default()
}

/// # Safety
/// - The names are readable for `'a`.
/// - `ranges` points to as many ranges.
unsafe fn args<'a>(names: Strs, ranges: *const Range) -> Vec<(&'a str, u32, u32)> {
    // SAFETY: the names are readable and have as many ranges, as the caller guarantees.
    let (names, ranges) = unsafe { (names.slice(), slice_of(ranges, names.len)) };
    // SAFETY: the names are readable, as the caller guarantees.
    let arg = |(name, range): (&Str, &Range)| (unsafe { text(*name) }, range.start, range.len);
    names.iter().zip(ranges).map(arg).collect()
}

/// Numbers of element types; fails for a type whose values cannot cross.
fn types(types: &[DType]) -> Result<Vec<u32>, KernelError> {
    for dtype in types {
        if dtype.is_ref() || matches!(dtype.base(), DType::RESOURCE | DType::VARIANT) {
            return Err(cannot_cross(&format!("a value of type {dtype}")));
        }
    }
    Ok(types.iter().map(|dtype| dtype.0).collect())
}

/// # Safety
/// - The dimensions of `view` are readable.
unsafe fn shape(view: &ShapeView) -> Option<Vec<i64>> {
    // SAFETY: the caller guarantees that the dimensions are readable.
    (view.unknown_rank == 0).then(|| unsafe { view.dims.slice() }.to_vec())
}

impl RemoteKernel for Kernel {
    unsafe fn create(&self, create: &Create, state: *mut *mut KernelState) -> Code {
        // SAFETY: the host filled `create`, as the caller guarantees.
        match unsafe { self.make(create) } {
            Ok(made) => {
                // SAFETY: the caller provides a valid place for the state.
                unsafe { state.write(Box::into_raw(Box::new(made)).cast()) };
                Code::OK
            }
            Err(error) => {
                // SAFETY: the sink is the caller's, and the text is valid during the call.
                unsafe { report_entry(create.sink, Str::new(&error.message)) };
                error.code
            }
        }
    }

    unsafe fn supports(&self, create: &Create) -> Support {
        // SAFETY: the host filled `create`, as the caller guarantees.
        let (answer, reason) = match unsafe { self.asked(create) } {
            Ok(asked) => asked,
            Err(error) => (Support::NO, error.message),
        };
        if answer == Support::NO {
            // SAFETY: as in `create`.
            unsafe { report_entry(create.sink, Str::new(&reason)) };
        }
        answer
    }

    fn memory(&self) -> &Arc<dyn Memory> {
        &self.memory
    }
}

/// The flags that callers depend on. A call of a worker is over when it returns, even if the kernel
/// completes later.
const KEPT: [u32; 4] = [
    0,
    kernel_flags::BLOCKING,
    kernel_flags::EXPENSIVE,
    kernel_flags::BLOCKING | kernel_flags::EXPENSIVE,
];

static TABLES: LazyLock<[KernelTable; 4]> = LazyLock::new(|| {
    KEPT.map(|flags| KernelTable {
        struct_size: size_of::<KernelTable>() as u32,
        flags,
        create: None,
        compute: Some(compute),
        destroy: Some(destroy),
        prepack: None,
        attach_packed: None,
        release_packed: None,
        supports: None,
        ext: std::ptr::null(),
    })
});

/// The table of a kernel whose own table, in the worker, has these flags.
pub(super) fn table_for(flags: u32) -> &'static KernelTable {
    let waits = flags & (kernel_flags::ASYNC | kernel_flags::BLOCKING) != 0;
    let costs = flags & kernel_flags::EXPENSIVE != 0;
    &TABLES[usize::from(waits) + 2 * usize::from(costs)]
}

/// Drops a state.
///
/// # Safety
/// - The state came from [`Kernel`].
/// - Nothing uses it any more.
unsafe extern "C" fn destroy(state: *mut KernelState) {
    // SAFETY: the state is a `RemoteState` that `create` boxed, and the caller guarantees that
    // nothing uses it any more.
    drop(unsafe { Box::from_raw(state.cast::<RemoteState>()) });
}
