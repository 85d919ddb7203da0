//! Streams of a step before and behind something that runs on the first of them for all.

use super::StepStreams;
use std::sync::atomic::Ordering;
use tenon_framework::{
    KernelError,
    device::base::{EventId, StreamId},
};

impl StepStreams {
    /// The stream on which it runs.
    pub fn first(&self) -> StreamId {
        self.lanes[0].stream
    }

    /// One event for each stream, made when they are first asked for.
    fn joins(&self) -> Result<&[EventId], KernelError> {
        if let Some(joins) = self.joins.get() {
            return Ok(joins);
        }
        let mut joins = Vec::new();
        for _ in &self.lanes {
            match self.device.create_event() {
                Ok(event) => joins.push(event),
                Err(error) => {
                    destroy(self, &joins);
                    return Err(error);
                }
            }
        }
        // A step has one driver, which alone asks.
        Ok(self.joins.get_or_init(|| joins))
    }

    /// What the first stream does from here on comes behind what all others did.
    pub fn gather(&self) -> Result<(), KernelError> {
        let joins = self.joins()?;
        for (lane, &event) in self.lanes.iter().zip(joins).skip(1) {
            self.device.record_event(event, lane.stream)?;
            self.device.wait_event(self.first(), event)?;
        }
        Ok(())
    }

    /// What all others do from here on comes behind what the first stream did.
    pub fn scatter(&self) -> Result<(), KernelError> {
        let joins = self.joins()?;
        if self.lanes.len() > 1 {
            self.device.record_event(joins[0], self.first())?;
        }
        for lane in self.lanes.iter().skip(1) {
            self.device.wait_event(lane.stream, joins[0])?;
        }
        Ok(())
    }

    /// No stream need be told of this event any more in this step: it comes behind it already.
    pub fn told(&self, event: u32) {
        self.events[event as usize].1.0.store(u32::MAX, Ordering::Release);
    }

    /// As [`StepStreams::told`], of every event.
    pub fn told_all(&self) {
        (0..self.events.len() as u32).for_each(|event| self.told(event));
    }

    pub(super) fn destroy_joins(&mut self) {
        if let Some(joins) = self.joins.take() {
            destroy(self, &joins);
        }
    }
}

fn destroy(streams: &StepStreams, events: &[EventId]) {
    for &event in events {
        // SAFETY: no stream waits for it any more, and its name goes.
        unsafe { streams.device.destroy_event(event) };
    }
}
