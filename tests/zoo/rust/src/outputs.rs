//! The ways in which an output comes to be.

use tenon_sdk::{abi::slot_flags, prelude::*};

register_op!(
    "ZooPlanned",
    inputs = &["x: float"],
    outputs = &["y: float", "planned: bool"],
    shape = |c: &ShapeContext<'_>| {
        c.set_output(0, c.input(0))?;
        c.set_output(1, c.scalar())
    },
    summary = "Copies x; and whether the output was allocated before the kernel ran.",
);

fn planned(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let planned = c.output_slot(0)?.flags & slot_flags::PLANNED != 0;
    let x = c.input::<f32>(0)?;
    c.output::<f32>(0, x.dims)?.data.copy_from_slice(x.data);
    c.output::<bool>(1, &[])?.data[0] = planned;
    Ok(())
}

register_kernel!("ZooPlanned" on "CPU": fn planned);

register_op!(
    "ZooAllocate",
    inputs = &["x: float"],
    outputs = &["index: int64"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.unknown_of_rank(1)),
    summary = "Positions of the elements that are not zero: how many depends on the data.",
);

fn allocate(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let index: Vec<i64> =
        (0i64..).zip(x.data).filter(|(_, x)| **x != 0.0).map(|(at, _)| at).collect();
    c.output::<i64>(0, &[index.len() as i64])?.data.copy_from_slice(&index);
    Ok(())
}

register_kernel!("ZooAllocate" on "CPU": fn allocate);

register_op!(
    "ZooForward",
    inputs = &["x: float"],
    outputs = &["y: float", "in_place: bool"],
    shape = |c: &ShapeContext<'_>| {
        c.set_output(0, c.input(0))?;
        c.set_output(1, c.scalar())
    },
    summary = "x plus 1, in x's own buffer where nobody else holds it; and whether it was.",
);

fn forward(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (from, dims) = (c.slot(0)?.data, c.dims(0));
    match c.in_place::<f32>(0, 0, dims)? {
        InOut::InPlace(y) => y.iter_mut().for_each(|y| *y += 1.0),
        InOut::Separate(x, y) => y.iter_mut().zip(x).for_each(|(y, x)| *y = x + 1.0),
    }
    // An executor that plans the pair gives the output the input's buffer itself: both ways count.
    let in_place = c.output_slot(0)?.data == from;
    c.output::<bool>(1, &[])?.data[0] = in_place;
    Ok(())
}

register_kernel!("ZooForward" on "CPU": fn forward, in_place = &[(0, 0)]);

register_op!(
    "ZooShare",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.unknown_of_rank(1)),
    summary = "x's own buffer as a vector.",
);

fn share(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.share(0, 0, &[c.slot(0)?.elements as i64])
}

register_kernel!("ZooShare" on "CPU": fn share);

register_op!(
    "ZooUnused",
    inputs = &["x: float"],
    outputs = &["sum: float", "unused: bool"],
    shape = |c: &ShapeContext<'_>| {
        c.set_output(0, c.scalar())?;
        c.set_output(1, c.scalar())
    },
    summary = "The sum of x, left out when nobody reads it; and whether it was.",
);

fn unused(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let unused = c.output_slot(0)?.flags & slot_flags::UNUSED != 0;
    if !unused {
        c.output::<f32>(0, &[])?.data[0] = c.input::<f32>(0)?.data.iter().sum();
    }
    c.output::<bool>(1, &[])?.data[0] = unused;
    Ok(())
}

register_kernel!("ZooUnused" on "CPU": fn unused);
