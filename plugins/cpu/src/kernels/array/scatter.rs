//! `ScatterNd` and the ops that write updates into a copy of a tensor.
//!
//! Updates are merged in order, so that the last of several for one slice wins, and sums are
//! rounded as in TensorFlow.

use super::{
    REAL,
    moves::{Item, Move, TEXTS, by_type, check_vector, produce},
    numbers::{Less, Term},
    picked::BadIndices,
};
use half::{bf16, f16};
use num_complex::Complex;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Element,
    geometry::{SlicePlan, element_count},
    growth,
    reg::{Numerics, join_types},
    register_kernel,
};

/// The slices to write, and the positions of the arguments.
struct Target<'a> {
    slices: &'a [Option<usize>],
    len: usize,
    updates: usize,
    dims: &'a [i64],
}

impl Target<'_> {
    /// Calls `merge` with each slice of `y` that is referred to, and its update.
    fn each<T>(&self, updates: &[T], y: &mut [T], merge: impl Fn(&mut [T], &[T])) {
        if self.len == 0 {
            return;
        }
        for (slice, update) in self.slices.iter().zip(updates.chunks_exact(self.len)) {
            if let Some(slice) = slice {
                merge(&mut y[slice * self.len..][..self.len], update);
            }
        }
    }
}

/// Writes the updates over the second input, or over zeros.
impl Move for Target<'_> {
    fn run<T: Item>(
        &self,
        _: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        match x.get(1) {
            Some(tensor) => y.copy_from_slice(tensor),
            None => y.fill(T::default()),
        }
        self.each(x[0], y, |y, x| y.copy_from_slice(x));
        Ok(())
    }
}

/// The plan of updates to a tensor of these dimensions.
fn plan(
    c: &ComputeContext<'_>,
    tensor: &[i64],
    (indices, updates): (usize, usize),
) -> Result<SlicePlan, KernelError> {
    let plan = SlicePlan::new(tensor, c.dims(indices))?;
    plan.check_updates(c.dims(updates))?;
    if element_count(tensor)? == 0 && element_count(c.dims(indices))? > 0 {
        return Err(KernelError::invalid_argument(format!(
            "indices name slices of an empty tensor of shape {tensor:?}"
        )));
    }
    Ok(plan)
}

/// Merges updates into zeros, or into input 0 if that is the tensor.
fn merge<T: Element>(
    c: &ComputeContext<'_>,
    target: &Target<'_>,
    with: impl Fn(T, T) -> T,
) -> Result<(), KernelError> {
    let updates = c.input::<T>(target.updates)?;
    let y = c.output::<T>(0, target.dims)?;
    // The tensor, if there is one, precedes the indices and the updates.
    match target.updates {
        2 => y.data.copy_from_slice(c.input::<T>(0)?.data),
        _ => y.data.fill(T::default()),
    }
    target.each(updates.data, y.data, |y, x| {
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = with(*y, x));
    });
    Ok(())
}

fn add<T: Term>(c: &ComputeContext<'_>, target: &Target<'_>) -> Result<(), KernelError> {
    merge::<T>(c, target, T::plus)
}

fn subtract<T: Term>(c: &ComputeContext<'_>, target: &Target<'_>) -> Result<(), KernelError> {
    merge::<T>(c, target, T::minus)
}

fn larger<T: Less>(c: &ComputeContext<'_>, target: &Target<'_>) -> Result<(), KernelError> {
    merge::<T>(c, target, |y, x| if y.less(x) { x } else { y })
}

fn smaller<T: Less>(c: &ComputeContext<'_>, target: &Target<'_>) -> Result<(), KernelError> {
    merge::<T>(c, target, |y, x| if x.less(y) { x } else { y })
}

macro_rules! by_number {
    ($dtype:expr, $function:ident($($argument:expr),*) $(, $more:ty)*) => {
        by_type!($dtype, $function($($argument),*), [
            i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64 $(, $more)*
        ])
    };
}

/// `ScatterNd`.
struct ScatterNd {
    bad: BadIndices,
}

