//! Variants: tensors whose elements are values of types that plugins define.

use crate::{
    encoded::{EncodedValue, TensorSink},
    interned::Interned,
};
use std::{ffi::c_void, fmt, marker::PhantomData, ptr};
use tenon_abi::{
    Code, Device, MemoryKind, Sink, Slot, Str, Stream, TensorGive, VariantElement, VariantParts,
    VariantTable,
};
use tenon_framework::KernelError;
use tenon_framework::plugin::{give_bytes, guard, report};

/// A type whose values variant tensors hold: the host and other plugins clone and drop a value, and use the other
/// abilities of the type; those that a type lacks are `UNIMPLEMENTED`.
///
/// ```
/// # use {tenon_author::{ComputeContext, Variant, VariantValue}, tenon_framework::KernelError};
/// /// A range of numbers.
/// #[derive(Clone)]
/// struct Span(i64, i64);
///
/// impl VariantValue for Span {
///     const NAME: &'static str = "example.Span";
///
///     fn zeros_like(&self) -> Result<Span, KernelError> {
///         Ok(Span(0, 0))
///     }
/// }
///
/// fn make(c: &ComputeContext<'_>) -> Result<(), KernelError> {
///     let &[low, high] = c.input::<i64>(0)?.data else {
///         return Err(KernelError::invalid_argument("expected two numbers"));
///     };
///     c.set_variant(0, Variant::new(Span(low, high)))
/// }
///
/// fn length(c: &ComputeContext<'_>) -> Result<(), KernelError> {
///     let Span(low, high) = c.variant::<Span>(0)?;
///     c.output::<i64>(0, &[])?.data[0] = high - low;
///     Ok(())
/// }
/// ```
pub trait VariantValue: Clone + Send + Sync + 'static {
    /// Name of the type, unique: by convention `plugin.Type`.
    const NAME: &'static str;

    /// The value as bytes, which are returned, and tensors, which go to `tensors`: to be stored or sent.
    ///
    /// # Errors
    /// `UNIMPLEMENTED`, unless the type says otherwise.
    fn encode(&self, tensors: &mut TensorSink<'_>) -> Result<Vec<u8>, KernelError> {
        let _ = tensors;
        Err(unsupported::<Self>("encode it"))
    }

    /// Makes a value from the result of [`VariantValue::encode`], perhaps of another process. The bytes may be
    /// anything. A type that has this is registered by [`register_variant!`](crate::register_variant).
    ///
    /// # Errors
    /// `UNIMPLEMENTED`, unless the type says otherwise; the bytes or tensors are wrong.
    fn decode(encoded: &EncodedValue<'_>) -> Result<Self, KernelError> {
        let _ = encoded;
        Err(unsupported::<Self>("decode it"))
    }

    /// A value whose tensors are in other memory. By default it is a clone if the memory is the host's, which is
    /// right for a value without tensors.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for memory of a device, unless the type says otherwise.
    fn copy_to_device(&self, to: &CopyTarget<'_>) -> Result<Self, KernelError> {
        if to.memory.is_host_address() {
            return Ok(self.clone());
        }
        Err(unsupported::<Self>("copy it to memory of a device"))
    }

    /// Zeros of the value's form.
    ///
    /// # Errors
    /// `UNIMPLEMENTED`, unless the type says otherwise.
    fn zeros_like(&self) -> Result<Self, KernelError> {
        Err(unsupported::<Self>("make zeros of its form"))
    }

    /// The sum of two values.
    ///
    /// # Errors
    /// `UNIMPLEMENTED`, unless the type says otherwise.
    fn add(&self, _other: &Self) -> Result<Self, KernelError> {
        Err(unsupported::<Self>("add it"))
    }
}

#[cold]
fn unsupported<T: VariantValue>(what: &str) -> KernelError {
    KernelError::unimplemented(format!("a variant of type {}: the type cannot {what}", T::NAME))
}

/// The place to which a value is copied.
#[derive(Debug)]
pub struct CopyTarget<'a> {
    device: *mut Device,
    memory: MemoryKind,
    stream: *mut Stream,
    lent: PhantomData<&'a Device>,
}

