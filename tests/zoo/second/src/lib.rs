//! A second plugin, whose kernels update variables that the zoo's kernels made, in either language.
//!
//! What it is: the plugin that tests replace and retire while its kernels exist;
//! `tests/zoo/second_next` is its next version. An op of its own has a kernel of each mode, which
//! shapes choose between.
//!
//! What it is not: a copy of the zoo. Clauses of the boundary are in `tests/zoo/rust`.

use std::sync::atomic::{AtomicI64, Ordering};
use tenon_sdk::{author::spawn, prelude::*};

tenon_sdk::export_plugin!();

register_op!(
    "ZooSecondScale",
    inputs = &["handle: resource", "factor: float"],
    stateful = true,
    shape = |_: &ShapeContext<'_>| Ok(()),
    summary = "Multiplies every element of a variable by a factor, in place.",
);

fn scale(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let factor =
        *c.input::<f32>(1)?.data.first().ok_or_else(|| {
            KernelError::invalid_argument("factor: expected one element, found none")
        })?;
    let state = c.state();
    let variable = state.input_variable(0)?;
    let owned = [&variable];
    let mut locked = state.lock(&owned)?;
    locked.view_mut::<f32>(0)?.data.iter_mut().for_each(|x| *x *= factor);
    Ok(())
}

register_kernel!("ZooSecondScale" on "CPU": fn scale);

register_op!(
    "ZooSecondCount",
    outputs = &["count: int64"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.scalar()),
    summary = "Counts its calls in a resource of the session's.",
);

struct Count(AtomicI64);

impl ResourceValue for Count {
    const NAME: &'static str = "second.Count";
}

fn count(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let count = c.state().find_or_create("", "count", || Ok(Count(AtomicI64::new(0))))?;
    c.output::<i64>(0, &[])?.data[0] = count.0.fetch_add(1, Ordering::Relaxed) + 1;
    Ok(())
}

register_kernel!("ZooSecondCount" on "CPU": fn count);

register_knob!("mark": STRING = "unmarked", "Read by the kernels of ZooSecondModes when they are created.");

register_op!(
    "ZooSecondModes",
    inputs = &["x: float"],
    outputs = &["mode: string", "object: int64"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        c.set_output(0, c.shape_of(&[2]))?;
        c.set_output(1, c.scalar())
    },
    summary = "The mode of the kernel that ran and its mark, and the number of its object. One element goes to a \
               kernel in line, two to a blocking one, three to an asynchronous one, and more to none.",
);

/// The modes by how many elements their kernel takes.
const MODES: [(Mode, &str); 3] =
    [(Mode::Inline, "inline"), (Mode::Blocking, "blocking"), (Mode::Async, "async")];

struct Modes<const ELEMENTS: usize> {
    mark: String,
    object: i64,
}

fn give(c: &ComputeContext<'_>, texts: [&str; 2], object: i64) -> Result<(), KernelError> {
    c.set_strings(0, &[2], texts.iter())?;
    c.output::<i64>(1, &[])?.data[0] = object;
    Ok(())
}

impl<const ELEMENTS: usize> Kernel for Modes<ELEMENTS> {
    const MODE: Mode = MODES[ELEMENTS - 1].0;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        static NEXT: AtomicI64 = AtomicI64::new(1);
        let mark = c.knobs().text("mark")?;
        Ok(Modes { mark, object: NEXT.fetch_add(1, Ordering::Relaxed) })
    }

    fn start(&self, mut call: AsyncCall) {
        let (mark, object) = (self.mark.clone(), self.object);
        let _ = spawn("zoo-modes", move || {
            let result = give(&call.context(), [MODES[ELEMENTS - 1].1, &mark], object);
            call.finish(result);
        });
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        give(c, [MODES[ELEMENTS - 1].1, &self.mark], self.object)
    }
}

impl<const ELEMENTS: usize> Supports for Modes<ELEMENTS> {
    fn supports(c: &CreateContext<'_>) -> Supported {
        match c.input_shape(0).full() {
            None => Supported::DependsOnShapes,
            Some(shape) if shape.elements() == ELEMENTS => Supported::Yes,
            Some(shape) => Supported::No(format!("{} elements", shape.elements())),
        }
    }
}

register_kernel!("ZooSecondModes" on "CPU": Modes<1>, label = "one", priority = 2);
register_kernel!("ZooSecondModes" on "CPU": Modes<2>, label = "two", priority = 1);
register_kernel!("ZooSecondModes" on "CPU": Modes<3>, label = "three");
