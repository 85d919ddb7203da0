//! Ops that move elements without interpreting them: one instance per element size serves every
//! type. The reference kernels move strings, as slices of bytes.

mod broadcast;
pub(super) mod concat;
pub(super) mod fill;
mod format;
pub mod gather;
mod mirror;
mod moves;
mod numbers;
pub(super) mod pad;
mod patches;
mod picked;
mod reverse;
mod scatter;
mod search;
mod sequence;
mod slice;
mod space;
mod split;
mod stitch;
pub(super) mod strided_slice;
mod tile;
pub(super) mod transpose;
pub(super) mod turn;
mod unique;

pub(super) use moves::write_integers;

use tenon_sdk::{DType, KernelError, author::ComputeContext, reg::join_types};

/// Real numbers.
pub(super) const REAL: &[DType] = &[
    DType::BOOL,
    DType::INT8,
    DType::INT16,
    DType::INT32,
    DType::INT64,
    DType::UINT8,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
    DType::HALF,
    DType::BFLOAT16,
    DType::FLOAT,
    DType::DOUBLE,
];

/// The numbers that every op here moves.
pub(super) const NUMBERS: &[DType] =
    &join_types::<{ REAL.len() + 2 }>(REAL, &[DType::COMPLEX64, DType::COMPLEX128]);

/// [`NUMBERS`] and the quantised types that TensorFlow slices and pads.
pub(super) const SLICED: &[DType] =
    &join_types::<{ NUMBERS.len() + 3 }>(NUMBERS, &[DType::QINT8, DType::QUINT8, DType::QINT32]);

/// [`NUMBERS`] and all quantised types.
pub(super) const JOINED: &[DType] = &join_types::<{ NUMBERS.len() + 5 }>(
    NUMBERS,
    &[DType::QINT8, DType::QUINT8, DType::QINT16, DType::QUINT16, DType::QINT32],
);

/// Elements of a given size, of any meaning.
pub trait Word: Copy + Default + Send + Sync + 'static {}
impl Word for u8 {}
impl Word for u16 {}
impl Word for u32 {}
impl Word for u64 {}
impl Word for u128 {}
impl Word for i16 {}
impl Word for i32 {}
impl Word for i64 {}
impl Word for f32 {}
impl Word for f64 {}

/// Bytes of a tensor as words of its element size.
pub(super) fn words<W: Word>(bytes: &[u8]) -> Result<&[W], KernelError> {
    // SAFETY: every bit pattern is a word.
    match unsafe { bytes.align_to::<W>() } {
        ([], words, []) => Ok(words),
        _ => Err(misaligned()),
    }
}

/// Like [`words`], mutably.
pub(super) fn words_mut<W: Word>(bytes: &mut [u8]) -> Result<&mut [W], KernelError> {
    // SAFETY: every bit pattern is a word, and every word's bytes are bytes.
    match unsafe { bytes.align_to_mut::<W>() } {
        ([], words, []) => Ok(words),
        _ => Err(misaligned()),
    }
}

#[cold]
fn misaligned() -> KernelError {
    KernelError::internal("a tensor's memory is not aligned to its elements")
}

/// Up to this many elements a call of the C library takes longer than copying them inline.
const FEW: usize = 16;

/// Copies elements like `copy_from_slice`, but a few of them without a call.
#[inline(always)]
pub(super) fn copy<W: Copy>(x: &[W], y: &mut [W]) {
    match y.len() {
        FEW.. => y.copy_from_slice(x),
        8.. => copy_ends::<W, 8>(x, y),
        4.. => copy_ends::<W, 4>(x, y),
        2.. => copy_ends::<W, 2>(x, y),
        1 => y[0] = x[0],
        _ => {}
    }
}

/// Copies the first and the last `N` elements, which together are all.
#[inline(always)]
fn copy_ends<W: Copy, const N: usize>(x: &[W], y: &mut [W]) {
    let (first, last) = (x.first_chunk::<N>(), x.last_chunk::<N>());
    if let (Some(from), Some(to)) = (first, y.first_chunk_mut::<N>()) {
        *to = *from;
    }
    if let (Some(from), Some(to)) = (last, y.last_chunk_mut::<N>()) {
        *to = *from;
    }
}

/// Sets elements like `fill`, but a few of them without a call.
#[inline(always)]
pub(super) fn set<W: Copy>(value: W, y: &mut [W]) {
    match y.len() {
        FEW.. => y.fill(value),
        8.. => set_ends::<W, 8>(value, y),
        4.. => set_ends::<W, 4>(value, y),
        2.. => set_ends::<W, 2>(value, y),
        1 => y[0] = value,
        _ => {}
    }
}

#[inline(always)]
fn set_ends<W: Copy, const N: usize>(value: W, y: &mut [W]) {
    if let Some(to) = y.first_chunk_mut::<N>() {
        *to = [value; N];
    }
    if let Some(to) = y.last_chunk_mut::<N>() {
        *to = [value; N];
    }
}

/// Size of the elements of an input.
pub(super) fn element_size(c: &ComputeContext<'_>, input: usize) -> Result<usize, KernelError> {
    let dtype = c.slot(input)?.dtype;
    dtype
        .size()
        .ok_or_else(|| KernelError::internal(format!("elements of {dtype} cannot be copied")))
}

/// Calls a function with the word type of an element size.
macro_rules! by_size {
    ($size:expr, $function:ident($($argument:expr),*)) => {
        match $size {
            1 => $function::<u8>($($argument),*),
            2 => $function::<u16>($($argument),*),
            4 => $function::<u32>($($argument),*),
            8 => $function::<u64>($($argument),*),
            16 => $function::<u128>($($argument),*),
            size => Err(tenon_sdk::KernelError::internal(format!(
                "elements of {size} bytes: 1, 2, 4, 8 or 16 are supported"
            ))),
        }
    };
}
pub(super) use by_size;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_elements_are_copied_and_set_as_many_are() {
        for len in 0..40u16 {
            let x: Vec<u16> = (1..=len).collect();
            let mut y = vec![0; x.len()];
            copy(&x, &mut y);
            assert_eq!(y, x);
            set(7, &mut y);
            assert_eq!(y, vec![7; x.len()]);
        }
    }
}
