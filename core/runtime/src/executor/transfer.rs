//! `_Send` and `_Recv`: transfers of values between partitions.
//!
//! A value in host memory is sent as it is, even if a device pinned the memory. A value in device
//! memory is copied to host memory on the stream of its device, preferably to pinned memory; if the
//! receiver's device can copy it directly, it is sent as it is. In both cases it is sent once the
//! stream has reached this point. The receiver, if it reads the value in device memory, copies it
//! on its own stream, and records an event if other streams wait. No thread waits: copies are
//! enqueued, and the rest happens in callbacks.

use super::{
    partition::PartitionState,
    propagate::{Propagate, Waiting},
};
use crate::{
    error::StepError,
    plan::{Action, Transfer},
    rendezvous::Parcel,
};
use std::sync::Arc;
use tenon_abi::MemoryKind;
use tenon_framework::{
    Code, KernelError, Tensor,
    device::base::{LocalDevice, Location},
    tensor::Memory,
};
use tenon_host::{
    bools,
    call::{CopySpan, monotonic_ns},
};

/// The location of a tensor: memory of one of these devices, or host memory.
fn location<'d>(
    tensor: &Tensor,
    devices: impl IntoIterator<Item = &'d dyn LocalDevice>,
) -> Location<'d> {
    let (data, owner) = (tensor.buffer().data(), tensor.buffer().memory().device());
    match devices.into_iter().find(|device| device.number() == owner) {
        Some(device) => Location { data, memory: tensor.buffer().kind(), device: Some(device) },
        // Pinned memory of a third device counts as host memory for these.
        None => Location { data, memory: MemoryKind::HOST, device: None },
    }
}

/// Normalises the bools in a finished copy, since a device may write bytes other than 0 and 1.
fn settle(parcel: &Parcel) {
    if let Some(copy) = parcel.tensor.as_ref().filter(|copy| copy.buffer().is_unique()) {
        // SAFETY: the device is done with the copy, and nothing else refers to it.
        unsafe { bools::normalise_tensor(copy) };
    }
}

impl<P: Propagate> PartitionState<P> {
    /// Sends a dead value for a `_Send` with a dead input.
    pub(super) fn send_dead(&self, index: u32, transfer: &Transfer) {
        if let Err(error) = self.post(transfer, Parcel { tensor: None, is_dead: true }) {
            self.fail_node(index, &error);
        }
    }

    /// Sends the input of a `_Send` to the rendezvous.
    pub(super) fn send(&self, index: u32, transfer: &Transfer, ready: &mut Vec<u32>) {
        if let Err(error) = self.try_send(index, transfer) {
            return self.fail_node(index, &error);
        }
        self.propagate(index, ready);
    }

    fn try_send(&self, index: u32, transfer: &Transfer) -> Result<(), KernelError> {
        let Some(&input) = self.node(index).inputs.first() else {
            return self.post(transfer, Parcel { tensor: None, is_dead: false });
        };
        // SAFETY: the node that wrote the input is done, and `input` is an output of the plan.
        let tensor = unsafe { self.slots.fetch(input, &self.shared.cancellation) }?
            .ok_or_else(|| KernelError::internal("a value that is sent has no buffer"))?;
        // Pinned memory of another device, such as a feed, is not written by this device's streams.
        let is_foreign = tensor.buffer().memory().device() != self.plan.device.number();
        if tensor.is_on_host() && is_foreign {
            return self.post(transfer, Parcel { tensor: Some(tensor), is_dead: false });
        }
        let outgoing = self.outgoing(index, transfer, tensor)?;
        let parcel = Parcel { tensor: Some(outgoing), is_dead: false };
        let Some(stream) = self.lanes.stream_of(index) else {
            settle(&parcel);
            return self.post(transfer, parcel);
        };
        P::raise(self);
        let (waiting, key) = (Waiting::new(self), P::key(self, transfer).into_owned());
        let asked = self.plan.device.on_done(stream, move |code| {
            let state = waiting.state();
            if code.is_ok() {
                settle(&parcel);
                if let Err(error) = state.rendezvous.send(&key, parcel) {
                    state.shared.fail(error);
                }
            } else {
                state.fail_node(index, &state.stream_error(code));
            }
            P::lower(state, Vec::new());
        });
        if asked.is_err() {
            P::lower(self, Vec::new());
        }
        asked
    }

