//! What the nodes of a partition compute in a step: a slot and a value for each output.
//!
//! # Ownership
//! The slots and values of a node's outputs belong to the thread that runs the node, from when it
//! becomes ready until its successors are notified. After that they are only read, until the last
//! reader is done, which releases them. The counters of the propagation pass the ownership on.
//!
//! A *planned* output has a buffer before its kernel is called, which is kept from step to step
//! unless something else holds it.

use super::{frame::call_frame, propagate::count_down};
use crate::plan::{HotNode, Plan, PlanNode, Reference};
use std::{
    cell::UnsafeCell,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};
use tenon_abi::{MemoryKind, Slot, slot_flags};
use tenon_framework::{DType, KernelError, PartialShape, Tensor, tensor::Buffer};
use tenon_host::call::{CallFrame, Cancellation, StepEnv, Value, fill_slot};
use tenon_host::services::state::{dereference, is_initialized};

/// The slots and values of one partition in one step; with control flow, of one iteration.
pub(crate) struct Slots {
    plan: Arc<Plan>,
    slots: Box<[UnsafeCell<Slot>]>,
    values: Box<[UnsafeCell<Value>]>,
}

// SAFETY: the module's ownership rule prevents concurrent access to slots and values.
unsafe impl Send for Slots {}
// SAFETY: as for `Send`.
unsafe impl Sync for Slots {}

impl Slots {
    /// Creates the slots of a plan's outputs.
    pub fn new(plan: Arc<Plan>) -> Slots {
        let outputs = plan.outputs.iter();
        let slots = Slots {
            slots: outputs.clone().map(|_| UnsafeCell::new(Slot::EMPTY)).collect(),
            values: outputs.map(|_| UnsafeCell::new(Value::default())).collect(),
            plan,
        };
        slots.prefill();
        slots
    }

    /// The call frames of the nodes. They point to the slots and to `env`, neither of which may move
    /// while they are in use.
    pub fn frames(&self, env: *const StepEnv) -> Box<[CallFrame]> {
        let nodes = self.plan.nodes.iter();
        nodes.map(|node| call_frame(node, env, &self.slots, &self.values)).collect()
    }

    fn prefill(&self) {
        for (at, output) in self.plan.outputs.iter().enumerate() {
            // SAFETY: the state is still being created, so no other thread uses it.
            let (slot, value) = unsafe { (self.slot_mut(at as u32), self.value_mut(at as u32)) };
            slot.dtype = output.dtype.base();
            slot.memory = output.memory.kind();
            slot.alias = at as u32 + 1;
            if output.unused {
                slot.flags |= slot_flags::UNUSED;
            }
            if let Some(tensor) = &output.constant {
                value.hold(slot, tensor);
                slot.flags |= slot_flags::CONSTANT;
            }
        }
    }

    /// The slot of an output.
    ///
    /// # Safety
    /// - The caller must own the output (see the module's docs).
    /// - `at` must be the number of an output of the plan.
    #[allow(clippy::mut_from_ref, reason = "ownership follows the graph, see the module's docs")]
    #[inline(always)]
    pub unsafe fn slot_mut(&self, at: u32) -> &mut Slot {
        // SAFETY: the caller owns the output, and `at` is within the plan's outputs.
        unsafe { &mut *self.slots.get_unchecked(at as usize).get() }
    }

    /// The slot of an output that is read.
    ///
    /// # Safety
    /// - The node that writes the output must be done, and its last reader must not be done yet.
    /// - `at` must be the number of an output of the plan.
    #[inline(always)]
    pub unsafe fn slot(&self, at: u32) -> &Slot {
        // SAFETY: no thread writes the slot meanwhile, as the caller guarantees, and `at` is within
        // the plan's outputs.
        unsafe { &*self.slots.get_unchecked(at as usize).get() }
    }

    /// The number of readers that an output has left.
    ///
    /// # Safety
    /// - `at` must be the number of an output of the plan.
    #[inline(always)]
    unsafe fn readers(&self, at: u32) -> &AtomicU32 {
        // SAFETY: `at` is within the plan's outputs; other readers use only this field meanwhile.
        unsafe { &(*self.values.get_unchecked(at as usize).get()).readers }
    }

