//! Streams, events and blocks of a device that are given back whatever happens.
//!
//! # Invariants
//! - A [`Lane`] holds every block that a command on it uses until it is idle.
//! - A lane outlives its events: those that were made for it are destroyed after it is idle.

use super::{Stop, expect};
use std::{cell::RefCell, sync::Arc};
use tenon_framework::{
    DType, KernelError, Shape, Tensor,
    abi::MemoryKind,
    device::base::{EventId, LocalDevice, Location, StreamId},
    tensor::Memory,
};
use tenon_runtime::host::{
    devices::{PluginDevice, copy_now, location},
    memory::{HostMemory, copy_on_host},
};

/// Bytes somewhere.
#[derive(Clone)]
pub(super) struct Block {
    pub tensor: Tensor,
    device: Option<Arc<PluginDevice>>,
    /// It is given back in the order of the one lane that uses it.
    is_ordered: bool,
}

fn shape_of(bytes: usize) -> Result<Shape, Stop> {
    expect("a shape", Shape::new(&[bytes as i64]))
}

fn host_memory() -> Arc<dyn Memory> {
    HostMemory::shared().clone()
}

impl Block {
    /// Fresh host memory with these bytes.
    pub fn host(bytes: &[u8]) -> Result<Block, Stop> {
        let dims = [bytes.len() as i64];
        let tensor = expect("host memory", Tensor::from_bytes(DType::UINT8, &dims, bytes))?;
        let tensor = expect("host memory", copy_on_host(&tensor, &host_memory()))?;
        Ok(Block { tensor, device: None, is_ordered: false })
    }

    /// Fresh memory of a device.
    pub fn device(
        device: &Arc<PluginDevice>,
        kind: MemoryKind,
        bytes: usize,
    ) -> Result<Block, Stop> {
        let memory = device.memory(kind).ok_or_else(|| {
            Stop::Wrong(format!("it declares memory of kind {} and has none", kind.0))
        })?;
        let shape = shape_of(bytes)?;
        let made = Tensor::allocate(&memory, DType::UINT8, shape);
        let tensor = expect(&format!("allocating {bytes} bytes"), made)?;
        Ok(Block { tensor, device: Some(Arc::clone(device)), is_ordered: false })
    }

    /// The place of byte `offset`.
    fn place(&self, offset: usize) -> Location<'_> {
        let device = self.device.as_ref().map(|device| &**device as &dyn LocalDevice);
        let start = location(self.tensor.buffer(), device);
        Location { data: start.data.wrapping_byte_add(offset), ..start }
    }

    pub fn bytes(&self) -> usize {
        self.tensor.byte_len()
    }

    /// The bytes of host memory, once nothing enqueued writes them.
    pub fn read(&self) -> Result<Vec<u8>, Stop> {
        expect("reading host memory", self.tensor.as_bytes().map(<[u8]>::to_vec))
    }

    /// Whether the device at one of the ends takes a copy from one to the other.
    pub fn can_copy_to(&self, to: &Block) -> bool {
        let (from_place, to_place) = (self.place(0), to.place(0));
        [&self.device, &to.device]
            .into_iter()
            .flatten()
            .any(|device| device.can_copy(from_place, to_place))
    }
}

/// Part of a copy: a block, and the byte at which it begins.
pub(super) type End<'a> = (&'a Block, usize);

/// Whether `bytes` from there on are in the block.
fn is_inside((block, offset): End<'_>, bytes: usize) -> Result<(), KernelError> {
    match offset.checked_add(bytes).is_some_and(|end| end <= block.bytes()) {
        true => Ok(()),
        false => Err(KernelError::internal("a copy beyond a block")),
    }
}

/// Copies and waits, as the host does without a stream.
pub(super) fn copy(from: End<'_>, to: End<'_>, bytes: usize) -> Result<(), KernelError> {
    is_inside(from, bytes)?;
    is_inside(to, bytes)?;
    // SAFETY: both ends are in blocks that are held, of which callers use different ones, and nothing else
    // uses them meanwhile.
    unsafe { copy_now(from.0.place(from.1), to.0.place(to.1), bytes as u64) }
}

/// A stream of its own.
pub(super) struct Lane {
    device: Arc<PluginDevice>,
    stream: StreamId,
    held: RefCell<Vec<Tensor>>,
}

