//! Single calls of a kernel, without a graph.

use super::KernelInstance;
use crate::{
    call::{CALL_SERVICES, CallFrame, StepEnv, Value},
    devices::{PluginDevice, copy_tensor},
    fpu::FpGuard,
    memory::HostMemory,
};
use std::{
    hint::black_box,
    ptr,
    sync::{Arc, atomic::Ordering},
};
use tenon_abi::{Code, MemoryKind, Slot};
use tenon_framework::{
    KernelError, Shape, Tensor,
    device::base::{LocalDevice, StreamId},
    sync::{Condvar, Mutex},
    tensor::Memory,
};

/// Where a pending call reports its completion.
#[derive(Default)]
struct Done {
    code: Mutex<Option<Code>>,
    told: Condvar,
}

/// The completion of a [`PreparedCall`].
///
/// # Safety
/// - `frame` is the frame of a [`PreparedCall`], whose owner is its [`Done`].
unsafe fn finished(frame: *mut CallFrame, code: Code) {
    // SAFETY: the owner is the call's `Done`, which lives as long as the frame; a further count
    // lets it outlive the waiting thread, which may drop the call as soon as it sees the code.
    let done = unsafe {
        let raw = (*frame).owner.cast::<Done>().cast_const();
        Arc::increment_strong_count(raw);
        Arc::from_raw(raw)
    };
    *done.code.lock() = Some(code);
    done.told.notify_all();
}

/// A stream that belongs to the call, destroyed when nothing is enqueued on it any more.
struct OwnStream {
    device: Arc<PluginDevice>,
    stream: StreamId,
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        // The call has reported errors on the stream; here it only has to be idle.
        let _ = self.device.synchronize_stream(self.stream);
        // SAFETY: the stream is idle, and no copy of its id is used any more.
        unsafe { self.device.destroy_stream(self.stream) }
    }
}

/// A call of one kernel on fixed inputs, which may run any number of times. After the first run it
/// allocates nothing as long as outputs stay small and nothing else holds them.
pub struct PreparedCall<'a> {
    instance: &'a KernelInstance,
    // The frame points to the slots and values, which must not move.
    frame: Box<CallFrame>,
    outputs: Box<[Slot]>,
    values: Box<[Value]>,
    _inputs: Box<[Tensor]>,
    input_slots: Box<[Slot]>,
    input_values: Box<[Value]>,
    done: Arc<Done>,
    stream: Option<OwnStream>,
}

