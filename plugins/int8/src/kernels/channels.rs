//! Loops over elements, with the same function for all or one per channel, on the host's threads.

use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext},
    geometry::{AxisSplit, GeometryError, element_count},
};

/// Least number of elements that a thread computes at a time.
const BLOCK: usize = 1 << 14;

/// Attribute `axis`: the dimension of the channels; `None` treats all elements as one channel.
pub fn axis(c: &CreateContext<'_>) -> Result<Option<i64>, KernelError> {
    match c.attr::<i64>("axis")? {
        -1 => Ok(None),
        axis if axis >= 0 => Ok(Some(axis)),
        found => Err(GeometryError::TooSmall { what: "axis", least: -1, found }.into()),
    }
}

/// The split of a tensor with these dimensions at the channels.
pub fn split(dims: &[i64], axis: Option<i64>) -> Result<AxisSplit, KernelError> {
    match axis {
        Some(axis) => Ok(AxisSplit::new("axis", dims, axis)?),
        None => Ok(AxisSplit { outer: 1, len: 1, inner: element_count(dims)? }),
    }
}

/// Checks that an input has one value per channel: a scalar without an axis, else a vector.
pub fn check_ends(
    what: &'static str,
    dims: &[i64],
    axis: Option<i64>,
    channels: usize,
) -> Result<(), KernelError> {
    let expected = usize::from(axis.is_some());
    if dims.len() != expected {
        return Err(GeometryError::Rank { what, expected, found: dims.len() }.into());
    }
    match dims.first() {
        Some(&found) if found != channels as i64 => {
            Err(GeometryError::Length { what, expected: channels, found: found as usize }.into())
        }
        _ => Ok(()),
    }
}

/// Sets each element of `y` to a function of the channel's parameter and of the same element of
/// `x`; an element costs about `cost_ns` nanoseconds.
pub fn map_channels<P: Sync, X: Copy + Sync, Y: Send>(
    c: &ComputeContext<'_>,
    inner: usize,
    channels: &[P],
    (x, y): (&[X], &mut [Y]),
    cost_ns: f64,
    f: impl Fn(&P, X) -> Y + Sync,
) -> Result<(), KernelError> {
    if let [all] = channels {
        return map(c, (x, y), cost_ns, |x| f(all, x));
    }
    if y.is_empty() {
        return Ok(());
    }
    let row = channels.len() * inner;
    let block = BLOCK.div_ceil(row) * row;
    let blocks = y.chunks_mut(block).zip(x.chunks(block));
    c.parallel_items(blocks, cost_ns * block as f64, |_, (y, x)| {
        for (y, x) in y.chunks_exact_mut(row).zip(x.chunks_exact(row)) {
            let parts = y.chunks_exact_mut(inner).zip(x.chunks_exact(inner));
            for ((y, x), channel) in parts.zip(channels) {
                y.iter_mut().zip(x).for_each(|(y, &x)| *y = f(channel, x));
            }
        }
        Ok(())
    })
}

/// Sets each element of `y` to a function of the same element of `x`.
pub fn map<X: Copy + Sync, Y: Send>(
    c: &ComputeContext<'_>,
    (x, y): (&[X], &mut [Y]),
    cost_ns: f64,
    f: impl Fn(X) -> Y + Sync,
) -> Result<(), KernelError> {
    if y.is_empty() {
        return Ok(());
    }
    let blocks = y.chunks_mut(BLOCK).zip(x.chunks(BLOCK));
    c.parallel_items(blocks, cost_ns * BLOCK as f64, |_, (y, x)| {
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = f(x));
        Ok(())
    })
}
