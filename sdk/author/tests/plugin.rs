//! A plugin with every form of every macro: its author may forbid unsafe code, and has no warning from
//! rustc or clippy, whose stage in CI covers this file.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, clippy::all)]
#![deny(clippy::undocumented_unsafe_blocks, clippy::allow_attributes_without_reason)]

use tenon_sdk::prelude::*;

tenon_sdk::export_plugin!();

fn same_shape(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.input(0))
}

register_op!(
    "Same",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {float, double, int32}"],
    shape = same_shape,
    summary = "Gives what it got.",
    cases = &["some; n in 1..9; x: [n] uniform(-1, 1)", "none; x: [0]"],
    ext = &NOTE,
);
register_op!("Nothing", stateful = true, shape = |_: &ShapeContext<'_>| Ok(()));

fn same<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<T>(0)?;
    c.output::<T>(0, x.dims)?.data.copy_from_slice(x.data);
    Ok(())
}

fn nothing(_: &ComputeContext<'_>) -> Result<(), KernelError> {
    Ok(())
}

struct Same<T>(std::marker::PhantomData<T>);

impl<T: Number> Kernel for Same<T> {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Same(std::marker::PhantomData))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        same::<T>(c)
    }
}

struct Nothing;

impl Kernel for Nothing {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Nothing)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        nothing(c)
    }
}

register_kernel!("Same" on "CPU": Same<T> for "T" in [f32, f64], priority = 2, cost = (10.0, 0.5));
register_kernel!("Same" on "CPU": fn same<T> for "T" in [i32], numerics = Numerics::EXACT);
register_kernel!("Same" on "CPU": fn same::<f32>, types = ("T", &[DType::FLOAT]), label = "plain");
register_kernel!("Nothing" on "CPU": Nothing);
register_kernel!("Nothing" on "CPU": fn nothing, on_request = true, label = "again");

struct Plain;

impl DeviceKind for Plain {
    type Stream = NoStreams;

    fn probe(_knobs: Knobs<'_>) -> Result<u32, KernelError> {
        Ok(1)
    }

    fn open(_: u32, _: DeviceHandle, _knobs: Knobs<'_>) -> Result<Plain, KernelError> {
        Ok(Plain)
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo::host("the processor")
    }
}

register_device!("PLAIN": Plain, priority = 1);
tenon_sdk::extension_link! {
    /// A link of the plugin's own.
    pub struct Note(tag = 0x8000_0001, version = 1) {
        /// A number.
        pub number: u64,
    }
}

static NOTE: Note = Note::new(1).before(&FURTHER);
static FURTHER: Note = Note::new(2);

register_kernel!("Nothing" on "CPU": fn nothing, on_request = true, label = "linked", ext = &NOTE);
tenon_sdk::register_extension!(FURTHER: Note);

/// The last input, kept in the session.
#[derive(Default)]
struct Last(std::sync::Mutex<Option<Kept>>);

impl ResourceValue for Last {
    const NAME: &'static str = "test.Last";
}

fn delay(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let last = c.state().find_or_create("", c.node(), || Ok(Last::default()))?;
    let now = c.keep(0)?;
    let mut last = last.0.lock().unwrap_or_else(|poison| poison.into_inner());
    c.output_kept(0, last.as_ref().unwrap_or(&now))?;
    *last = Some(now);
    Ok(())
}

/// A count in a variant.
#[derive(Clone)]
struct Count(u64);

impl VariantValue for Count {
    const NAME: &'static str = "test.Count";
}

fn counted(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let Count(count) = c.variant::<Count>(0)?;
    c.set_variant(0, Variant::new(Count(count + 1)))
}

register_op!("Delay", inputs = &["x: float"], outputs = &["y: float"], stateful = true);
register_op!("Counted", inputs = &["x: variant"], outputs = &["y: variant"]);
register_kernel!("Delay" on "CPU": fn delay);
register_kernel!("Counted" on "CPU": fn counted);
register_knob!("limit": INT = "8", "Does no more than so many.");

#[test]
fn everything_is_in_the_library_s_list() {
    // Four ops, nine kernels (one for each element type), a device, a knob and a link.
    let count = tenon_sdk::reg::registrations().len();
    assert_eq!(count, 16);
}