impl<'a> PreparedCall<'a> {
    /// A call of `instance` on host tensors, which are copied where the kernel requires other
    /// memory.
    ///
    /// # Errors
    /// A wrong number or type of inputs; out of memory; a lost device.
    pub fn new(
        instance: &'a KernelInstance,
        inputs: &[Tensor],
        env: &'a StepEnv,
    ) -> Result<PreparedCall<'a>, KernelError> {
        PreparedCall::build(instance, inputs.to_vec(), env, false)
    }

    fn build(
        instance: &'a KernelInstance,
        inputs: Vec<Tensor>,
        env: &'a StepEnv,
        donated: bool,
    ) -> Result<PreparedCall<'a>, KernelError> {
        check_inputs(instance, &inputs)?;
        let inputs = place_inputs(instance, inputs)?;
        let stream = own_stream(instance)?;
        let mut call = PreparedCall::assemble(instance, inputs, env, donated);
        if let Some(own) = &stream {
            call.frame.set_stream(own.stream.as_raw());
        }
        call.stream = stream;
        Ok(call)
    }

    fn assemble(
        instance: &'a KernelInstance,
        inputs: Box<[Tensor]>,
        env: &'a StepEnv,
        donated: bool,
    ) -> PreparedCall<'a> {
        let node = instance.node();
        let count = node.outputs.len();
        let mut outputs = vec![Slot::EMPTY; count].into_boxed_slice();
        let mut values: Box<[Value]> = (0..count).map(|_| Value::default()).collect();
        let mut input_values: Box<[Value]> = inputs.iter().map(|_| Value::default()).collect();
        let mut input_slots = vec![Slot::EMPTY; inputs.len()].into_boxed_slice();
        for ((tensor, value), slot) in inputs.iter().zip(&mut input_values).zip(&mut input_slots) {
            value.hold(slot, tensor);
            value.readers.store(1, Ordering::Relaxed);
        }
        let slots = input_slots.iter().map(ptr::from_ref).collect();
        let held = input_values
            .iter_mut()
            .map(|value| if donated { ptr::from_mut(value) } else { ptr::null_mut() })
            .collect();
        // SAFETY: slots and values are boxed, so that they do not move, and live as long as the
        // frame; node and environment are borrowed for longer.
        let frame = unsafe {
            CallFrame::new(node, env, slots, held, outputs.as_mut_ptr(), values.as_mut_ptr())
        };
        let mut frame = Box::new(frame);
        let done = Arc::new(Done::default());
        frame.owner = Arc::as_ptr(&done).cast_mut().cast();
        frame.set_completion(finished);
        frame.settle();
        // Only its value holds a donated input.
        let inputs = if donated { Box::default() } else { inputs };
        PreparedCall {
            instance,
            frame,
            outputs,
            values,
            _inputs: inputs,
            input_slots,
            input_values,
            done,
            stream: None,
        }
    }

    /// Computes, and waits until it is done: until an asynchronous kernel completes, and until the
    /// stream has run.
    ///
    /// # Errors
    /// The kernel's error; `INTERNAL` when it violates its contract; `UNAVAILABLE` on a lost
    /// device.
    pub fn run(&mut self) -> Result<(), KernelError> {
        self.begin()?;
        self.conclude()
    }

    /// Like [`PreparedCall::run`], with outputs that have new buffers of these shapes before the
    /// kernel runs, as an executor plans them.
    ///
    /// # Errors
    /// As [`PreparedCall::run`]; no such output; out of memory.
    pub fn run_planned(&mut self, shapes: &[Shape]) -> Result<(), KernelError> {
        self.begin()?;
        for (output, shape) in shapes.iter().enumerate() {
            self.allocate(output, shape)?;
        }
        self.planned();
        self.conclude()
    }

    fn allocate(&self, output: usize, shape: &Shape) -> Result<(), KernelError> {
        let entry = CALL_SERVICES.allocate.expect("the host fills every entry");
        let (dims, ordinary) = (shape.dims(), MemoryKind(u32::MAX));
        // SAFETY: the host's own entry with the record of this call, which is not running.
        let code = unsafe {
            entry(
                self.frame.call().record,
                output as u32,
                dims.as_ptr(),
                dims.len() as u32,
                ordinary,
            )
        };
        if code.is_ok() { Ok(()) } else { Err(self.frame.take_error(code)) }
    }

    fn begin(&mut self) -> Result<(), KernelError> {
        if let Some(device) = self.instance.device() {
            device.check()?;
        }
        self.reset();
        Ok(())
    }

    fn conclude(&mut self) -> Result<(), KernelError> {
        let code = {
            let _state = FpGuard::for_kernels(self.frame.env().keep_denormals);
            self.compute()?
        };
        let computed = match (code.is_ok(), self.frame.take_cut()) {
            (true, false) => Ok(()),
            (true, true) => Err(self.frame.env().stopped_error()),
            (false, _) => Err(self.frame.take_error(code)),
        };
        // Even after an error: work that was enqueued before still uses the call's memory.
        let synchronised = self.synchronise();
        self.frame.end();
        computed.and(synchronised)?;
        self.check_outputs()
    }

    /// Computes `calls` times into the outputs of the last run, one call after the other, for
    /// timing a kernel: only the loop is added to the calls. Work that calls enqueue on a stream is
    /// awaited once, at the end; an asynchronous kernel is awaited in each call.
    ///
    /// # Errors
    /// The kernel's error; the remaining calls are then not made.
    pub fn repeat(&mut self, calls: u64) -> Result<(), KernelError> {
        self.planned();
        let code = {
            let _state = FpGuard::for_kernels(self.frame.env().keep_denormals);
            if self.instance.is_async() {
                self.repeat_waiting(calls)?
            } else {
                self.repeat_straight(calls)
            }
        };
        let computed = if code.is_ok() { Ok(()) } else { Err(self.frame.take_error(code)) };
        computed.and(self.synchronise())
    }

    fn repeat_waiting(&self, calls: u64) -> Result<Code, KernelError> {
        for _ in 0..calls {
            let code = self.compute()?;
            self.frame.end();
            if code != Code::OK {
                return Ok(code);
            }
        }
        Ok(Code::OK)
    }

    fn repeat_straight(&self, calls: u64) -> Code {
        let (compute, state) = (self.instance.compute(), self.instance.state());
        for _ in 0..calls {
            // SAFETY: the kernel's own entry and state with a filled call.
            let code = unsafe { compute(black_box(state), self.frame.call()) };
            self.frame.end();
            if code != Code::OK {
                return code;
            }
        }
        Code::OK
    }

    fn reset(&mut self) {
        let specs = &self.instance.node().outputs;
        for ((slot, value), spec) in self.outputs.iter_mut().zip(&mut self.values).zip(specs) {
            value.release();
            *slot = Slot { dtype: spec.dtype.base(), memory: spec.memory.kind(), ..Slot::EMPTY };
        }
    }

    fn compute(&self) -> Result<Code, KernelError> {
        let (compute, state) = (self.instance.compute(), self.instance.state());
        if !self.instance.is_async() {
            // SAFETY: the kernel's own entry and state with a filled call.
            let code = unsafe { compute(state, self.frame.call()) };
            if code == Code::PENDING {
                return Err(KernelError::internal(format!(
                    "{} returned PENDING without the flag ASYNC: nothing says when it is done",
                    self.instance.def()
                )));
            }
            return Ok(code);
        }
        *self.done.code.lock() = None;
        if !self.frame.begin_async() {
            return Err(KernelError::internal("the call is still running"));
        }
        // SAFETY: as above; the frame lives until the call has completed, since this waits for
        // that.
        let code = unsafe { compute(state, self.frame.call()) };
        if code != Code::PENDING {
            return if self.frame.end_inline() {
                Ok(code)
            } else {
                Err(KernelError::internal(format!(
                    "{} completed its call and returned {code}: it does one of them",
                    self.instance.def()
                )))
            };
        }
        let mut told = self.done.code.lock();
        loop {
            match *told {
                Some(code) => return Ok(code),
                None => told = self.done.told.wait(told),
            }
        }
    }

    fn synchronise(&self) -> Result<(), KernelError> {
        let Some(own) = &self.stream else { return Ok(()) };
        let done = own.device.synchronize_stream(own.stream);
        self.frame.env().release_kept(Some(own.stream.as_raw()));
        done
    }

    fn check_outputs(&self) -> Result<(), KernelError> {
        let unset =
            |slot: &Slot| slot.data.is_null() && slot.flags & tenon_abi::slot_flags::REF == 0;
        match self.outputs.iter().position(unset) {
            None => Ok(()),
            Some(index) => Err(KernelError::internal(format!(
                "{} left output {index} unset",
                self.instance.def()
            ))),
        }
    }

    /// The outputs of the last run, in the kernel's memory: further references to their buffers.
    pub fn outputs(&self) -> Vec<Tensor> {
        self.outputs.iter().filter_map(Value::tensor).collect()
    }

    /// The call itself, with outputs planned as the last run left them, for timing the kernel's
    /// entry alone. [`PreparedCall::run`] plans nothing.
    pub fn planned(&mut self) -> &tenon_abi::Call {
        for slot in self.outputs.iter_mut().filter(|slot| !slot.data.is_null()) {
            slot.flags |= tenon_abi::slot_flags::PLANNED;
        }
        self.frame.call()
    }

    /// The slots of the last run's outputs, as readers of them would see them.
    pub fn slots(&self) -> &[Slot] {
        &self.outputs
    }

    /// The outputs of the last run, in host memory: copied if they are on a device.
    ///
    /// # Errors
    /// The device's error; out of memory.
    pub fn host_outputs(&self) -> Result<Vec<Tensor>, KernelError> {
        let memory: Arc<dyn Memory> = HostMemory::shared().clone();
        self.outputs()
            .iter()
            .map(|tensor| {
                if tensor.is_on_host() {
                    return Ok(tensor.clone());
                }
                copy_tensor(tensor, local(self.instance, tensor.buffer().memory()), &memory, None)
            })
            .collect()
    }

    /// The input whose buffer output `output` took over in the last run.
    fn taken_from(&self, output: usize) -> Option<usize> {
        let data = self.outputs[output].data;
        (0..self.input_values.len())
            .find(|&at| self.input_values[at].owner.is_none() && self.input_slots[at].data == data)
    }
}

