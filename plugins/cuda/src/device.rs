//! The device type `CUDA`: what a host asks of a GPU.
//!
//! | file | what |
//! |---|---|
//! | `context.rs` | the GPU's context in this process: its health and its properties |
//! | `probe.rs` | counts the GPUs, or says why there are none |
//! | `memory.rs` | the stream-ordered pool of device memory |
//! | `pinned.rs` | pinned host memory |
//! | `copy.rs` | copies: both ways, on the device, between devices |
//! | `peer.rs` | which GPUs access the memory of another one directly |
//! | `stream.rs`, `event.rs` | streams, events |
//! | `spare.rs` | idle streams kept for reuse |
//! | `graph.rs` | commands recorded once and replayed |
//! | `library.rs` | handles of NVIDIA's libraries, one per GPU |
//!
//! # Invariants
//! - The plugin uses the primary context of a GPU, which other libraries in the process share, and
//!   never resets it.
//! - The host's handle of device memory is its address: an address plus an offset is an address.

mod context;
mod copy;
mod event;
mod graph;
mod library;
mod memory;
mod peer;
mod pinned;
mod probe;
mod spare;
mod stream;

pub use context::{Context, Facts};
pub use event::Event;
pub use graph::Graph;
pub use library::{Library, LibraryObject};
pub use memory::{Constant, Constants};
pub use stream::Stream;

use crate::{compile::Modules, settings::Settings};
use copy::End;
use memory::Pool;
use pinned::PinnedPool;
use std::{ffi::c_void, ptr::NonNull, sync::Arc};
use tenon_sdk::{
    Code, KernelError,
    abi::{MemoryInfo, MemoryKind},
    author::Knobs,
    device::author::{
        DeviceCapture, DeviceEvents, DeviceHandle, DeviceInfo, DeviceKind, DeviceMemory,
        DeviceNative, DeviceStreams, DeviceTimers, Notification, Place,
        callbacks::{Callback, CallbackThread},
    },
    register_device,
};

// Preferred to the host's processor: a node with a kernel for CUDA runs here, unless the node says
// otherwise.
register_device!("CUDA": Cuda, priority = 100);

/// Alignment of device memory, on which kernels may rely; the driver's pools give multiples of 512
/// bytes.
pub const ALIGNMENT: u64 = 256;

/// One GPU.
pub struct Cuda {
    // Dropped in this order: the callback thread may be about to call the host.
    _callbacks: CallbackThread,
    modules: Modules,
    pinned: Arc<PinnedPool>,
    pool: Arc<Pool>,
    streams: u32,
    memory_limit: u64,
    context: Arc<Context>,
}

impl Cuda {
    /// Opens GPU `ordinal` with the given settings.
    ///
    /// # Errors
    /// The driver does not work; there is no such GPU; the driver's error.
    pub fn new(
        ordinal: u32,
        settings: &Settings,
        handle: DeviceHandle,
    ) -> Result<Cuda, KernelError> {
        let context = Arc::new(Context::open(ordinal, handle)?);
        let polled = Arc::downgrade(&context);
        let poll = move || {
            if let Some(context) = polled.upgrade() {
                context.look();
            }
        };
        Ok(Cuda {
            _callbacks: CallbackThread::start(
                &format!("cuda-{ordinal}"),
                context.callbacks(),
                poll,
            )?,
            streams: settings.streams,
            memory_limit: settings.memory_limit,
            modules: Modules::new(&context, settings),
            pinned: Arc::new(PinnedPool::new(&context, settings.pinned_limit)),
            pool: Arc::new(Pool::new(&context)?),
            context,
        })
    }

    /// The GPU's context.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The kernels loaded on the device.
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    /// Properties of the GPU that kernels adapt to.
    pub fn facts(&self) -> &Facts {
        self.context.facts()
    }

    /// Allocates blocks of constants for kernels.
    pub fn constants(&self) -> Constants {
        Constants::new(&self.pool)
    }
}

impl DeviceKind for Cuda {
    type Stream = Stream;

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
}

impl DeviceMemory for Cuda {
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
                stream
                    .when_done(Callback::Memory(Box::new(move |_| pinned.keep(data.get(), bytes))));
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
        let bytes = usize::try_from(bytes).map_err(|_| {
            KernelError::invalid_argument("a copy of more bytes than there are addresses")
        })?;
        // SAFETY: the caller guarantees that both places are valid for `bytes` bytes, without
        // overlap, until the copy is done.
        unsafe { copy::copy(&self.context, &self.pinned, from, to, bytes, stream) }
    }
}

impl DeviceStreams for Cuda {
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
        stream.when_done(Callback::Host(Box::new(move |code| done.run(code))));
    }

    fn synchronize(&self) -> Result<(), KernelError> {
        self.context.synchronize()
    }
}

impl DeviceEvents for Cuda {
    type Event = Event;

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
}

impl DeviceNative for Cuda {
    const API: &'static str = "cuda";

    fn native_device(&self) -> *mut c_void {
        self.context.raw().cast()
    }

    fn native_stream(&self, stream: &Stream) -> *mut c_void {
        stream.raw().cast()
    }
}

impl DeviceTimers for Cuda {
    fn create_timer(&self) -> Result<Event, KernelError> {
        Event::timed(&self.context)
    }

    fn elapsed_ns(&self, first: &Event, last: &Event) -> Result<u64, KernelError> {
        last.since(first)
    }
}

impl DeviceCapture for Cuda {
    type Recorded = Graph;

    fn begin_capture(&self, stream: &Stream) -> Result<(), KernelError> {
        graph::begin(stream)
    }

    fn end_capture(&self, stream: &Stream) -> Result<Graph, KernelError> {
        graph::end(stream)
    }

    fn launch_recorded(&self, recorded: &Graph, stream: &Stream) -> Result<(), KernelError> {
        recorded.launch(stream)
    }
}

/// The error of a call that received an object of another device.
fn foreign(what: &str) -> KernelError {
    KernelError::new(
        Code::INVALID_ARGUMENT,
        format!("{what} of another device: expected one of the device that is asked"),
    )
}
