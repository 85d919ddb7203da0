//! `MirrorPad` and its gradient.

use super::{
    SLICED,
    moves::{Item, Move, SLICED_TEXTS, by_type, produce},
    numbers::Term,
    pad::paddings,
};
use half::{bf16, f16};
use num_complex::Complex;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{mirror_offset, mirror_pad_dims, mirror_pad_grad_dims},
    growth,
    reg::Numerics,
    register_kernel,
};

/// A dimension: its size without paddings, and the paddings.
#[derive(Clone, Copy)]
struct Level {
    size: usize,
    before: usize,
    behind: usize,
}

impl Level {
    fn padded(self) -> usize {
        self.before + self.size + self.behind
    }

    /// The padded positions, each with the position that it mirrors.
    fn mirrors(self, offset: usize) -> impl Iterator<Item = (usize, usize)> {
        let Level { size, before, behind } = self;
        let head = (0..before).map(move |i| (i, 2 * before - i - 1 + offset));
        let tail = (0..behind).map(move |i| (before + size + i, before + size - i - 1 - offset));
        head.chain(tail)
    }
}

fn levels(dims: &[i64], paddings: &[i64]) -> Vec<Level> {
    let level = |(&size, pair): (&i64, &[i64])| Level {
        size: size as usize,
        before: pair[0] as usize,
        behind: pair[1] as usize,
    };
    dims.iter().zip(paddings.chunks_exact(2)).map(level).collect()
}

/// The number of elements left out at the edge, 1 or 0, and the dimensions.
struct Mirror {
    offset: usize,
    levels: Vec<Level>,
}

impl Move for Mirror {
    fn run<T: Item>(
        &self,
        _: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        if !x[0].is_empty() {
            mirror(self.offset, &self.levels, x[0], y);
        }
        Ok(())
    }
}

/// Writes the middle, then the frame as a copy of it.
fn mirror<T: Copy>(offset: usize, levels: &[Level], x: &[T], y: &mut [T]) {
    let Some((&level, inner)) = levels.split_first() else { return y.copy_from_slice(x) };
    let (from, len) = (x.len() / level.size, y.len() / level.padded());
    if inner.is_empty() {
        y[level.before..][..level.size].copy_from_slice(x);
    } else {
        let middle = y[level.before * len..].chunks_exact_mut(len);
        x.chunks_exact(from).zip(middle).for_each(|(x, y)| mirror(offset, inner, x, y));
    }
    for (to, source) in level.mirrors(offset) {
        y.copy_within(source * len..(source + 1) * len, to * len);
    }
}

/// Adds the frame of each dimension to the middle, outermost first, and keeps the middle.
fn fold<T: Term>(offset: usize, levels: &[Level], x: &mut [T], y: &mut [T]) {
    let Some((&level, inner)) = levels.split_first() else { return y.copy_from_slice(x) };
    let (len, to) = (x.len() / level.padded(), y.len() / level.size);
    for (at, target) in level.mirrors(offset) {
        let (low, high) = (at.min(target), at.max(target));
        let (head, tail) = x.split_at_mut(high * len);
        let (low, high) = (&mut head[low * len..][..len], &mut tail[..len]);
        let (source, target) = if at < target { (low, high) } else { (high, low) };
        target.iter_mut().zip(source).for_each(|(y, x)| *y = y.plus(*x));
    }
    if inner.is_empty() {
        return y.copy_from_slice(&x[level.before..][..level.size]);
    }
    let middle = x[level.before * len..].chunks_exact_mut(len);
    middle.zip(y.chunks_exact_mut(to)).for_each(|(x, y)| fold(offset, inner, x, y));
}

/// 1 if elements at the edge are left out, otherwise 0.
fn offset_of(c: &CreateContext<'_>) -> Result<i64, KernelError> {
    Ok(mirror_offset(c.attr("mode")?)?)
}

/// `MirrorPad`.
struct MirrorPad(i64);

impl Kernel for MirrorPad {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MirrorPad(offset_of(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (dims, paddings) = (c.dims(0), paddings(c)?);
        let output = mirror_pad_dims(dims, &paddings, self.0)?;
        let how = Mirror { offset: self.0 as usize, levels: levels(dims, &paddings) };
        produce(c, &[0], &output, &how)
    }
}

/// `MirrorPadGrad`.
struct MirrorPadGrad(i64);

impl Kernel for MirrorPadGrad {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MirrorPadGrad(offset_of(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let paddings = paddings(c)?;
        let output = mirror_pad_grad_dims(c.dims(0), &paddings, self.0)?;
        let how = Mirror { offset: self.0 as usize, levels: levels(&output, &paddings) };
        by_type!(c.slot(0)?.dtype, gradient(c, &output, &how), [
            i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, Complex<f32>, Complex<f64>
        ])
    }
}

fn gradient<T: Term>(
    c: &ComputeContext<'_>,
    output: &[i64],
    how: &Mirror,
) -> Result<(), KernelError> {
    let x = c.input::<T>(0)?;
    let y = c.output::<T>(0, output)?;
    if !y.data.is_empty() {
        fold(how.offset, &how.levels, &mut growth::copied(x.data)?, y.data);
    }
    Ok(())
}

/// Numbers whose gradients are summed: those of [`SLICED`] except bool, its first, and the
/// quantised types.
const SUMMED: &[DType] = SLICED.split_at(SLICED.len() - 3).0.split_at(1).1;

register_kernel!("MirrorPad" on "CPU": MirrorPad, types = ("T", SLICED_TEXTS),
    host_memory = &["paddings"], numerics = Numerics::EXACT);
register_kernel!("MirrorPadGrad" on "CPU": MirrorPadGrad, types = ("T", SUMMED),
    host_memory = &["paddings"], numerics = Numerics::relative(0.0, 1e-2));
