//! Shape functions: what the host's table offers them.

use tenon_sdk::prelude::*;

register_op!(
    "ZooShapeMerge",
    inputs = &["a: float", "b: float"],
    outputs = &["y: float"],
    shape = |c: &ShapeContext<'_>| {
        let merged = c.merge(c.input(0), c.input(1))?;
        c.set_output(0, merged)
    },
    summary = "a plus b, of the same shape.",
);

pub(crate) fn sum(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (a, b) = (c.input::<f32>(0)?, c.input::<f32>(1)?);
    if a.dims != b.dims {
        return Err(KernelError::invalid_argument(format!(
            "expected equal shapes, found {:?} and {:?}",
            a.dims, b.dims
        )));
    }
    let y = c.output::<f32>(0, a.dims)?;
    for ((y, a), b) in y.data.iter_mut().zip(a.data).zip(b.data) {
        *y = a + b;
    }
    Ok(())
}

register_kernel!("ZooShapeMerge" on "CPU": fn sum);

register_op!(
    "ZooShapeMatrix",
    inputs = &["a: float", "b: float"],
    outputs = &["y: float"],
    shape = |c: &ShapeContext<'_>| {
        let (a, b) = (c.with_rank(c.input(0), 2)?, c.with_rank(c.input(1), 2)?);
        c.merge_dim(c.dim(a, 1), c.dim(b, 0))?;
        c.set_output(0, c.make_shape(&[c.dim(a, 0), c.dim(b, 1)]))
    },
    summary = "The product of two matrices.",
);

fn matrix(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (a, b) = (c.input::<f32>(0)?, c.input::<f32>(1)?);
    let (&[rows, inner], &[inner_b, columns]) = (a.dims, b.dims) else {
        return Err(KernelError::invalid_argument("expected two matrices"));
    };
    if inner != inner_b {
        return Err(KernelError::invalid_argument(format!(
            "expected {inner} rows in b, found {inner_b}"
        )));
    }
    let y = c.output::<f32>(0, &[rows, columns])?;
    let (inner, columns) = (inner as usize, columns as usize);
    for (at, y) in y.data.iter_mut().enumerate() {
        let (row, column) = (at / columns, at % columns);
        *y = (0..inner).map(|k| a.data[row * inner + k] * b.data[k * columns + column]).sum();
    }
    Ok(())
}

register_kernel!("ZooShapeMatrix" on "CPU": fn matrix);

register_op!(
    "ZooShapeFill",
    inputs = &["dims: int32", "value: float"],
    outputs = &["y: float"],
    shape = |c: &ShapeContext<'_>| {
        let dims = c.constant_as_shape(0)?;
        c.set_output(0, dims)
    },
    summary = "A tensor of this shape, filled with a value.",
);

fn fill(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let dims = c.integers(0)?;
    let value =
        *c.input::<f32>(1)?.data.first().ok_or_else(|| {
            KernelError::invalid_argument("value: expected one element, found none")
        })?;
    c.output::<f32>(0, &dims)?.data.fill(value);
    Ok(())
}

register_kernel!("ZooShapeFill" on "CPU": fn fill);

register_op!(
    "ZooShapeRepeat",
    inputs = &["x: float", "n: int32"],
    outputs = &["y: float"],
    shape = |c: &ShapeContext<'_>| {
        let x = c.input(0);
        let Some(rank) = c.rank(x) else { return c.set_output(0, c.unknown()) };
        let known = c.constant_integers(1).and_then(|n| n.first().copied());
        if known.is_some_and(|n| n < 0) {
            return Err(KernelError::invalid_argument("n: expected at least 0"));
        }
        let mut dims = vec![c.make_dim(known)];
        dims.extend((0..rank).map(|at| c.dim(x, at)));
        c.set_output(0, c.make_shape(&dims))
    },
    summary = "x, n times over a new first dimension.",
);

fn repeat(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let n = c.integers(1)?.first().copied().unwrap_or(-1);
    let dims: Vec<i64> = std::iter::once(n).chain(x.dims.iter().copied()).collect();
    if n < 0 {
        return Err(KernelError::invalid_argument(format!("n: expected at least 0, found {n}")));
    }
    let y = c.output::<f32>(0, &dims)?;
    if !x.data.is_empty() {
        y.data.chunks_exact_mut(x.data.len()).for_each(|part| part.copy_from_slice(x.data));
    }
    Ok(())
}

register_kernel!("ZooShapeRepeat" on "CPU": fn repeat);
