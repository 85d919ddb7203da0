//! Device types with memory and streams of their own, each wrong in one way, linked into the test. Handles
//! are no addresses; a command runs when it is enqueued, where nothing else is said.

use std::{
    collections::BTreeMap,
    ffi::c_void,
    ptr::NonNull,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};
use tenon_author::{
    Knobs,
    device::{
        DeviceEvents, DeviceHandle, DeviceInfo, DeviceKind, DeviceMemory, DeviceStreams,
        Notification, Owner, Place,
    },
    register_device,
};
use tenon_framework::{
    Code, KernelError,
    abi::{MemoryInfo, MemoryKind},
};

pub const RIGHT: u8 = 0;
pub const MISALIGNED: u8 = 1;
pub const OVERLAPPING: u8 = 2;
pub const NEVER_FREES: u8 = 3;
pub const LOSES_TAILS: u8 = 6;
pub const COPIES_TOO_MUCH: u8 = 7;
pub const SWAPS: u8 = 8;
pub const IGNORES_EVENTS: u8 = 9;
pub const NOTIFIES_WRONG: u8 = 10;
pub const MIXES_STREAMS: u8 = 11;

register_device!("RIGHT": Wrong<RIGHT>, priority = -1);
register_device!("MISALIGNED": Wrong<MISALIGNED>, priority = -1);
register_device!("OVERLAPPING": Wrong<OVERLAPPING>, priority = -1);
register_device!("NEVER_FREES": Wrong<NEVER_FREES>, priority = -1);
register_device!("LOSES_TAILS": Wrong<LOSES_TAILS>, priority = -1);
register_device!("COPIES_TOO_MUCH": Wrong<COPIES_TOO_MUCH>, priority = -1);
register_device!("SWAPS": Wrong<SWAPS>, priority = -1);
register_device!("IGNORES_EVENTS": Wrong<IGNORES_EVENTS>, priority = -1);
register_device!("NOTIFIES_WRONG": Wrong<NOTIFIES_WRONG>, priority = -1);
register_device!("MIXES_STREAMS": Wrong<MIXES_STREAMS>, priority = -1);

const ALIGNMENT: u64 = 256;
const LIMIT: u64 = 32 << 20;
/// No processor follows an address that begins so.
const TAG: u64 = 0xDE1 << 48;

#[derive(Default)]
struct Table {
    blocks: BTreeMap<u64, Arc<Mutex<Vec<u8>>>>,
    next: u64,
    used: u64,
}

/// A device that is wrong in one way.
pub struct Wrong<const WAY: u8> {
    table: Arc<Mutex<Table>>,
    streams: AtomicU32,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Command = Box<dyn FnOnce() + Send>;

/// A stream: what it has not run yet.
pub struct Lane {
    number: u32,
    waiting: Mutex<Vec<Command>>,
}

impl Lane {
    fn run(&self) {
        let waiting = std::mem::take(&mut *locked(&self.waiting));
        waiting.into_iter().for_each(|command| command());
    }
}

/// One end of a copy.
enum End {
    Host(usize),
    Device(Arc<Mutex<Vec<u8>>>, usize),
}

impl End {
    fn read(&self, bytes: usize) -> Vec<u8> {
        match self {
            // SAFETY: the host keeps the place valid until the copy is done.
            End::Host(at) => unsafe {
                std::slice::from_raw_parts(std::ptr::with_exposed_provenance(*at), bytes).to_vec()
            },
            End::Device(block, at) => locked(block)[*at..*at + bytes].to_vec(),
        }
    }

    fn write(&self, values: &[u8]) {
        match self {
            // SAFETY: as above.
            End::Host(at) => unsafe {
                let to: *mut u8 = std::ptr::with_exposed_provenance_mut(*at);
                std::ptr::copy_nonoverlapping(values.as_ptr(), to, values.len());
            },
            End::Device(block, at) => {
                let mut block = locked(block);
                let end = block.len().min(at + values.len());
                block[*at..end].copy_from_slice(&values[..end - at]);
            }
        }
    }
}

impl<const WAY: u8> Wrong<WAY> {
    fn end(&self, place: &Place<'_, Self>) -> Option<End> {
        let device = match place.owner {
            Owner::Host => return Some(End::Host(place.data.expose_provenance())),
            Owner::Device(device) => device,
            Owner::Foreign => return None,
        };
        let handle = place.data.addr() as u64;
        let table = locked(&device.table);
        let (start, block) = table.blocks.range(..=handle).next_back()?;
        Some(End::Device(Arc::clone(block), (handle - start) as usize))
    }

    fn bytes_of(bytes: usize) -> usize {
        match WAY {
            LOSES_TAILS => bytes / 4 * 4,
            _ => bytes,
        }
    }
}

impl<const WAY: u8> DeviceKind for Wrong<WAY> {
    type Stream = Lane;

    fn probe(_knobs: Knobs<'_>) -> Result<u32, KernelError> {
        Ok(2)
    }

    fn open(_ordinal: u32, _handle: DeviceHandle, _knobs: Knobs<'_>) -> Result<Self, KernelError> {
        let table = Table { next: TAG, ..Table::default() };
        Ok(Wrong { table: Arc::new(Mutex::new(table)), streams: AtomicU32::new(0) })
    }

