//! Ops and kernels for tests.

use super::fake::Fake;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use tenon_abi::Slot;
use tenon_author::{
    AsyncCall, ComputeContext, CreateContext, InOut, Kernel, Mode, Packed, Prepack, ResourceValue,
    Supported, Supports,
    device::{device_of, stream_of},
    reg::Denormals,
    register_kernel, register_op,
};
use tenon_framework::{DType, KernelError, PartialShape};

register_op!("HostTestDouble", inputs = &["x: float"], outputs = &["y: float"], attrs = &[]);
register_op!(
    "HostTestLater",
    inputs = &["x: float"],
    outputs = &["y: float"],
    attrs = &["mode: string"]
);
register_op!(
    "HostTestScale",
    inputs = &["x: float", "factor: float"],
    outputs = &["y: float"],
    attrs = &["limit: int = 4"]
);

register_op!("HostTestLoop", inputs = &["x: float"], outputs = &["y: float"]);

/// Doubles in a loop with an estimated cost of a millisecond for each element, and ignores that it
/// was cut short.
fn double_in_a_loop(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    let rows = y.data.iter_mut().zip(x.data);
    let cut = c.parallel_items(rows, 1e6, |_, (y, x)| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        *y = x * 2.0;
        Ok(())
    });
    debug_assert!(cut.is_ok() || c.is_cancelled(), "{cut:?}");
    Ok(())
}

register_kernel!("HostTestLoop" on "CPU": fn double_in_a_loop);

fn double(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let dims = c.dims(0);
    match c.in_place::<f32>(0, 0, dims)? {
        InOut::InPlace(values) => values.iter_mut().for_each(|value| *value *= 2.0),
        InOut::Separate(from, to) => {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = from * 2.0);
        }
    }
    Ok(())
}

/// Doubles if the call is plain; negates in every other call.
fn double_if_plain(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    if c.elementwise::<f64, 1>().is_some() || c.elementwise::<f32, 2>().is_some() {
        return Err(KernelError::internal("a call is plain for its own types and inputs only"));
    }
    if let Some(([x], y)) = c.elementwise::<f32, 1>() {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = x * 2.0);
        let again = c.elementwise::<f32, 1>().is_some() || c.output::<f32>(0, c.dims(0)).is_ok();
        return match again {
            true => Err(KernelError::internal("the output is handed out twice")),
            false => Ok(()),
        };
    }
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = -x);
    Ok(())
}

/// Doubles on the fake device: enqueued, so that the result exists when the stream has run.
fn double_on_device(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let input = *c.slot(0)?;
    let output = *c.prepare(0, c.dims(0))?;
    // SAFETY: a kernel of the device type, with the state and the stream of the call.
    unsafe {
        let device = device_of::<Fake>(c.device_state());
        let stream =
            stream_of::<Fake>(c.stream()).ok_or_else(|| KernelError::internal("no stream"))?;
        device.enqueue_doubling(input.data, output.data, input.bytes as usize, stream);
    }
    Ok(())
}

register_kernel!("HostTestDouble" on "CPU": fn double, in_place = &[(0, 0)]);
register_kernel!("HostTestDouble" on "CPU": fn double_if_plain, label = "plain", on_request = true);

/// Computes x through a product below the smallest normal number, half of it on other threads.
fn by_way_of_a_denormal(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    // 2 to the power of -130, of 127, and of 3.
    let (small, large) = (f32::from_bits(1 << 19), f32::from_bits(254 << 23));
    let back = |x: f32| std::hint::black_box(x * small) * large * 8.0;
    let (first, second) = y.data.split_at_mut(x.data.len() / 2);
    first.iter_mut().zip(x.data).for_each(|(y, x)| *y = back(*x));
    let x = &x.data[first.len()..];
    c.parallel_items(second.iter_mut().zip(x), 1e6, |_, (y, x)| {
        *y = back(*x);
        Ok(())
    })
}

register_kernel!("HostTestDouble" on "CPU": fn by_way_of_a_denormal, label = "flushed", on_request = true);
register_kernel!("HostTestDouble" on "CPU": fn by_way_of_a_denormal, label = "gradual",
    denormals = Denormals::Keep, on_request = true);
register_kernel!("HostTestDouble" on "LOOSE": fn double, in_place = &[(0, 0)]);
register_kernel!("HostTestDouble" on "FAKE": fn double_on_device);

/// Doubles on a new thread, or ends otherwise, depending on `mode`.
struct Later {
    mode: String,
}

impl Kernel for Later {
    const MODE: Mode = Mode::Async;

