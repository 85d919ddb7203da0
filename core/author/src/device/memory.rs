//! Memory of a device, and copies: [`DeviceMemory`].

use super::{
    DeviceKind, device_of,
    entries::{self, code, logged, reported},
    roles::{NO_ENTRIES, Roles},
    stream_of,
};
use std::{ffi::c_void, ptr::NonNull};
use tenon_abi::{Code, CopyRequest, DeviceState, DeviceTable, MemoryKind, Sink, Stream};
use tenon_framework::KernelError;

/// A device type with memory of its own. Without this trait its devices compute in host memory.
///
/// Beside [`DeviceKind`], this is all that is needed: a registration finds the implementation.
pub trait DeviceMemory: DeviceKind {
    /// Memory of a kind, also for 0 bytes, at a multiple of `align`, which is a power of two and at least
    /// what the device declared. With a stream, it need not be usable before commands that are enqueued on the
    /// stream after this call. The result is an address if the kind says so, else a handle of the device.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when there is none, `UNAVAILABLE` when the device is lost.
    fn allocate(
        &self,
        bytes: u64,
        align: u64,
        memory: MemoryKind,
        stream: Option<&Self::Stream>,
    ) -> Result<NonNull<c_void>, KernelError>;

    /// Frees what `allocate` gave; with a stream, after what is enqueued on it.
    ///
    /// # Safety
    /// `data` came from `allocate` of this device with the same `bytes` and `memory`, is given back once,
    /// and nothing but what is enqueued on `stream` uses it.
    unsafe fn deallocate(
        &self,
        data: NonNull<c_void>,
        bytes: u64,
        memory: MemoryKind,
        stream: Option<&Self::Stream>,
    );

    /// Whether `copy` supports this pair of places; addresses are ignored.
    fn can_copy(&self, source: &Place<'_, Self>, destination: &Place<'_, Self>) -> bool;

    /// Copies `bytes` bytes; with a stream, enqueues the copy. At least one place is on this device.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for a pair that `can_copy` refuses; whatever goes wrong.
    ///
    /// # Safety
    /// Both places are valid for `bytes` bytes, do not overlap, and stay so until the copy is done; until
    /// then, no other code writes the source or uses the destination.
    unsafe fn copy(
        &self,
        source: &Place<'_, Self>,
        destination: &Place<'_, Self>,
        bytes: u64,
        stream: Option<&Self::Stream>,
    ) -> Result<(), KernelError>;
}

/// The owner of the memory at one end of a copy.
pub enum Owner<'a, D> {
    /// The host.
    Host,
    /// A device of this type and this plugin; perhaps the one that is called.
    Device(&'a D),
    /// A device of another type or plugin: a pair with it is refused, and the host stages.
    Foreign,
}

/// One end of a copy.
pub struct Place<'a, D> {
    /// Address, or what `allocate` of the owner returned, plus an offset in bytes where the kind of memory
    /// is addressable. Null when the host only asks whether a copy is possible.
    pub data: *mut c_void,
    /// Kind of the memory.
    pub memory: MemoryKind,
    /// The owner of the memory.
    pub owner: Owner<'a, D>,
}

impl<'a, D: DeviceKind> Place<'a, D> {
    /// Host memory.
    pub fn host(data: *mut c_void) -> Place<'a, D> {
        Place { data, memory: MemoryKind::HOST, owner: Owner::Host }
    }

    /// Memory of a device.
    pub fn on(device: &'a D, data: *mut c_void, memory: MemoryKind) -> Place<'a, D> {
        Place { data, memory, owner: Owner::Device(device) }
    }

    /// Both ends of a request.
    pub(super) unsafe fn pair(raw: &'a CopyRequest) -> (Place<'a, D>, Place<'a, D>) {
        let owner = |device: *mut DeviceState| match device.is_null() {
            true => Owner::Host,
            // SAFETY: the host gives devices that stay open during the call.
            false => unsafe { entries::find::<D>(device) }.map_or(Owner::Foreign, Owner::Device),
        };
        let source = Place {
            data: raw.source.cast_mut(),
            memory: raw.source_memory,
            owner: owner(raw.source_device),
        };
        let destination = Place {
            data: raw.destination,
            memory: raw.destination_memory,
            owner: owner(raw.destination_device),
        };
        (source, destination)
    }
}

impl<D: DeviceMemory> Roles<D> {
    /// The entries for memory.
    pub const MEMORY: DeviceTable = DeviceTable {
        allocate: Some(allocate::<D>),
        deallocate: Some(deallocate::<D>),
        can_copy: Some(can_copy::<D>),
        copy: Some(copy::<D>),
        ..NO_ENTRIES
    };
}

unsafe extern "C" fn allocate<D: DeviceMemory>(
    state: *mut DeviceState,
    bytes: u64,
    align: u64,
    memory: MemoryKind,
    stream: *mut Stream,
    result: *mut *mut c_void,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host gives the state, a stream of the device or null, a place and a sink.
    unsafe {
        let (device, stream) = (device_of::<D>(state), stream_of::<D>(stream));
        match reported("allocate", sink, || device.allocate(bytes, align, memory, stream)) {
            Ok(data) => {
                *result = data.as_ptr();
                Code::OK
            }
            Err(code) => code,
        }
    }
}

unsafe extern "C" fn deallocate<D: DeviceMemory>(
    state: *mut DeviceState,
    data: *mut c_void,
    bytes: u64,
    memory: MemoryKind,
    stream: *mut Stream,
) {
    let Some(data) = NonNull::new(data) else { return };
    // SAFETY: the host gives the state, a stream of the device or null, and back what `allocate` gave. The
    // log has the message of a panic; the memory is lost then.
    let _ = unsafe {
        let (device, stream) = (device_of::<D>(state), stream_of::<D>(stream));
        logged("deallocate", || {
            device.deallocate(data, bytes, memory, stream);
            Ok(())
        })
    };
}

unsafe extern "C" fn can_copy<D: DeviceMemory>(
    state: *mut DeviceState,
    request: *const CopyRequest,
) -> u32 {
    // SAFETY: the host gives the state and a filled request.
    unsafe {
        let device = device_of::<D>(state);
        let (source, destination) = Place::pair(&*request);
        logged("can_copy", || Ok(device.can_copy(&source, &destination))).unwrap_or(false).into()
    }
}

unsafe extern "C" fn copy<D: DeviceMemory>(
    state: *mut DeviceState,
    request: *const CopyRequest,
    stream: *mut Stream,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host gives the state, a filled request whose places are valid until the copy is done, a
    // stream of the device or null, and a sink.
    unsafe {
        let (device, stream) = (device_of::<D>(state), stream_of::<D>(stream));
        let (source, destination) = Place::pair(&*request);
        let bytes = (*request).bytes;
        code(reported("copy", sink, || device.copy(&source, &destination, bytes, stream)))
    }
}