impl Drop for PreparedCall<'_> {
    fn drop(&mut self) {
        // Before the buffers are dropped: nothing enqueued may use them any more. A call that failed
        // has reported the errors of the stream.
        let _ = self.synchronise();
        self.stream = None;
        self.values.iter_mut().for_each(Value::release);
    }
}

/// The device whose memory this is; `None` for the host's.
fn local<'a>(
    instance: &'a KernelInstance,
    memory: &Arc<dyn Memory>,
) -> Option<&'a dyn LocalDevice> {
    let device = instance.device()?;
    (memory.device() == device.number()).then_some(&**device as &dyn LocalDevice)
}

fn check_inputs(instance: &KernelInstance, inputs: &[Tensor]) -> Result<(), KernelError> {
    let expected = instance.input_types();
    if inputs.len() != expected.len() {
        return Err(KernelError::invalid_argument(format!(
            "{} takes {} inputs, found {}",
            instance.def(),
            expected.len(),
            inputs.len()
        )));
    }
    for (at, (tensor, &dtype)) in inputs.iter().zip(expected).enumerate() {
        if tensor.dtype() != dtype.base() {
            return Err(KernelError::invalid_argument(format!(
                "{}: input {at} is {dtype}, found {}",
                instance.def(),
                tensor.dtype()
            )));
        }
    }
    Ok(())
}

