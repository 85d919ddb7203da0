//! What registrations say: label, features, numerics contract, cost of a kernel, cases of an op.

use tenon_sdk::{
    abi::{Determinism, ExtCost, ExtHeader, ext_tags, layout},
    prelude::*,
};

fn scalar(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.scalar())
}

register_op!(
    "ZooLabel",
    outputs = &["label: string"],
    shape = scalar,
    summary = "The label of the kernel that ran.",
);

fn ordinary(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.set_strings(0, &[], [""].into_iter())
}

fn fast(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.set_strings(0, &[], ["fast"].into_iter())
}

fn reference(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.set_strings(0, &[], ["reference"].into_iter())
}

register_kernel!("ZooLabel" on "CPU": fn ordinary);
register_kernel!("ZooLabel" on "CPU": fn fast, label = "fast", priority = 1);
register_kernel!("ZooLabel" on "CPU": fn reference, label = "reference", on_request = true, priority = 2);

register_op!(
    "ZooFeature",
    outputs = &["label: string"],
    shape = scalar,
    summary = "The label of the kernel that ran; the preferred one needs a feature nobody has.",
);

fn imaginary(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.set_strings(0, &[], ["imaginary"].into_iter())
}

register_kernel!("ZooFeature" on "CPU": fn ordinary);
// No processor has both.
register_kernel!("ZooFeature" on "CPU": fn imaginary, label = "imaginary", priority = 9, features = &["neon", "sse2"]);

register_op!(
    "ZooNumerics",
    inputs = &["x: float"],
    outputs = &["sum: float"],
    shape = scalar,
    summary = "The sum of x, kept as a double.",
);

fn sum(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let sum: f64 = c.input::<f32>(0)?.data.iter().copied().map(f64::from).sum();
    c.output::<f32>(0, &[])?.data[0] = sum as f32;
    Ok(())
}

register_kernel!(
    "ZooNumerics" on "CPU": fn sum,
    numerics = Numerics::relative(0.0, 1e-6)
        .accumulation(DType::DOUBLE)
        .determinism(Determinism::BITWISE)
);

register_op!(
    "ZooCost",
    inputs = &["x: float"],
    outputs = &["sum: float"],
    shape = scalar,
    summary = "As ZooNumerics, by a kernel that says what a call costs.",
);

register_kernel!("ZooCost" on "CPU": fn sum, cost = (5.0, 0.25));

tenon_sdk::extension_link! {
    /// What only this plugin's own tools read: hosts skip it.
    struct Note(tag = 0x8000_0151, version = 1) {
        /// A number.
        number: u64,
    }
}

/// A cost as `cost = ...` makes it, behind a link that nobody knows.
static COST: ExtCost = ExtCost {
    header: ExtHeader::new(ext_tags::COST, 1, &layout::EXT_COST),
    fixed_ns: 7.0,
    per_element_ns: 0.5,
};
static NOTED: Note = Note::new(42).before(&COST);
static NOTE: Note = Note::new(43);

register_op!(
    "ZooLinks",
    inputs = &["x: float"],
    outputs = &["sum: float"],
    shape = scalar,
    summary = "As ZooNumerics; links of the plugin's own stand on the op, on its kernel and alone.",
    cases = &["any; x: [n]"],
    ext = &NOTE,
);

register_kernel!("ZooLinks" on "CPU": fn sum, ext = &NOTED);
tenon_sdk::register_extension!(NOTE: Note);

register_op!(
    "ZooCases",
    inputs = &["x: float", "rows: int64"],
    outputs = &["y: float"],
    shape = |c: &ShapeContext<'_>| {
        let (x, rows) = (c.with_rank(c.input(0), 2)?, c.with_rank(c.input(1), 1)?);
        c.set_output(0, c.make_shape(&[c.dim(rows, 0), c.dim(x, 1)]))
    },
    summary = "Some rows of x; its cases say what a row is.",
    cases = &[
        "some; n in 1..9; x: [n, 3] uniform(-1, 1); rows: [k] integers(0..n)",
        "last; n in {1, 4}; x: [n, d]; rows: [1] values(n-1)",
    ],
    bench = &["many; n in {8, 64}; x: [n, 3]; rows: [16] integers(0..n)"],
    flops = "2 * y",
    bytes = "2 * bytes(y) + bytes(rows)",
);

fn rows(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (x, rows) = (c.input::<f32>(0)?, c.input::<i64>(1)?);
    let &[count, width] = x.dims else {
        return Err(KernelError::invalid_argument("x: expected a matrix"));
    };
    let y = c.output::<f32>(0, &[rows.data.len() as i64, width])?;
    for (at, &row) in rows.data.iter().enumerate() {
        if row < 0 || row >= count {
            return Err(KernelError::invalid_argument(format!(
                "rows: expected 0 up to {count}, found {row}"
            )));
        }
        let (to, from) = (at * width as usize, (row * width) as usize);
        y.data[to..to + width as usize].copy_from_slice(&x.data[from..from + width as usize]);
    }
    Ok(())
}

register_kernel!("ZooCases" on "CPU": fn rows);
