//! Kernels for devices of type `ZOO`: what they enqueue runs after they have returned.

use crate::{
    device::ZooDevice,
    memory::Spot,
    stream::{Command, Stream},
};
use std::sync::Arc;
use tenon_sdk::{
    abi::Slot,
    device::author::{device_of, stream_of},
    prelude::*,
};

/// The device that a kernel of this plugin runs on.
fn device<'a>(c: &ComputeContext<'_>) -> Result<&'a ZooDevice, KernelError> {
    if c.device_state().is_null() {
        return Err(KernelError::internal("expected a device of type ZOO, found none"));
    }
    // SAFETY: these kernels are registered for type ZOO alone, whose devices this plugin makes.
    Ok(unsafe { device_of::<ZooDevice>(c.device_state()) })
}

/// Where a slot's memory is.
fn spot(device: &ZooDevice, slot: &Slot) -> Spot {
    match slot.memory.is_host_address() {
        true => Spot::Address(slot.data as usize),
        false => Spot::Handle(device.memory().clone(), slot.data as usize),
    }
}

/// Enqueues a command, or runs it at once where the host gave no stream.
fn enqueue(c: &ComputeContext<'_>, command: Command) -> Result<(), KernelError> {
    // SAFETY: null, or a stream of this plugin's device, which lives during the call.
    match unsafe { stream_of::<ZooDevice>(c.stream()) } {
        Some(stream) => device(c)?.enqueue(stream, command),
        None => command(),
    }
}

/// What a command computes from the floats of its input.
type Body = Box<dyn Fn(&mut [f32]) + Send>;

/// A command that reads `from`, changes it by `body` and writes `to`.
fn compute(from: Spot, to: Spot, bytes: u64, body: Body) -> Command {
    Box::new(move || {
        // SAFETY: the host keeps a call's memory for what it enqueued (see `MemoryKind`).
        let source = unsafe { from.read(bytes as usize)? };
        let mut values: Vec<f32> =
            source.chunks_exact(4).map(|x| f32::from_ne_bytes([x[0], x[1], x[2], x[3]])).collect();
        body(&mut values);
        let result: Vec<u8> = values.iter().flat_map(|x| x.to_ne_bytes()).collect();
        // SAFETY: as above.
        unsafe { to.write(&result) }
    })
}

fn same_shape(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.input(0))
}

register_op!(
    "ZooDeviceScale",
    inputs = &["x: float", "n: int32"],
    outputs = &["y: float"],
    shape = same_shape,
    summary = "x times n, which lies in host memory.",
);

fn scale(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let device = device(c)?;
    let n = *c
        .input::<i32>(1)?
        .data
        .first()
        .ok_or_else(|| KernelError::invalid_argument("n: expected one element, found none"))?;
    let x = *c.slot(0)?;
    let y = *c.prepare(0, c.dims(0))?;
    let body: Body = Box::new(move |values| values.iter_mut().for_each(|x| *x *= n as f32));
    enqueue(c, compute(spot(device, &x), spot(device, &y), x.bytes, body))
}

register_kernel!("ZooDeviceScale" on "ZOO": fn scale, host_memory = &["n"]);

register_op!(
    "ZooDeviceFacts",
    inputs = &["x: float", "n: int32"],
    outputs = &["facts: int64"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.shape_of(&[5])),
    summary = "Memory kinds of x, n and the output; whether there are a device and a stream.",
);

fn facts(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let output = c.prepare(0, &[5])?.memory;
    let facts = [
        i64::from(c.slot(0)?.memory.0),
        i64::from(c.slot(1)?.memory.0),
        i64::from(output.0),
        i64::from(!c.device_state().is_null()),
        i64::from(!c.stream().is_null()),
    ];
    c.output::<i64>(0, &[5])?.data.copy_from_slice(&facts);
    Ok(())
}

register_kernel!("ZooDeviceFacts" on "ZOO": fn facts, host_memory = &["n", "facts"]);

register_op!(
    "ZooDeviceScratch",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = same_shape,
    summary = "x in reverse order, by way of scratch memory of the device.",
);

