//! The kernel trait, and how a Rust kernel becomes a table of entries.

use crate::{
    call::{self, AsyncCall},
    compute::ComputeContext,
    create::{CreateContext, Supported},
};
use std::{any::Any, marker::PhantomData, sync::Arc};
use tenon_abi::{
    Call, Code, Create, KernelState, KernelTable, Packed as RawPacked, Sink, Slot, Str, Support,
    kernel_flags,
};
use tenon_framework::{
    KernelError, growth,
    plugin::{guard, report},
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
/// What `compute` may assume is listed at [`ComputeContext`]. A kernel that packs constants implements [`Prepack`] too, a
/// kernel that does not take every node implements [`Supports`].
pub trait Kernel: Send + Sync + Sized + 'static {
    /// How calls return.
    const MODE: Mode = Mode::Inline;

    /// Reads the attributes.
    ///
    /// # Errors
    /// The node is wrong; the message is for its user.
    fn new(context: &CreateContext<'_>) -> Result<Self, KernelError>;

    /// Computes one call.
    ///
    /// # Errors
    /// The inputs are wrong; the message is for their user.
    fn compute(&self, context: &ComputeContext<'_>) -> Result<(), KernelError>;

    /// Starts one call of a kernel of mode [`Mode::Async`].
    fn start(&self, mut call: AsyncCall) {
        let result = self.compute(&call.context());
        call.finish(result);
    }
}

/// A kernel that packs constant inputs into a form of its own. Beside [`Kernel`], this is all that is needed: a
/// registration finds the implementation.
///
/// ```
/// use tenon_author::{ComputeContext, CreateContext, Kernel, Packed, Prepack, register_kernel};
/// use tenon_framework::{KernelError, abi::Slot};
///
/// /// The sum of the weights times x.
/// struct Weigh {
///     sum: Option<Packed>,
/// }
///
/// impl Kernel for Weigh {
///     fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
///         Ok(Weigh { sum: None })
///     }
///
///     fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
///         let packed = self.sum.as_ref().and_then(|packed| packed.get::<f32>());
///         let sum = match packed {
///             Some(&sum) => sum,
///             None => c.input::<f32>(1)?.data.iter().sum(),
///         };
///         let x = c.input::<f32>(0)?;
///         let y = c.output::<f32>(0, x.dims)?;
///         y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = sum * x);
///         Ok(())
///     }
/// }
///
/// impl Prepack for Weigh {
///     fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
///         if input != 1 {
///             return Ok(None);
///         }
///         // SAFETY: the host gives a view of a constant in host memory, of the type that is registered.
///         let weights = unsafe { std::slice::from_raw_parts(view.data.cast::<f32>(), view.elements as usize) };
///         Ok(Some(Packed::new(weights.iter().sum::<f32>(), 4)))
///     }
///
///     fn attach_packed(&mut self, _input: usize, packed: &Packed) {
///         self.sum = Some(packed.clone());
///     }
/// }
///
/// register_kernel!("Weigh" on "CPU": Weigh);
/// # fn main() {}
/// ```
pub trait Prepack: Kernel {
    /// Packs a constant input, once; `None` declines.
    ///
    /// # Errors
    /// The constant is wrong.
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError>;

    /// Takes the packed form of an input, which may have been made for another object of the same node.
    fn attach_packed(&mut self, input: usize, packed: &Packed);
}

/// A kernel that does not take every node of its op and types. Beside [`Kernel`], this is all that is needed: a
/// registration finds the implementation.
pub trait Supports: Kernel {
    /// Whether the kernel takes these attributes and shapes. A node that it does not take gets another kernel, or an
    /// error with the reason.
    fn supports(context: &CreateContext<'_>) -> Supported;
}

/// A packed form of a constant input; clones share it.
#[derive(Clone)]
pub struct Packed {
    form: Arc<dyn Any + Send + Sync>,
    bytes: u64,
}

impl Packed {
    /// Wraps the form, which takes this number of bytes.
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

/// What a kernel type implements beside [`Kernel`], as entries of its table.
///
/// An associated constant of the type itself goes before one of a trait of the same name. So where the type that
/// [`register_kernel!`](crate::register_kernel) names implements [`Prepack`] or [`Supports`], the constant is that of
/// the `impl` block here, else that of [`WithoutPrepack`] or [`WithoutSupports`]. The type has to be concrete, which it is
/// in a registration.
#[doc(hidden)]
pub struct Optional<K>(PhantomData<K>);

/// Entries for packed constants.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct PrepackEntries {
    prepack: unsafe extern "C" fn(
        *mut KernelState,
        u32,
        *const Slot,
        *mut *mut RawPacked,
        *mut u64,
        *mut Sink,
    ) -> Code,
    attach: unsafe extern "C" fn(*mut KernelState, u32, *mut RawPacked),
    release: unsafe extern "C" fn(*mut RawPacked),
}

/// The entry that says which nodes a kernel takes.
#[doc(hidden)]
pub type SupportsEntry = unsafe extern "C" fn(*const Create) -> Support;

#[doc(hidden)]
pub trait WithoutPrepack {
    const PREPACK: Option<PrepackEntries> = None;
}

#[doc(hidden)]
pub trait WithoutSupports {
    const SUPPORTS: Option<SupportsEntry> = None;
}

impl<K> WithoutPrepack for Optional<K> {}
impl<K> WithoutSupports for Optional<K> {}

impl<K: Prepack> Optional<K> {
    /// The entries.
    pub const PREPACK: Option<PrepackEntries> = Some(PrepackEntries {
        prepack: prepack::<K>,
        attach: attach_packed::<K>,
        release: release_packed,
    });
}

impl<K: Supports> Optional<K> {
    /// The entry.
    pub const SUPPORTS: Option<SupportsEntry> = Some(supports::<K>);
}

/// The table of a kernel type.
#[doc(hidden)]
pub const fn type_table<K: Kernel>(
    packing: Option<PrepackEntries>,
    supports: Option<SupportsEntry>,
) -> KernelTable {
    let (prepack, attach_packed, release_packed) = match packing {
        Some(entries) => (Some(entries.prepack), Some(entries.attach), Some(entries.release)),
        None => (None, None, None),
    };
    KernelTable {
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
        prepack,
        attach_packed,
        release_packed,
        supports,
        ext: std::ptr::null(),
    }
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
        // SAFETY: `call` is filled, as the caller guarantees.
        Err(error) => unsafe { fail(call, &error) },
    });
    match guarded {
        Ok(code) => code,
        // SAFETY: `call` is filled, as the caller guarantees.
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
    // SAFETY: as in `compute`; the host sees the code of a call that is over, or `PENDING` and leaves completion to the
    // `AsyncCall`. When the body panics, unwinding drops the `AsyncCall`, which completes the call with an error.
    let (kernel, pending) = unsafe { (&*state.cast_const().cast::<K>(), AsyncCall::new(call)) };
    call::start(call, || drop(guard(|| kernel.start(pending))))
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
            Ok(Err(error)) => report(sink, &error),
            Err(panic) => report(sink, &panicked("the kernel's constructor", &panic)),
        }
    }
}

