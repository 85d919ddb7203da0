//! Times the kernels of one call.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_framework::{DType, KernelError, Shape, Tensor, plugin::guard, registry::Timed};
use tenon_host::{
    call::StepEnv,
    instance::{KernelInstance, PreparedCall},
    pool::ThreadPool,
    resources::Resources,
};

/// The number of rounds in which the kernels alternate.
const ROUNDS: usize = 7;
/// The duration of a kernel's turn.
const TURN: Duration = Duration::from_micros(300);
/// The maximum number of calls in a turn.
const CALLS: u64 = 20_000;
/// The number of calls that a first estimate is the best of, and the time that ends them. One call alone may be held up
/// by other processes for longer than a slow kernel takes.
const FIRST_CALLS: usize = 3;
const FIRST_TIME: Duration = Duration::from_millis(50);
/// A kernel that is this many times slower than the fastest is not timed any further.
const MAX_SLOWDOWN: f64 = 8.0;

/// A dimension rounded up to a power of two.
pub(crate) fn bucket(dim: i64) -> i64 {
    if dim <= 1 {
        return dim;
    }
    let up = (dim as u64).checked_next_power_of_two().and_then(|up| i64::try_from(up).ok());
    up.unwrap_or(dim)
}

/// Creates a kernel of the call; called once for each.
pub(crate) type Make = Box<dyn Fn(usize) -> Result<Arc<KernelInstance>, KernelError> + Send>;

/// An input of the call.
pub(crate) enum JobInput {
    /// An input that is the same in every step.
    Constant(Tensor),
    /// An input with generated elements.
    Generated(DType, Shape),
}

/// A measurement.
pub(crate) struct Job {
    /// The number of kernels.
    pub kernels: usize,
    pub make: Make,
    pub inputs: Vec<JobInput>,
    pub pool: Arc<ThreadPool>,
}

impl Job {
    /// Times all kernels.
    pub fn run(self) -> Vec<Timed> {
        let inputs: Result<Vec<Tensor>, KernelError> = self
            .inputs
            .iter()
            .map(|input| match input {
                JobInput::Constant(tensor) => Ok(tensor.clone()),
                JobInput::Generated(dtype, shape) => generated(*dtype, shape),
            })
            .collect();
        let inputs = match inputs {
            Ok(inputs) => inputs,
            Err(error) => return vec![Timed::Failed(error.to_string()); self.kernels],
        };
        let env = StepEnv::new(Arc::clone(&self.pool), Arc::new(Resources::new()));
        let made: Vec<_> = (0..self.kernels).map(|at| guarded(|| (self.make)(at))).collect();
        let mut rivals: Vec<Rival<'_>> =
            made.iter().map(|made| Rival::new(made, &inputs, &env)).collect();
        for _ in 0..ROUNDS {
            let best = rivals.iter().filter_map(|rival| rival.best).fold(f64::INFINITY, f64::min);
            for rival in &mut rivals {
                rival.turn(best);
            }
        }
        rivals.into_iter().map(Rival::timed).collect()
    }
}

fn guarded<T>(body: impl FnOnce() -> Result<T, KernelError>) -> Result<T, KernelError> {
    guard(body).unwrap_or_else(|panic| Err(KernelError::internal(format!("it panicked: {panic}"))))
}

/// A kernel that is being timed.
struct Rival<'a> {
    call: Result<PreparedCall<'a>, KernelError>,
    best: Option<f64>,
    calls: u64,
}