impl CopyTarget<'_> {
    /// The device; null for the host's own memory.
    pub fn device(&self) -> *mut Device {
        self.device
    }

    /// Kind of the memory.
    pub fn memory(&self) -> MemoryKind {
        self.memory
    }

    /// The stream to enqueue on; null without one.
    pub fn stream(&self) -> *mut Stream {
        self.stream
    }
}

/// The table of boxed `T`s. Its address identifies the type: see [`Interned`].
pub(crate) fn table<T: VariantValue>() -> &'static VariantTable {
    static TABLES: Interned<VariantTable> = Interned::new();
    TABLES.of::<T>(|| VariantTable {
        struct_size: size_of::<VariantTable>() as u32,
        reserved: 0,
        type_name: Str::new(T::NAME),
        clone: Some(clone::<T>),
        destroy: Some(destroy::<T>),
        encode: Some(encode::<T>),
        decode: Some(decode::<T>),
        copy_to_device: Some(copy_to_device::<T>),
        zeros_like: Some(zeros_like::<T>),
        add: Some(add::<T>),
        ext: ptr::null(),
    })
}

/// Runs an entry's body: the value goes to `result`, an error's message to the sink.
///
/// # Safety
/// `sink` is lent to the running entry, or null; `result` is a place for a pointer.
unsafe fn give<T>(
    result: *mut *mut c_void,
    sink: *mut Sink,
    body: impl FnOnce() -> Result<T, KernelError>,
) -> Code {
    // SAFETY: the caller gives a place for a pointer, and null or the sink that the running entry was lent.
    unsafe {
        match guarded(body) {
            Ok(value) => {
                *result = Box::into_raw(Box::new(value)).cast();
                Code::OK
            }
            Err(error) => report(sink, &error),
        }
    }
}

fn guarded<R>(body: impl FnOnce() -> Result<R, KernelError>) -> Result<R, KernelError> {
    guard(body).unwrap_or_else(|panic| {
        Err(KernelError::internal(format!("a variant's entry panicked: {panic}")))
    })
}

unsafe extern "C" fn clone<T: VariantValue>(
    value: *const c_void,
    copy: *mut *mut c_void,
    sink: *mut Sink,
) -> Code {
    // SAFETY: a live value of this table, a place for the copy, a sink.
    unsafe { give(copy, sink, || Ok((*value.cast::<T>()).clone())) }
}

unsafe extern "C" fn destroy<T>(value: *mut c_void) {
    // SAFETY: what an entry of this table made, given back once. A panic of a destructor has nowhere to go.
    let _ = guard(|| drop(unsafe { Box::from_raw(value.cast::<T>()) }));
}

unsafe extern "C" fn encode<T: VariantValue>(
    value: *const c_void,
    parts: *mut VariantParts,
    give: TensorGive,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host's own object and entry, lent for this call.
    let mut tensors = unsafe { TensorSink::new(parts, give) };
    // SAFETY: a live value of this table, and a sink.
    unsafe {
        match guarded(|| (*value.cast::<T>()).encode(&mut tensors)) {
            Ok(bytes) => {
                give_bytes(sink, &bytes);
                Code::OK
            }
            Err(error) => report(sink, &error),
        }
    }
}

unsafe extern "C" fn decode<T: VariantValue>(
    bytes: Str,
    tensors: *const Slot,
    tensor_count: usize,
    result: *mut *mut c_void,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host lends bytes and as many filled slots during this call, a place for the value and a sink.
    unsafe {
        let encoded = EncodedValue::new(bytes, tensors, tensor_count);
        give(result, sink, || T::decode(&encoded))
    }
}

unsafe extern "C" fn copy_to_device<T: VariantValue>(
    value: *const c_void,
    device: *mut Device,
    memory: MemoryKind,
    stream: *mut Stream,
    copy: *mut *mut c_void,
    sink: *mut Sink,
) -> Code {
    let to = CopyTarget { device, memory, stream, lent: PhantomData };
    // SAFETY: as in `clone`.
    unsafe { give(copy, sink, || (*value.cast::<T>()).copy_to_device(&to)) }
}

