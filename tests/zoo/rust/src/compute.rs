//! What a call brings: arguments, slots, the step, cancellation, deadline, scratch, trace, errors.

use tenon_sdk::prelude::*;

register_op!(
    "ZooVariadic",
    inputs = &["xs: N * float", "ys: M * float"],
    outputs = &["sums: N * float", "total: float"],
    attrs = &["N: int >= 1", "M: int >= 0"],
    shape = |c: &ShapeContext<'_>| {
        let n: i64 = c.attr("N")?;
        for output in 0..n as usize {
            c.set_output(output, c.input(output))?;
        }
        c.set_output(n as usize, c.scalar())
    },
    summary = "Each x plus the sum of all ys; and that sum.",
);

fn variadic(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let mut total = 0.0;
    for input in c.input_range(1) {
        total += c.input::<f32>(input)?.data.iter().sum::<f32>();
    }
    for (input, output) in c.input_range(0).zip(c.output_range(0)) {
        let x = c.input::<f32>(input)?;
        let y = c.output::<f32>(output, x.dims)?;
        for (y, x) in y.data.iter_mut().zip(x.data) {
            *y = x + total;
        }
    }
    c.output::<f32>(c.output_range(1).start, &[])?.data[0] = total;
    Ok(())
}

register_kernel!("ZooVariadic" on "CPU": fn variadic);

register_op!(
    "ZooTypeList",
    inputs = &["xs: T"],
    outputs = &["bytes: int64"],
    attrs = &["T: list(type) >= 1"],
    summary = "Bytes of each input, whose types may differ.",
);

fn type_list(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let bytes = c.output::<i64>(0, &[c.input_count() as i64])?;
    for (input, bytes) in bytes.data.iter_mut().enumerate() {
        *bytes = c.slot(input)?.bytes as i64;
    }
    Ok(())
}

register_kernel!("ZooTypeList" on "CPU": fn type_list);

register_op!(
    "ZooSlotFacts",
    inputs = &["a: T", "b: T"],
    outputs = &["facts: int64"],
    attrs = &["T: type"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.shape_of(&[8])),
    summary = "Of a: type, rank, memory, elements, bytes, whether constant; the alias classes of a and b.",
);

fn slot_facts(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    use tenon_sdk::abi::slot_flags;
    let (a, b) = (c.slot(0)?, c.slot(1)?);
    let facts = [
        i64::from(a.dtype.0),
        i64::from(a.rank),
        i64::from(a.memory.0),
        a.elements as i64,
        a.bytes as i64,
        i64::from(a.flags & slot_flags::CONSTANT != 0),
        i64::from(a.alias),
        i64::from(b.alias),
    ];
    c.output::<i64>(0, &[8])?.data.copy_from_slice(&facts);
    Ok(())
}

register_kernel!("ZooSlotFacts" on "CPU": fn slot_facts);

register_op!(
    "ZooStepFacts",
    outputs = &["facts: int64"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.shape_of(&[3])),
    summary = "Step, frame and iteration.",
);

fn step_facts(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (frame, iteration) = c.frame_iteration();
    let facts = [c.step_id() as i64, frame as i64, iteration as i64];
    c.output::<i64>(0, &[3])?.data.copy_from_slice(&facts);
    Ok(())
}

register_kernel!("ZooStepFacts" on "CPU": fn step_facts);

register_op!(
    "ZooCancelFlag",
    outputs = &["cancelled: bool"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.scalar()),
    summary = "False; fails with CANCELLED when the step is cancelled.",
);

fn cancel_flag(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    if c.is_cancelled() {
        return Err(KernelError::new(Code::CANCELLED, "the step is cancelled"));
    }
    c.output::<bool>(0, &[])?.data[0] = false;
    Ok(())
}

register_kernel!("ZooCancelFlag" on "CPU": fn cancel_flag);

register_op!(
    "ZooDeadline",
    outputs = &["remaining_ns: int64"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.scalar()),
    summary = "Nanoseconds to the step's deadline; -1 without one.",
);

fn deadline(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let remaining = match c.deadline_ns() {
        Some(deadline) => deadline.saturating_sub(c.now_ns()) as i64,
        None => -1,
    };
    c.output::<i64>(0, &[])?.data[0] = remaining;
    Ok(())
}

register_kernel!("ZooDeadline" on "CPU": fn deadline);

register_op!(
    "ZooScratch",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
    summary = "x in reverse order, by way of scratch memory.",
);

fn scratch(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    if !(c.scratch(64, MemoryKind::HOST)? as usize).is_multiple_of(64) {
        return Err(KernelError::internal("scratch memory is not aligned to 64 bytes"));
    }
    let lent = c.scratch_slice_in::<f32>(x.data.len(), MemoryKind::HOST)?;
    lent.copy_from_slice(x.data);
    for kind in [MemoryKind::DEVICE, MemoryKind::PINNED] {
        if c.scratch_slice_in::<f32>(1, kind).is_ok() {
            return Err(KernelError::internal("scratch memory that this device has not"));
        }
    }
    let y = c.output_in::<f32>(0, x.dims, MemoryKind::HOST)?;
    for (y, x) in y.data.iter_mut().zip(lent.iter().rev()) {
        *y = *x;
    }
    Ok(())
}

register_kernel!("ZooScratch" on "CPU": fn scratch);

fn double(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    for (y, x) in y.data.iter_mut().zip(x.data) {
        *y = x + x;
    }
    Ok(())
}

register_op!(
    "ZooTrace",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
    summary = "Doubles x, under a span of its own in the trace.",
);

fn traced(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.traced("zoo.double", || double(c))
}

register_kernel!("ZooTrace" on "CPU": fn traced);

register_op!(
    "ZooFailure",
    outputs = &["y: float"],
    attrs = &["code: int", "message: string"],
    stateful = true,
    summary = "Fails with this code and message.",
);

struct Failure {
    code: Code,
    message: String,
}

impl Kernel for Failure {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let code: i64 = c.attr("code")?;
        if !(1..=16).contains(&code) {
            return Err(KernelError::invalid_argument(format!(
                "code: expected 1 to 16, found {code}"
            )));
        }
        Ok(Failure { code: Code(code as i32), message: c.attr::<&str>("message")?.to_owned() })
    }

    fn compute(&self, _: &ComputeContext<'_>) -> Result<(), KernelError> {
        Err(KernelError::new(self.code, self.message.as_str()))
    }
}

register_kernel!("ZooFailure" on "CPU": Failure);

register_op!(
    "ZooPanic",
    outputs = &["y: float"],
    attrs = &["when: {'create', 'compute', 'parallel'}"],
    stateful = true,
    summary = "Panics; a C plugin has no twin of this.",
);

struct Panicking {
    parallel: bool,
}

impl Kernel for Panicking {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        match c.attr::<&str>("when")? {
            "create" => panic!("zoo panic in create"),
            when => Ok(Panicking { parallel: when == "parallel" }),
        }
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if self.parallel {
            return c.parallel_for(4, 1e6, |_| panic!("zoo panic in parallel work"));
        }
        panic!("zoo panic in compute")
    }
}

register_kernel!("ZooPanic" on "CPU": Panicking);