/// The inputs, in the memory that the kernel requires.
fn place_inputs(
    instance: &KernelInstance,
    inputs: Vec<Tensor>,
) -> Result<Box<[Tensor]>, KernelError> {
    let place = |(at, tensor): (usize, Tensor)| {
        let Some(memory) = instance.input_memory(at) else { return Ok(tensor) };
        let here = tensor.buffer().memory();
        let fits = here.kind() == memory.kind() && here.device() == memory.device();
        if fits {
            return Ok(tensor);
        }
        copy_tensor(&tensor, local(instance, here), memory, local(instance, memory))
    };
    inputs.into_iter().enumerate().map(place).collect()
}

fn own_stream(instance: &KernelInstance) -> Result<Option<OwnStream>, KernelError> {
    let Some(device) = instance.device() else { return Ok(None) };
    if !tenon_framework::device::base::DeviceBase::info(&**device).streams {
        return Ok(None);
    }
    let stream = device.create_stream()?;
    Ok(Some(OwnStream { device: Arc::clone(device), stream }))
}

/// Calls a kernel once, from host tensors to host tensors. Returns when everything is done, even
/// for asynchronous kernels and on devices with streams.
///
/// # Errors
/// As [`PreparedCall::new`] and [`PreparedCall::run`].
pub fn call_once(
    instance: &KernelInstance,
    inputs: &[Tensor],
    env: &StepEnv,
) -> Result<Vec<Tensor>, KernelError> {
    let mut call = PreparedCall::new(instance, inputs, env)?;
    call.run()?;
    call.host_outputs()
}

/// Like [`call_once`], with outputs that have buffers of these shapes before the kernel runs.
///
/// # Errors
/// As [`PreparedCall::new`] and [`PreparedCall::run_planned`].
pub fn call_planned(
    instance: &KernelInstance,
    inputs: &[Tensor],
    shapes: &[Shape],
    env: &StepEnv,
) -> Result<Vec<Tensor>, KernelError> {
    let mut call = PreparedCall::new(instance, inputs, env)?;
    call.run_planned(shapes)?;
    call.host_outputs()
}

/// Like [`call_once`], and the kernel may take over the inputs' buffers for its outputs where
/// nothing else holds them. Returns for each output the input whose buffer it took.
///
/// # Errors
/// As [`call_once`].
pub fn call_donating(
    instance: &KernelInstance,
    inputs: Vec<Tensor>,
    env: &StepEnv,
) -> Result<(Vec<Tensor>, Vec<Option<usize>>), KernelError> {
    let mut call = PreparedCall::build(instance, inputs, env, true)?;
    call.run()?;
    let taken = (0..call.outputs.len()).map(|output| call.taken_from(output)).collect();
    Ok((call.host_outputs()?, taken))
}
