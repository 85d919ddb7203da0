//! The device type: what the host asks of a GPU.
//!
//! | file | what |
//! |---|---|
//! | `context.rs` | the GPU's context in this process, its health, its facts |
//! | `probe.rs` | how many GPUs there are, or why none |
//! | `memory.rs` | the stream-ordered pool of device memory |
//! | `pinned.rs` | pinned host memory |
//! | `copy.rs` | copies: both ways, on the device, between devices |
//! | `peer.rs` | which GPUs reach the memory of another one directly |
//! | `stream.rs`, `event.rs` | streams, events |
//! | `spare.rs` | streams without an owner |
//! | `graph.rs` | commands recorded once and run again |
//! | `library.rs` | handles of NVIDIA's libraries, one for each GPU |
//! | `notify.rs` | calls that the device owes the host |
//!
//! # Invariants
//! - The primary context of a GPU is used, as other libraries in the process use it, and never reset.
//! - An address on the device is what the host keeps as a handle: addresses plus offsets are addresses.

mod context;
mod copy;
mod event;
mod graph;
mod library;
mod memory;
mod notify;
mod peer;
mod pinned;
mod probe;
mod spare;
mod stream;

pub use context::{Context, Facts};
pub use event::Event;
pub use library::{Library, LibraryObject};
pub use memory::{Constant, Constants};
pub use stream::Stream;

use crate::{compile::Modules, settings::Settings};
use copy::End;
use memory::Pool;
use notify::{Clerk, Errand};
use pinned::PinnedPool;
use std::{ffi::c_void, ptr::NonNull, sync::Arc};
use tenon_sdk::{
    Code, KernelError,
    abi::{MemoryInfo, MemoryKind},
    author::Knobs,
    device::author::{DeviceHandle, DeviceInfo, DeviceKind, Notification, Place, Recorded},
    register_device,
};

// Above the host's processor: what has a kernel here runs here, unless the node says otherwise.
register_device!("CUDA": Cuda, priority = 100);

/// Alignment of device memory: the driver's pools give multiples of 512 bytes; a kernel may count on this.
pub const ALIGNMENT: u64 = 256;

/// One GPU.
pub struct Cuda {
    // Dropped in this order: the thread may be about to tell the host something.
    _clerk: Clerk,
    modules: Modules,
    pinned: Arc<PinnedPool>,
    pool: Arc<Pool>,
    streams: u32,
    memory_limit: u64,
    context: Arc<Context>,
}

impl Cuda {
    /// Opens GPU `ordinal` with these settings.
    ///
    /// # Errors
    /// No driver that works, no such GPU; what the driver says.
    pub fn new(
        ordinal: u32,
        settings: &Settings,
        handle: DeviceHandle,
    ) -> Result<Cuda, KernelError> {
        let context = Arc::new(Context::open(ordinal, handle)?);
        Ok(Cuda {
            _clerk: Clerk::start(&context)?,
            streams: settings.streams,
            memory_limit: settings.memory_limit,
            modules: Modules::new(&context, settings),
            pinned: Arc::new(PinnedPool::new(&context, settings.pinned_limit)),
            pool: Arc::new(Pool::new(&context)?),
            context,
        })
    }

    /// Its context.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Its loaded kernels.
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    /// What a kernel adapts to.
    pub fn facts(&self) -> &Facts {
        self.context.facts()
    }

    /// Where a kernel keeps constants.
    pub fn constants(&self) -> Constants {
        Constants::new(&self.pool)
    }
}

impl DeviceKind for Cuda {
    type Stream = Stream;
    type Event = Event;
    const HAS_MEMORY: bool = true;
    const HAS_STREAMS: bool = true;

    fn probe(knobs: Knobs<'_>) -> Result<u32, KernelError> {
        probe::count(knobs)
    }

    fn open(ordinal: u32, handle: DeviceHandle, knobs: Knobs<'_>) -> Result<Cuda, KernelError> {
        Cuda::new(ordinal, &Settings::from_knobs(knobs)?, handle)
    }

    fn info(&self) -> DeviceInfo {
        let facts = self.facts();
        let limit = match self.memory_limit {
            0 => facts.memory,
            limit => limit.min(facts.memory),
        };
        let kind =
            |kind, alignment: u64, limit| MemoryInfo { kind, alignment: alignment as u32, limit };
        let memories = vec![
            kind(MemoryKind::DEVICE, ALIGNMENT, limit),
            kind(MemoryKind::PINNED, pinned::ALIGNMENT, self.pinned.limit()),
        ];
        DeviceInfo {
            own_pool: true,
            stream_count: self.streams,
            numa_node: facts.numa_node,
            bus_id: facts.bus_id,
            ..DeviceInfo::new(facts.to_string(), memories)
        }
    }