    /// The value of an output.
    ///
    /// # Safety
    /// As for [`Slots::slot_mut`].
    #[allow(clippy::mut_from_ref, reason = "ownership follows the graph, see the module's docs")]
    #[inline(always)]
    pub unsafe fn value_mut(&self, at: u32) -> &mut Value {
        // SAFETY: as in `slot_mut`.
        unsafe { &mut *self.values.get_unchecked(at as usize).get() }
    }

    /// Sets the numbers of readers before a step, of which no node runs.
    #[inline(always)]
    pub fn begin(&self) {
        for &(output, readers) in &self.plan.readers {
            // SAFETY: no node of the step runs yet.
            unsafe { self.value_mut(output) }.readers.store(readers, Ordering::Relaxed);
        }
    }

    /// Releases all values after a step, of which no node runs any more.
    pub fn end(&self) {
        for &(output, _) in &self.plan.readers {
            // SAFETY: no node runs any more.
            unsafe { self.value_mut(output) }.release();
        }
    }

    /// Stores a fed value, which a slot shows, in its output; returns false if the slot shows none.
    ///
    /// # Safety
    /// - No node of the partition may run during the call.
    /// - `output` must be the number of an output of the plan.
    pub unsafe fn feed(&self, output: u32, fed: &Slot) -> bool {
        // SAFETY: no node runs, as the caller guarantees, so no other thread uses the output.
        let (value, slot) = unsafe { (self.value_mut(output), self.slot_mut(output)) };
        let is_set = value.share(slot, fed);
        // A device may have pinned the memory.
        slot.memory = MemoryKind::HOST;
        is_set
    }

    /// The tensor of an output.
    ///
    /// # Safety
    /// - The node that writes the output must be done.
    /// - `output` must be the number of an output of the plan.
    pub unsafe fn fetch(
        &self,
        output: u32,
        cancellation: &Cancellation,
    ) -> Result<Option<Tensor>, KernelError> {
        // SAFETY: the node that writes the output is done, as the caller guarantees.
        let slot = unsafe { self.slot(output) };
        if slot.flags & slot_flags::REF == 0 {
            return Ok(Value::tensor(slot));
        }
        let (mut shown, mut value) = (Slot::EMPTY, Value::default());
        // SAFETY: the node that set the slot is done, and the step still keeps the variable.
        unsafe { dereference(slot, &mut shown, &mut value, cancellation) }?;
        Ok(Value::tensor(&shown))
    }

    /// Resolves references before a call: stores the values behind those that the node reads as
    /// plain inputs. A variable without a value is an error, unless the op may initialise it.
    ///
    /// # Safety
    /// - The calling thread must own the node.
    /// - The predecessors of the node must be done.
    pub unsafe fn show_references(
        &self,
        index: u32,
        cancellation: &Cancellation,
    ) -> Result<(), KernelError> {
        for &Reference { slot: reference, shown } in &self.plan.nodes[index as usize].references {
            // SAFETY: the caller owns the node; the nodes that wrote its references are done.
            unsafe {
                let reference = self.slot(reference);
                match shown {
                    Some(shown) => {
                        let (slot, value) = (self.slot_mut(shown), self.value_mut(shown));
                        dereference(reference, slot, value, cancellation)?;
                    }
                    None => is_initialized(reference)?,
                }
            }
        }
        Ok(())
    }

    /// Ensures that planned outputs have a buffer that nothing else refers to.
    ///
    /// # Safety
    /// The calling thread must own `node`, which must be in the plan.
    #[inline(always)]
    pub unsafe fn plan_outputs(&self, node: &HotNode) {
        for &output in node.planned.of(&self.plan.planned) {
            // SAFETY: the caller owns the outputs; the value of a planned slot keeps its buffer.
            unsafe {
                let slot = self.slot_mut(output);
                if slot.flags & slot_flags::PLANNED == 0 || !Buffer::raw_is_unique(slot.buffer) {
                    self.replan(output);
                }
            }
        }
    }

