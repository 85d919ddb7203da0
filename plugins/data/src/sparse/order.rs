//! `SparseReorder` and `SparseReshape`.

use super::{
    moved::{MOVED, Values},
    places::{Places, rank, shape_in, size, write_numbers},
};
use tenon_sdk::{
    geometry::{GeometryError, element_count},
    growth,
    prelude::*,
};

fn reorder(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let places = Places::new(c, [0, 1, 2])?;
    let order = places.sorted()?;
    places.write(c, 0, &order)?;
    Values::new(c, [1])?.pick(c, 1, &order)
}

/// The new shape, in which -1 stands for what is left of `elements`.
fn completed(mut shape: Vec<i64>, elements: i64) -> Result<Vec<i64>, KernelError> {
    let mut unknown = None;
    for (at, &found) in shape.iter().enumerate() {
        if found < -1 {
            return Err(GeometryError::TooSmall { what: "new_shape", least: -1, found }.into());
        }
        if found == -1 && unknown.replace(at).is_some() {
            return Err(GeometryError::ManyUnknown { what: "new_shape", dims: shape }.into());
        }
    }
    if let Some(at) = unknown {
        shape[at] = 1;
        let rest = element_count(&shape)? as i64;
        if rest == 0 || elements % rest != 0 {
            return Err(KernelError::invalid_argument(format!(
                "new_shape: expected sizes that divide {elements}, found a product of {rest} beside -1"
            )));
        }
        shape[at] = elements / rest;
    }
    match element_count(&shape)? as i64 {
        found if found != elements => Err(KernelError::invalid_argument(format!(
            "new_shape: expected {elements} elements, as input_shape has, found {found}"
        ))),
        _ => Ok(shape),
    }
}

fn reshape(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    rank(c, 0, "input_indices", 2)?;
    rank(c, 2, "new_shape", 1)?;
    let (shape, dims) = (shape_in(c, 1, "input_shape")?, c.dims(0));
    size("the second dimension of input_indices", shape.len() as i64, dims[1])?;
    let elements = element_count(&shape)? as i64;
    let new = completed(c.integers(2)?, elements)?;
    let count = dims[0] as usize;
    let places = Places::of(c.integers(0)?, shape, count);
    let y = c.output::<i64>(0, &[count as i64, new.len() as i64])?.data;
    for (value, row) in y.chunks_exact_mut(new.len().max(1)).enumerate() {
        let mut rest = places.flat(value)? as i64;
        for (at, size) in row.iter_mut().zip(&new).rev() {
            // A value has a place, so that no size is 0.
            *at = rest % size;
            rest /= size;
        }
    }
    write_numbers(c, 1, &growth::copied(&new)?)
}

register_kernel!("SparseReorder" on "CPU": fn reorder, types = ("T", MOVED));
register_kernel!("SparseReshape" on "CPU": fn reshape, host_memory = &["input_shape", "new_shape"]);

#[cfg(test)]
mod tests {
    use super::completed;

    #[test]
    fn one_size_may_be_left_open() {
        assert_eq!(completed(vec![2, -1, 3], 24).unwrap(), [2, 4, 3]);
        assert_eq!(completed(vec![], 1).unwrap(), [0; 0]);
        for shape in
            [vec![-1, -1], vec![5, -1], vec![0, -1], vec![-2, 12], vec![i64::MAX, 4], vec![5]]
        {
            assert!(completed(shape.clone(), 24).is_err(), "{shape:?}");
        }
    }
}
