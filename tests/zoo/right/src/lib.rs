//! Kernels that keep their contract, in ways that a check could take for wrong.
//!
//! What it is: the counterpart of `tests/zoo/wrong`: `tenon check` must report nothing for any of
//! these kernels.
//!
//! What it is not: a set of useful ops, or of examples to copy.

use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tenon_sdk::{abi::Determinism, prelude::*};

mod denormals;

tenon_sdk::export_plugin!();

fn same(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.input(0))
}

register_op!(
    "RightTwice",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {float, double, int32}"],
    shape = same,
    summary = "2x, in x's own memory where it may."
);

fn twice<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    match c.in_place::<T>(0, 0, c.dims(0))? {
        InOut::InPlace(y) => y.iter_mut().for_each(|y| *y = y.add(*y)),
        InOut::Separate(x, y) => y.iter_mut().zip(x).for_each(|(y, x)| *y = x.add(*x)),
    }
    Ok(())
}

fn plainly_twice<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<T>(0)?;
    let y = c.output::<T>(0, x.dims)?;
    y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = x.add(*x));
    Ok(())
}

register_kernel!("RightTwice" on "CPU": fn twice<T> for "T" in [f32, f64, i32], in_place = &[(0, 0)]);
register_kernel!("RightTwice" on "CPU": fn plainly_twice<T> for "T" in [f32, f64, i32],
    label = "reference", on_request = true);

register_op!(
    "RightVaries",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = same,
    summary = "2x; the last bit is another one in every other call, and nothing else is promised."
);

static CALLS: AtomicU64 = AtomicU64::new(0);

fn varies(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let odd = (CALLS.fetch_add(1, Ordering::Relaxed) % 2) as u32;
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    for (y, x) in y.data.iter_mut().zip(x.data) {
        let exact = x + x;
        let changed = exact.is_normal() && f32::from_bits(exact.to_bits() ^ odd).is_finite();
        *y = if changed { f32::from_bits(exact.to_bits() ^ odd) } else { exact };
    }
    Ok(())
}

fn twice_reference(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = 2.0 * x);
    Ok(())
}

const LOOSE: Numerics = Numerics::ulps(2.0).determinism(Determinism::NONE);
register_kernel!("RightVaries" on "CPU": fn varies, numerics = LOOSE);
register_kernel!("RightVaries" on "CPU": fn twice_reference, label = "reference", on_request = true);

register_op!(
    "RightTable",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = same,
    summary = "2x, by a kernel that talks, and keeps a table of the sizes it has seen: as much as it needs, once."
);

static SEEN: Mutex<Option<HashMap<usize, Vec<u8>>>> = Mutex::new(None);

fn keeps_a_table(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let seen = seen.get_or_insert_default();
    if seen.insert(x.data.len(), vec![0; 4096]).is_none() {
        println!("{{\"found\":{{\"clause\":\"luck\",\"verdict\":\"failed\"}}}}");
        eprintln!("a first call on {} elements", x.data.len());
    }
    plainly_twice::<f32>(c)
}

register_kernel!("RightTable" on "CPU": fn keeps_a_table);
register_kernel!("RightTable" on "CPU": fn twice_reference, label = "reference", on_request = true);

register_op!(
    "RightSum",
    inputs = &["x: N * float"],
    outputs = &["sum: float"],
    attrs = &["N: int >= 1"],
    shape = |c: &ShapeContext<'_>| {
        let mut shape = c.input(0);
        for input in 1..c.input_count() {
            shape = c.merge(shape, c.input(input))?;
        }
        c.set_output(0, shape)
    },
    summary = "The sum of all inputs, on several threads."
);

fn sum_in_parallel(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let first = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, first.dims)?;
    let inputs =
        (0..c.input_count()).map(|at| c.input::<f32>(at)).collect::<Result<Vec<_>, _>>()?;
    let parts: Vec<Mutex<&mut [f32]>> = y.data.chunks_mut(1024).map(Mutex::new).collect();
    c.parallel_for(parts.len(), 1000.0, |range| {
        for part in range {
            let mut y = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
            for (at, y) in y.iter_mut().enumerate() {
                *y = inputs.iter().map(|x| x.data[1024 * part + at]).sum();
            }
        }
    })
}

fn sum_plainly(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let first = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, first.dims)?;
    y.data.fill(0.0);
    for input in 0..c.input_count() {
        y.data.iter_mut().zip(c.input::<f32>(input)?.data).for_each(|(y, x)| *y += x);
    }
    Ok(())
}

register_kernel!("RightSum" on "CPU": fn sum_in_parallel, numerics = Numerics::relative(0.0, 1e-6));
register_kernel!("RightSum" on "CPU": fn sum_plainly, label = "reference", on_request = true);
// No processor has both: it is right as far as anybody can tell, and never runs.
register_kernel!("RightSum" on "CPU": fn sum_in_parallel, label = "elsewhere", priority = 1, features = &["neon", "sse2"]);

register_op!(
    "RightJoin",
    inputs = &["a: string", "b: string"],
    outputs = &["joined: string"],
    shape = |c: &ShapeContext<'_>| {
        let shape = c.merge(c.input(0), c.input(1))?;
        c.set_output(0, shape)
    },
    summary = "Joins strings of equal shapes; refuses others by its shape function alone."
);

