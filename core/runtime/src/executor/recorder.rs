//! Repeated steps are recorded once on their device and then replayed with one call.
//!
//! If a partition can be recorded ([`Role`]), its step has phases. It *gathers*: it holds all nodes
//! back until every received value has arrived. Then it is *open* and runs as usual, or it
//! *records*: commands go into a graph of the device, which is then launched. Or it *skips*: it
//! launches the recorded graph, marks its commands as done, and runs the remaining nodes as usual.
//!
//! | phase | commands | sends |
//! |---|---|---|
//! | gather | held | held |
//! | record | recorded | held until the graph is launched |
//! | skip | marked as done | run |
//! | open | run | run |
//!
//! A graph is launched only while every buffer is unchanged: received values arrive in fixed
//! buffers, planned outputs keep theirs, others are held with the graph. If a buffer has moved, the
//! step runs as usual and a later one records again, a few times at most. If the device refuses to
//! record or launch, the step runs its commands again as usual, and recording stops for good. It
//! also stops if a large copy to the device would delay independent commands. Traced steps are not
//! replayed, since they show each command.
//!
//! The driver of the step owns the phase; threads that deliver a value count `arrived`.

use super::{dispatch::Thread, partition::PartitionState, propagate::Propagate};
use crate::{
    error::StepError,
    plan::{Plan, Role},
};
use std::sync::Arc;
use tenon_abi::MemoryKind;
use tenon_framework::{
    KernelError, Tensor,
    device::{base::LocalDevice, replay::GraphId},
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU32, Ordering},
    },
};
use tenon_host::call::Value;

/// The maximum number of useless recordings before a partition is no longer recorded.
const MAX_FAILURES: u32 = 3;

/// Bytes that are copied, at 50 GB/s, in the 2 us that a replay saves per command on an H200
/// (benches/records/2026-11-26-cuda-nvidia-h200-rest.jsonl).
const SAVED_BYTES: u64 = 100_000;

const OPEN: u32 = 0;
const GATHER: u32 = 1;
const RECORD: u32 = 2;
const SKIP: u32 = 3;

/// The recording state of a partition.
pub(super) struct Recorder {
    device: Arc<dyn LocalDevice>,
    roles: Box<[Role]>,
    /// The number of ordinary steps before one is recorded.
    after: u32,
    recvs: u32,
    commands: u32,
    phase: AtomicU32,
    arrived: AtomicU32,
    own: Mutex<Own>,
}

#[derive(Default)]
struct Own {
    steps: u32,
    failures: u32,
    held: Vec<u32>,
    /// The sends that wait for the graph.
    sends: Vec<u32>,
    /// The nodes that ran while the step was recorded, in order.
    order: Vec<u32>,
    /// The number of commands among them.
    commands: u32,
    graph: Option<Graph>,
    /// The buffers for received values.
    received: Vec<(u32, Tensor)>,
}

/// A recorded graph, with the places of its buffers.
struct Graph {
    id: GraphId,
    /// Received and planned outputs: the address and number of their elements when recorded.
    seen: Vec<(u32, usize, u64)>,
    /// The outputs that are not planned.
    held: Vec<(u32, Tensor)>,
}

