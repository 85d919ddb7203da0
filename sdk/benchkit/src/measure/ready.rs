//! Kernels that are made, checked, and called.

use super::judge::{Expected, Judge, Verdict};
use crate::{
    record::{ProblemKind, Sampled, Timing},
    sampler::Subject,
    variants::{Choice, Host},
    words::time,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_framework::{
    DType, KernelError, Tensor,
    abi::{Determinism, slot_flags},
    device::base::DeviceBase,
};
use tenon_runtime::host::instance::{KernelInstance, PackCache, PreparedCall};
use tenon_testkit::node::Node;

/// Types and shapes of a call.
#[derive(Debug, Clone, Default)]
pub struct Shapes {
    /// Of the inputs.
    pub inputs: Vec<(DType, Vec<i64>)>,
    /// Of the outputs.
    pub outputs: Vec<(DType, Vec<i64>)>,
}

/// A kernel whose result was looked at.
pub struct Ready {
    /// Which.
    pub choice: Choice,
    /// The kernel.
    pub instance: KernelInstance,
    /// The reference for its results.
    pub checked: Option<String>,
    /// Why nothing says whether they are right.
    pub unverified: Option<String>,
    /// Types and shapes.
    pub shapes: Shapes,
    outputs: Vec<Tensor>,
    expected: Option<Arc<Expected>>,
}

/// Makes a kernel, calls it, and has its results judged where there is a judge.
#[allow(
    clippy::result_large_err,
    reason = "made once per variant, and the choice goes into the report"
)]
pub fn make(
    host: &Host,
    node: &Node,
    choice: Choice,
    inputs: &[Tensor],
    judge: Option<&mut Judge<'_>>,
    longest: Duration,
) -> Result<Ready, (Choice, ProblemKind, String)> {
    if let Some(reason) = judge.as_ref().and_then(|judge| judge.spares(&choice, node)) {
        return Err((choice, ProblemKind::TooSlow, reason));
    }
    let made = instance(host, node, &choice).and_then(|instance| {
        let mut call = PreparedCall::new(&instance, inputs, &host.env)?;
        let began = Instant::now();
        call.run()?;
        let taken = began.elapsed();
        let outputs = call.host_outputs()?;
        drop(call);
        Ok((instance, outputs, taken))
    });
    let (instance, outputs, taken) = match made {
        Ok(made) => made,
        Err(error) => return Err((choice, ProblemKind::Failed, error.to_string())),
    };
    let verdict = judge.map(|judge| judge.judge(&choice, node, &outputs));
    let (checked, expected, unverified) = match verdict {
        None => (None, None, None),
        Some(Verdict::Right(by, expected)) => (Some(by), expected, None),
        Some(Verdict::Unverified(reason)) => (None, None, Some(reason)),
        Some(Verdict::Wrong(message)) => return Err((choice, ProblemKind::Wrong, message)),
    };
    if taken > longest {
        return Err((choice, ProblemKind::TooSlow, too_slow(taken, longest)));
    }
    let shape = |tensor: &Tensor| (tensor.dtype(), tensor.shape().dims().to_vec());
    let shapes = Shapes {
        inputs: inputs.iter().map(shape).collect(),
        outputs: outputs.iter().map(shape).collect(),
    };
    Ok(Ready { choice, instance, checked, unverified, shapes, outputs, expected })
}

fn too_slow(taken: Duration, longest: Duration) -> String {
    let enough = taken.as_secs() / u64::from(super::FIRST_CALL) + 1;
    format!(
        "the first call took {}, more than {}: tenon bench with --time {enough} or more would wait for it",
        time(taken.as_nanos() as f64),
        time(longest.as_nanos() as f64),
    )
}

/// The kernel as a session makes it: with the constants packed.
fn instance(host: &Host, node: &Node, choice: &Choice) -> Result<KernelInstance, KernelError> {
    let knobs = host.runtime.plugins().knobs();
    let spec = node.spec(&choice.def, Some(&choice.device), &knobs);
    let mut instance = KernelInstance::create(&spec)?;
    let cache = PackCache::new();
    for (at, constant) in node.constants.iter().enumerate() {
        let Some(constant) = constant else { continue };
        instance.prepack(at as u32, constant, &cache, &format!("bench/{at}"))?;
    }
    Ok(instance)
}

impl Ready {
    /// Which part of the results was judged, where it was not the whole.
    pub fn sampled(&self) -> Option<Sampled> {
        self.expected.as_ref().and_then(|expected| expected.sampled())
    }

    /// A call that has run once.
    pub fn call<'a>(
        &'a self,
        host: &'a Host,
        inputs: &[Tensor],
    ) -> Result<KernelCall<'a>, KernelError> {
        let mut call = PreparedCall::new(&self.instance, inputs, &host.env)?;
        call.run()?;
        call.repeat(1)?;
        let taken: Vec<_> = inputs.iter().map(|input| input.buffer().data()).collect();
        let shares = call.slots().iter().any(|slot| slot.bytes > 0 && taken.contains(&slot.data));
        let planned = call.slots().iter().all(|slot| slot.flags & slot_flags::PLANNED != 0);
        let streams = self.choice.device.info().streams;
        let timing = match () {
            () if self.instance.is_async() || (!planned && !shares) => Timing::Call,
            () if streams => Timing::Enqueued,
            () => Timing::Kernel,
        };
        Ok(KernelCall { call, timing, shares })
    }

    /// The problem with the outputs after a call was timed: other bits where the same ones are promised, else what
    /// the oracle did not expect.
    pub fn changed(&self, call: &KernelCall<'_>) -> Option<String> {
        let now = match call.call.host_outputs() {
            Ok(now) => now,
            Err(error) => return Some(format!("the outputs cannot be read after timing: {error}")),
        };
        let at = self.outputs.iter().zip(&now).position(|(a, b)| !same(a, b))?;
        if self.choice.def.numerics.determinism != Determinism::NONE {
            return Some(format!(
                "output {at} is not what it was before timing, though the kernel promises the same bits"
            ));
        }
        let wrong = self.expected.as_ref().and_then(|expected| expected.mismatch(&now))?;
        Some(format!("right before timing, wrong after it: {wrong}"))
    }
}

fn same(a: &Tensor, b: &Tensor) -> bool {
    match (a.as_strings(), b.as_strings()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a.as_bytes().ok() == b.as_bytes().ok(),
    }
}

/// A call of a kernel, repeated.
pub struct KernelCall<'a> {
    call: PreparedCall<'a>,
    timing: Timing,
    shares: bool,
}

impl KernelCall<'_> {
    /// What one call is.
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// Whether an output is an input's buffer.
    pub fn shares(&self) -> bool {
        self.shares
    }
}

impl Subject for KernelCall<'_> {
    fn run(&mut self, calls: u64) -> Result<(), String> {
        self.call.repeat(calls).map_err(|error| error.to_string())
    }
}