    /// The error of work on a stream that did not finish.
    fn stream_error(&self, code: Code) -> KernelError {
        let what = "work on the device's stream failed";
        match self.plan.device.lost() {
            Some(reason) => {
                let name = self.plan.device.name();
                KernelError::new(code, format!("{what}: {name} is lost: {reason}"))
            }
            None => KernelError::new(code, what),
        }
    }

    /// The tensor to send for a value in device memory: the value itself, or a copy in host memory
    /// that is enqueued here.
    fn outgoing(
        &self,
        index: u32,
        transfer: &Transfer,
        tensor: Tensor,
    ) -> Result<Tensor, KernelError> {
        let device: &dyn LocalDevice = &*self.plan.device;
        let source = location(&tensor, [device]);
        if let Some(peer) = transfer.peer.as_deref()
            && transfer.to_device_memory
            && peer.number() != device.number()
        {
            let there = Location {
                data: std::ptr::null_mut(),
                memory: peer.info().ordinary_memory(),
                device: Some(peer),
            };
            if peer.can_copy(source, there) {
                return Ok(tensor);
            }
        }
        let copy = self.host_copy(index, &tensor, source)?;
        let target = location(&copy, [device]);
        let bytes = tensor.byte_len() as u64;
        // SAFETY: both buffers live until the stream is done: the source in `lanes`, the copy
        // in the parcel. No thread uses the copy before.
        unsafe { self.copy(index, source, target, bytes)? };
        self.lanes.keep(tensor);
        Ok(copy)
    }

    /// Copies on the node's stream, and reports it to a trace.
    ///
    /// # Safety
    /// The conditions of [`LocalDevice::copy`], until the stream is done:
    /// - `source` must be valid for reads of `bytes` bytes, and nothing may write it;
    /// - `target` must be valid for writes of `bytes` bytes, and nothing else may use it.
    unsafe fn copy(
        &self,
        index: u32,
        source: Location<'_>,
        target: Location<'_>,
        bytes: u64,
    ) -> Result<(), KernelError> {
        let device: &dyn LocalDevice = &*self.plan.device;
        let trace = self.frame(index).env().trace.as_ref();
        let node = &self.node(index).info.name;
        let began = trace.map(|trace| {
            self.lanes.begins(index);
            trace.enters(node);
            monotonic_ns()
        });
        // SAFETY: the caller guarantees the conditions of `LocalDevice::copy` until the stream is
        // done.
        let copied = unsafe { device.copy(source, target, bytes, self.lanes.stream_of(index)) };
        if let Some((trace, begin_ns)) = trace.zip(began) {
            let (end_ns, leaves) = (monotonic_ns(), target.device.is_none());
            trace.leaves(node);
            if copied.is_ok() {
                self.lanes.ends(index, trace);
                let device = &self.plan.device.name().to_string();
                trace.copy_span(&CopySpan { node, device, leaves, bytes, begin_ns, end_ns });
            }
        }
        copied
    }

    /// Allocates host memory for a copy of a device's value: pinned memory, which the device writes
    /// directly, as long as the device has some.
    fn host_copy(
        &self,
        index: u32,
        tensor: &Tensor,
        source: Location<'_>,
    ) -> Result<Tensor, KernelError> {
        let device: &dyn LocalDevice = &*self.plan.device;
        let allocate =
            |memory: &Arc<dyn Memory>| Tensor::allocate(memory, tensor.dtype(), *tensor.shape());
        let pinned = device.memory(MemoryKind::PINNED).and_then(|pinned| {
            let copy = allocate(&pinned).ok()?;
            device.can_copy(source, location(&copy, [device])).then_some(copy)
        });
        pinned.map_or_else(|| Ok(allocate(&self.node(index).info.host_memory)?), Ok)
    }

    fn post(&self, transfer: &Transfer, parcel: Parcel) -> Result<(), KernelError> {
        self.rendezvous
            .send(&P::key(self, transfer), parcel)
            .map_err(|error| KernelError::new(error.code, error.message.to_string()))
    }