impl Recorder {
    /// Creates the state for steps over a plan; `None` if they cannot be recorded.
    pub fn new(plan: &Plan) -> Option<Recorder> {
        let (roles, after) = (plan.roles.clone()?, plan.record_after?);
        let count = |role: Role| roles.iter().filter(|own| **own == role).count() as u32;
        Some(Recorder {
            device: Arc::clone(&plan.device),
            after,
            recvs: count(Role::Recv),
            commands: count(Role::Command),
            phase: AtomicU32::new(OPEN),
            arrived: AtomicU32::new(0),
            own: Mutex::default(),
            roles,
        })
    }

    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock()
    }

    fn phase(&self) -> u32 {
        self.phase.load(Ordering::Acquire)
    }

    fn turn(&self, to: u32) {
        self.phase.store(to, Ordering::Release)
    }

    /// Starts a step.
    pub fn begin(&self) {
        let mut own = self.own();
        own.held.clear();
        own.sends.clear();
        self.arrived.store(0, Ordering::Relaxed);
        own.steps = own.steps.saturating_add(1);
        // A step that will not be recorded need not wait for all received values.
        let may_record = own.failures < MAX_FAILURES && own.steps > self.after;
        self.turn(if may_record { GATHER } else { OPEN });
    }

    /// Whether the step is in another phase than *open*.
    #[inline(always)]
    pub fn is_busy(&self) -> bool {
        self.phase() != OPEN
    }

    /// Whether all received values have arrived and the held nodes can run.
    pub fn is_due(&self) -> bool {
        self.phase() == GATHER && self.has_all() && !self.own().held.is_empty()
    }

    fn has_all(&self) -> bool {
        self.arrived.load(Ordering::Acquire) == self.recvs
    }

    /// Counts a received value. The last one puts the held nodes on `ready`: the driver may sleep.
    pub fn arrived(&self, ready: &mut Vec<u32>) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        if self.is_due() {
            ready.append(&mut self.own().held);
        }
    }

    /// The buffer for a received value: the former steps' one, if it fits and is not in use.
    pub fn buffer(
        &self,
        output: u32,
        make: impl FnOnce() -> Result<Tensor, KernelError>,
        fits: impl FnOnce(&Tensor) -> bool,
    ) -> Result<Tensor, KernelError> {
        let mut own = self.own();
        let at = own.received.iter().position(|(known, _)| *known == output);
        if let Some(at) = at {
            let (_, kept) = &own.received[at];
            if kept.buffer().is_unique() && fits(kept) {
                return Ok(kept.clone());
            }
            own.received.swap_remove(at);
        }
        let made = make()?;
        own.received.push((output, made.clone()));
        Ok(made)
    }

    fn destroy(&self, graph: Graph) {
        if let Some(replay) = self.device.replay() {
            // SAFETY: the graph is idle, since its step has waited for the streams; its id is
            // dropped.
            unsafe { replay.destroy_graph(graph.id) };
        }
    }

    /// Ends a recording of a step that is dropped unfinished.
    pub fn abandon(&self, streams: &super::streams::StepStreams) {
        if self.phase() == RECORD
            && let Some(replay) = self.device.replay()
        {
            // A recording ends on the stream where it began; the other streams must join first.
            let _ = streams.gather();
            if let Ok(id) = replay.end_capture(streams.first()) {
                // SAFETY: the graph was never launched, and its id is dropped here.
                unsafe { replay.destroy_graph(id) };
            }
        }
        self.turn(OPEN);
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(graph) = self.own().graph.take() {
            self.destroy(graph);
        }
    }
}

impl<P: Propagate> PartitionState<P> {
    /// Runs the ready nodes in a step that gathers, records or skips.
    pub(super) fn drain_replay<T: Thread>(&self, replay: &Recorder, ready: &mut Vec<u32>) {
        if replay.phase() == GATHER && !self.gather(replay, ready) {
            return;
        }
        while let Some(index) = ready.pop() {
            if self.shared.is_stopped() {
                return;
            }
            match (replay.roles[index as usize], replay.phase()) {
                (_, OPEN) => {
                    ready.push(index);
                    return self.drain::<T>(ready);
                }
                (Role::Send, RECORD) => replay.own().sends.push(index),
                (Role::Command, RECORD) => self.record(replay, index, ready),
                (Role::Host, RECORD) => {
                    replay.own().order.push(index);
                    self.dispatch(index, ready);
                }
                (Role::Command, SKIP) => {
                    self.count(index);
                    P::propagate(self, index, self.hot(index), ready);
                }
                _ => self.dispatch(index, ready),
            }
        }
    }

    /// Holds ready nodes back until all values have arrived; returns whether the step can continue.
    fn gather(&self, replay: &Recorder, ready: &mut Vec<u32>) -> bool {
        let (recvs, others): (Vec<u32>, Vec<u32>) =
            ready.drain(..).partition(|&index| replay.roles[index as usize] == Role::Recv);
        replay.own().held.extend(others);
        for index in recvs {
            self.dispatch(index, ready);
        }
        if !replay.has_all() || self.shared.is_stopped() {
            return false;
        }
        let phase = self.decide(replay).unwrap_or_else(|error| {
            self.shared.fail(StepError::device(self.plan.device.name(), &error));
            OPEN
        });
        replay.turn(phase);
        ready.append(&mut replay.own().held);
        true
    }