fn scratch(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let device = device(c)?;
    let x = *c.slot(0)?;
    let lent = c.scratch(x.bytes as usize, MemoryKind::DEVICE)? as usize;
    let middle = Spot::Handle(device.memory().clone(), lent);
    let y = *c.prepare(0, c.dims(0))?;
    let reverse: Body = Box::new(|values| values.reverse());
    enqueue(c, compute(spot(device, &x), middle.clone(), x.bytes, reverse))?;
    enqueue(c, compute(middle, spot(device, &y), x.bytes, Box::new(|_| {})))
}

register_kernel!("ZooDeviceScratch" on "ZOO": fn scratch);

register_op!(
    "ZooDeviceKinds",
    inputs = &["x: float"],
    outputs = &["pinned: float", "shared: float"],
    shape = |c: &ShapeContext<'_>| {
        c.set_output(0, c.input(0))?;
        c.set_output(1, c.input(0))
    },
    summary = "Copies of x in memory of two other kinds.",
);

fn kinds(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let device = device(c)?;
    let x = *c.slot(0)?;
    for (output, kind) in [(0, MemoryKind::PINNED), (1, MemoryKind::SHARED)] {
        // What is written at once would overtake the stream.
        if !c.stream().is_null() && c.output_in::<f32>(output, c.dims(0), kind).is_ok() {
            return Err(KernelError::internal("a slice of memory that the stream may still use"));
        }
        let y = *c.prepare_in(output, c.dims(0), kind)?;
        enqueue(c, compute(spot(device, &x), spot(device, &y), x.bytes, Box::new(|_| {})))?;
    }
    Ok(())
}

register_kernel!("ZooDeviceKinds" on "ZOO": fn kinds);

register_op!(
    "ZooDeviceAsync",
    inputs = &["x: float"],
    outputs = &["y: float"],
    stateful = true,
    shape = same_shape,
    summary = "Doubles x, and completes once the stream has got there.",
);

struct Async;

impl Async {
    fn double(call: &mut AsyncCall) -> Result<Option<Arc<Stream>>, KernelError> {
        let c = call.context();
        let device = device(&c)?;
        let x = *c.slot(0)?;
        let y = *c.prepare(0, c.dims(0))?;
        let body: Body = Box::new(|values| values.iter_mut().for_each(|x| *x += *x));
        enqueue(&c, compute(spot(device, &x), spot(device, &y), x.bytes, body))?;
        // SAFETY: as in `enqueue`.
        Ok(unsafe { stream_of::<ZooDevice>(c.stream()) }.cloned())
    }
}

impl Kernel for Async {
    const MODE: Mode = Mode::Async;

    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Async)
    }

    fn start(&self, mut call: AsyncCall) {
        match Async::double(&mut call) {
            Ok(Some(stream)) => {
                // When the stream is gone the call is dropped, which fails it.
                let _ = stream.always(move |failure| {
                    call.finish(failure.cloned().map_or(Ok(()), Err));
                });
            }
            Ok(None) => call.finish(Ok(())),
            Err(error) => call.finish(Err(error)),
        }
    }

    fn compute(&self, _: &ComputeContext<'_>) -> Result<(), KernelError> {
        Err(KernelError::internal("an asynchronous kernel is started, not computed"))
    }
}

register_kernel!("ZooDeviceAsync" on "ZOO": Async);

register_op!(
    "ZooDeviceFailure",
    inputs = &["x: float"],
    outputs = &["y: float"],
    stateful = true,
    shape = same_shape,
    summary = "Enqueues a command that fails: the stream's first error.",
);

fn failure(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.prepare(0, c.dims(0))?;
    enqueue(c, Box::new(|| Err(KernelError::new(Code::DATA_LOSS, "zoo error on a stream"))))
}

register_kernel!("ZooDeviceFailure" on "ZOO": fn failure);

register_op!(
    "ZooDeviceLose",
    inputs = &["x: float"],
    outputs = &["y: float"],
    attrs = &["reason: string"],
    stateful = true,
    shape = same_shape,
    summary = "Loses the device.",
);

struct Lose {
    reason: String,
}

impl Kernel for Lose {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Lose { reason: c.attr::<&str>("reason")?.to_owned() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        device(c)?.lose(&self.reason);
        Err(KernelError::new(Code::UNAVAILABLE, self.reason.as_str()))
    }
}

register_kernel!("ZooDeviceLose" on "ZOO": Lose);
