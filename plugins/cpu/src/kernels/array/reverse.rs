//! `Reverse`, `ReverseV2`, `ReverseSequence`, `Roll`, `InvertPermutation`.

use super::{
    copy,
    gather::gather,
    moves::{Item, Move, TEXTS, check_vector, produce, write_integers},
};
use crate::lists;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{AxisSet, Dims, element_count, normalize_axis, roll_shifts, row_major_strides},
    growth,
    reg::Numerics,
    register_kernel,
};

/// The input, reversed in some dimensions.
struct Backwards<'a> {
    dims: &'a [i64],
    strides: Dims,
    base: i64,
}

impl Move for Backwards<'_> {
    fn run<T: Item>(
        &self,
        _: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        gather(self.dims, &self.strides, self.base, x[0], y)
    }
}

fn write(c: &ComputeContext<'_>, is_reversed: impl Fn(usize) -> bool) -> Result<(), KernelError> {
    let dims = c.dims(0);
    if !(0..dims.len()).any(|d| is_reversed(d) && dims[d] > 1) {
        return c.share(0, 0, dims);
    }
    let (mut strides, mut base) = (row_major_strides(dims)?, 0i64);
    for d in (0..dims.len()).filter(|&d| is_reversed(d)) {
        base = base.wrapping_add((dims[d] - 1).wrapping_mul(strides[d]));
        strides[d] = strides[d].wrapping_neg();
    }
    produce(c, &[0], dims, &Backwards { dims, strides, base })
}

fn reverse_v2(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_vector(c, 1, "axis")?;
    let axes = AxisSet::new("axis", &lists::short(c, 1)?, c.dims(0).len())?;
    write(c, |d| axes.contains(d))
}

fn reverse(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let flags = c.input::<bool>(1)?;
    if flags.dims != [c.dims(0).len() as i64] {
        return Err(KernelError::invalid_argument(format!(
            "dims must be a vector of {} flags, found shape {:?}",
            c.dims(0).len(),
            flags.dims
        )));
    }
    write(c, |d| flags.data[d])
}

/// `ReverseSequence`.
struct ReverseSequence {
    seq_dim: i64,
    batch_dim: i64,
}

/// Rows of `inner` elements, counted over the dimensions up to the later of sequence and batch.
struct Sequences<'a> {
    lengths: &'a [i64],
    /// Size of the dimension, and rows per step of it.
    seq: (usize, usize),
    batch: (usize, usize),
    inner: usize,
}

impl Move for Sequences<'_> {
    fn run<T: Item>(
        &self,
        _: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        if y.is_empty() {
            return Ok(());
        }
        let at = |row: usize, (size, step): (usize, usize)| row / step % size;
        for (row, y) in y.chunks_exact_mut(self.inner).enumerate() {
            let (place, len) = (at(row, self.seq), self.lengths[at(row, self.batch)] as usize);
            let first = row - place * self.seq.1;
            let from = if place < len { len - 1 - place } else { place };
            copy(&x[0][(first + from * self.seq.1) * self.inner..][..self.inner], y);
        }
        Ok(())
    }
}

impl Kernel for ReverseSequence {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ReverseSequence { seq_dim: c.attr("seq_dim")?, batch_dim: c.attr("batch_dim")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        check_vector(c, 1, "seq_lengths")?;
        let dims = c.dims(0);
        let seq = normalize_axis("seq_dim", self.seq_dim, dims.len())?;
        let batch = normalize_axis("batch_dim", self.batch_dim, dims.len())?;
        if seq == batch {
            let message = format!("seq_dim and batch_dim must differ, both are {seq}");
            return Err(KernelError::invalid_argument(message));
        }
        let lengths = c.integers(1)?;
        if lengths.len() as i64 != dims[batch] {
            return Err(KernelError::invalid_argument(format!(
                "seq_lengths must hold {} lengths, found {}",
                dims[batch],
                lengths.len()
            )));
        }
        if let Some(at) = lengths.iter().position(|len| !(0..=dims[seq]).contains(len)) {
            return Err(KernelError::invalid_argument(format!(
                "seq_lengths[{at}] = {} is not in [0, {}]",
                lengths[at], dims[seq]
            )));
        }
        let last = seq.max(batch);
        let counted = |d: usize| {
            Ok::<_, KernelError>((dims[d] as usize, element_count(&dims[d + 1..=last])?))
        };
        let how = Sequences {
            lengths: &lengths,
            seq: counted(seq)?,
            batch: counted(batch)?,
            inner: element_count(&dims[last + 1..])?,
        };
        produce(c, &[0], dims, &how)
    }
}

