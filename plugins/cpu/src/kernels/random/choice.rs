//! `RandomShuffle` and `Multinomial`: random choices of elements; and their forms by seeds and keys.

use super::{
    stateful::stream_of,
    stateless::{mixed, named},
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_philox::{Philox, Stream, Words, reserved, uniform_f64};
use tenon_reference::reduction::IndexElement;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    growth,
    reg::{COPYABLE, Numerics},
    register_kernel,
};

/// Shuffles rows.
///
/// Each row is exchanged with itself or a later one. Source: Durstenfeld, "Algorithm 235: random
/// permutation", 1964; the order, and the words used, are TensorFlow's.
struct RandomShuffle {
    stream: Stream,
}

/// The row that moves to each position. `stream` gives so many steps of a generator.
fn permutation(rows: usize, stream: impl FnOnce(u64) -> Philox) -> Result<Vec<usize>, KernelError> {
    if u32::try_from(rows).is_err() {
        return Err(KernelError::invalid_argument(format!(
            "value has {rows} rows, at most {} can be shuffled",
            u32::MAX
        )));
    }
    let mut order = growth::collected(0..rows)?;
    if rows < 2 {
        return Ok(order);
    }
    let mut words = Words::new(stream((rows as u64 - 1).div_ceil(4)));
    for at in 0..rows - 1 {
        order.swap(at, at + words.next_word() as usize % (rows - at));
    }
    Ok(order)
}

