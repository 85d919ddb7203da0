//! Ops that move elements without interpreting them.
//!
//! Kernels move words, not elements ([`words`]): the same code serves every type of 1, 2, 4, 8 or
//! 16 bytes. Most ops read a strided box in order ([`strided`]). Arguments that say where elements
//! go (axes, shapes, paddings) are in host memory; indices of elements are on the device, and only
//! the kernel reads them ([`gather`]).

mod concat;
mod gather;
mod one_hot;
mod pad;
mod pieces;
mod repeat;
mod reverse;
mod slice;
mod space;
mod space_batch;
mod split;
mod strided;
mod transpose;
mod words;

use crate::compile::Variant;
use tenon_sdk::{DType, KernelError, author::ComputeContext, reg::join_types};

pub(super) fn variants() -> Vec<Variant> {
    [
        gather::variants(),
        one_hot::variants(),
        pad::variants(),
        pieces::variants(),
        space_batch::variants(),
        strided::variants(),
        transpose::variants(),
    ]
    .concat()
}

/// Real numbers.
const REAL: &[DType] = &[
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
const NUMBERS: &[DType] =
    &join_types::<{ REAL.len() + 2 }>(REAL, &[DType::COMPLEX64, DType::COMPLEX128]);

/// [`NUMBERS`] and the quantised types that TensorFlow slices and pads.
const SLICED: &[DType] =
    &join_types::<{ NUMBERS.len() + 3 }>(NUMBERS, &[DType::QINT8, DType::QUINT8, DType::QINT32]);

/// [`NUMBERS`] and all quantised types.
const JOINED: &[DType] = &join_types::<{ NUMBERS.len() + 5 }>(
    NUMBERS,
    &[DType::QINT8, DType::QUINT8, DType::QINT16, DType::QUINT16, DType::QINT32],
);

/// Checks that an input is a vector.
fn check_vector(c: &ComputeContext<'_>, input: usize, name: &str) -> Result<(), KernelError> {
    if c.dims(input).len() == 1 {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "{name} must be a vector, found shape {:?}",
        c.dims(input)
    )))
}