unsafe extern "C" fn zeros_like<T: VariantValue>(
    value: *const c_void,
    result: *mut *mut c_void,
    sink: *mut Sink,
) -> Code {
    // SAFETY: as in `clone`.
    unsafe { give(result, sink, || (*value.cast::<T>()).zeros_like()) }
}

unsafe extern "C" fn add<T: VariantValue>(
    a: *const c_void,
    b: *const c_void,
    result: *mut *mut c_void,
    sink: *mut Sink,
) -> Code {
    // SAFETY: as in `clone`, of two values.
    unsafe { give(result, sink, || (*a.cast::<T>()).add(&*b.cast::<T>())) }
}

/// An element of a variant tensor: a value of any plugin's type, or none.
#[derive(Clone, Copy)]
pub struct VariantRef<'a> {
    element: VariantElement,
    lent: PhantomData<&'a c_void>,
}

impl<'a> VariantRef<'a> {
    /// # Safety
    /// The element's value and table, if it has them, live for `'a`.
    pub(super) unsafe fn new(element: VariantElement) -> VariantRef<'a> {
        VariantRef { element, lent: PhantomData }
    }

    /// The elements of a slot.
    ///
    /// # Safety
    /// A slot of variants in host memory, whose values live for `'a`.
    pub(super) unsafe fn all(slot: &Slot) -> Vec<VariantRef<'a>> {
        let first = slot.data.cast_const().cast::<VariantElement>();
        // SAFETY: the caller gives a slot with `elements` initialised elements, whose values live for `'a`.
        let element = |at| unsafe { VariantRef::new(*first.add(at)) };
        (0..slot.elements as usize).map(element).collect()
    }

    /// The element itself.
    pub(super) fn element(&self) -> VariantElement {
        self.element
    }

    fn table(&self) -> Option<&'a VariantTable> {
        if self.element.value.is_null() {
            return None;
        }
        // SAFETY: the promise of `new`.
        unsafe { self.element.table.as_ref() }
    }

    /// Whether there is no value, as in a fresh tensor.
    pub fn is_none(&self) -> bool {
        self.table().is_none()
    }

    /// Name of the value's type; empty when there is no value.
    pub fn type_name(&self) -> &'a str {
        // SAFETY: the table's name lives as long as its library, which stays mapped.
        self.table().and_then(|table| unsafe { table.type_name.text() }).unwrap_or_default()
    }

    /// The value, when it is a `T` that this library made.
    pub fn get<T: VariantValue>(&self) -> Option<&'a T> {
        let own = self.table().is_some_and(|found| ptr::eq(found, table::<T>()));
        // SAFETY: values with this table are boxed `T`s; this one lives for `'a`.
        own.then(|| unsafe { &*self.element.value.cast_const().cast::<T>() })
    }

    /// A copy of the value, by its type.
    ///
    /// # Errors
    /// What the type says; `INVALID_ARGUMENT` when there is no value.
    pub fn to_owned(&self) -> Result<Variant, KernelError> {
        let table = self.known()?;
        let entry = table.clone.ok_or_else(|| self.cannot("be copied"))?;
        // SAFETY: a live value of this table, and a place for the result.
        self.made(|result| unsafe { entry(self.element.value, result, ptr::null_mut()) })
    }

    /// Zeros of the value's form, by its type.
    ///
    /// # Errors
    /// What the type says; `UNIMPLEMENTED` when it has no zeros; `INVALID_ARGUMENT` when there is no value.
    pub fn zeros_like(&self) -> Result<Variant, KernelError> {
        let entry = self.known()?.zeros_like.ok_or_else(|| self.cannot("make zeros"))?;
        // SAFETY: as in `to_owned`.
        self.made(|result| unsafe { entry(self.element.value, result, ptr::null_mut()) })
    }

    /// The sum of two values, by their type.
    ///
    /// # Errors
    /// What the type says; `UNIMPLEMENTED` when it cannot add; `INVALID_ARGUMENT` when there is no value, or
    /// the types differ.
    pub fn add(&self, other: &VariantRef<'_>) -> Result<Variant, KernelError> {
        let entry = self.known()?.add.ok_or_else(|| self.cannot("be added"))?;
        other.known()?;
        if !ptr::eq(self.element.table, other.element.table) {
            return Err(KernelError::invalid_argument(format!(
                "cannot add variants of types {} and {}",
                self.type_name(),
                other.type_name()
            )));
        }
        let (a, b) = (self.element.value, other.element.value);
        // SAFETY: as in `to_owned`, of two values of one table.
        self.made(|result| unsafe { entry(a, b, result, ptr::null_mut()) })
    }

    fn known(&self) -> Result<&'a VariantTable, KernelError> {
        let none = || KernelError::invalid_argument("expected a variant with a value, found none");
        self.table().ok_or_else(none)
    }

    fn cannot(&self, what: &str) -> KernelError {
        let name = self.type_name();
        KernelError::unimplemented(format!("a variant of type {name}: the type cannot {what}"))
    }

    /// The result of an entry of the table. If it failed, its message is lost, because only the host lends sinks.
    fn made(&self, entry: impl FnOnce(*mut *mut c_void) -> Code) -> Result<Variant, KernelError> {
        let mut value = ptr::null_mut();
        let code = entry(&mut value);
        if code.is_ok() && !value.is_null() {
            return Ok(Variant { element: VariantElement { value, table: self.element.table } });
        }
        let code = if code.is_ok() { Code::INTERNAL } else { code };
        let name = self.type_name();
        Err(KernelError::new(code, format!("a variant of type {name}: its type made no value")))
    }
}