impl<'a> Rival<'a> {
    /// Calls the kernel once to warm it up, and a few more times for a first estimate.
    fn new(
        made: &'a Result<Arc<KernelInstance>, KernelError>,
        inputs: &[Tensor],
        env: &'a StepEnv,
    ) -> Rival<'a> {
        let first = || {
            let instance = made.as_ref().map_err(Clone::clone)?;
            let mut call = PreparedCall::new(instance, inputs, env)?;
            call.run()?;
            let (all, mut best) = (Instant::now(), f64::INFINITY);
            for _ in 0..FIRST_CALLS {
                let begin = Instant::now();
                call.run()?;
                best = best.min(begin.elapsed().as_secs_f64() * 1e9);
                if all.elapsed() >= FIRST_TIME {
                    break;
                }
            }
            Ok((call, best))
        };
        match guarded(first) {
            Ok((call, ns)) => {
                let calls = (TURN.as_nanos() as f64 / ns.max(1.0)) as u64;
                Rival { call: Ok(call), best: Some(ns.max(1.0)), calls: calls.clamp(1, CALLS) }
            }
            Err(error) => Rival { call: Err(error), best: None, calls: 0 },
        }
    }

    fn turn(&mut self, best: f64) {
        let (Ok(call), Some(own)) = (&mut self.call, self.best) else { return };
        if own > best * MAX_SLOWDOWN {
            return;
        }
        let begin = Instant::now();
        let done = guarded(|| call.repeat(self.calls));
        let ns = begin.elapsed().as_secs_f64() * 1e9 / self.calls as f64;
        match done {
            Ok(()) => self.best = Some(own.min(ns.max(0.1))),
            Err(error) => self.call = Err(error),
        }
    }

    fn timed(self) -> Timed {
        match (self.call, self.best) {
            (Ok(_), Some(ns)) => Timed::Ns(ns),
            (Err(error), _) => Timed::Failed(error.to_string()),
            (Ok(_), None) => Timed::Failed("it was not timed".to_owned()),
        }
    }
}

/// A tensor of elements that no kernel refuses: numbers between -1 and 1 for floats, zeros for the
/// other types, which may be indices.
fn generated(dtype: DType, shape: &Shape) -> Result<Tensor, KernelError> {
    let wrong = |error: tenon_framework::tensor::TensorError| {
        KernelError::new(error.code(), error.to_string())
    };
    let count = shape.elements();
    let noise = |at: usize| {
        let mixed = (at as u32).wrapping_mul(2_654_435_761) >> 8;
        mixed as f32 / (1 << 23) as f32 - 1.0
    };
    match dtype {
        DType::FLOAT => {
            let values: Vec<f32> = (0..count).map(noise).collect();
            Tensor::from_slice(shape.dims(), &values).map_err(wrong)
        }
        DType::DOUBLE => {
            let values: Vec<f64> = (0..count).map(|at| f64::from(noise(at))).collect();
            Tensor::from_slice(shape.dims(), &values).map_err(wrong)
        }
        _ => {
            let bytes = dtype.size().and_then(|size| size.checked_mul(count));
            let bytes = bytes.ok_or_else(|| {
                KernelError::unimplemented(format!("no tensor of {dtype} can be generated"))
            })?;
            Tensor::from_bytes(dtype, shape.dims(), &vec![0; bytes]).map_err(wrong)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_rounded_up_to_powers_of_two() {
        for (dim, up) in
            [(-1, -1), (0, 0), (1, 1), (2, 2), (3, 4), (224, 256), (i64::MAX, i64::MAX)]
        {
            assert_eq!(bucket(dim), up);
        }
    }

    #[test]
    fn made_up_elements_are_of_their_type_and_within_bounds() {
        let shape = Shape::new(&[1000]).unwrap();
        let floats = generated(DType::FLOAT, &shape).unwrap();
        let values = floats.as_slice::<f32>().unwrap();
        assert!(values.iter().all(|value| (-1.0..=1.0).contains(value)));
        assert!(
            values.iter().any(|value| *value > 0.5) && values.iter().any(|value| *value < -0.5)
        );
        let indices = generated(DType::INT64, &shape).unwrap();
        assert!(indices.as_slice::<i64>().unwrap().iter().all(|&index| index == 0));
        assert!(generated(DType::RESOURCE, &shape).is_err() || DType::RESOURCE.size().is_some());
    }
}