unsafe extern "C" fn destroy<K: Kernel>(state: *mut KernelState) {
    // SAFETY: the host gives back what `create` made, once. A panic in a destructor has nowhere to go.
    let _ = guard(|| drop(unsafe { Box::from_raw(state.cast::<K>()) }));
}

unsafe extern "C" fn prepack<K: Prepack>(
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
            Ok(Err(error)) => report(sink, &error),
            Err(panic) => report(sink, &panicked("packing a constant", &panic)),
        }
    }
}

unsafe extern "C" fn attach_packed<K: Prepack>(
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

unsafe extern "C" fn supports<K: Supports>(query: *const Create) -> Support {
    // SAFETY: the host fills the query.
    unsafe {
        let sink = (*query).sink;
        match guard(|| K::supports(&CreateContext::new(&*query))) {
            Ok(Supported::Yes) => Support::YES,
            Ok(Supported::DependsOnShapes) => Support::DEPENDS_ON_SHAPES,
            Ok(Supported::No(reason)) => {
                report(sink, &KernelError::unimplemented(reason));
                Support::NO
            }
            Err(panic) => {
                report(sink, &panicked("supports", &panic));
                Support::NO
            }
        }
    }
}

fn panicked(what: &str, message: &str) -> KernelError {
    growth::error_of(what, message)
}