    /// Requests the output of a `_Recv` from the rendezvous.
    pub(super) fn recv(&self, index: u32, transfer: &Transfer) {
        P::raise(self);
        let waiting = Waiting::new(self);
        self.rendezvous.recv(
            &P::key(self, transfer),
            Box::new(move |result| waiting.state().received(index, result)),
        );
    }

    fn received(&self, index: u32, result: Result<Parcel, StepError>) {
        let mut ready = Vec::new();
        match result {
            Err(error) => self.shared.fail(error),
            Ok(parcel) => {
                let is_dead = parcel.is_dead;
                let accepted = self.accept(index, parcel);
                if let (Ok(()), Some(replay)) = (&accepted, &self.replay) {
                    replay.arrived(&mut ready);
                }
                match accepted {
                    Err(error) => self.fail_node(index, &error),
                    Ok(()) if is_dead => P::propagate_dead(self, index, &mut ready),
                    Ok(()) => self.propagate(index, &mut ready),
                }
            }
        }
        P::lower(self, ready);
    }

    /// Stores a received value in the output's slot, in the memory where it is read.
    fn accept(&self, index: u32, parcel: Parcel) -> Result<(), KernelError> {
        let node = self.node(index);
        let Some(spec) = node.info.outputs.first() else { return Ok(()) };
        let Some(tensor) = parcel.tensor else { return Ok(()) };
        let output = node.first_output;
        self.check_received(output, &tensor)?;
        let wanted = &spec.memory;
        let given = tensor.buffer().memory();
        let is_there = (wanted.device(), wanted.kind()) == (given.device(), given.kind())
            || (wanted.kind() == MemoryKind::HOST && tensor.is_on_host());
        let tensor = if is_there {
            tensor
        } else {
            let device: &dyn LocalDevice = &*self.plan.device;
            let copy = self.arrival(output, wanted, &tensor)?;
            let Action::Recv(transfer) = &node.action else { return Ok(()) };
            // A device copies from memory of devices of its own type, and from host memory.
            let is_known = |owner: &&dyn LocalDevice| owner.device_type() == device.device_type();
            let sender = transfer.peer.as_deref();
            let known = [device].into_iter().chain(sender).filter(is_known);
            let source = location(&tensor, known);
            if source.device.is_none() && !tensor.is_on_host() {
                return Err(KernelError::internal(format!(
                    "{} is in a device's memory that {} cannot copy from: the sender has to bring it to \
                     host memory",
                    transfer.key.edge.name(),
                    device.name()
                )));
            }
            let bytes = tensor.byte_len() as u64;
            // SAFETY: `lanes` keeps the source until the stream is done. The copy belongs to
            // this output, and is used only by work that comes after it: on the same stream, or
            // after its event.
            unsafe { self.copy(index, source, location(&copy, [device]), bytes)? };
            self.lanes.keep(tensor);
            copy
        };
        // SAFETY: this thread completes the node, and owns its output.
        let (value, slot) = unsafe { (self.slots.value_mut(output), self.slots.slot_mut(output)) };
        match wanted.kind() {
            MemoryKind::HOST => value.hold_on_host(slot, &tensor),
            _ => value.hold(slot, &tensor),
        }
        Ok(())
    }

    /// Checks that a received value fits the plan, since the kernels rely on its type and shape.
    pub(super) fn check_received(&self, output: u32, tensor: &Tensor) -> Result<(), KernelError> {
        let expected = &self.plan.outputs[output as usize];
        if tensor.dtype() == expected.dtype && expected.shape.accepts(tensor.shape()) {
            return Ok(());
        }
        Err(KernelError::invalid_argument(format!(
            "expected {} {}, received {} {}: both ends of a transfer have to be cut from one graph",
            expected.dtype,
            expected.shape,
            tensor.dtype(),
            tensor.shape()
        )))
    }

    /// Allocates the buffer for a received value; recorded steps reuse the same one.
    fn arrival(
        &self,
        output: u32,
        memory: &Arc<dyn Memory>,
        tensor: &Tensor,
    ) -> Result<Tensor, KernelError> {
        let make = || Ok(Tensor::allocate(memory, tensor.dtype(), *tensor.shape())?);
        match &self.replay {
            None => make(),
            Some(replay) => replay.buffer(output, make, |kept| {
                kept.dtype() == tensor.dtype() && kept.shape() == tensor.shape()
            }),
        }
    }
}
