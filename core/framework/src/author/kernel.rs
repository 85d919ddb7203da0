//! The kernel trait, and how a Rust kernel becomes a table of entries.

use super::{
    call::AsyncCall,
    compute::ComputeContext,
    create::{CreateContext, Supported},
    guard::guard,
    host,
};
use crate::{KernelError, growth};
use std::{any::Any, marker::PhantomData, sync::Arc};
use tenon_abi::{
    Call, Code, Create, KernelState, KernelTable, Packed as RawPacked, Sink, Slot, Str, Support,
    kernel_flags,
};

/// How a kernel returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// `compute` returns when the outputs are written (on a stream: enqueued).
    Inline,
    /// As `Inline`, and a call is worth another thread before it has been measured.
    Expensive,
    /// `compute` may wait for something other than computation: it gets a thread that may block.
    Blocking,
    /// [`Kernel::start`] is called instead of `compute`, and the call finishes later.
    Async,
}

/// A kernel with state made from a node's attributes. One object serves all calls for that node, also
/// at the same time.
///
/// What `compute` may assume is listed at [`ComputeContext`].
pub trait Kernel: Send + Sync + Sized + 'static {
    /// How calls return.
    const MODE: Mode = Mode::Inline;
    /// Whether [`Kernel::prepack`] is worth asking.
    const PREPACKS: bool = false;
    /// Whether [`Kernel::supports`] ever says anything but yes.
    const HAS_SUPPORTS: bool = false;

    /// Reads the attributes.
    ///
    /// # Errors
    /// What is wrong with the node, for its user.
    fn new(context: &CreateContext<'_>) -> Result<Self, KernelError>;

    /// Computes one call.
    ///
    /// # Errors
    /// What is wrong with the inputs, for their user.
    fn compute(&self, context: &ComputeContext<'_>) -> Result<(), KernelError>;

    /// Starts one call of a kernel of mode [`Mode::Async`].
    fn start(&self, mut call: AsyncCall) {
        let result = self.compute(&call.context());
        call.finish(result);
    }

    /// Packs a constant input into a form of the kernel's own, once; `None` declines.
    ///
    /// # Errors
    /// What is wrong with the constant.
    fn prepack(&self, _input: usize, _view: &Slot) -> Result<Option<Packed>, KernelError> {
        Ok(None)
    }

    /// Takes the packed form of an input, which may have been made for another object of the same node.
    fn attach_packed(&mut self, _input: usize, _packed: &Packed) {}

    /// Whether the kernel takes these attributes and shapes.
    fn supports(_context: &CreateContext<'_>) -> Supported {
        Supported::Yes
    }
}

/// A packed form of a constant input; clones share it.
#[derive(Clone)]
pub struct Packed {
    form: Arc<dyn Any + Send + Sync>,
    bytes: u64,
}

impl Packed {
    /// Wraps the form, which takes so many bytes.
    pub fn new(form: impl Any + Send + Sync, bytes: u64) -> Packed {
        Packed { form: Arc::new(form), bytes }
    }

    /// The form, when it is a `T`.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.form.downcast_ref()
    }
}

/// A function that is a kernel without state. It is a function item or a closure that captures nothing.
pub trait KernelFn:
    Fn(&ComputeContext<'_>) -> Result<(), KernelError> + Copy + Send + Sync + 'static
{
}

impl<F> KernelFn for F where
    F: Fn(&ComputeContext<'_>) -> Result<(), KernelError> + Copy + Send + Sync + 'static
{
}

/// The table of a kernel type.
pub struct TypeTable<K>(PhantomData<K>);

impl<K: Kernel> TypeTable<K> {
    /// The table.
    pub const TABLE: &'static KernelTable = &KernelTable {
        struct_size: size_of::<KernelTable>() as u32,
        flags: match K::MODE {
            Mode::Inline => 0,
            Mode::Expensive => kernel_flags::EXPENSIVE,
            Mode::Blocking => kernel_flags::BLOCKING,
            Mode::Async => kernel_flags::ASYNC,
        },
        create: Some(create::<K>),
        compute: Some(if matches!(K::MODE, Mode::Async) { start::<K> } else { compute::<K> }),
        destroy: Some(destroy::<K>),
        prepack: if K::PREPACKS { Some(prepack::<K>) } else { None },
        attach_packed: if K::PREPACKS { Some(attach_packed::<K>) } else { None },
        release_packed: if K::PREPACKS { Some(release_packed) } else { None },
        supports: if K::HAS_SUPPORTS { Some(supports::<K>) } else { None },
        ext: std::ptr::null(),
    };
}

/// The table of a function.
pub struct FnTable<F>(PhantomData<F>);

impl<F: KernelFn> FnTable<F> {
    const TABLE: &'static KernelTable = &KernelTable {
        struct_size: size_of::<KernelTable>() as u32,
        flags: 0,
        create: None,
        compute: Some(compute_fn::<F>),
        destroy: None,
        prepack: None,
        attach_packed: None,
        release_packed: None,
        supports: None,
        ext: std::ptr::null(),
    };

    /// The table.
    ///
    /// # Panics
    /// When the function has a size: a pointer to one, or a closure that captures. In a constant that is a
    /// compile error, at the caller.
    #[track_caller]
    pub const fn of(_function: F) -> &'static KernelTable {
        assert!(size_of::<F>() == 0, "a kernel function captures nothing: use a type for state");
        Self::TABLE
    }
}

