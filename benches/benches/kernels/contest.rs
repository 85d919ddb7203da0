//! Kernels of one form, called in turn: whatever disturbs the machine disturbs all of them alike.

use crate::forms::Form;
use std::{sync::Arc, time::Instant};
use tenon_benches::Failure;
use tenon_framework::{
    DType, KernelError, PartialShape, Tensor,
    abi::{Numerics, ToleranceKind},
    attr_view::AttrTable,
    op::{OpDef, OpError, Signature},
    registry::{KernelDef, KernelQuery, SupportAnswer, candidates},
};
use tenon_runtime::{
    Runtime,
    host::{
        call::StepEnv,
        instance::{KernelInstance, KernelSpec, PreparedCall},
    },
};
use tenon_testkit::compare::{Rule, compare};

/// Type of the device whose kernels are timed.
pub const DEVICE: &str = "CPU";
/// The label that all others are compared with.
pub const REFERENCE: &str = "reference";
/// A sample is as many calls as take about so long.
const SAMPLE_NS: f64 = 400_000.0;
/// Samples of a kernel, unless they would take too long.
const SAMPLES: usize = 31;
const FEWEST_SAMPLES: usize = 7;
/// What all samples of one kernel may take.
const PATIENCE_NS: f64 = 600_000_000.0;

/// A node of one form.
pub struct Node<'a> {
    op: Arc<OpDef>,
    form: &'a Form,
    attrs: AttrTable,
    signature: Signature,
    shapes: Vec<PartialShape>,
}

impl<'a> Node<'a> {
    /// The node; `None` where the op is not defined for the form's element types.
    ///
    /// # Errors
    /// The form is none of the op's.
    pub fn new(op: &Arc<OpDef>, form: &'a Form) -> Result<Option<Node<'a>>, OpError> {
        let attrs = AttrTable::with_defaults(op, form.attrs.clone())?;
        let signature = match Signature::resolve(op, attrs.attrs()) {
            Err(OpError::NotAllowed { .. }) => return Ok(None),
            signature => signature?,
        };
        let shapes = form.inputs.iter().map(|x| PartialShape::from(*x.shape())).collect();
        Ok(Some(Node { op: Arc::clone(op), form, attrs, signature, shapes }))
    }

    /// The kernel of a label; `None` where there is none for the form's element types.
    pub fn kernel(&self, runtime: &Runtime, label: &str) -> Option<Arc<KernelDef>> {
        let query = KernelQuery {
            op: &self.op.name,
            device_type: DEVICE,
            attrs: self.attrs.attrs(),
            features: runtime.features(),
            label: Some(label),
        };
        let mut supports = |_: &KernelDef| SupportAnswer::Yes;
        candidates(&runtime.registry(), &query, &mut supports).result().ok().cloned()
    }

    /// A kernel made for the node. Arguments that it takes in host memory are constants, as in real graphs.
    ///
    /// # Errors
    /// What the kernel says of the form.
    pub fn instance(
        &self,
        runtime: &Runtime,
        def: &Arc<KernelDef>,
    ) -> Result<KernelInstance, KernelError> {
        let constant = |(at, tensor): (usize, &Tensor)| {
            let arg = self.signature.input_arg_of(&self.op, at)?;
            def.host_memory.iter().any(|name| name == arg).then(|| tensor.clone())
        };
        let constants: Vec<_> = self.form.inputs.iter().enumerate().map(constant).collect();
        KernelInstance::create(&KernelSpec {
            def,
            op: &self.op,
            node: self.form.name,
            attrs: &self.attrs,
            signature: &self.signature,
            input_shapes: &self.shapes,
            constants: &constants,
            device: None,
            knobs: &runtime.plugins().knobs(),
        })
    }

    /// A call of a kernel, which has run once.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn call<'b>(
        &self,
        instance: &'b KernelInstance,
        env: &'b StepEnv,
    ) -> Result<PreparedCall<'b>, KernelError> {
        let mut call = PreparedCall::new(instance, &self.form.inputs, env)?;
        call.run()?;
        Ok(call)
    }

    /// Elements of the largest tensor of a call.
    pub fn elements(&self, call: &PreparedCall<'_>) -> usize {
        let outputs = call.outputs();
        let tensors = self.form.inputs.iter().chain(&outputs);
        tensors.map(Tensor::elements).max().unwrap_or(1)
    }
}