impl fmt::Debug for VariantRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.is_none() { "none" } else { self.type_name() };
        write!(f, "variant {name}")
    }
}

/// A value that a variant tensor may hold, with the knowledge of its type: of this plugin or another.
pub struct Variant {
    element: VariantElement,
}

// SAFETY: the values of variants may be used and destroyed on any thread, as their host does.
unsafe impl Send for Variant {}
// SAFETY: as above.
unsafe impl Sync for Variant {}

impl Variant {
    /// A variant with this value.
    pub fn new<T: VariantValue>(value: T) -> Variant {
        let value = Box::into_raw(Box::new(value)).cast();
        Variant { element: VariantElement { value, table: table::<T>() } }
    }

    /// Takes over an element that has a value.
    ///
    /// # Safety
    /// The value is live and of its table, and belongs to the caller.
    pub(super) unsafe fn from_element(element: VariantElement) -> Variant {
        Variant { element }
    }

    /// The value, to be looked at, copied, added.
    pub fn get_ref(&self) -> VariantRef<'_> {
        // SAFETY: this object keeps the value alive.
        unsafe { VariantRef::new(self.element) }
    }

    /// The value, when it is a `T` that this library made.
    pub fn get<T: VariantValue>(&self) -> Option<&T> {
        self.get_ref().get()
    }

    /// The element that holds the value, which stays this object's.
    pub(super) fn element(&self) -> VariantElement {
        self.element
    }

    /// Gives the value away.
    pub(super) fn into_element(self) -> VariantElement {
        let element = self.element;
        std::mem::forget(self);
        element
    }
}

impl Drop for Variant {
    fn drop(&mut self) {
        // SAFETY: a value with the table that made it, which is destroyed once.
        unsafe { destroy_element(self.element) }
    }
}

impl fmt::Debug for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get_ref().fmt(f)
    }
}

/// # Safety
/// The element is empty, or has a live value of its table that no code uses any more.
pub(super) unsafe fn destroy_element(element: VariantElement) {
    if element.value.is_null() {
        return;
    }
    // SAFETY: the element has a value, which is live and of its table, and the caller is its last user.
    unsafe {
        if let Some(entry) = element.table.as_ref().and_then(|table| table.destroy) {
            entry(element.value);
        }
    }
}

#[cfg(test)]
#[path = "variant_tests.rs"]
mod tests;