    /// Decides the next phase of this step.
    fn decide(&self, replay: &Recorder) -> Result<u32, KernelError> {
        let Some(streams) = self.lanes.streams() else { return Ok(OPEN) };
        let Some(device) = self.plan.device.replay() else { return Ok(OPEN) };
        let traced = self.frames.first().is_some_and(|frame| frame.env().trace.is_some());
        let mut own = replay.own();
        if traced {
            return Ok(OPEN);
        }
        if let Some(graph) = own.graph.take() {
            if !self.is_as_recorded(replay, &graph) {
                replay.destroy(graph);
                own.failures += 1;
                return Ok(OPEN);
            }
            streams.gather()?;
            // SAFETY: the buffers are as recorded, and are held until the streams are done.
            if unsafe { device.launch(graph.id, streams.first()) }.is_err() {
                // Nothing of the graph runs. Errors of the device occur again in the commands.
                replay.destroy(graph);
                own.failures = MAX_FAILURES;
                return Ok(OPEN);
            }
            streams.told_all();
            self.show_held(&graph);
            own.graph = Some(graph);
            streams.scatter()?;
            return Ok(SKIP);
        }
        if self.copies_beside_commands(replay) {
            own.failures = MAX_FAILURES;
            return Ok(OPEN);
        }
        (own.order, own.commands) = (Vec::new(), 0);
        self.begin_recording(replay, streams)
    }

    /// Whether copying the received values takes longer than a replay saves, while some commands do
    /// not depend on them. In a recorded step, these commands would wait for all values.
    fn copies_beside_commands(&self, replay: &Recorder) -> bool {
        let spared = u64::from(replay.commands).saturating_mul(SAVED_BYTES);
        let large = |node: u32| {
            let output = self.node(node).first_output;
            let dtype = self.plan.outputs[output as usize].dtype;
            let (_, _, elements) = self.place(output);
            dtype.size().is_some_and(|size| elements.saturating_mul(size as u64) > spared)
        };
        let recvs = (0..).zip(&replay.roles).filter(|(_, role)| **role == Role::Recv);
        recvs.map(|(node, _)| node).filter(|&node| large(node)).any(|node| {
            let reach = self.plan.reach(node);
            replay.roles.iter().zip(reach).any(|(role, waits)| *role == Role::Command && !waits)
        })
    }

    fn begin_recording(
        &self,
        replay: &Recorder,
        streams: &super::streams::StepStreams,
    ) -> Result<u32, KernelError> {
        let Some(device) = self.plan.device.replay() else { return Ok(OPEN) };
        // The received values come before the whole graph: no stream in it waits for them.
        streams.gather()?;
        for (role, node) in replay.roles.iter().zip(&self.plan.nodes) {
            if let (Role::Recv, Some(event)) = (role, node.stream.event) {
                streams.told(event);
            }
        }
        device.begin_capture(streams.first())?;
        replay.turn(RECORD);
        streams.scatter()?;
        Ok(RECORD)
    }

    /// Enqueues a command while the device records.
    fn record(&self, replay: &Recorder, index: u32, ready: &mut Vec<u32>) {
        let (node, frame) = (self.hot(index), self.frame(index));
        if let Err(error) = self.lanes.wait(index) {
            return self.fail_node(index, &error);
        }
        // SAFETY: the node is ready and this thread runs it, so it owns the node.
        if unsafe { self.check_shapes(index) }.is_err() {
            // The error is reported when the node is dispatched again.
            self.give_up(replay, ready);
            return ready.push(index);
        }
        // SAFETY: as above; the kernel's entry point is called with its own state.
        let code = unsafe {
            self.slots.clear_outputs(index);
            self.slots.plan_outputs(node);
            (node.compute)(node.state, frame.call())
        };
        if !code.is_ok() {
            // The error may be due to the recording; a real one occurs again in the ordinary run.
            let _ = frame.take_error(code);
            frame.end();
            self.give_up(replay, ready);
            return ready.push(index);
        }
        self.count(index);
        if let Err(error) = self.slots.check_outputs(index) {
            return self.fail_node(index, &error);
        }
        frame.end();
        let mut own = replay.own();
        own.order.push(index);
        own.commands += 1;
        let complete = own.commands == replay.commands;
        drop(own);
        self.propagate(index, ready);
        if complete && !self.shared.is_stopped() {
            self.end_recording(replay, ready);
        }
    }

    /// Launches the graph once all commands are recorded.
    fn end_recording(&self, replay: &Recorder, ready: &mut Vec<u32>) {
        let (Some(streams), Some(device)) = (self.lanes.streams(), self.plan.device.replay())
        else {
            return;
        };
        let recorded = streams.gather().and_then(|()| device.end_capture(streams.first()));
        let Ok(id) = recorded else { return self.give_up(replay, ready) };
        // SAFETY: the buffers are those just recorded, and are held until the streams are done.
        if unsafe { device.launch(id, streams.first()) }.is_err() {
            // SAFETY: a failed launch runs nothing of the graph, and its id is not used again.
            unsafe { device.destroy_graph(id) };
            replay.turn(OPEN);
            return self.give_up(replay, ready);
        }
        let graph = Graph { id, seen: self.places(replay), held: self.not_planned(replay) };
        streams.told_all();
        let launched = streams.scatter();
        let mut own = replay.own();
        own.graph = Some(graph);
        ready.append(&mut own.sends);
        drop(own);
        replay.turn(OPEN);
        if let Err(error) = launched {
            self.shared.fail(StepError::device(self.plan.device.name(), &error));
        }
    }