    fn allocate(
        &self,
        bytes: u64,
        align: u64,
        memory: MemoryKind,
        stream: Option<&Stream>,
    ) -> Result<NonNull<c_void>, KernelError> {
        match memory {
            MemoryKind::DEVICE => self.pool.allocate(bytes, align, stream),
            MemoryKind::PINNED => self.pinned.allocate(bytes, align),
            MemoryKind(kind) => Err(KernelError::invalid_argument(format!(
                "CUDA has memory of kinds {} and {}, asked for kind {kind}",
                MemoryKind::DEVICE.0,
                MemoryKind::PINNED.0
            ))),
        }
    }

    unsafe fn deallocate(
        &self,
        data: NonNull<c_void>,
        bytes: u64,
        memory: MemoryKind,
        stream: Option<&Stream>,
    ) {
        match (memory, stream) {
            (MemoryKind::PINNED, None) => self.pinned.give_back(data, bytes),
            (MemoryKind::PINNED, Some(stream)) => {
                let (pinned, data) = (Arc::clone(&self.pinned), pinned::Address(data));
                stream.when_done(Errand::Memory(Box::new(move |_| pinned.keep(data.get(), bytes))));
            }
            _ => self.pool.deallocate(data, stream),
        }
    }

    fn can_copy(&self, source: &Place<'_, Cuda>, destination: &Place<'_, Cuda>) -> bool {
        matches!((End::of(source), End::of(destination)), (Some(from), Some(to)) if from.can_reach(&to))
    }

    unsafe fn copy(
        &self,
        source: &Place<'_, Cuda>,
        destination: &Place<'_, Cuda>,
        bytes: u64,
        stream: Option<&Stream>,
    ) -> Result<(), KernelError> {
        let (from, to) = match (End::of(source), End::of(destination)) {
            (Some(from), Some(to)) if from.can_reach(&to) => (from, to),
            _ => {
                return Err(KernelError::unimplemented(
                    "CUDA copies between GPUs, and between them and the host's memory",
                ));
            }
        };
        let bytes = usize::try_from(bytes)
            .map_err(|_| KernelError::invalid_argument("a copy of more than there is memory"))?;
        // SAFETY: the caller knows that both places are valid for `bytes` bytes, without overlap, until the copy is
        // done.
        unsafe { copy::copy(&self.context, &self.pinned, from, to, bytes, stream) }
    }

    fn create_stream(&self) -> Result<Stream, KernelError> {
        Stream::new(&self.context)
    }

    fn synchronize_stream(&self, stream: &Stream) -> Result<(), KernelError> {
        stream.synchronize()
    }

    fn notify(&self, stream: &Stream, done: Notification) {
        if let Err(error) = stream.refuse_recording("a notification") {
            return done.run(error.code);
        }
        stream.when_done(Errand::Host(Box::new(move |code| done.run(code))));
    }

    fn create_event(&self) -> Result<Event, KernelError> {
        Event::new(&self.context)
    }

    fn record_event(&self, event: &Event, stream: &Stream) -> Result<(), KernelError> {
        event.record(stream)
    }

    fn wait_event(&self, stream: &Stream, event: &Event) -> Result<(), KernelError> {
        stream.wait(event)
    }

    fn query_event(&self, event: &Event) -> Result<bool, KernelError> {
        event.query()
    }

    fn synchronize(&self) -> Result<(), KernelError> {
        self.context.synchronize()
    }

    const NATIVE_API: &'static str = "cuda";

    fn native_device(&self) -> *mut c_void {
        self.context.raw().cast()
    }

    fn native_stream(&self, stream: &Stream) -> *mut c_void {
        stream.raw().cast()
    }

    const HAS_TIMERS: bool = true;

    fn create_timer(&self) -> Result<Event, KernelError> {
        Event::timed(&self.context)
    }

    fn elapsed_ns(&self, first: &Event, last: &Event) -> Result<u64, KernelError> {
        last.since(first)
    }

    const HAS_CAPTURE: bool = true;

    fn begin_capture(&self, stream: &Stream) -> Result<(), KernelError> {
        graph::begin(stream)
    }

    fn end_capture(&self, stream: &Stream) -> Result<Recorded, KernelError> {
        graph::end(stream).map(|graph| Box::new(graph) as Recorded)
    }

    fn launch_recorded(&self, recorded: &Recorded, stream: &Stream) -> Result<(), KernelError> {
        match recorded.downcast_ref::<graph::Graph>() {
            Some(graph) => graph.launch(stream),
            None => Err(KernelError::internal("a graph that CUDA did not record")),
        }
    }
}

/// The error of a call that needs what another device has.
fn foreign(what: &str) -> KernelError {
    KernelError::new(
        Code::INVALID_ARGUMENT,
        format!("{what} of another device: expected one of the device that is asked"),
    )
}
