//! The reference-counted buffer.
//!
//! States of the count: 1 or more while any [`Buffer`] (or any raw pointer of [`Buffer::into_raw`])
//! exists; at 0 the elements are destroyed and the memory goes back to where it came from. The count is the
//! only field that changes after construction, except `elements`, which its single owner sets.

use super::string::destroy_strings;
use crate::KernelError;
use std::{
    cell::RefCell,
    ffi::c_void,
    mem::MaybeUninit,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering, fence},
    },
};
use tenon_abi::{DType, MemoryKind, ResourceElement, StringElement, VariantElement};

/// Where buffers come from: host memory, a device's memory.
///
/// # Safety
/// `allocate` gives memory of at least the requested size and alignment, non-null also for no bytes,
/// that no other code uses until `deallocate`; addresses when `kind().is_host_address()`.
pub unsafe trait Memory: Send + Sync {
    /// The kind of memory.
    fn kind(&self) -> MemoryKind;

    /// A number that names the device that owns the memory; 0 is the host.
    fn device(&self) -> u64;

    /// Takes memory.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when there is none, `UNAVAILABLE` when the device is lost.
    fn allocate(&self, bytes: usize) -> Result<NonNull<c_void>, KernelError>;

    /// Gives memory back.
    ///
    /// # Safety
    /// `data` came from `allocate` of this object with the same `bytes`, and no code uses it any more.
    unsafe fn deallocate(&self, data: NonNull<c_void>, bytes: usize);
}

struct Inner {
    count: AtomicUsize,
    data: NonNull<c_void>,
    capacity: usize,
    kind: MemoryKind,
    /// Element type when elements need destruction, else `INVALID`.
    droppable: DType,
    /// Number of elements to destroy.
    elements: usize,
    memory: Arc<dyn Memory>,
}

/// Most records that a thread keeps for buffers to come.
const SPARE_RECORDS: usize = 64;

/// Records keep their address while buffers point to them.
#[allow(clippy::vec_box, reason = "what is kept is the allocation")]
type Records = Vec<Box<MaybeUninit<Inner>>>;

thread_local! {
    /// Records of buffers that are gone: a large output, whose memory comes from a pool, takes nothing from the
    /// system for its record either.
    static SPARE: RefCell<Records> = const { RefCell::new(Vec::new()) };
}

impl Inner {
    /// Puts it into a record.
    fn record(self) -> NonNull<Inner> {
        // A thread that ends has no spare ones any more.
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
        NonNull::from(Box::leak(Box::write(spare.unwrap_or_else(Box::new_uninit), self)))
    }

    /// Takes it out of its record, which is kept.
    ///
    /// # Safety
    /// `record` came from [`Inner::record`], and no code uses it any more.
    unsafe fn take(record: NonNull<Inner>) -> Inner {
        // SAFETY: `record` came from `Inner::record`, and the caller is its last user; the box drops nothing of it.
        let (inner, record) =
            unsafe { (record.read(), Box::from_raw(record.as_ptr().cast::<MaybeUninit<Inner>>())) };
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARE_RECORDS {
                spare.push(record);
            }
        });
        inner
    }
}

/// A counted reference to a buffer.
pub struct Buffer {
    inner: NonNull<Inner>,
}

