//! `Tile`.

use super::moves::{Item, JOINED_TEXTS, Move, check_vector, produce};
use crate::lists;
use tenon_sdk::{
    KernelError, author::ComputeContext, geometry::tile_dims, reg::Numerics, register_kernel,
};

/// The dimensions of the input, and the number of repetitions of each.
struct Repeat<'a> {
    dims: &'a [i64],
    multiples: &'a [i64],
}

impl Move for Repeat<'_> {
    fn run<T: Item>(
        &self,
        _: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        // Dimensions after the last repeated one are copied as one.
        let last = self.multiples.iter().rposition(|&multiple| multiple != 1);
        let count = last.map_or(0, |last| last + 1);
        repeat(&self.dims[..count], &self.multiples[..count], x[0], y);
        Ok(())
    }
}

/// Writes the first of each repetition, then copies it.
fn repeat<T: Copy>(dims: &[i64], multiples: &[i64], x: &[T], y: &mut [T]) {
    let (&[size, ref dims @ ..], &[multiple, ref multiples @ ..]) = (dims, multiples) else {
        return y.copy_from_slice(x);
    };
    let (size, multiple) = (size as usize, multiple as usize);
    if y.is_empty() || size == 0 || multiple == 0 {
        return;
    }
    let len = y.len() / multiple;
    let (first, others) = y.split_at_mut(len);
    if let (&[1], &[times]) = (dims, multiples)
        && x.len() == size
    {
        // Single elements: a run of each.
        first.chunks_exact_mut(times as usize).zip(x).for_each(|(y, &x)| y.fill(x));
    } else {
        for (x, y) in x.chunks_exact(x.len() / size).zip(first.chunks_exact_mut(len / size)) {
            repeat(dims, multiples, x, y);
        }
    }
    others.chunks_exact_mut(len).for_each(|y| y.copy_from_slice(first));
}

fn tile(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_vector(c, 1, "multiples")?;
    let (dims, multiples) = (c.dims(0), lists::short(c, 1)?);
    let output = tile_dims(dims, &multiples)?;
    if multiples.iter().all(|&multiple| multiple == 1) {
        return c.share(0, 0, &output);
    }
    produce(c, &[0], &output, &Repeat { dims, multiples: &multiples })
}

register_kernel!("Tile" on "CPU": fn tile, types = ("T", JOINED_TEXTS), host_memory = &["multiples"],
    numerics = Numerics::EXACT);