fn join(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (a, b) = (c.strings(0)?, c.strings(1)?);
    if c.dims(0) != c.dims(1) {
        let message = format!("expected equal shapes, found {:?} and {:?}", c.dims(0), c.dims(1));
        return Err(KernelError::invalid_argument(message));
    }
    let joined: Vec<Vec<u8>> = a.iter().zip(b).map(|(a, b)| [a, b].concat()).collect();
    c.set_strings(0, c.dims(0), joined.iter())
}

fn join_reference(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let mut joined: Vec<Vec<u8>> = c.strings(0)?.iter().map(|a| a.to_vec()).collect();
    if c.dims(0) != c.dims(1) {
        return Err(KernelError::invalid_argument("expected equal shapes"));
    }
    joined.iter_mut().zip(c.strings(1)?).for_each(|(joined, b)| joined.extend_from_slice(b));
    c.set_strings(0, c.dims(0), joined.iter())
}

register_kernel!("RightJoin" on "CPU": fn join);
register_kernel!("RightJoin" on "CPU": fn join_reference, label = "reference", on_request = true);

register_op!(
    "RightSteps",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = same,
    summary = "2x; the kernel needs x where it is promised to lie, at a multiple of 64 bytes, and ends the process else."
);

fn aligned_alone(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    if x.data.as_ptr().addr() % 64 != 0 {
        // As an aligned load does.
        std::process::abort();
    }
    plainly_twice::<f32>(c)
}

register_kernel!("RightSteps" on "CPU": fn aligned_alone);
register_kernel!("RightSteps" on "CPU": fn twice_reference, label = "reference", on_request = true);

register_op!(
    "RightFirst",
    inputs = &["x: float"],
    outputs = &["y: float"],
    attrs = &["count: int = 3"],
    shape = |c: &ShapeContext<'_>| {
        let x = c.with_rank(c.input(0), 1)?;
        let count = c.attr::<i64>("count")?.max(0);
        let first = c.value(c.dim(x, 0)).map(|all| all.min(count));
        c.set_output(0, c.make_shape(&[c.make_dim(first)]))
    },
    summary = "At most so many elements: a size that grows with an attribute, and then no more."
);

struct First(i64);

impl Kernel for First {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(First(c.attr::<i64>("count")?.max(0)))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<f32>(0)?;
        let &[count] = x.dims else {
            return Err(KernelError::invalid_argument("expected a vector"));
        };
        let y = c.output::<f32>(0, &[count.min(self.0)])?;
        y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = *x);
        Ok(())
    }
}

struct FirstReference(i64);

impl Kernel for FirstReference {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(FirstReference(c.attr("count")?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<f32>(0)?;
        if x.dims.len() != 1 {
            return Err(KernelError::invalid_argument("expected a vector"));
        }
        let first = self.0.clamp(0, x.data.len() as i64) as usize;
        c.output::<f32>(0, &[first as i64])?.data.copy_from_slice(&x.data[..first]);
        Ok(())
    }
}

register_kernel!("RightFirst" on "CPU": First);
register_kernel!("RightFirst" on "CPU": FirstReference, label = "reference", on_request = true);

register_op!(
    "RightRows",
    inputs = &["x: T", "rows: int32"],
    outputs = &["y: T"],
    attrs = &["T: {float, int64}"],
    cases = &["picked; x: [n, m]; rows: [k] integers(0..n)"],
    shape = |c: &ShapeContext<'_>| {
        let x = c.with_rank(c.input(0), 2)?;
        let rows = c.with_rank(c.input(1), 1)?;
        c.set_output(0, c.make_shape(&[c.dim(rows, 0), c.dim(x, 1)]))
    },
    summary =
        "Rows of a matrix by their numbers; a number outside is refused when the kernel runs."
);

fn rows<T: Element>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (x, rows) = (c.input::<T>(0)?, c.input::<i32>(1)?);
    let (&[count, width], &[taken]) = (x.dims, rows.dims) else {
        return Err(KernelError::invalid_argument("expected a matrix and a vector"));
    };
    let y = c.output::<T>(0, &[taken, width])?;
    let width = width as usize;
    for (at, &row) in rows.data.iter().enumerate() {
        let inside = usize::try_from(row).ok().filter(|&row| row < count as usize);
        let row = inside.ok_or_else(|| {
            let message = format!("rows: expected numbers below {count}, found {row}");
            KernelError::invalid_argument(message)
        })?;
        y.data[at * width..][..width].copy_from_slice(&x.data[row * width..][..width]);
    }
    Ok(())
}

fn rows_reference<T: Element>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (x, rows) = (c.input::<T>(0)?, c.integers(1)?);
    let &[count, width] = x.dims else {
        return Err(KernelError::invalid_argument("expected a matrix"));
    };
    if c.dims(1).len() != 1 || rows.iter().any(|row| !(0..count).contains(row)) {
        return Err(KernelError::invalid_argument(format!("expected numbers below {count}")));
    }
    let y = c.output::<T>(0, &[rows.len() as i64, width])?;
    for (at, y) in y.data.iter_mut().enumerate() {
        let (row, column) = (rows[at / width as usize], at as i64 % width);
        *y = x.data[(row * width + column) as usize];
    }
    Ok(())
}

register_kernel!("RightRows" on "CPU": fn rows<T> for "T" in [f32, i64]);
register_kernel!("RightRows" on "CPU": fn rows_reference<T> for "T" in [f32, i64],
    label = "reference", on_request = true);