// SAFETY: the count is atomic, the other fields do not change while it is shared, and the code
// that reads or writes the memory of `data` upholds its own conditions.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Takes `bytes` bytes from `memory` for `elements` elements of `dtype`. Elements that need destruction
    /// start as all zero bits, which is their empty value; others are undefined.
    ///
    /// # Errors
    /// What [`Memory::allocate`] says; `INVALID_ARGUMENT` for elements that need destruction in memory that
    /// is not addressable.
    pub fn allocate(
        memory: &Arc<dyn Memory>,
        dtype: DType,
        elements: usize,
        bytes: usize,
    ) -> Result<Buffer, KernelError> {
        let kind = memory.kind();
        let droppable = if dtype.needs_drop() { dtype.base() } else { DType::INVALID };
        if droppable != DType::INVALID && !kind.is_host_address() {
            return Err(KernelError::invalid_argument(format!(
                "{dtype} elements live in host memory, asked for on a device: put the argument into host memory"
            )));
        }
        let data = memory.allocate(bytes)?;
        if droppable != DType::INVALID {
            // SAFETY: host memory of `bytes` bytes, just allocated.
            unsafe { data.as_ptr().cast::<u8>().write_bytes(0, bytes) };
        }
        let inner = Inner {
            count: AtomicUsize::new(1),
            data,
            capacity: bytes,
            kind,
            droppable,
            elements,
            memory: Arc::clone(memory),
        };
        Ok(Buffer { inner: inner.record() })
    }

    #[inline]
    fn inner(&self) -> &Inner {
        // SAFETY: `self` holds a count, so the object lives.
        unsafe { self.inner.as_ref() }
    }

    /// Address, or handle of the device.
    pub fn data(&self) -> *mut c_void {
        self.inner().data.as_ptr()
    }

    /// Number of bytes; a tensor may use fewer.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.inner().capacity
    }

    /// Kind of the memory.
    #[inline]
    pub fn kind(&self) -> MemoryKind {
        self.inner().kind
    }

    /// The memory that it came from.
    pub fn memory(&self) -> &Arc<dyn Memory> {
        &self.inner().memory
    }

    /// Whether this is the only reference: then its holder may write the contents.
    #[inline]
    pub fn is_unique(&self) -> bool {
        self.inner().count.load(Ordering::Acquire) == 1
    }

    /// Whether there are this many references, of which the caller knows all.
    pub fn has_references(&self, count: usize) -> bool {
        self.inner().count.load(Ordering::Acquire) == count
    }

    /// Whether the elements need destruction and may not be copied as bytes.
    pub fn needs_drop(&self) -> bool {
        self.inner().droppable != DType::INVALID
    }

    /// Gives the reference away as a raw pointer, such as `Slot::buffer`.
    #[inline]
    pub fn into_raw(self) -> *mut tenon_abi::Buffer {
        let raw = self.inner.as_ptr().cast();
        std::mem::forget(self);
        raw
    }

    /// The raw pointer, without giving the reference away.
    pub fn as_raw(&self) -> *mut tenon_abi::Buffer {
        self.inner.as_ptr().cast()
    }

    /// Takes back what [`Buffer::into_raw`] gave.
    ///
    /// # Safety
    /// `raw` came from `into_raw` and its reference is not taken twice.
    #[inline]
    pub unsafe fn from_raw(raw: *mut tenon_abi::Buffer) -> Option<Buffer> {
        NonNull::new(raw.cast()).map(|inner| Buffer { inner })
    }

    /// A further reference to the buffer behind a raw pointer that other code holds.
    ///
    /// # Safety
    /// `raw` is null or came from `into_raw`, and its reference is alive during the call.
    #[inline]
    pub unsafe fn clone_raw(raw: *mut tenon_abi::Buffer) -> Option<Buffer> {
        // SAFETY: `raw` is null or came from `into_raw` with a reference that the caller keeps alive; the borrowed one
        // is forgotten below.
        let borrowed = unsafe { Buffer::from_raw(raw) }?;
        let clone = borrowed.clone();
        std::mem::forget(borrowed);
        Some(clone)
    }

    /// Whether the reference behind a raw pointer is the only one.
    ///
    /// # Safety
    /// As [`Buffer::clone_raw`], and `raw` is not null.
    #[inline]
    pub unsafe fn raw_is_unique(raw: *mut tenon_abi::Buffer) -> bool {
        // SAFETY: `raw` is not null and came from `into_raw`, with a reference that the caller keeps alive.
        unsafe { (*raw.cast::<Inner>()).count.load(Ordering::Acquire) == 1 }
    }
}

impl Clone for Buffer {
    #[inline]
    fn clone(&self) -> Buffer {
        self.inner().count.fetch_add(1, Ordering::Relaxed);
        Buffer { inner: self.inner }
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        if self.inner().count.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            // SAFETY: this was the last reference.
            unsafe { give_back(self.inner) };
        }
    }
}

/// Destroys the elements of a buffer that has no holder any more, and gives its memory back.
#[inline(never)]
unsafe fn give_back(inner: NonNull<Inner>) {
    // SAFETY: `inner` came from `Inner::record`, and the caller has dropped the last reference to it.
    let inner = unsafe { Inner::take(inner) };
    // SAFETY: the elements are initialised (all zero at first) and no other code sees them.
    unsafe { destroy_elements(inner.droppable, inner.data, inner.elements) };
    // SAFETY: `data` came from this memory with this size.
    unsafe { inner.memory.deallocate(inner.data, inner.capacity) };
}

unsafe fn destroy_elements(droppable: DType, data: NonNull<c_void>, elements: usize) {
    match droppable {
        DType::STRING => {
            // SAFETY: the caller owns the elements, which are initialised strings.
            unsafe { destroy_strings(data.as_ptr().cast::<StringElement>(), elements) }
        }
        DType::VARIANT => {
            let first = data.as_ptr().cast::<VariantElement>();
            for at in 0..elements {
                // SAFETY: the caller owns the initialised elements; a value's table lives as long as its library.
                unsafe {
                    let element = *first.add(at);
                    if !element.value.is_null()
                        && let Some(table) = element.table.as_ref()
                        && let Some(destroy) = table.destroy
                    {
                        destroy(element.value);
                    }
                }
            }
        }
        DType::RESOURCE => {
            let first = data.as_ptr().cast::<ResourceElement>();
            for at in 0..elements {
                // SAFETY: the caller owns the initialised elements; one that is not null is one counted reference.
                unsafe { crate::resource::release_raw((*first.add(at)).resource) };
            }
        }
        _ => {}
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let inner = self.inner();
        write!(f, "Buffer({} bytes, {:?})", inner.capacity, inner.kind)
    }
}