impl Kernel for ScatterNd {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ScatterNd { bad: BadIndices::new(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        check_vector(c, 2, "shape")?;
        let dims = c.integers(2)?;
        let plan = plan(c, &dims, (0, 1))?;
        let slices = self.bad.slices(c, 0, (&plan, &dims))?;
        let target = &Target { slices: &slices, len: plan.len, updates: 1, dims: &dims };
        match c.slot(1)?.dtype {
            DType::STRING => joined_strings(c, target),
            dtype => by_number!(dtype, add(c, target), bool, Complex<f32>, Complex<f64>),
        }
    }
}

/// The sum of strings is their concatenation.
fn joined_strings(c: &ComputeContext<'_>, target: &Target<'_>) -> Result<(), KernelError> {
    let updates = c.strings(target.updates)?;
    let mut y = growth::filled(element_count(target.dims)?, Vec::new())?;
    if target.len > 0 {
        for (slice, update) in target.slices.iter().zip(updates.chunks_exact(target.len)) {
            let Some(slice) = slice else { continue };
            let y = &mut y[slice * target.len..][..target.len];
            y.iter_mut().zip(update).try_for_each(|(y, x)| growth::append(y, x))?;
        }
    }
    c.set_strings(0, target.dims, y.iter())
}

/// How an op merges updates into a tensor.
type Merge = fn(&ComputeContext<'_>, DType, &Target<'_>) -> Result<(), KernelError>;

/// A kernel that merges updates into a copy of a tensor.
macro_rules! tensor_scatter {
    ($($kernel:ident $op:literal $types:expr => $merge:expr;)*) => {$(
        #[doc = concat!("`", $op, "`.")]
        struct $kernel(BadIndices);

        impl Kernel for $kernel {
            fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
                Ok($kernel(BadIndices::new(c)?))
            }

            fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
                into_tensor(c, self.0, $merge)
            }
        }

        register_kernel!($op on "CPU": $kernel, types = ("T", $types), numerics = Numerics::EXACT);
    )*};
}

fn into_tensor(c: &ComputeContext<'_>, bad: BadIndices, merge: Merge) -> Result<(), KernelError> {
    let dims = c.dims(0);
    if dims.is_empty() {
        return Err(KernelError::invalid_argument(
            "tensor must be at least a vector, found a scalar",
        ));
    }
    let plan = plan(c, dims, (1, 2))?;
    let slices = bad.slices(c, 1, (&plan, dims))?;
    let target = Target { slices: &slices, len: plan.len, updates: 2, dims };
    merge(c, c.slot(0)?.dtype, &target)
}

/// Numbers that can be summed: without bool.
const SUMMED: &[DType] =
    &join_types::<{ COMPARED.len() + 2 }>(COMPARED, &[DType::COMPLEX64, DType::COMPLEX128]);
/// Numbers that can be compared: those of [`REAL`] without bool, its first.
const COMPARED: &[DType] = REAL.split_at(1).1;

tensor_scatter! {
    TensorScatterUpdate "TensorScatterUpdate" TEXTS => |c, _, target| {
        produce(c, &[2, 0], target.dims, target)
    };
    TensorScatterAdd "TensorScatterAdd" SUMMED => |c, dtype, target| {
        by_number!(dtype, add(c, target), Complex<f32>, Complex<f64>)
    };
    TensorScatterSub "TensorScatterSub" SUMMED => |c, dtype, target| {
        by_number!(dtype, subtract(c, target), Complex<f32>, Complex<f64>)
    };
    TensorScatterMax "TensorScatterMax" COMPARED => |c, dtype, target| {
        by_number!(dtype, larger(c, target))
    };
    TensorScatterMin "TensorScatterMin" COMPARED => |c, dtype, target| {
        by_number!(dtype, smaller(c, target))
    };
}

register_kernel!("ScatterNd" on "CPU": ScatterNd, types = ("T", TEXTS), host_memory = &["shape"],
    numerics = Numerics::EXACT);