/// A kernel's times.
#[derive(Clone)]
pub struct Timing {
    /// Nanoseconds per call, one per sample, in the order of the samples.
    pub samples: Vec<f64>,
}

impl Timing {
    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// The middle one.
    pub fn median(&self) -> f64 {
        self.sorted()[self.samples.len() / 2]
    }

    /// The shortest one.
    pub fn min(&self) -> f64 {
        self.sorted()[0]
    }

    /// The longest one.
    pub fn max(&self) -> f64 {
        self.sorted()[self.samples.len() - 1]
    }

    /// How many times as long as another, sample by sample, the middle one.
    pub fn ratio(&self, other: &Timing) -> f64 {
        let ratios = self.samples.iter().zip(&other.samples).map(|(a, b)| a / b).collect();
        Timing { samples: ratios }.median()
    }
}

/// Nanoseconds that so many calls take.
fn time(call: &mut PreparedCall<'_>, calls: u64) -> Result<f64, KernelError> {
    let begin = Instant::now();
    for _ in 0..calls {
        call.repeat(1)?;
    }
    Ok(begin.elapsed().as_nanos() as f64)
}

/// How many calls make a sample, and how long one takes.
fn calibrate(call: &mut PreparedCall<'_>) -> Result<(u64, f64), KernelError> {
    let mut calls = 1;
    loop {
        let took = time(call, calls)?;
        if took >= SAMPLE_NS / 4.0 || calls >= 1 << 20 {
            let each = took / calls as f64;
            return Ok(((SAMPLE_NS / each).ceil() as u64, each));
        }
        calls *= 2;
    }
}

/// Times calls in turn, sample by sample.
///
/// # Errors
/// What a kernel says.
pub fn contest(calls: &mut [PreparedCall<'_>]) -> Result<Vec<Timing>, KernelError> {
    let plans = calls.iter_mut().map(calibrate).collect::<Result<Vec<_>, _>>()?;
    let slowest = plans.iter().map(|&(count, each)| count as f64 * each).fold(1.0, f64::max);
    let samples = ((PATIENCE_NS / slowest) as usize).clamp(FEWEST_SAMPLES, SAMPLES);
    let mut timings: Vec<_> = calls.iter().map(|_| Timing { samples: Vec::new() }).collect();
    for _ in 0..samples {
        for ((call, &(count, _)), timing) in calls.iter_mut().zip(&plans).zip(&mut timings) {
            timing.samples.push(time(call, count)? / count as f64);
        }
    }
    Ok(timings)
}

/// How far a kernel may be from the reference, by its own contract. What it says relative to a sum's terms is
/// allowed relative to 1 too: the inputs are of that order.
fn rule(numerics: &Numerics, dtype: DType) -> Rule {
    let narrow = matches!(dtype, DType::HALF | DType::BFLOAT16);
    match numerics.tolerance {
        ToleranceKind::EXACT => Rule::Exact,
        ToleranceKind::ULPS if !narrow => Rule::Ulp(numerics.ulps as u64 + 1),
        _ => {
            let allowed = numerics.relative.max(if narrow { 2e-2 } else { 1e-6 }) * 100.0;
            Rule::Close { absolute: allowed, relative: allowed }
        }
    }
}

/// Checks that a kernel gives what the reference gives, so that nobody is timed at something else. Not a proof:
/// that is the goldens'.
///
/// # Errors
/// Where they differ.
pub fn check(
    def: &KernelDef,
    got: &PreparedCall<'_>,
    reference: &PreparedCall<'_>,
) -> Result<(), Failure> {
    for (at, (got, expected)) in got.outputs().iter().zip(&reference.outputs()).enumerate() {
        let rule = rule(&def.numerics, expected.dtype());
        compare(got, expected, &rule).map_err(|wrong| format!("output {at} of {def}: {wrong}"))?;
    }
    Ok(())
}