/// Runs a call: an error's or a panic's message goes to the host, its code is returned. The result is made
/// a code inside the guarded body, so that nothing larger is carried out of it.
///
/// # Safety
/// `call` is filled.
#[inline(always)]
unsafe fn conclude(call: &Call, body: impl FnOnce() -> Result<(), KernelError>) -> Code {
    let guarded = guard(|| match body() {
        Ok(()) => Code::OK,
        // SAFETY: the caller's promise.
        Err(error) => unsafe { fail(call, &error) },
    });
    match guarded {
        Ok(code) => code,
        // SAFETY: the caller's promise.
        Err(panic) => unsafe { fail(call, &panicked("the kernel", &panic)) },
    }
}

#[cold]
#[inline(never)]
unsafe fn fail(call: &Call, error: &KernelError) -> Code {
    // SAFETY: the host fills services and entries.
    unsafe {
        let entry = (*call.services).fail.expect("the host fills every entry");
        entry(call.record, error.code, Str::new(&error.message))
    }
}

unsafe extern "C" fn compute<K: Kernel>(state: *mut KernelState, call: *const Call) -> Code {
    // SAFETY: the host gives the state that `create` made and a filled call.
    unsafe {
        let (kernel, call) = (&*state.cast_const().cast::<K>(), &*call);
        conclude(call, || kernel.compute(&ComputeContext::new(call)))
    }
}

unsafe extern "C" fn compute_fn<F: KernelFn>(_state: *mut KernelState, call: *const Call) -> Code {
    // SAFETY: the host gives a filled call; `F` has no size, so that any aligned pointer is one.
    unsafe {
        let (body, call) = (&*std::ptr::NonNull::<F>::dangling().as_ptr(), &*call);
        conclude(call, || body(&ComputeContext::new(call)))
    }
}

unsafe extern "C" fn start<K: Kernel>(state: *mut KernelState, call: *const Call) -> Code {
    // SAFETY: as in `compute`; the host sees `PENDING` and leaves completion to the `AsyncCall`. When the
    // body panics, unwinding drops the `AsyncCall`, which completes the call with an error.
    unsafe {
        let kernel = &*state.cast_const().cast::<K>();
        let owed = AsyncCall::new(call);
        let _ = guard(|| kernel.start(owed));
    }
    Code::PENDING
}

unsafe extern "C" fn create<K: Kernel>(raw: *const Create, state: *mut *mut KernelState) -> Code {
    // SAFETY: the host fills `raw` and takes the state.
    unsafe {
        let sink = (*raw).sink;
        match guard(|| K::new(&CreateContext::new(&*raw))) {
            Ok(Ok(kernel)) => {
                *state = Box::into_raw(Box::new(kernel)).cast();
                Code::OK
            }
            Ok(Err(error)) => host::report(sink, &error),
            Err(panic) => host::report(sink, &panicked("the kernel's constructor", &panic)),
        }
    }
}

unsafe extern "C" fn destroy<K: Kernel>(state: *mut KernelState) {
    // SAFETY: the host gives back what `create` made, once. A panic in a destructor has nowhere to go.
    let _ = guard(|| drop(unsafe { Box::from_raw(state.cast::<K>()) }));
}

unsafe extern "C" fn prepack<K: Kernel>(
    state: *mut KernelState,
    input: u32,
    view: *const Slot,
    packed: *mut *mut RawPacked,
    packed_bytes: *mut u64,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host gives the state, a filled view and a place for the result.
    unsafe {
        let kernel = &*state.cast_const().cast::<K>();
        match guard(|| kernel.prepack(input as usize, &*view)) {
            Ok(Ok(form)) => {
                if let Some(form) = form {
                    *packed_bytes = form.bytes;
                    *packed = Box::into_raw(Box::new(form)).cast();
                }
                Code::OK
            }
            Ok(Err(error)) => host::report(sink, &error),
            Err(panic) => host::report(sink, &panicked("packing a constant", &panic)),
        }
    }
}

unsafe extern "C" fn attach_packed<K: Kernel>(
    state: *mut KernelState,
    input: u32,
    packed: *mut RawPacked,
) {
    // SAFETY: the host calls this before the state computes, with a form that `prepack` made. A kernel that
    // panics here has no packed form and computes from the constant, or fails with its own error.
    unsafe {
        let kernel = &mut *state.cast::<K>();
        let form = &*packed.cast::<Packed>();
        let _ = guard(|| kernel.attach_packed(input as usize, form));
    }
}

unsafe extern "C" fn release_packed(packed: *mut RawPacked) {
    // SAFETY: the host gives back what `prepack` made, once.
    let _ = guard(|| drop(unsafe { Box::from_raw(packed.cast::<Packed>()) }));
}

unsafe extern "C" fn supports<K: Kernel>(query: *const Create) -> Support {
    // SAFETY: the host fills the query.
    unsafe {
        let sink = (*query).sink;
        match guard(|| K::supports(&CreateContext::new(&*query))) {
            Ok(Supported::Yes) => Support::YES,
            Ok(Supported::DependsOnShapes) => Support::DEPENDS_ON_SHAPES,
            Ok(Supported::No(reason)) => {
                host::report(sink, &KernelError::unimplemented(reason));
                Support::NO
            }
            Err(panic) => {
                host::report(sink, &panicked("supports", &panic));
                Support::NO
            }
        }
    }
}

fn panicked(what: &str, message: &str) -> KernelError {
    growth::error_of(what, message)
}
