//! `Bincount` and `HistogramFixedWidth`.

use tenon_reference::reduction::IndexElement;
use tenon_sdk::{
    DType, KernelError,
    author::ComputeContext,
    element::Number,
    geometry::{HistogramRange, check_bincount},
    reg::Numerics,
    register_kernel,
};

/// Counts how often each number below `size` occurs in `arr`; with weights, sums the weights.
fn bincount<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let arr = c.input::<i32>(0)?;
    let size = c.integer(1, "size")?;
    let weights = c.input::<T>(2)?;
    check_bincount(size, arr.dims, weights.dims)?;
    if let Some(at) = arr.data.iter().position(|&x| x < 0) {
        return Err(KernelError::invalid_argument(format!(
            "arr must not be negative: element {at} is {}",
            arr.data[at]
        )));
    }
    let bins = c.output::<T>(0, &[size])?.data;
    bins.fill(T::ZERO);
    for (at, &x) in arr.data.iter().enumerate() {
        if let Some(bin) = bins.get_mut(x as usize) {
            *bin = bin.add(weights.data.get(at).copied().unwrap_or(T::ONE));
        }
    }
    Ok(())
}

/// Counts the values in each bin of a range.
///
/// The bin of a value is found in double precision; values outside the range count in the first or
/// last bin, NaN in the first.
fn histogram<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let range = c.input::<T>(1)?;
    let parts = c.integer(2, "nbins")?;
    let HistogramRange { low, step } = HistogramRange::new(range.data, range.dims, parts)?;
    let values = c.input::<T>(0)?.data;
    let part_of = |x: T| {
        let above = if x > low { x } else { low };
        let part = (above.sub(low)).to_f64() / step;
        (part as i64).clamp(0, parts - 1) as usize
    };
    match c.output_slot(0)?.dtype {
        DType::INT64 => count::<i64>(c, parts, values.iter().map(|&x| part_of(x))),
        _ => count::<i32>(c, parts, values.iter().map(|&x| part_of(x))),
    }
}

fn count<I: IndexElement + Number>(
    c: &ComputeContext<'_>,
    parts: i64,
    places: impl Iterator<Item = usize>,
) -> Result<(), KernelError> {
    let counts = c.output::<I>(0, &[parts])?.data;
    counts.fill(I::ZERO);
    for at in places {
        counts[at] = counts[at].add(I::ONE);
    }
    Ok(())
}

register_kernel!("Bincount" on "CPU": fn bincount<T> for "T" in [i32, i64],
    host_memory = &["size"], numerics = Numerics::EXACT);
register_kernel!("Bincount" on "CPU": fn bincount<T> for "T" in [f32],
    host_memory = &["size"], numerics = super::FLOAT);
register_kernel!("Bincount" on "CPU": fn bincount<T> for "T" in [f64],
    host_memory = &["size"], numerics = super::DOUBLE);
register_kernel!("HistogramFixedWidth" on "CPU": fn histogram<T> for "T" in [i32, i64, f32, f64],
    host_memory = &["nbins"], numerics = Numerics::EXACT);