    /// Stops recording for good: the recorded commands are enqueued again as usual.
    fn give_up(&self, replay: &Recorder, ready: &mut Vec<u32>) {
        let Some(streams) = self.lanes.streams() else { return };
        replay.abandon(streams);
        let mut own = replay.own();
        own.failures = MAX_FAILURES;
        let order = std::mem::take(&mut own.order);
        ready.append(&mut own.sends);
        drop(own);
        streams.begin();
        for index in order {
            if let Err(error) = self.lanes.wait(index) {
                return self.fail_node(index, &error);
            }
            let (node, frame) = (self.hot(index), self.frame(index));
            // SAFETY: as in `record`; the inputs are kept until the step's streams are done.
            let code = unsafe { (node.compute)(node.state, frame.call()) };
            if !code.is_ok() {
                let error = frame.take_error(code);
                frame.end();
                return self.fail_node(index, &error);
            }
            frame.end();
            if let Err(error) = self.lanes.record(index) {
                return self.fail_node(index, &error);
            }
        }
    }

    /// The outputs of the commands.
    fn command_outputs<'s>(&'s self, replay: &'s Recorder) -> impl Iterator<Item = u32> + 's {
        let nodes = replay.roles.iter().zip(&self.plan.nodes);
        let commands = nodes.filter(|(role, _)| **role == Role::Command);
        commands.flat_map(|(_, node)| {
            node.first_output..node.first_output + node.info.outputs.len() as u32
        })
    }

    /// The places of the received and the planned values.
    fn places(&self, replay: &Recorder) -> Vec<(u32, usize, u64)> {
        let produced: std::collections::BTreeSet<u32> = replay
            .roles
            .iter()
            .zip(&self.plan.nodes)
            .filter(|(role, _)| **role != Role::Recv)
            .flat_map(|(_, node)| {
                node.first_output..node.first_output + node.info.outputs.len() as u32
            })
            .collect();
        let outputs = self.plan.outputs.iter().zip(0u32..);
        let foreign = outputs
            // No command reads host memory that may change.
            .filter(|(output, _)| output.memory.kind() != MemoryKind::HOST)
            .filter(|(output, at)| output.constant.is_none() && !produced.contains(at))
            .map(|(_, at)| at);
        let planned =
            self.command_outputs(replay).filter(|&at| self.plan.outputs[at as usize].planned);
        foreign.chain(planned).map(|at| self.place(at)).collect()
    }

    fn place(&self, output: u32) -> (u32, usize, u64) {
        // SAFETY: no node of this partition runs now, and the driver owns its outputs.
        let slot = unsafe { self.slots.slot_mut(output) };
        (output, slot.data.addr(), slot.elements)
    }

    fn not_planned(&self, replay: &Recorder) -> Vec<(u32, Tensor)> {
        let open = |at: &u32| !self.plan.outputs[*at as usize].planned;
        let tensor = |at: u32| {
            // SAFETY: as in `place`.
            let (slot, value) = unsafe { (self.slots.slot_mut(at), self.slots.value_mut(at)) };
            // The value would keep a small buffer from step to step. It now belongs to the
            // recording, and to the value until the step ends.
            if let Some(kept) = value.kept.take_if(|kept| kept.data() == slot.data) {
                value.owner = Some(kept);
            }
            Some((at, Value::tensor(slot)?))
        };
        self.command_outputs(replay).filter(open).filter_map(tensor).collect()
    }

    /// Whether every buffer is as recorded and nothing else refers to it.
    fn is_as_recorded(&self, replay: &Recorder, graph: &Graph) -> bool {
        for (role, node) in replay.roles.iter().zip(&self.plan.hot) {
            if *role == Role::Command {
                // SAFETY: no node runs, so the driver owns all nodes.
                unsafe { self.slots.plan_outputs(node) };
            }
        }
        graph.seen.iter().all(|seen| self.place(seen.0) == *seen)
            && graph.held.iter().all(|(_, tensor)| tensor.buffer().is_unique())
    }

    fn show_held(&self, graph: &Graph) {
        for (output, tensor) in &graph.held {
            // SAFETY: as in `place`.
            unsafe { self.slots.value_mut(*output).hold(self.slots.slot_mut(*output), tensor) };
        }
    }
}
