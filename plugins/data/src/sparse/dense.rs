//! `SparseToDense` and `SparseTensorDenseAdd`.

use super::{
    moved::{MOVED, Values},
    places::{Places, rank, shape_in, size},
};
use crate::update::Sum;
use num_complex::Complex;
use tenon_sdk::{
    geometry::{GeometryError, byte_size, element_count},
    growth,
    prelude::*,
};

struct ToDense {
    checks_order: bool,
}

impl Kernel for ToDense {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ToDense { checks_order: c.attr("validate_indices")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let places = places(c)?;
        rank(c, 3, "default_value", 0)?;
        let is_one = match c.dims(2) {
            [] => true,
            &[found] => {
                size("the number of sparse_values", places.count as i64, found)?;
                false
            }
            dims => {
                let (what, found) = ("sparse_values", dims.len());
                return Err(GeometryError::Rank { what, expected: 1, found }.into());
            }
        };
        if self.checks_order {
            check_order(&places)?;
        }
        byte_size(&places.shape, 16)?;
        // The default value, then the values in their places, of which the last one counts.
        let mut from = growth::filled(element_count(&places.shape)?, (1, 0))?;
        for value in 0..places.count {
            from[places.flat(value)?] = (0, if is_one { 0 } else { value });
        }
        let values = Values::new(c, [2, 3])?;
        values.write(c, 0, &places.shape, from.iter().copied())
    }
}

/// Coordinates that are a scalar or a vector where the shape has one dimension.
fn places(c: &ComputeContext<'_>) -> Result<Places, KernelError> {
    let shape = shape_in(c, 1, "output_shape")?;
    let (count, columns) = match *c.dims(0) {
        [] => (1, 1),
        [count] => (count, 1),
        [count, columns] => (count, columns),
        _ => {
            let (what, found) = ("sparse_indices", c.dims(0).len());
            return Err(GeometryError::Rank { what, expected: 2, found }.into());
        }
    };
    size("the number of output_shape", columns, shape.len() as i64)?;
    Ok(Places::of(c.integers(0)?, shape, count as usize))
}

fn check_order(places: &Places) -> Result<(), KernelError> {
    let wrong = (1..places.count).find(|&at| !places.compare(at - 1, at).is_lt());
    match wrong {
        None => Ok(()),
        Some(at) => Err(KernelError::invalid_argument(format!(
            "sparse_indices: expected places in their order, each once, found {:?} after {:?}",
            places.at(at),
            places.at(at - 1)
        ))),
    }
}

fn add<T: Sum>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let places = Places::inside(c, [0, 1, 2])?;
    let (values, dense) = (c.input::<T>(1)?, c.input::<T>(3)?);
    if places.shape != dense.dims {
        return Err(KernelError::invalid_argument(format!(
            "b: expected shape {:?}, as a_shape says, found {:?}",
            places.shape, dense.dims
        )));
    }
    let y = c.output::<T>(0, dense.dims)?.data;
    y.copy_from_slice(dense.data);
    for (value, &x) in values.data.iter().enumerate() {
        let y = &mut y[places.flat(value)?];
        *y = y.plus(x);
    }
    Ok(())
}

register_kernel!("SparseToDense" on "CPU": ToDense, types = ("T", MOVED),
    host_memory = &["sparse_indices", "output_shape"]);
register_kernel!("SparseTensorDenseAdd" on "CPU": fn add<T> for "T" in [
    i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, Complex<f32>, Complex<f64>]);
