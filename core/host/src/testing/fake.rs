//! Device types for tests.
//!
//! `FAKE` has memory that the host cannot address (its blocks are identified by numbers) and
//! streams that do nothing until they are synchronised, so that a missing wait yields wrong
//! results. It copies from and to the host and within one device, not from one device to another.
//! `LOOSE` computes in host memory.

use std::{
    collections::HashMap,
    ffi::c_void,
    ptr::NonNull,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};
use tenon_abi::{Code, MemoryInfo, MemoryKind};
use tenon_author::{
    Knobs,
    device::{
        DeviceHandle, DeviceInfo, DeviceKind, DeviceMemory, DeviceStreams, NoStreams, Notification,
        Owner, Place,
    },
    register_device,
};
use tenon_framework::KernelError;

/// Name of the type with memory and streams.
pub(crate) const FAKE: &str = "FAKE";
/// Name of the type without memory and streams.
pub(crate) const LOOSE: &str = "LOOSE";
/// Bytes of memory of a fake device.
pub(crate) const FAKE_LIMIT: u64 = 1 << 20;

/// The operations of a device.
#[derive(Default)]
pub(crate) struct FakeLog {
    pub copies: AtomicUsize,
    pub allocations: AtomicUsize,
    pub deallocations: AtomicUsize,
    pub synchronised: AtomicUsize,
}

type Blocks = Arc<Mutex<HashMap<usize, Vec<u8>>>>;

pub(crate) struct Fake {
    ordinal: u32,
    handle: DeviceHandle,
    blocks: Blocks,
    /// The queues of streams that exist, for `synchronize`.
    queues: Mutex<Vec<Weak<Queue>>>,
    pub log: FakeLog,
}

type Command = Box<dyn FnOnce() + Send>;

type Queue = Mutex<Vec<Command>>;

#[derive(Default)]
pub(crate) struct FakeStream {
    queue: Arc<Queue>,
}

impl FakeStream {
    pub fn enqueue(&self, command: impl FnOnce() + Send + 'static) {
        self.queue.lock().unwrap().push(Box::new(command));
    }

    fn run(&self) {
        run(&self.queue);
    }
}

fn run(queue: &Queue) {
    let commands = std::mem::take(&mut *queue.lock().unwrap());
    commands.into_iter().for_each(|command| command());
}

/// An address of the host, or the number of a block.
#[derive(Clone, Copy)]
struct End {
    data: usize,
    on_device: bool,
}

fn end(place: &Place<'_, Fake>) -> End {
    End { data: place.data as usize, on_device: matches!(place.owner, Owner::Device(_)) }
}

fn copy_bytes(blocks: &Blocks, from: End, to: End, bytes: usize) {
    let mut blocks = blocks.lock().unwrap();
    let source = match from.on_device {
        true => blocks[&from.data][..bytes].to_vec(),
        // SAFETY: the host guarantees `bytes` readable bytes until the copy is done.
        false => unsafe { std::slice::from_raw_parts(from.data as *const u8, bytes) }.to_vec(),
    };
    match to.on_device {
        true => blocks.get_mut(&to.data).unwrap()[..bytes].copy_from_slice(&source),
        // SAFETY: the host guarantees `bytes` writable bytes until the copy is done.
        false => unsafe {
            std::ptr::copy_nonoverlapping(source.as_ptr(), to.data as *mut u8, bytes)
        },
    }
}

impl Fake {
    /// Doubles every float of a block, when the stream runs.
    pub fn enqueue_doubling(
        &self,
        from: *mut c_void,
        to: *mut c_void,
        bytes: usize,
        s: &FakeStream,
    ) {
        let (blocks, from, to) = (Arc::clone(&self.blocks), from as usize, to as usize);
        s.enqueue(move || {
            let mut blocks = blocks.lock().unwrap();
            let source = blocks[&from][..bytes].to_vec();
            let target = blocks.get_mut(&to).unwrap();
            for (from, to) in source.chunks_exact(4).zip(target.chunks_exact_mut(4)) {
                let value = f32::from_ne_bytes(from.try_into().unwrap());
                to.copy_from_slice(&(value * 2.0).to_ne_bytes());
            }
        });
    }

    /// Reports the device as lost.
    pub fn lose(&self, reason: &str) {
        self.handle.lost(reason);
    }
}

impl DeviceKind for Fake {
    type Stream = FakeStream;

    fn probe(_knobs: Knobs<'_>) -> Result<u32, KernelError> {
        Ok(2)
    }

    fn open(ordinal: u32, handle: DeviceHandle, _knobs: Knobs<'_>) -> Result<Fake, KernelError> {
        Ok(Fake {
            ordinal,
            handle,
            blocks: Blocks::default(),
            queues: Mutex::default(),
            log: FakeLog::default(),
        })
    }

