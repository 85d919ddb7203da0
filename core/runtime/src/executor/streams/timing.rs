//! When commands ran, by the device's own timers.
//!
//! A traced step begins with one timer whose time on the host's clock is known, because the host waits for it; all
//! others are measured from that one. Around what a node enqueues two are recorded; when the step's streams are
//! done their times are asked for, reported, and the timers go. The host's clock and the device's may drift apart
//! by what one step lasts, and the first one is late by the way of a notice to the host: tens of microseconds.

use std::sync::Arc;
use tenon_framework::{
    KernelError,
    device::{
        base::{EventId, LocalDevice, StreamId},
        replay::Timers,
    },
    sync::{Mutex, MutexGuard},
};
use tenon_host::call::{TraceSink, monotonic_ns};

struct Span {
    stream: Arc<str>,
    node: String,
    first: EventId,
    last: EventId,
    trace: Arc<dyn TraceSink>,
}

#[derive(Default)]
struct Taken {
    /// The first timer, and when it was on the host's clock.
    base: Option<(EventId, u64)>,
    /// The timer before what each stream runs now.
    open: Vec<(StreamId, EventId)>,
    spans: Vec<Span>,
}

/// The timers of a step.
#[derive(Default)]
pub(super) struct Timing(Mutex<Taken>);

impl Timing {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock()
    }

    /// Before a node enqueues.
    pub fn begin(
        &self,
        device: &dyn LocalDevice,
        timers: &dyn Timers,
        stream: StreamId,
    ) -> Result<(), KernelError> {
        let mut taken = self.taken();
        if taken.base.is_none() {
            let base = recorded(device, timers, stream)?;
            let waited = device.synchronize_stream(stream);
            taken.base = Some((base, monotonic_ns()));
            waited?;
        }
        let event = recorded(device, timers, stream)?;
        taken.open.push((stream, event));
        Ok(())
    }

    /// Behind what it enqueued.
    pub fn end(
        &self,
        device: &dyn LocalDevice,
        timers: &dyn Timers,
        stream: StreamId,
        (name, node): (&Arc<str>, String),
        trace: &Arc<dyn TraceSink>,
    ) -> Result<(), KernelError> {
        let mut taken = self.taken();
        let Some(at) = taken.open.iter().rposition(|(open, _)| *open == stream) else {
            return Ok(());
        };
        let last = recorded(device, timers, stream)?;
        let (_, first) = taken.open.swap_remove(at);
        let (stream, trace) = (Arc::clone(name), Arc::clone(trace));
        taken.spans.push(Span { stream, node, first, last, trace });
        Ok(())
    }

    /// When the streams are done: reports what was measured, and gives the timers back. After a failure the times
    /// are not there, and nothing is reported.
    pub fn report(&self, device: &dyn LocalDevice) {
        let taken = std::mem::take(&mut *self.taken());
        let Some((base, began)) = taken.base else { return };
        if let Some(timers) = device.timers() {
            for span in &taken.spans {
                let since = |event| timers.elapsed_ns(base, event);
                if let (Ok(first), Ok(last)) = (since(span.first), since(span.last)) {
                    span.trace.stream_span(&span.stream, &span.node, began + first, began + last);
                }
            }
        }
        let spans = taken.spans.iter().flat_map(|span| [span.first, span.last]);
        let all = spans.chain(taken.open.iter().map(|(_, event)| *event)).chain([base]);
        for event in all {
            // SAFETY: no stream waits for it, and its name goes.
            unsafe { device.destroy_event(event) };
        }
    }
}

fn recorded(
    device: &dyn LocalDevice,
    timers: &dyn Timers,
    stream: StreamId,
) -> Result<EventId, KernelError> {
    let event = timers.create_timer()?;
    device.record_event(event, stream).inspect_err(|_| {
        // SAFETY: nobody knows of it.
        unsafe { device.destroy_event(event) };
    })?;
    Ok(event)
}
