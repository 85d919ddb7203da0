//! How one tensor is seen by a kernel.

use crate::{DType, state::VariantTable};
use abi_stable::StableAbi;
use core::{ffi::c_void, ptr};

/// A reference-counted buffer of the host. Opaque to plugins.
#[repr(C)]
#[derive(StableAbi)]
pub struct Buffer {
    _opaque: [u8; 0],
}

/// The kind of a tensor's memory.
///
/// How long a kernel may use the memory of its call (inputs, outputs, scratch): until the call completes,
/// which is when `compute` returns, or when `complete` is called after it returned `PENDING`. On a device
/// with streams, the commands that the call enqueued on its stream may use the memory too, whatever its kind:
/// the host reuses it only for work that runs after them.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemoryKind(pub u32);

impl MemoryKind {
    /// Ordinary memory of the host process: `Slot::data` is an address.
    pub const HOST: MemoryKind = MemoryKind(0);
    /// The device's own memory: `Slot::data` is the device's handle, not an address.
    pub const DEVICE: MemoryKind = MemoryKind(1);
    /// Host memory that the device can copy from and to directly: an address.
    pub const PINNED: MemoryKind = MemoryKind(2);
    /// Memory that host and device both address.
    pub const SHARED: MemoryKind = MemoryKind(3);
    /// Only in requests, never in a slot: the output's own kind, and host memory for scratch.
    pub const ORDINARY: MemoryKind = MemoryKind(0xffff_ffff);

    /// Whether `Slot::data` may be dereferenced by host code.
    pub const fn is_host_address(self) -> bool {
        !matches!(self, MemoryKind::DEVICE)
    }
}

/// One tensor of a call. Filled by the host; for an output that is not planned, by the host service
/// that the kernel calls (`allocate`, `forward`, `share`).
///
/// `data` is non-null whenever the slot is set, aligned to 64 bytes in host memory, and valid for
/// `bytes` bytes; the elements are dense and row-major.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Slot {
    /// Address or device handle; null while an output is not set.
    pub data: *mut c_void,
    /// Dimensions, `rank` of them; may be null when `rank` is 0.
    pub dims: *const i64,
    /// The buffer that owns `data`, or the cell of a reference slot; opaque, may be null.
    pub buffer: *mut Buffer,
    /// Number of elements: the product of the dimensions.
    pub elements: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Element type; the base type also for a reference slot.
    pub dtype: DType,
    /// Number of dimensions, at most [`crate::MAX_RANK`].
    pub rank: u32,
    /// Kind of the memory of `data`.
    pub memory: MemoryKind,
    /// Alias class: slots of one call with the same number other than [`crate::NO_ALIAS`] share one buffer.
    pub alias: u32,
    /// Bits of [`slot_flags`].
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

// SAFETY: a slot is plain data; code that dereferences its pointers upholds the promises of the call.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Slot {
    /// A slot that holds nothing.
    pub const EMPTY: Slot = Slot {
        data: ptr::null_mut(),
        dims: ptr::null(),
        buffer: ptr::null_mut(),
        elements: 0,
        bytes: 0,
        dtype: DType::INVALID,
        rank: 0,
        memory: MemoryKind::HOST,
        alias: crate::NO_ALIAS,
        flags: 0,
        reserved: 0,
    };

    /// The dimensions.
    ///
    /// # Safety
    /// `dims` points to `rank` readable numbers that live and do not change for `'a`.
    #[inline]
    pub unsafe fn shape<'a>(&self) -> &'a [i64] {
        if self.rank == 0 {
            return &[];
        }
        debug_assert!(!self.dims.is_null(), "a slot of rank {} has no dimensions", self.rank);
        // SAFETY: the caller keeps `rank` readable numbers at `dims`, which do not change for `'a`.
        unsafe { core::slice::from_raw_parts(self.dims, self.rank as usize) }
    }
}

/// Bits of [`Slot::flags`].
pub mod slot_flags {
    /// Output: `data` was allocated by the executor from inferred shapes.
    pub const PLANNED: u32 = 1;
    /// Reference slot: `buffer` names a cell for the `ref_*` services, `data` is null.
    pub const REF: u32 = 2;
    /// Output that is not planned: a host service has set it. A planned one needs no mark.
    pub const SET: u32 = 4;
    /// Input: its value is the same in every call of this kernel object.
    pub const CONSTANT: u32 = 8;
    /// Output: nothing reads it; the kernel may leave it unset.
    pub const UNUSED: u32 = 16;
}

/// Element of a `string` tensor: 24 bytes, owned by its buffer. All zero is the empty string. Filled by
/// the host's string services ([`crate::StringTable`]), which alone change `data` and `capacity`.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct StringElement {
    /// First byte; null when empty.
    pub data: *mut u8,
    /// Number of bytes.
    pub len: u64,
    /// Bytes allocated.
    pub capacity: u64,
}

/// Element of a `resource` tensor: one counted reference to a resource of the host; null if there is none.
/// Filled by the side that writes the tensor.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct ResourceElement {
    /// The resource; may be null.
    pub resource: *mut crate::Resource,
}

/// Element of a `variant` tensor: an owned value and the table of its type; both are null if there is no value.
/// Filled by the side that writes the tensor.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct VariantElement {
    /// The value; may be null.
    pub value: *mut c_void,
    /// The value's table; may be null when `value` is.
    pub table: *const VariantTable,
}
