//! What these tests share.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tenon_graph::{GraphBuilder, GraphError, Output};
use tenon_runtime::{
    RunOptions, Runtime,
    framework::{DType, PartialShape, Tensor},
    host::call::TraceSink,
};
use tenon_tests::session::{floats, values};

pub const BOTH: &[&str] = &["tenon_cpu", "tenon_accel"];
pub const ACCEL: &str = "/device:ACCEL:0";
pub const CPU: &str = "/device:CPU:0";
/// Elements of a tensor that a step does not keep but takes from the pool and gives back.
pub const LARGE: i64 = 5000;
/// A test that waits so long has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// While it lives, kernels of a name do not begin.
pub struct Held(Runtime);

impl Held {
    pub fn back(runtime: &Runtime, name: &str) -> Held {
        runtime.plugins().set_knob("accel.hold", name).expect("a knob of the plugin");
        Held(runtime.clone())
    }
}

impl Drop for Held {
    /// Also when a test fails: a step that is held back would not end.
    fn drop(&mut self) {
        self.0.plugins().set_knob("accel.hold", "").expect("a knob of the plugin");
    }
}

/// What ran on which stream, in the order in which it was done.
#[derive(Default)]
pub struct Streams {
    spans: Mutex<Vec<(String, String)>>,
    more: Condvar,
}

impl TraceSink for Streams {
    fn span(&self, _node: &str, _name: &str, _begin_ns: u64, _end_ns: u64) {}

    fn stream_span(&self, stream: &str, node: &str, begin_ns: u64, end_ns: u64) {
        assert!(0 < begin_ns && begin_ns <= end_ns, "{node} on {stream}");
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        spans.push((node.to_owned(), stream.to_owned()));
        self.more.notify_all();
    }
}

impl Streams {
    pub fn options(self: &Arc<Self>) -> RunOptions {
        RunOptions { trace: Some(Arc::<Streams>::clone(self)), ..RunOptions::default() }
    }

    pub fn of(&self, node: &str) -> Option<String> {
        let spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        spans.iter().find(|(name, _)| name == node).map(|(_, stream)| stream.clone())
    }

    /// Waits until a node is done on its stream.
    pub fn wait_for(&self, node: &str) {
        let end = Instant::now() + PATIENCE;
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        while !spans.iter().any(|(name, _)| name == node) {
            assert!(Instant::now() < end, "{node} did not run, only {spans:?}");
            let waited = self.more.wait_timeout(spans, Duration::from_millis(100));
            spans = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

pub fn input(
    b: &mut GraphBuilder<'_>,
    name: &str,
    shape: PartialShape,
) -> Result<Output, GraphError> {
    b.placeholder(name, DType::FLOAT, shape)
}

pub fn vector(length: i64) -> PartialShape {
    PartialShape::new(&[length]).expect("a shape")
}

/// Other values for every `step`, so that what is left from an earlier one shows.
pub fn feed(length: i64, step: usize) -> Tensor {
    let value = |at: i64| ((at * 37 + step as i64 * 11) % 101) as f32 / 16.0 - 3.0;
    floats(&(0..length).map(value).collect::<Vec<f32>>())
}

pub fn bits(tensors: &[Tensor]) -> Vec<Vec<u32>> {
    let of = |tensor| values(tensor).into_iter().map(f32::to_bits).collect();
    tensors.iter().map(of).collect()
}

/// `y = x^2 - relu(-x)`, the two sides apart, and both meet again in `z = y * x^2`.
pub fn diamond(
    on: &'static str,
    shape: PartialShape,
) -> impl Fn(&mut GraphBuilder<'_>) -> Result<(), GraphError> {
    move |b| {
        let x = input(b, "x", shape.clone())?;
        let p = b.op("Neg").name("p").input(x).device(on).build()?;
        let a = b.op("Square").name("a").input(p).device(on).build()?;
        let c = b.op("Relu").name("c").input(p).device(on).build()?;
        let y = b.op("Sub").name("y").input(a).input(c).device(on).build()?;
        b.op("Mul").name("z").input(y).input(a).device(on).build().map(|_| ())
    }
}

pub fn expected(x: &Tensor) -> Vec<f32> {
    values(x).into_iter().map(|x| (x * x - (-x).max(0.0)) * (x * x)).collect()
}
