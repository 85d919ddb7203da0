//! Elements of inputs, made from their recipes.
//!
//! A recipe gives the same elements on every machine: integers and doubles of a small generator, rounded once
//! to the element type. The tensors are in the host's shared memory, so that an allocator that guards it sees
//! them.

mod random;
mod sample;

use super::case::{Argument, CheckCase, Fill};
use crate::TestkitError;
use half::{bf16, f16};
pub(crate) use random::{Random, seed_of};
use sample::Sample;
use std::sync::Arc;
use tenon_framework::{
    Code, DType, KernelError, Shape, Tensor,
    tensor::{Memory, TensorError},
};
use tenon_runtime::host::memory::{HostMemory, copy_on_host};

impl CheckCase {
    /// The inputs, in the host's shared memory.
    ///
    /// # Errors
    /// An input of a type of which no elements can be made (resources, variants, references), negative
    /// dimensions, no memory.
    pub fn tensors(&self) -> Result<Vec<Tensor>, TestkitError> {
        self.inputs
            .iter()
            .enumerate()
            .map(|(at, argument)| {
                argument.tensor().map_err(|error| TestkitError::Input {
                    case: self.name.clone(),
                    input: at,
                    dtype: argument.dtype,
                    detail: error.message,
                })
            })
            .collect()
    }
}

impl Argument {
    /// Its elements, in the host's shared memory.
    ///
    /// # Errors
    /// As [`CheckCase::tensors`].
    pub fn tensor(&self) -> Result<Tensor, KernelError> {
        let memory: Arc<dyn Memory> = HostMemory::shared().clone();
        if let Fill::Explicit(tensor) = &self.fill {
            return copy_on_host(tensor, &memory);
        }
        let shape = Shape::new(&self.dims)
            .map_err(|error| KernelError::new(error.code(), error.to_string()))?;
        copy_on_host(&drawn(self.dtype, &shape, &self.fill)?, &memory)
    }
}

/// A number of a list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Listed {
    Integer(i64),
    Real(f64),
}

