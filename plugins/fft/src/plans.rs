//! Plans by length, and loops over the rows that they transform.

pub use num_complex::Complex;
use realfft::RealFftPlanner;
use rustfft::{FftNum, FftPlanner};
use std::sync::{Arc, Mutex, PoisonError};
use tenon_sdk::{
    KernelError, author::ComputeContext, element::Element, geometry::FftDirection, growth,
};

/// A float type for transforms.
pub trait Real: FftNum + Element {}
impl Real for f32 {}
impl Real for f64 {}

/// Number of plans that a kernel caches: a graph has few lengths, and a stream of new ones must not
/// fill the memory.
const KEPT: usize = 16;

/// Most bytes of a plan for each element.
const PLAN_BYTES: usize = 128;

/// A cache of the most recent plans of one kind.
pub struct Plans<P: ?Sized>(Mutex<Vec<(usize, Arc<P>)>>);

impl<P: ?Sized> Plans<P> {
    /// An empty cache.
    pub fn new() -> Plans<P> {
        Plans(Mutex::new(Vec::new()))
    }

    /// The plan of this length, created by `make` unless it is cached.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when there is no memory for the plan.
    pub fn get(&self, length: usize, make: impl FnOnce() -> Arc<P>) -> Result<Arc<P>, KernelError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, plan)) = kept.iter().find(|(of, _)| *of == length) {
            return Ok(plan.clone());
        }
        // The library allocates it: its factors, and if the length is prime, those of a longer
        // length.
        growth::foresee(length.saturating_mul(PLAN_BYTES))?;
        let plan = make();
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((length, plan.clone()));
        Ok(plan)
    }
}

/// A plan of complex numbers.
pub type ComplexPlan<T> = dyn rustfft::Fft<T>;

/// Creates a plan of complex numbers.
pub fn complex_plan<T: Real>(length: usize, direction: FftDirection) -> Arc<ComplexPlan<T>> {
    let direction = match direction {
        FftDirection::Forward => rustfft::FftDirection::Forward,
        FftDirection::Inverse => rustfft::FftDirection::Inverse,
    };
    FftPlanner::new().plan_fft(length, direction)
}

/// Creates a plan from real to complex numbers.
pub fn forward_plan<T: Real>(length: usize) -> Arc<dyn realfft::RealToComplex<T>> {
    RealFftPlanner::new().plan_fft_forward(length)
}

/// Creates a plan from complex to real numbers.
pub fn inverse_plan<T: Real>(length: usize) -> Arc<dyn realfft::ComplexToReal<T>> {
    RealFftPlanner::new().plan_fft_inverse(length)
}

/// Approximate nanoseconds of a transform of this length.
pub fn cost_ns(length: usize) -> f64 {
    let length = length as f64;
    20.0 + length * (1.0 + length.max(1.0).log2()) * 0.5
}

/// Runs `body` on rows of `len` elements, in blocks over the host's threads. It receives the index
/// of the block's first row, and the rows.
pub fn for_rows<T: Send>(
    c: &ComputeContext<'_>,
    data: &mut [T],
    len: usize,
    cost_ns: f64,
    body: impl Fn(usize, &mut [T]) -> Result<(), KernelError> + Sync,
) -> Result<(), KernelError> {
    /// Cost below which work stays on the calling thread: waking another core takes as long.
    const WORTH_ASKING_NS: f64 = 40_000.0;
    /// Number of blocks: enough for many threads to finish at about the same time.
    const BLOCKS: usize = 64;
    if data.is_empty() || len == 0 {
        return Ok(());
    }
    let rows = data.len() / len;
    if rows as f64 * cost_ns < WORTH_ASKING_NS {
        return body(0, data);
    }
    let block = rows.div_ceil(BLOCKS);
    let blocks = data.chunks_mut(block * len);
    c.parallel_items(blocks, block as f64 * cost_ns, |number, rows| body(number * block, rows))
}

/// Transforms rows in place.
pub fn transform_rows<T: Real>(
    c: &ComputeContext<'_>,
    plan: &ComplexPlan<T>,
    data: &mut [Complex<T>],
    prepare: impl Fn(usize, &mut [Complex<T>]) + Sync,
) -> Result<(), KernelError> {
    let (len, watch) = (plan.len(), c.watch());
    for_rows(c, data, len, cost_ns(len), |first, rows| {
        prepare(first, rows);
        let mut scratch = growth::filled(plan.get_inplace_scratch_len(), Complex::default())?;
        for row in rows.chunks_exact_mut(len) {
            watch.check()?;
            plan.process_with_scratch(row, &mut scratch);
        }
        Ok(())
    })
}

/// `1 / count`, by which an inverse transform divides.
pub fn scale<T: Real>(count: usize, direction: FftDirection) -> Option<T> {
    let count = count.max(1) as f64;
    (direction == FftDirection::Inverse).then(|| T::from_f64(1.0 / count)).flatten()
}