impl Lane {
    pub fn new(device: &Arc<PluginDevice>) -> Result<Lane, KernelError> {
        let stream = device.create_stream()?;
        Ok(Lane { device: Arc::clone(device), stream, held: RefCell::default() })
    }

    /// Enqueues a copy. Nobody reads the destination or writes the source before the lane is idle, but for
    /// what is ordered by the lane and by events.
    pub fn copy(&self, from: End<'_>, to: End<'_>, bytes: usize) -> Result<(), KernelError> {
        is_inside(from, bytes)?;
        is_inside(to, bytes)?;
        let held = [from.0, to.0].into_iter().filter(|block| !block.is_ordered);
        self.held.borrow_mut().extend(held.map(|block| block.tensor.clone()));
        let (from, to) = (from.0.place(from.1), to.0.place(to.1));
        // SAFETY: both ends are in blocks that the lane holds until it is idle, or that are given back in its
        // order; callers use different ones, and what else uses them is ordered by events.
        unsafe { self.device.copy(from, to, bytes as u64, Some(self.stream)) }
    }

    pub fn record(&self, event: &Event) -> Result<(), KernelError> {
        self.device.record_event(event.id, self.stream)
    }

    pub fn wait(&self, event: &Event) -> Result<(), KernelError> {
        self.device.wait_event(self.stream, event.id)
    }

    pub fn synchronize(&self) -> Result<(), KernelError> {
        self.device.synchronize_stream(self.stream)
    }

    /// Has `done` run once all that was enqueued is done.
    pub fn on_done(
        &self,
        done: impl FnOnce(tenon_framework::Code) + Send + 'static,
    ) -> Result<(), KernelError> {
        let device: &dyn LocalDevice = &*self.device;
        device.on_done(self.stream, done)
    }

    /// Memory in the order of the lane, which alone uses it; `None` where the device has none.
    pub fn block(&self, kind: MemoryKind, bytes: usize) -> Result<Option<Block>, Stop> {
        let Some(memory) = self.device.stream_memory(kind, self.stream) else { return Ok(None) };
        let made = Tensor::allocate(&memory, DType::UINT8, shape_of(bytes)?);
        let tensor = expect("allocating on a stream", made)?;
        Ok(Some(Block { tensor, device: Some(Arc::clone(&self.device)), is_ordered: true }))
    }

    /// Forgets what its commands use, once it is idle.
    pub fn release(&self) {
        self.held.borrow_mut().clear();
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // Whatever it says: afterwards nothing uses what the lane holds.
        let _ = self.synchronize();
        // SAFETY: idle, and no copy of the name is used any more.
        unsafe { self.device.destroy_stream(self.stream) }
    }
}

/// A separate event. It is dropped after the lanes that wait for it.
pub(super) struct Event {
    device: Arc<PluginDevice>,
    id: EventId,
}

impl Event {
    pub fn new(device: &Arc<PluginDevice>) -> Result<Event, KernelError> {
        Ok(Event { device: Arc::clone(device), id: device.create_event()? })
    }

    pub fn query(&self) -> Result<bool, KernelError> {
        self.device.query_event(self.id)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: who made it has let the lanes run that wait for it, and uses no copy of the name.
        unsafe { self.device.destroy_event(self.id) }
    }
}

/// Bytes that differ from place to place and from one number to the next.
pub(super) fn pattern(bytes: usize, number: u64) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut values = Vec::with_capacity(bytes + 8);
    while values.len() < bytes {
        // Marsaglia, "Xorshift RNGs", 2003: the triple (13, 7, 17).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        values.extend(state.to_le_bytes());
    }
    values.truncate(bytes);
    values
}

/// How bytes differ from what is expected, if they do.
pub(super) fn compare(what: &str, expected: &[u8], found: &[u8]) -> Result<(), Stop> {
    if expected == found {
        return Ok(());
    }
    let Some(at) = expected.iter().zip(found).position(|(a, b)| a != b) else {
        let (expected, found) = (expected.len(), found.len());
        return Err(Stop::Wrong(format!("{what}: expected {expected} bytes, found {found}")));
    };
    let wrong = expected.iter().zip(found).filter(|(a, b)| a != b).count();
    Err(Stop::Wrong(format!(
        "{what}: {wrong} of {} bytes are wrong, the first is byte {at}: expected 0x{:02x}, found 0x{:02x}",
        expected.len(),
        expected[at],
        found[at]
    )))
}