    /// Gives a planned output a new buffer, or none without memory: the kernel then gets the error.
    ///
    /// # Safety
    /// The calling thread must own the node that writes this output.
    #[cold]
    #[inline(never)]
    unsafe fn replan(&self, output: u32) {
        let spec = &self.plan.outputs[output as usize];
        let Some(shape) = &spec.full else { return };
        // SAFETY: the caller owns the node that writes the output.
        let (slot, value) = unsafe { (self.slot_mut(output), self.value_mut(output)) };
        value.release();
        slot.flags &= !slot_flags::PLANNED;
        let bytes = shape.elements() * spec.dtype.size().unwrap_or(0);
        let reusable = value.kept.as_ref().is_some_and(|kept| kept.is_unique());
        if !reusable {
            match Buffer::allocate(&spec.memory, spec.dtype, shape.elements(), bytes) {
                Ok(buffer) => value.kept = Some(buffer),
                Err(_) => return,
            }
        }
        if let Some(buffer) = &value.kept {
            fill_slot(slot, buffer, spec.dtype, shape.dims(), slot_flags::PLANNED);
            slot.alias = output + 1;
            if spec.unused {
                slot.flags |= slot_flags::UNUSED;
            }
        }
    }

    /// Whether no planned slot was replaced by a kernel that allocated another shape.
    ///
    /// # Safety
    /// The calling thread must own `node`, which must be in the plan.
    #[inline(always)]
    pub unsafe fn outputs_are_planned(&self, node: &HotNode) -> bool {
        node.planned.of(&self.plan.planned).iter().all(|&output| {
            // SAFETY: the caller owns the node, and the output is one of its outputs.
            unsafe { self.slot_mut(output) }.flags & slot_flags::PLANNED != 0
        })
    }

    /// Clears the unplanned outputs before a call.
    ///
    /// # Safety
    /// The calling thread must own the node with this index.
    pub unsafe fn clear_outputs(&self, index: u32) {
        let node = &self.plan.nodes[index as usize];
        for at in 0..node.info.outputs.len() as u32 {
            let output = node.first_output + at;
            if !self.plan.outputs[output as usize].planned {
                // SAFETY: the caller owns the node, and the output is one of its outputs.
                unsafe {
                    let slot = self.slot_mut(output);
                    slot.data = std::ptr::null_mut();
                    // A kernel compares it with the buffers of its inputs.
                    slot.buffer = std::ptr::null_mut();
                    slot.flags &= slot_flags::UNUSED;
                    slot.alias = output + 1;
                }
            }
        }
    }

    /// Checks after a call that every output with readers is set and has the inferred shape.
    pub fn check_outputs(&self, index: u32) -> Result<(), KernelError> {
        let node = &self.plan.nodes[index as usize];
        for at in 0..node.info.outputs.len() as u32 {
            let output = node.first_output + at;
            let spec = &self.plan.outputs[output as usize];
            // SAFETY: this thread has just run the node and owns it until its successors are
            // notified.
            let slot = unsafe { self.slot_mut(output) };
            if slot.flags & slot_flags::REF != 0 {
                continue;
            }
            if slot.data.is_null() {
                if spec.unused {
                    continue;
                }
                return Err(KernelError::internal(format!(
                    "the kernel returned success and left output {at} unset"
                )));
            }
            // SAFETY: the slot is set, so its dimensions are valid.
            let shape = unsafe { slot.shape() };
            if !spec.shape.accepts(shape) {
                return Err(self.wrong_shape(node, at, shape, &spec.shape));
            }
        }
        Ok(())
    }

    /// Takes the reference to an output's buffer over from its value, for its last reader; `None` if
    /// there are other readers, or if the buffer stays in its place until the iteration ends.
    ///
    /// # Safety
    /// - The caller must be a reader of the output that is not done, and must not read it again.
    /// - `from` must be the number of an output of the plan that counts its readers.
    #[inline(always)]
    pub unsafe fn take_over(&self, from: u32) -> Option<Buffer> {
        // SAFETY: `from` is within the plan's outputs.
        let readers = unsafe { self.readers(from) };
        if readers.load(Ordering::Acquire) != 1 {
            return None;
        }
        // SAFETY: the last reader owns the value.
        unsafe { self.value_mut(from) }.owner.take()
    }