impl Kernel for RandomShuffle {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(RandomShuffle { stream: stream_of(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        shuffle(c, |steps| self.stream.take(steps))
    }
}

/// `StatelessShuffle`.
fn stateless_shuffle(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let stream = named(c)?;
    shuffle(c, |_| stream)
}

fn shuffle(c: &ComputeContext<'_>, stream: impl FnOnce(u64) -> Philox) -> Result<(), KernelError> {
    let dims = c.dims(0);
    // Any number of rows is allowed if they have no elements.
    let rows = if dims.contains(&0) { 0 } else { dims.first().map_or(1, |&rows| rows as usize) };
    let order = permutation(rows, stream)?;
    if c.slot(0)?.dtype == DType::STRING {
        let x = c.strings(0)?;
        let row = x.len().checked_div(order.len()).unwrap_or(0);
        let shuffled = (0..x.len()).map(|at| x[order[at / row] * row + at % row]);
        return c.set_strings(0, dims, shuffled);
    }
    let (x, y) = (c.input_bytes(0)?, c.output_bytes(0, dims)?);
    let row = x.len().checked_div(order.len()).unwrap_or(0);
    if row > 0 {
        for (y, &from) in y.chunks_exact_mut(row).zip(&order) {
            y.copy_from_slice(&x[from * row..][..row]);
        }
    }
    Ok(())
}

/// The number of samples between checks whether the step was cancelled.
const LOOK: usize = 1 << 14;

/// Draws classes by the inverse of their cumulative probabilities, in double precision. Classes
/// whose logit is not finite are never drawn.
struct Multinomial<T> {
    stream: Stream,
    element: PhantomData<fn(T)>,
}

/// Writes classes drawn by the words of so many steps of a generator.
fn write<T: Number, I: IndexElement>(
    c: &ComputeContext<'_>,
    stream: impl FnOnce(u64) -> Philox,
) -> Result<(), KernelError> {
    let logits = c.input::<T>(0)?;
    let samples = c.integer(1, "num_samples")?;
    let &[rows, classes] = logits.dims else {
        return Err(KernelError::invalid_argument(format!(
            "logits must have 2 dimensions, got shape {:?}",
            logits.dims
        )));
    };
    if samples < 0 {
        return Err(KernelError::invalid_argument(format!(
            "num_samples must be at least 0, got {samples}"
        )));
    }
    let y = c.output::<I>(0, &[rows, samples])?.data;
    if y.is_empty() {
        return Ok(());
    }
    if classes < 1 {
        return Err(KernelError::invalid_argument("logits must have at least 1 class, got 0"));
    }
    let (classes, samples) = (classes as usize, samples as usize);
    // Two words per sample, and whole steps for each row.
    let outputs = (rows as usize).wrapping_mul(samples.next_multiple_of(4)).wrapping_mul(2);
    let mut words = Words::new(stream(reserved(outputs)));
    let mut cumulated = growth::filled(classes, 0.0)?;
    for (logits, y) in logits.data.chunks_exact(classes).zip(y.chunks_exact_mut(samples)) {
        let total = cumulate(logits, &mut cumulated);
        for y in y.chunks_mut(LOOK) {
            c.watch().check()?;
            for y in y {
                let (low, high) = (words.next_word(), words.next_word());
                let wanted = uniform_f64(low, high) * total;
                let class = cumulated.partition_point(|&sum| sum <= wanted);
                *y = I::from_index(class.min(classes - 1));
            }
        }
    }
    Ok(())
}

/// Computes the cumulative sums of the probabilities, not normalised; returns the last sum.
fn cumulate<T: Number>(logits: &[T], sums: &mut [f64]) -> f64 {
    let finite = |x: &&T| x.to_f64().is_finite();
    let greatest = logits.iter().filter(finite).map(|x| x.to_f64()).fold(f64::MIN, f64::max);
    let mut total = 0.0;
    for (sum, logit) in sums.iter_mut().zip(logits) {
        if finite(&logit) {
            total += (logit.to_f64() - greatest).exp();
        }
        *sum = total;
    }
    total
}

impl<T: Number> Kernel for Multinomial<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Multinomial { stream: stream_of(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        draw::<T>(c, |steps| self.stream.take(steps))
    }
}

fn draw<T: Number>(
    c: &ComputeContext<'_>,
    stream: impl FnOnce(u64) -> Philox,
) -> Result<(), KernelError> {
    match c.output_slot(0)?.dtype {
        DType::INT32 => write::<T, i32>(c, stream),
        _ => write::<T, i64>(c, stream),
    }
}

/// `StatelessMultinomial`.
fn stateless_multinomial<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let stream = mixed(c, 2)?;
    draw::<T>(c, |_| stream)
}

register_kernel!("RandomShuffle" on "CPU": RandomShuffle, types = ("T", COPYABLE),
    numerics = Numerics::EXACT);
register_kernel!("RandomShuffle" on "CPU": RandomShuffle, types = ("T", &[DType::STRING]),
    numerics = Numerics::EXACT);
register_kernel!("StatelessShuffle" on "CPU": fn stateless_shuffle, types = ("T", COPYABLE),
    numerics = Numerics::EXACT);
register_kernel!("StatelessShuffle" on "CPU": fn stateless_shuffle, types = ("T", &[DType::STRING]),
    numerics = Numerics::EXACT);
register_kernel!("StatelessMultinomial" on "CPU": fn stateless_multinomial<T>
    for "T" in [f16, bf16, f32, f64], host_memory = &["num_samples"], numerics = Numerics::EXACT);
register_kernel!("Multinomial" on "CPU": Multinomial<T> for "T" in [f16, bf16, f32, f64],
    host_memory = &["num_samples"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_that_are_not_finite_have_no_probability() {
        let mut sums = [0.0; 4];
        let total = cumulate(&[0.0f32, f32::NAN, f32::NEG_INFINITY, 0.0], &mut sums);
        assert_eq!((sums, total), ([1.0, 1.0, 1.0, 2.0], 2.0));
    }

    #[test]
    fn a_permutation_holds_every_row_once() {
        let stream = Stream::new(1, 2);
        for rows in [0, 1, 2, 17] {
            let mut order = permutation(rows, |steps| stream.take(steps)).unwrap();
            order.sort_unstable();
            assert_eq!(order, (0..rows).collect::<Vec<_>>());
        }
    }
}