/// What is done for an element type.
enum Source<'a> {
    Fill(&'a Fill),
    /// These in order; a single one fills the tensor.
    List(&'a [Listed]),
}

fn drawn(dtype: DType, shape: &Shape, fill: &Fill) -> Result<Tensor, KernelError> {
    if dtype == DType::STRING {
        return Ok(Tensor::from_strings(shape.dims(), &strings(shape.elements(), fill))?);
    }
    numbers(dtype, shape, &Source::Fill(fill))
}

/// A tensor of listed numbers.
///
/// # Errors
/// An element type that has none, another number of them than the shape's.
pub(crate) fn listed(dtype: DType, dims: &[i64], items: &[Listed]) -> Result<Tensor, KernelError> {
    let shape =
        Shape::new(dims).map_err(|error| KernelError::new(error.code(), error.to_string()))?;
    numbers(dtype, &shape, &Source::List(items))
}

fn numbers(dtype: DType, shape: &Shape, source: &Source<'_>) -> Result<Tensor, KernelError> {
    let stored = match dtype {
        DType::QINT8 => DType::INT8,
        DType::QUINT8 => DType::UINT8,
        DType::QINT16 => DType::INT16,
        DType::QUINT16 => DType::UINT16,
        DType::QINT32 => DType::INT32,
        DType::COMPLEX64 => DType::FLOAT,
        DType::COMPLEX128 => DType::DOUBLE,
        other => other,
    };
    // A complex element is two real ones.
    let parts = dtype.bits() / stored.bits().max(1);
    let count = shape.elements() * parts as usize;
    let made = match stored {
        DType::FLOAT => made::<f32>(count, source),
        DType::DOUBLE => made::<f64>(count, source),
        DType::HALF => made::<f16>(count, source),
        DType::BFLOAT16 => made::<bf16>(count, source),
        DType::INT8 => made::<i8>(count, source),
        DType::INT16 => made::<i16>(count, source),
        DType::INT32 => made::<i32>(count, source),
        DType::INT64 => made::<i64>(count, source),
        DType::UINT8 => made::<u8>(count, source),
        DType::UINT16 => made::<u16>(count, source),
        DType::UINT32 => made::<u32>(count, source),
        DType::UINT64 => made::<u64>(count, source),
        DType::BOOL => made::<bool>(count, source),
        _ => {
            let message = format!("elements of {dtype} are made by kernels alone");
            return Err(KernelError::new(Code::UNIMPLEMENTED, message));
        }
    };
    // The same elements in the same order, of another type where one stands for it.
    let made = made?;
    Ok(match dtype == stored {
        true => made.reshaped(shape.dims())?,
        false => Tensor::from_bytes(dtype, shape.dims(), made.as_bytes()?)?,
    })
}

/// A vector of elements.
fn made<T: Sample>(count: usize, source: &Source<'_>) -> Result<Tensor, TensorError> {
    let one = |item: &Listed| match *item {
        Listed::Integer(value) => T::of_integer(value),
        Listed::Real(value) => T::of_real(value),
    };
    let values: Vec<T> = match source {
        Source::Fill(fill) => elements(count, fill),
        Source::List([item]) => vec![one(item); count],
        Source::List(items) => items.iter().map(one).collect(),
    };
    Tensor::from_slice(&[values.len() as i64], &values)
}

/// One element in so many is special in [`Fill::Special`], so that special ones meet ordinary ones, and, as
/// inputs are shifted against one another by their seeds, each other.
const SPECIAL_EVERY: usize = 3;

/// Groups of [`Fill::Stagnation`]: one large element, then so many that are half a step of it.
const STAGNATION_GROUP: usize = 65;

fn elements<T: Sample>(count: usize, fill: &Fill) -> Vec<T> {
    match *fill {
        Fill::Uniform { low, high, seed } => {
            let mut random = Random::new(seed);
            (0..count).map(|_| T::between(low, high, &mut random)).collect()
        }
        Fill::Whole { low, high, seed } => {
            let mut random = Random::new(seed);
            (0..count).map(|_| T::of_integer(random.integer(low, high))).collect()
        }
        Fill::Special { seed } => special(count, seed),
        Fill::Huge { seed } => huge(count, seed),
        Fill::Permutation { seed } => {
            permutation(count, seed).into_iter().map(|at| T::of_integer(at as i64)).collect()
        }
        Fill::Stagnation => (0..count)
            .map(|at| if at % STAGNATION_GROUP == 0 { T::LARGE } else { T::HALF_STEP })
            .collect(),
        // Not reached: who asks for elements has looked.
        Fill::Explicit(_) => Vec::new(),
    }
}

fn special<T: Sample>(count: usize, seed: u64) -> Vec<T> {
    let mut random = Random::new(seed);
    let specials = T::specials();
    let shift = (seed % 8191) as usize;
    (0..count)
        .map(|at| {
            let ordinary = T::between(T::ORDINARY.0, T::ORDINARY.1, &mut random);
            let place = at + shift;
            match place % SPECIAL_EVERY {
                0 => specials[place / SPECIAL_EVERY % specials.len()],
                _ => ordinary,
            }
        })
        .collect()
}

/// One element in this many is huge in [`Fill::Huge`]: huge ones meet ordinary ones, and add up to a finite number.
const HUGE_EVERY: usize = 3;

fn huge<T: Sample>(count: usize, seed: u64) -> Vec<T> {
    let mut random = Random::new(seed);
    let shift = (seed % 8191) as usize;
    (0..count)
        .map(|at| match (at + shift) % HUGE_EVERY {
            0 => T::huge(&mut random),
            _ => T::between(T::ORDINARY.0, T::ORDINARY.1, &mut random),
        })
        .collect()
}

/// The numbers from 0 up in an order of the generator: Fisher and Yates' shuffle.
fn permutation(count: usize, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed);
    let mut numbers: Vec<usize> = (0..count).collect();
    for at in (1..count).rev() {
        numbers.swap(at, random.integer(0, at as i64 + 1) as usize);
    }
    numbers
}

/// Lengths around those at which an implementation changes its form of storage.
const LENGTHS: [usize; 8] = [0, 1, 23, 7, 24, 25, 64, 3];

fn strings(count: usize, fill: &Fill) -> Vec<Vec<u8>> {
    let seed = match *fill {
        Fill::Uniform { seed, .. }
        | Fill::Whole { seed, .. }
        | Fill::Huge { seed }
        | Fill::Permutation { seed } => seed,
        Fill::Special { seed } => return special_strings(count, seed),
        Fill::Stagnation | Fill::Explicit(_) => 0,
    };
    let mut random = Random::new(seed);
    let letter = |random: &mut Random| b'a' + random.integer(0, 26) as u8;
    (0..count)
        .map(|at| {
            let length = if at % 4 == 3 { LENGTHS[at / 4 % LENGTHS.len()] } else { at % 4 + 1 };
            (0..length).map(|_| letter(&mut random)).collect()
        })
        .collect()
}

fn special_strings(count: usize, seed: u64) -> Vec<Vec<u8>> {
    let specials: [&[u8]; 6] =
        [b"", b"\0", "Grüße, 世界".as_bytes(), b"\xff\xfe no text", b"a\0b", b" "];
    (0..count)
        .map(|at| match (at + seed as usize % 97) % (specials.len() + 1) {
            0 => vec![b'x'; 1000],
            at => specials[at - 1].to_vec(),
        })
        .collect()
}

#[cfg(test)]
#[path = "fill/tests.rs"]
mod tests;