    /// Shows what output `from` shows in output `to` of the same iteration; returns whether it shows
    /// anything. The last reader hands the reference to the buffer over. A buffer that stays in its
    /// place until the iteration ends is shown without one.
    ///
    /// # Safety
    /// - The caller must own `to`, and must be a reader of `from` that is not done, and does not read
    ///   it again.
    /// - Both must be outputs of the plan.
    /// - `counted` must say whether `from` counts its readers.
    #[inline(always)]
    pub unsafe fn pass(&self, from: u32, to: u32, counted: bool) -> bool {
        // SAFETY: the caller reads `from` and owns `to`.
        let (source, slot) = unsafe { (*self.slot(from), self.slot_mut(to)) };
        if source.flags & slot_flags::REF != 0 {
            *slot = source;
        } else if source.data.is_null() || source.buffer.is_null() {
            return false;
        } else {
            // The dimensions stay in their place until the iteration ends.
            *slot = Slot { flags: slot_flags::SET, ..source };
            if counted {
                // SAFETY: the caller reads `from`, so a reference to its buffer exists; it reads it
                // no more after this.
                unsafe {
                    let owner = match self.take_over(from) {
                        None if self.has_owner(from) => Buffer::clone_raw(source.buffer),
                        taken => taken,
                    };
                    self.value_mut(to).owner = owner;
                }
            }
        }
        true
    }

    /// Whether the value of an output has a reference to its buffer.
    ///
    /// # Safety
    /// - The caller must be a reader of the output that is not done.
    /// - `at` must be the number of an output of the plan.
    #[inline(always)]
    unsafe fn has_owner(&self, at: u32) -> bool {
        // SAFETY: only the last reader changes the owner, and the caller is not done.
        unsafe { (*self.values.get_unchecked(at as usize).get()).owner.is_some() }
    }

    /// Whether an output shows this buffer, and all nodes that read it are done: only the step keeps
    /// it, until its streams are done.
    ///
    /// # Safety
    /// - The plan must be of a device with streams, and count the readers of the output.
    pub unsafe fn is_read(&self, at: u32, buffer: &Buffer) -> bool {
        // SAFETY: `at` is an output of the plan. While one reader is left, which is the step itself,
        // no node changes the value.
        unsafe {
            self.readers(at).load(Ordering::Acquire) == 1
                && (*self.values.get_unchecked(at as usize).get())
                    .owner
                    .as_ref()
                    .is_some_and(|own| own.as_raw() == buffer.as_raw())
        }
    }

    /// The error for an output of another shape than the graph says: the kernel's, or the caller's where the value comes from
    /// a resource, such as a variable that a checkpoint of another shape was restored to.
    #[cold]
    fn wrong_shape(
        &self,
        node: &PlanNode,
        at: u32,
        found: &[i64],
        expected: &PartialShape,
    ) -> KernelError {
        let dtype =
            |&slot: &u32| self.plan.outputs.get(slot as usize).map(|spec| spec.dtype.base());
        match node.inputs.iter().any(|slot| dtype(slot) == Some(DType::RESOURCE)) {
            true => KernelError::invalid_argument(format!(
                "output {at}: expected shape {expected}, which the graph says of the resource, found {found:?}: a value of \
                 another shape was assigned or restored to it"
            )),
            false => KernelError::internal(format!(
                "output {at} has shape {found:?}, the shape function said {expected}: one of the two is wrong"
            )),
        }
    }

    /// Releases the inputs of which a node is the last reader; for `alone` see [`count_down`].
    #[inline(always)]
    pub fn release_inputs(&self, node: &HotNode, alone: bool) {
        for &input in node.counted.of(&self.plan.counted) {
            self.release_input(input, alone);
        }
    }

    /// Counts down the readers of an output, and releases it after the last one.
    #[inline(always)]
    pub fn release_input(&self, input: u32, alone: bool) {
        // SAFETY: the node reads the output, so it is alive; the last reader owns it.
        unsafe {
            if count_down(self.readers(input), alone) == 1 {
                self.value_mut(input).release();
            }
        }
    }
}
