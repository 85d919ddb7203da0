//! Orders all streams of a step before and after work on the first stream.

use super::StepStreams;
use std::sync::atomic::Ordering;
use tenon_framework::{
    KernelError,
    device::base::{EventId, StreamId},
};

impl StepStreams {
    /// The first stream.
    pub fn first(&self) -> StreamId {
        self.lanes[0].stream
    }

    /// One event per stream, created at the first use.
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
        if let Err(late) = self.joins.set(joins) {
            // Another call of the step made them first.
            destroy(self, &late);
        }
        self.joins()
    }

    /// Orders later work on the first stream after all work so far on the others.
    pub fn gather(&self) -> Result<(), KernelError> {
        if self.lanes.len() < 2 {
            // A device without events has one stream.
            return Ok(());
        }
        let joins = self.joins()?;
        for (lane, &event) in self.lanes.iter().zip(joins).skip(1) {
            self.device.record_event(event, lane.stream)?;
            self.device.wait_event(self.first(), event)?;
        }
        Ok(())
    }

    /// Orders later work on the other streams after all work so far on the first.
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

    /// Marks an event as told to all streams, since they are already ordered after it.
    pub fn told(&self, event: u32) {
        self.events[event as usize].1.0.store(u32::MAX, Ordering::Release);
    }

    /// Like [`StepStreams::told`], for every event.
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
        // SAFETY: no stream waits for the event any more, and its id is dropped here.
        unsafe { streams.device.destroy_event(event) };
    }
}