    fn new(context: &CreateContext<'_>) -> Result<Later, KernelError> {
        let mode: &str = context.attr("mode")?;
        Ok(Later { mode: mode.to_owned() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        double(c)
    }

    fn start(&self, mut call: AsyncCall) {
        match self.mode.as_str() {
            "thread" => {
                std::thread::spawn(move || {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    let result = double(&call.context());
                    call.finish(result);
                });
            }
            "now" => {
                let result = double(&call.context());
                call.finish(result);
            }
            "error" => call.finish(Err(KernelError::invalid_argument("as asked for"))),
            "panic" => panic!("as asked for"),
            _ => drop(call),
        }
    }
}

register_kernel!("HostTestLater" on "CPU": Later);

/// Number of packed forms that exist.
pub(crate) static FORMS: AtomicUsize = AtomicUsize::new(0);

struct Form(f32);

impl Drop for Form {
    fn drop(&mut self) {
        FORMS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Multiplies by a constant that it packs.
struct Scale {
    packed: Option<Packed>,
}

impl Kernel for Scale {
    fn new(_: &CreateContext<'_>) -> Result<Scale, KernelError> {
        Ok(Scale { packed: None })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let form = self.packed.as_ref().and_then(Packed::get::<Form>);
        let factor = match form {
            Some(form) => form.0,
            None => c.input::<f32>(1)?.data[0],
        };
        let x = c.input::<f32>(0)?;
        let y = c.output::<f32>(0, x.dims)?;
        y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = x * factor);
        Ok(())
    }
}

impl Supports for Scale {
    fn supports(context: &CreateContext<'_>) -> Supported {
        let limit: i64 = context.attr("limit").unwrap_or(0);
        let shape: PartialShape = context.input_shape(0);
        match shape.rank() {
            None => Supported::DependsOnShapes,
            Some(rank) if rank as i64 <= limit => Supported::Yes,
            Some(rank) => Supported::No(format!("rank {rank} is above {limit}")),
        }
    }
}

impl Prepack for Scale {
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        if input != 1 {
            return Ok(None);
        }
        if view.elements != 1 {
            return Err(KernelError::invalid_argument("factor: expected one element"));
        }
        FORMS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: a constant in host memory with one float.
        let factor = unsafe { *view.data.cast_const().cast::<f32>() };
        Ok(Some(Packed::new(Form(factor), 4)))
    }

    fn attach_packed(&mut self, _input: usize, packed: &Packed) {
        self.packed = Some(packed.clone());
    }
}

register_kernel!("HostTestScale" on "CPU": Scale);

register_op!(
    "HostTestVariable",
    inputs = &["x: float"],
    outputs = &["handle: resource"],
    attrs = &[],
    stateful = true
);
register_op!(
    "HostTestAdd",
    inputs = &["handle: resource", "x: float"],
    outputs = &["y: float"],
    attrs = &["hold: bool = false"],
    stateful = true
);
register_op!(
    "HostTestRef",
    inputs = &[],
    outputs = &["ref: Ref(float)"],
    attrs = &[],
    stateful = true
);
register_op!(
    "HostTestCounter",
    inputs = &[],
    outputs = &["count: int64"],
    attrs = &["fail: bool = false"],
    stateful = true
);

/// Sets variable `v` to the input, and returns its handle.
fn variable(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let v = state.variable("", "v", DType::FLOAT)?;
    state.lock(&[&v])?.assign(0, 0)?;
    c.output_handle(0, &v)
}

/// Adds the input to the variable in place, and returns the former value.
fn add(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let v = state.input_variable(0)?;
    let x = c.input::<f32>(1)?;
    let variables = [&v];
    let mut locked = state.lock(&variables)?;
    locked.output(0, 0)?;
    locked.view_mut::<f32>(0)?.data.iter_mut().for_each(|value| *value += x.data[0]);
    Ok(())
}

/// Returns a reference to the variable, which has 9 at first.
fn reference(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    c.output::<f32>(0, &[1])?.data[0] = 9.0;
    let v = state.variable("", "v", DType::FLOAT)?;
    state.output_ref(&v, 0)
}

struct Calls(AtomicI64);

impl ResourceValue for Calls {
    const NAME: &'static str = "host-test.Counter";
}

/// Counts its calls in its own resource.
struct Counter {
    fail: bool,
}

impl Kernel for Counter {
    fn new(context: &CreateContext<'_>) -> Result<Counter, KernelError> {
        Ok(Counter { fail: context.attr("fail")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let calls = c.state().find_or_create("", "counter", || match self.fail {
            true => Err(KernelError::invalid_argument("no counter today")),
            false => Ok(Calls(AtomicI64::new(0))),
        })?;
        c.output::<i64>(0, &[])?.data[0] = calls.0.fetch_add(1, Ordering::SeqCst) + 1;
        Ok(())
    }
}

register_kernel!("HostTestVariable" on "CPU": fn variable);
register_kernel!("HostTestAdd" on "CPU": fn add);
register_kernel!("HostTestRef" on "CPU": fn reference);
register_kernel!("HostTestCounter" on "CPU": Counter);

/// Never writes its output.
fn forgetful(_: &ComputeContext<'_>) -> Result<(), KernelError> {
    Ok(())
}

register_kernel!("HostTestDouble" on "CPU": fn forgetful, label = "forgetful", on_request = true);
