//! Tensors that lists, maps, arrays and stacks hold: joined, added, made zeros.

use crate::update::Sum;
use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};
use tenon_sdk::{growth, prelude::*};

/// A tensor that is held, perhaps by several.
pub type Held = Arc<Kept>;

/// What comes next in a tensor that is made of parts.
pub enum Part<'a> {
    /// The elements of a tensor.
    Tensor(&'a Kept),
    /// This number of zeros.
    Zeros(i64),
}

impl Part<'_> {
    fn count(&self) -> usize {
        match self {
            Part::Tensor(tensor) => tensor.slot().elements as usize,
            Part::Zeros(count) => usize::try_from(*count).unwrap_or(0),
        }
    }
}

/// Number of elements of a shape.
///
/// # Errors
/// `INVALID_ARGUMENT` for dimensions that are not a shape of a tensor.
pub fn count_of(dims: &[i64]) -> Result<i64, KernelError> {
    match Shape::new(dims) {
        Ok(shape) => Ok(shape.elements() as i64),
        Err(error) => Err(KernelError::invalid_argument(error.to_string())),
    }
}

/// The dimensions of `count` rows of one shape.
pub fn with_rows(count: usize, row: &[i64]) -> Vec<i64> {
    std::iter::once(count as i64).chain(row.iter().copied()).collect()
}

/// Writes an output that consists of parts, one after the other.
///
/// # Errors
/// `UNIMPLEMENTED` for resources, which have no tensor of parts; `INTERNAL` when the parts do not fill the output.
pub fn output_parts(
    c: &ComputeContext<'_>,
    output: usize,
    dtype: DType,
    dims: &[i64],
    parts: &[Part<'_>],
) -> Result<(), KernelError> {
    let count: usize = parts.iter().map(Part::count).sum();
    if count as i64 != count_of(dims)? {
        return Err(KernelError::internal(format!(
            "output {output}: {count} elements do not fill shape {dims:?}"
        )));
    }
    if dtype == DType::RESOURCE {
        return Err(KernelError::unimplemented(
            "resources cannot be joined to one tensor: read them one by one",
        ));
    }
    let mut to = 0;
    let pieces = parts.iter().filter_map(|part| {
        let (at, len) = (to, part.count());
        to += len;
        match part {
            Part::Tensor(from) => Some(Piece { from, start: 0, len, to: at }),
            Part::Zeros(_) => None,
        }
    });
    c.output_pieces(output, dims, pieces)
}

/// The sum of two tensors of one type and shape.
///
/// # Errors
/// `INVALID_ARGUMENT` when they differ in one of the two, or are not of a type that is added.
pub fn sum(a: &Kept, b: &Kept) -> Result<Held, KernelError> {
    if a.dtype() != b.dtype() || a.dims() != b.dims() {
        return Err(KernelError::invalid_argument(format!(
            "cannot add tensors of different types or shapes: {} {:?} and {} {:?}",
            a.dtype(),
            a.dims(),
            b.dtype(),
            b.dims()
        )));
    }
    let sum = match a.dtype() {
        DType::HALF => elementwise::<f16>(a, b),
        DType::BFLOAT16 => elementwise::<bf16>(a, b),
        DType::FLOAT => elementwise::<f32>(a, b),
        DType::DOUBLE => elementwise::<f64>(a, b),
        DType::INT8 => elementwise::<i8>(a, b),
        DType::INT16 => elementwise::<i16>(a, b),
        DType::INT32 => elementwise::<i32>(a, b),
        DType::INT64 => elementwise::<i64>(a, b),
        DType::UINT8 => elementwise::<u8>(a, b),
        DType::UINT16 => elementwise::<u16>(a, b),
        DType::UINT32 => elementwise::<u32>(a, b),
        DType::UINT64 => elementwise::<u64>(a, b),
        DType::COMPLEX64 => elementwise::<Complex32>(a, b),
        DType::COMPLEX128 => elementwise::<Complex64>(a, b),
        DType::VARIANT => variants(a, b),
        other => Err(KernelError::invalid_argument(format!("tensors of {other} are not added"))),
    };
    sum.map(Arc::new)
}

fn elementwise<T: Sum>(a: &Kept, b: &Kept) -> Result<Kept, KernelError> {
    let (a, b) = (a.view::<T>()?, b.view::<T>()?);
    let sums = growth::collected(a.data.iter().zip(b.data).map(|(&a, &b)| a.plus(b)))?;
    Kept::new(a.dims, &sums)
}

fn variants(a: &Kept, b: &Kept) -> Result<Kept, KernelError> {
    let (left, right) = (a.variants()?, b.variants()?);
    let sums = left.iter().zip(&right).map(|(a, b)| a.add(b));
    Kept::from_variants(a.dims(), &growth::try_collected(sums)?)
}

/// Zeros of the type and shape of a tensor; of variants, what their types take for zeros.
///
/// # Errors
/// `INVALID_ARGUMENT` for a type without a zero.
pub fn zeros_like(tensor: &Kept) -> Result<Held, KernelError> {
    let zeros = match tensor.dtype() {
        DType::VARIANT => {
            let variants = tensor.variants()?;
            let zeros = growth::try_collected(variants.iter().map(VariantRef::zeros_like))?;
            Kept::from_variants(tensor.dims(), &zeros)
        }
        dtype if dtype.needs_drop() => {
            Err(KernelError::invalid_argument(format!("there are no zeros of {dtype}")))
        }
        dtype => Kept::zeros(dtype, tensor.dims()),
    };
    zeros.map(Arc::new)
}

/// How deep sums and zeros of lists and maps go that lie in each other: each level takes of the stack of the thread.
const DEEPEST: u32 = 100;

/// Computes with what lies in a value, one level deeper than the caller.
///
/// # Errors
/// `INVALID_ARGUMENT` where values lie in each other too deep; an error of `body`.
pub fn one_deeper<R>(body: impl FnOnce() -> Result<R, KernelError>) -> Result<R, KernelError> {
    thread_local! {
        static DEPTH: Cell<u32> = const { Cell::new(0) };
    }
    struct Level;
    impl Drop for Level {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
        }
    }
    DEPTH.set(DEPTH.get() + 1);
    let _level = Level;
    if DEPTH.get() > DEEPEST {
        return Err(KernelError::invalid_argument(format!(
            "lists or maps lie in each other more than {DEEPEST} deep"
        )));
    }
    body()
}

/// Drops tensors of a value. Tensors inside them, such as those of a list in a list, are dropped one after the other
/// and not recursively, so that the depth is not bounded by the stack of the thread.
pub fn let_go(tensors: Vec<Held>) {
    thread_local! {
        /// What is still to go, while a drop further out on this thread goes through it.
        static WAITING: RefCell<Option<Vec<Vec<Held>>>> = const { RefCell::new(None) };
    }
    if !tensors.iter().any(|tensor| tensor.dtype() == DType::VARIANT) {
        return drop(tensors);
    }
    let outermost = WAITING.with_borrow_mut(|waiting| match waiting {
        Some(waiting) => {
            waiting.push(tensors);
            false
        }
        None => {
            *waiting = Some(vec![tensors]);
            true
        }
    });
    if outermost {
        while let Some(next) = WAITING.with_borrow_mut(|waiting| waiting.as_mut()?.pop()) {
            drop(next);
        }
        WAITING.set(None);
    }
}
