//! Measures when commands run, with the device's own timers.
//!
//! A traced step starts with one timer whose host time is known, because the host waits for it; all
//! others are measured relative to it. Two timers are recorded around a node's work. When the
//! step's streams are done, their times are read and reported, and the timers are destroyed. The
//! error is the drift between the clocks of host and device during one step, and the delay of the
//! first notification to the host: tens of microseconds.

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
    /// The first timer, with its time on the host's clock.
    base: Option<(EventId, u64)>,
    /// The timer before the current work on each stream.
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

    /// Records a timer before a node enqueues.
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

    /// Records a timer after the node's work.
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

    /// Reports the measured times once the streams are done, and destroys the timers. After a
    /// failure there are no times, and nothing is reported.
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
            // SAFETY: no stream waits for the event, and its id is dropped here.
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
        // SAFETY: the event was just created, and its id is not used anywhere else.
        unsafe { device.destroy_event(event) };
    })?;
    Ok(event)
}