/// The shift of each dimension.
struct Shift<'a> {
    dims: &'a [i64],
    shifts: &'a [i64],
}

impl Move for Shift<'_> {
    fn run<T: Item>(
        &self,
        _: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        let count = self.shifts.iter().rposition(|&shift| shift != 0).map_or(0, |last| last + 1);
        if !y.is_empty() {
            shift(&self.dims[..count], &self.shifts[..count], x[0], y);
        }
        Ok(())
    }
}

fn shift<T: Copy>(dims: &[i64], shifts: &[i64], x: &[T], y: &mut [T]) {
    let (&[size, ref dims @ ..], &[by, ref shifts @ ..]) = (dims, shifts) else {
        return y.copy_from_slice(x);
    };
    let (len, by) = (x.len() / size as usize, by as usize);
    let (head, tail) = y.split_at_mut(by * len);
    let from = x.len() - head.len();
    if shifts.is_empty() {
        tail.copy_from_slice(&x[..from]);
        return head.copy_from_slice(&x[from..]);
    }
    let places = tail.chunks_exact_mut(len).chain(head.chunks_exact_mut(len));
    x.chunks_exact(len).zip(places).for_each(|(x, y)| shift(dims, shifts, x, y));
}

fn roll(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (shift, axis) = (c.integer_list(1, "shift")?, c.integer_list(2, "axis")?);
    if c.dims(1) != c.dims(2) {
        return Err(KernelError::invalid_argument(format!(
            "shift and axis must have the same shape, found {:?} and {:?}",
            c.dims(1),
            c.dims(2)
        )));
    }
    let dims = c.dims(0);
    let shifts = roll_shifts(dims, &shift, &axis)?;
    produce(c, &[0], dims, &Shift { dims, shifts: &shifts })
}

fn invert_permutation(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_vector(c, 0, "x")?;
    let x = c.integers(0)?;
    let (len, mut y) = (x.len(), growth::filled(x.len(), -1)?);
    for (at, &place) in x.iter().enumerate() {
        let Some(slot) = usize::try_from(place).ok().and_then(|place| y.get_mut(place)) else {
            let message = format!("x[{at}] = {place} is not in [0, {len})");
            return Err(KernelError::invalid_argument(message));
        };
        if *slot != -1 {
            let message = format!("x holds {place} twice, at {slot} and at {at}");
            return Err(KernelError::invalid_argument(message));
        }
        *slot = at as i64;
    }
    write_integers(c, 0, c.dims(0), y.into_iter())
}

register_kernel!("Reverse" on "CPU": fn reverse, types = ("T", TEXTS), host_memory = &["dims"],
    numerics = Numerics::EXACT);
register_kernel!("ReverseV2" on "CPU": fn reverse_v2, types = ("T", TEXTS), host_memory = &["axis"],
    numerics = Numerics::EXACT);
register_kernel!("ReverseSequence" on "CPU": ReverseSequence, types = ("T", TEXTS),
    host_memory = &["seq_lengths"], numerics = Numerics::EXACT);
register_kernel!("Roll" on "CPU": fn roll, types = ("T", TEXTS), host_memory = &["shift", "axis"],
    numerics = Numerics::EXACT);
register_kernel!("InvertPermutation" on "CPU": fn invert_permutation, numerics = Numerics::EXACT,
    host_memory = &["x", "y"]);