    fn info(&self) -> DeviceInfo {
        let alignment = ALIGNMENT as u32;
        let memory = MemoryInfo { kind: MemoryKind::DEVICE, alignment, limit: LIMIT };
        DeviceInfo { own_pool: true, ..DeviceInfo::new("for a test", vec![memory]) }
    }
}

impl<const WAY: u8> DeviceMemory for Wrong<WAY> {
    fn allocate(
        &self,
        bytes: u64,
        _align: u64,
        _memory: MemoryKind,
        _stream: Option<&Lane>,
    ) -> Result<NonNull<c_void>, KernelError> {
        let mut table = locked(&self.table);
        if table.used + bytes > LIMIT {
            let message = format!("{bytes} bytes, {} are in use", table.used);
            return Err(KernelError::new(Code::RESOURCE_EXHAUSTED, message));
        }
        let span = bytes.max(1).next_multiple_of(ALIGNMENT);
        let at = table.next + if WAY == MISALIGNED { 8 } else { 0 };
        table.next += span + ALIGNMENT;
        table.used += bytes;
        let twin = table.blocks.values().find(|block| locked(block).len() as u64 == bytes);
        let block = match twin {
            Some(twin) if WAY == OVERLAPPING => Arc::clone(twin),
            _ => Arc::new(Mutex::new(vec![0xee; bytes as usize])),
        };
        table.blocks.insert(at, block);
        NonNull::new(std::ptr::without_provenance_mut(at as usize))
            .ok_or_else(|| KernelError::internal("a handle is null"))
    }

    unsafe fn deallocate(
        &self,
        data: NonNull<c_void>,
        bytes: u64,
        _memory: MemoryKind,
        stream: Option<&Lane>,
    ) {
        let (table, at) = (Arc::clone(&self.table), data.addr().get() as u64);
        let free = move || {
            let mut table = locked(&table);
            table.blocks.remove(&at);
            if WAY != NEVER_FREES {
                table.used -= bytes;
            }
        };
        match stream {
            Some(lane) => locked(&lane.waiting).push(Box::new(free)),
            None => free(),
        }
    }

    fn can_copy(&self, source: &Place<'_, Self>, destination: &Place<'_, Self>) -> bool {
        let is_ours = |place: &Place<'_, Self>| !matches!(place.owner, Owner::Foreign);
        is_ours(source) && is_ours(destination)
    }

    unsafe fn copy(
        &self,
        source: &Place<'_, Self>,
        destination: &Place<'_, Self>,
        bytes: u64,
        stream: Option<&Lane>,
    ) -> Result<(), KernelError> {
        let ends = self.end(source).zip(self.end(destination));
        let (from, to) = ends.ok_or_else(|| KernelError::invalid_argument("no such place"))?;
        let bytes = Self::bytes_of(bytes as usize);
        let command = move || {
            let mut values = from.read(bytes);
            if WAY == COPIES_TOO_MUCH && matches!(to, End::Device(..)) {
                values.push(0);
            }
            to.write(&values);
        };
        let Some(lane) = stream else {
            command();
            return Ok(());
        };
        let is_odd = lane.number % 2 == 1;
        let mut waiting = locked(&lane.waiting);
        waiting.push(Box::new(command));
        match WAY {
            SWAPS if waiting.len() == 2 => waiting.swap(0, 1),
            SWAPS => return Ok(()),
            // Right only if events were heeded.
            IGNORES_EVENTS if is_odd => return Ok(()),
            // Every fourth stream forgets what it was told last.
            MIXES_STREAMS if lane.number % 4 == 3 && waiting.len() == 1 => {
                waiting.pop();
            }
            _ => {}
        }
        drop(waiting);
        lane.run();
        Ok(())
    }
}

impl<const WAY: u8> DeviceStreams for Wrong<WAY> {
    fn create_stream(&self) -> Result<Lane, KernelError> {
        let number = self.streams.fetch_add(1, Ordering::SeqCst);
        Ok(Lane { number, waiting: Mutex::default() })
    }

    fn synchronize_stream(&self, lane: &Lane) -> Result<(), KernelError> {
        lane.run();
        Ok(())
    }

    fn notify(&self, lane: &Lane, done: Notification) {
        lane.run();
        done.run(if WAY == NOTIFIES_WRONG { Code::ABORTED } else { Code::OK });
    }

    fn synchronize(&self) -> Result<(), KernelError> {
        // Commands of a right device have run when they are enqueued. What a wrong one holds back stays held back.
        Ok(())
    }
}

impl<const WAY: u8> DeviceEvents for Wrong<WAY> {
    type Event = ();

    fn create_event(&self) -> Result<(), KernelError> {
        Ok(())
    }

    fn record_event(&self, _event: &(), _lane: &Lane) -> Result<(), KernelError> {
        Ok(())
    }

    fn wait_event(&self, _lane: &Lane, _event: &()) -> Result<(), KernelError> {
        Ok(())
    }

    fn query_event(&self, _event: &()) -> Result<bool, KernelError> {
        Ok(true)
    }
}
