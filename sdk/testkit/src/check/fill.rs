//! Elements of inputs, made from their recipes.
//!
//! A recipe gives the same elements on every machine: integers and doubles of a small generator, rounded once
//! to the element type. The tensors lie in the host's shared memory, so that an allocator that guards it sees
//! them.

mod random;
mod sample;

use super::case::{Argument, CheckCase, Fill};
use crate::TestkitError;
use half::{bf16, f16};
pub(super) use random::{Random, seed_of};
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

fn drawn(dtype: DType, shape: &Shape, fill: &Fill) -> Result<Tensor, KernelError> {
    let dims = shape.dims();
    Ok(match dtype {
        DType::FLOAT => of::<f32>(dims, shape, fill)?,
        DType::DOUBLE => of::<f64>(dims, shape, fill)?,
        DType::HALF => of::<f16>(dims, shape, fill)?,
        DType::BFLOAT16 => of::<bf16>(dims, shape, fill)?,
        DType::INT8 => of::<i8>(dims, shape, fill)?,
        DType::INT16 => of::<i16>(dims, shape, fill)?,
        DType::INT32 => of::<i32>(dims, shape, fill)?,
        DType::INT64 => of::<i64>(dims, shape, fill)?,
        DType::UINT8 => of::<u8>(dims, shape, fill)?,
        DType::UINT16 => of::<u16>(dims, shape, fill)?,
        DType::UINT32 => of::<u32>(dims, shape, fill)?,
        DType::UINT64 => of::<u64>(dims, shape, fill)?,
        DType::BOOL => of::<bool>(dims, shape, fill)?,
        DType::COMPLEX64 => complex::<f32>(dtype, dims, shape, fill)?,
        DType::COMPLEX128 => complex::<f64>(dtype, dims, shape, fill)?,
        DType::QINT8 => stored_as::<i8>(dtype, dims, shape, fill)?,
        DType::QUINT8 => stored_as::<u8>(dtype, dims, shape, fill)?,
        DType::QINT16 => stored_as::<i16>(dtype, dims, shape, fill)?,
        DType::QUINT16 => stored_as::<u16>(dtype, dims, shape, fill)?,
        DType::QINT32 => stored_as::<i32>(dtype, dims, shape, fill)?,
        DType::STRING => Tensor::from_strings(dims, &strings(shape.elements(), fill))?,
        _ => {
            let message = format!("elements of {dtype} are made by kernels alone");
            return Err(KernelError::new(Code::UNIMPLEMENTED, message));
        }
    })
}

fn of<T: Sample>(dims: &[i64], shape: &Shape, fill: &Fill) -> Result<Tensor, TensorError> {
    Tensor::from_slice(dims, &elements::<T>(shape.elements(), fill))
}

/// Bytes of elements in native order.
fn bytes_of<T: Sample>(values: &[T]) -> Vec<u8> {
    values.iter().flat_map(|value| value.bytes()).collect()
}

fn stored_as<T: Sample>(
    dtype: DType,
    dims: &[i64],
    shape: &Shape,
    fill: &Fill,
) -> Result<Tensor, TensorError> {
    Tensor::from_bytes(dtype, dims, &bytes_of(&elements::<T>(shape.elements(), fill)))
}

/// A complex element is two real ones.
fn complex<T: Sample>(
    dtype: DType,
    dims: &[i64],
    shape: &Shape,
    fill: &Fill,
) -> Result<Tensor, TensorError> {
    Tensor::from_bytes(dtype, dims, &bytes_of(&elements::<T>(2 * shape.elements(), fill)))
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
        Fill::Uniform { seed, .. } | Fill::Whole { seed, .. } | Fill::Permutation { seed } => seed,
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
