//! What a kernel learns when it is created.

use std::sync::atomic::{AtomicI64, Ordering};
use tenon_sdk::{abi::Slot, prelude::*};

register_op!(
    "ZooCreateFacts",
    inputs = &["xs: N * float", "i: int32"],
    outputs = &["facts: string"],
    attrs = &["N: int >= 1"],
    summary = "Op, node, device, types, shapes and positions, as the kernel learned them.",
);

struct CreateFacts {
    facts: Vec<String>,
}

fn types(types: &[DType]) -> String {
    types.iter().map(|dtype| format!("{};", dtype.0)).collect()
}

fn positions(range: std::ops::Range<usize>) -> String {
    format!("{}+{}", range.start, range.len())
}

impl Kernel for CreateFacts {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let inputs = c.input_types().len();
        let facts = vec![
            c.op().to_owned(),
            c.node().to_owned(),
            c.device().to_owned(),
            types(c.input_types()),
            types(c.output_types()),
            (0..inputs).map(|input| format!("{};", c.input_shape(input))).collect(),
            positions(c.input_range(0)),
            positions(c.input_named("i")?),
            positions(c.output_named("facts")?),
            [c.input_args(), c.output_args()].concat().join(";"),
        ];
        Ok(CreateFacts { facts })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        c.set_strings(0, &[self.facts.len() as i64], self.facts.iter())
    }
}

register_kernel!("ZooCreateFacts" on "CPU": CreateFacts);

register_op!(
    "ZooConstantView",
    inputs = &["x: float", "c: float"],
    outputs = &["y: float"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
    summary = "x plus the scalar c, which is read when the kernel is created and must be constant.",
);

struct ConstantView {
    c: f32,
}

/// The single float of a constant.
fn scalar(slot: &Slot) -> Result<f32, KernelError> {
    if slot.dtype != DType::FLOAT || slot.elements != 1 {
        return Err(KernelError::invalid_argument("expected a constant of one float"));
    }
    // SAFETY: a constant lies in host memory and holds one float while the kernel is created.
    Ok(unsafe { *slot.data.cast::<f32>() })
}

impl Kernel for ConstantView {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let constant = c.constant(1).ok_or_else(|| {
            KernelError::invalid_argument("input c: expected a constant, found a computed value")
        })?;
        Ok(ConstantView { c: scalar(constant)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<f32>(0)?;
        let y = c.output::<f32>(0, x.dims)?;
        for (y, x) in y.data.iter_mut().zip(x.data) {
            *y = x + self.c;
        }
        Ok(())
    }
}

register_kernel!("ZooConstantView" on "CPU": ConstantView);

register_op!(
    "ZooPrepack",
    inputs = &["x: float", "w: float"],
    outputs = &["y: float", "form: int64"],
    shape = |c: &ShapeContext<'_>| {
        c.set_output(0, c.input(0))?;
        c.set_output(1, c.scalar())
    },
    summary = "x times the reversed w; form is the number of the packed form, 0 without one.",
);

/// Weights in reverse order, with a number of their own, so that a test sees which plans share a form.
struct Reversed {
    weights: Vec<f32>,
    number: i64,
}

impl Reversed {
    fn of(weights: &[f32], number: i64) -> Reversed {
        Reversed { weights: weights.iter().rev().copied().collect(), number }
    }
}

struct Packing {
    packed: Option<tenon_sdk::author::Packed>,
}

impl Kernel for Packing {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Packing { packed: None })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<f32>(0)?;
        let own;
        // Without a packed form the constant is still there.
        let form = match self.packed.as_ref().and_then(Packed::get::<Reversed>) {
            Some(form) => form,
            None => {
                own = Reversed::of(c.input::<f32>(1)?.data, 0);
                &own
            }
        };
        if form.weights.len() != x.data.len() {
            return Err(KernelError::invalid_argument(format!(
                "w: expected {} elements, found {}",
                x.data.len(),
                form.weights.len()
            )));
        }
        let y = c.output::<f32>(0, x.dims)?;
        for ((y, x), w) in y.data.iter_mut().zip(x.data).zip(&form.weights) {
            *y = x * w;
        }
        c.output::<i64>(1, &[])?.data[0] = form.number;
        Ok(())
    }
}

impl Prepack for Packing {
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        static NEXT: AtomicI64 = AtomicI64::new(1);
        if input != 1 || view.dtype != DType::FLOAT {
            return Ok(None);
        }
        // SAFETY: the view lies in host memory and holds `elements` floats during this call.
        let weights =
            unsafe { std::slice::from_raw_parts(view.data.cast::<f32>(), view.elements as usize) };
        let form = Reversed::of(weights, NEXT.fetch_add(1, Ordering::Relaxed));
        Ok(Some(Packed::new(form, view.bytes)))
    }

    fn attach_packed(&mut self, _input: usize, packed: &Packed) {
        self.packed = Some(packed.clone());
    }
}

register_kernel!("ZooPrepack" on "CPU": Packing);

register_op!(
    "ZooSupports",
    inputs = &["x: float"],
    outputs = &["small: bool", "object: int64"],
    attrs = &["limit: int", "most: int = -1"],
    shape = |c: &ShapeContext<'_>| {
        c.set_output(0, c.scalar())?;
        c.set_output(1, c.scalar())
    },
    summary = "Whether the kernel for at most `limit` elements ran, or the one for any number, if not more than \
               `most`; and the number of the kernel's object.",
);

/// `SMALL` is the kernel for at most `limit` elements.
struct Choosy<const SMALL: bool> {
    object: i64,
}

fn at_most(c: &CreateContext<'_>, limit: i64) -> Supported {
    match c.input_shape(0).full() {
        None => Supported::DependsOnShapes,
        Some(shape) if shape.elements() as i64 <= limit => Supported::Yes,
        Some(shape) => {
            Supported::No(format!("{} elements exceed the limit of {limit}", shape.elements()))
        }
    }
}

impl<const SMALL: bool> Kernel for Choosy<SMALL> {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        static NEXT: AtomicI64 = AtomicI64::new(1);
        Ok(Choosy { object: NEXT.fetch_add(1, Ordering::Relaxed) })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        c.output::<bool>(0, &[])?.data[0] = SMALL;
        c.output::<i64>(1, &[])?.data[0] = self.object;
        Ok(())
    }
}

impl<const SMALL: bool> Supports for Choosy<SMALL> {
    fn supports(c: &CreateContext<'_>) -> Supported {
        match c.attr::<i64>(if SMALL { "limit" } else { "most" }) {
            Ok(limit) if limit >= 0 => at_most(c, limit),
            Ok(_) if !SMALL => Supported::Yes,
            Ok(limit) => Supported::No(format!("limit is {limit}, expected at least 0")),
            Err(error) => Supported::No(error.message),
        }
    }
}

register_kernel!("ZooSupports" on "CPU": Choosy<true>, label = "small", priority = 1);
register_kernel!("ZooSupports" on "CPU": Choosy<false>);