    fn info(&self) -> DeviceInfo {
        let memory = MemoryInfo { kind: MemoryKind::DEVICE, alignment: 256, limit: FAKE_LIMIT };
        DeviceInfo::new(format!("fake {}", self.ordinal), vec![memory])
    }
}

impl DeviceMemory for Fake {
    fn allocate(
        &self,
        bytes: u64,
        _align: u64,
        _memory: MemoryKind,
        _stream: Option<&FakeStream>,
    ) -> Result<NonNull<c_void>, KernelError> {
        // Numbers of blocks are unique in the process, so that confusing devices is detected.
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let mut blocks = self.blocks.lock().unwrap();
        let used: usize = blocks.values().map(Vec::len).sum();
        if (used as u64).saturating_add(bytes) > FAKE_LIMIT {
            let message = format!("{used} of {FAKE_LIMIT} bytes are taken");
            return Err(KernelError::new(Code::RESOURCE_EXHAUSTED, message));
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        blocks.insert(number, vec![0xee; bytes as usize]);
        self.log.allocations.fetch_add(1, Ordering::Relaxed);
        Ok(NonNull::new(number as *mut c_void).unwrap())
    }

    unsafe fn deallocate(
        &self,
        data: NonNull<c_void>,
        bytes: u64,
        _memory: MemoryKind,
        _stream: Option<&FakeStream>,
    ) {
        let block = self.blocks.lock().unwrap().remove(&(data.as_ptr() as usize));
        assert_eq!(block.map(|block| block.len() as u64), Some(bytes));
        self.log.deallocations.fetch_add(1, Ordering::Relaxed);
    }

    fn can_copy(&self, from: &Place<'_, Fake>, to: &Place<'_, Fake>) -> bool {
        match (&from.owner, &to.owner) {
            (Owner::Host, Owner::Device(_)) | (Owner::Device(_), Owner::Host) => true,
            (Owner::Device(a), Owner::Device(b)) => std::ptr::eq(*a, *b),
            _ => false,
        }
    }

    unsafe fn copy(
        &self,
        from: &Place<'_, Fake>,
        to: &Place<'_, Fake>,
        bytes: u64,
        stream: Option<&FakeStream>,
    ) -> Result<(), KernelError> {
        assert!(self.can_copy(from, to), "the host asks before it copies");
        self.log.copies.fetch_add(1, Ordering::Relaxed);
        let (blocks, from, to) = (Arc::clone(&self.blocks), end(from), end(to));
        match stream {
            Some(stream) => stream.enqueue(move || copy_bytes(&blocks, from, to, bytes as usize)),
            None => copy_bytes(&blocks, from, to, bytes as usize),
        }
        Ok(())
    }
}

impl DeviceStreams for Fake {
    fn create_stream(&self) -> Result<FakeStream, KernelError> {
        let stream = FakeStream::default();
        self.queues.lock().unwrap().push(Arc::downgrade(&stream.queue));
        Ok(stream)
    }

    fn destroy_stream(&self, stream: FakeStream) {
        assert!(stream.queue.lock().unwrap().is_empty(), "a stream is idle when it goes");
    }

    fn synchronize_stream(&self, stream: &FakeStream) -> Result<(), KernelError> {
        self.log.synchronised.fetch_add(1, Ordering::Relaxed);
        stream.run();
        Ok(())
    }

    fn notify(&self, stream: &FakeStream, done: Notification) {
        stream.run();
        done.run(Code::OK);
    }

    fn synchronize(&self) -> Result<(), KernelError> {
        let queues: Vec<_> = self.queues.lock().unwrap().iter().filter_map(Weak::upgrade).collect();
        queues.iter().for_each(|queue| run(queue));
        Ok(())
    }
}

pub(crate) struct Loose;

impl DeviceKind for Loose {
    type Stream = NoStreams;

    fn probe(_knobs: Knobs<'_>) -> Result<u32, KernelError> {
        Ok(1)
    }

    fn open(_ordinal: u32, _handle: DeviceHandle, _knobs: Knobs<'_>) -> Result<Loose, KernelError> {
        Ok(Loose)
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo::host("loose")
    }
}

/// A device type without devices.
pub(crate) struct Nowhere;

impl DeviceKind for Nowhere {
    type Stream = NoStreams;

    fn probe(_knobs: Knobs<'_>) -> Result<u32, KernelError> {
        Err(KernelError::new(Code::NOT_FOUND, "no driver on this machine"))
    }

    fn open(
        _ordinal: u32,
        _handle: DeviceHandle,
        _knobs: Knobs<'_>,
    ) -> Result<Nowhere, KernelError> {
        Err(KernelError::internal("opened what is not there"))
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo::host("nowhere")
    }
}

register_device!("FAKE": Fake);
register_device!("LOOSE": Loose);
register_device!("NOWHERE": Nowhere);
