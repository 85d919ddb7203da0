//! `Select` and `ClipByValue`.

use super::{
    access::{Access, Entries, Repeats, most_lanes},
    types::{ALL, CLIPPED, EXAMPLES},
};
use crate::{
    compile::{Source, Variant},
    kernels::{
        dtype::{name_of, word_of},
        strided::Strided,
    },
    launch::{Launch, Operand},
    source,
};
use tenon_sdk::{DType, KernelError, geometry::BroadcastPlan, prelude::*, reg::Numerics};

static SOURCE: Source = source!("ternary.cu", overlaps);

/// Parameters: addresses, number of elements.
type Call = (u64, u64, u64, u64, u64);
/// As `Call`, with the number of packs instead of elements, and how the operands repeat.
type Broadcast<I> = (u64, u64, u64, u64, u64, Strided<I, 3>);

fn variant(op: &str, element: &str, layout: &str) -> Variant {
    Variant::new(&SOURCE).define("T", element).define("OP", op).define("LAYOUT", layout)
}

/// Every size of word for selection and every kind of number for limits, in every layout.
pub(super) fn variants() -> Vec<Variant> {
    let layouts = ["SAME", "BROADCAST"];
    let select = |word| layouts.map(|layout| variant("Select", word, layout));
    let mut all: Vec<Variant> = ["u8", "u16", "u32", "u64"].into_iter().flat_map(select).collect();
    for dtype in CLIPPED.iter().filter(|dtype| EXAMPLES.contains(dtype)) {
        if let Ok(name) = name_of(*dtype) {
            let layouts = ["SAME", "SCALARS", "BROADCAST"];
            all.extend(layouts.map(|layout| variant("ClipByValue", name, layout)));
        }
    }
    all
}

/// The entries of an op.
struct Ternary {
    same: Entries<Call>,
    scalars: Entries<Call>,
    short: Entries<Broadcast<u32>>,
    long: Entries<Broadcast<u64>>,
}

impl Ternary {
    fn new(op: &str, element: &str, lanes: u64) -> Ternary {
        let named = |layout| variant(op, element, layout);
        // SAFETY: the entries take four addresses and a count; the last entry also takes how
        // operands repeat, for the index type of its width, see `repeat`.
        unsafe {
            Ternary {
                same: Entries::new(named("SAME"), "ternary_same", lanes),
                scalars: Entries::new(named("SCALARS"), "ternary_scalars", lanes),
                short: Entries::new(named("BROADCAST"), "ternary_broadcast", lanes),
                long: Entries::new(named("BROADCAST"), "ternary_broadcast", lanes),
            }
        }
    }

    /// Enqueues the op on operands that are broadcast by the plan.
    fn run(
        &self,
        c: &ComputeContext<'_>,
        plan: &BroadcastPlan<3>,
        dims: &[i64],
    ) -> Result<(), KernelError> {
        let launch = Launch::new(c)?;
        let inputs = [launch.input(0)?, launch.input(1)?, launch.input(2)?];
        let output = launch.output(0, dims)?;
        if output.elements == 0 {
            return Ok(());
        }
        if plan.is_elementwise() {
            return whole(&self.same, &launch, inputs, output, &inputs);
        }
        self.repeat(&launch, &Repeats::new(plan), inputs, output)
    }

    fn repeat(
        &self,
        launch: &Launch<'_>,
        repeats: &Repeats<3>,
        inputs: [Operand; 3],
        output: Operand,
    ) -> Result<(), KernelError> {
        let access = repeats.access(inputs, output);
        let (packs, grid) = (output.elements / access.lanes, access.grid(output.elements, launch));
        let [x, y, z] = inputs.map(|input| input.address);
        let to = output.address;
        // SAFETY: the repetitions stay within the operands, and the count is the number of packs.
        unsafe {
            if access.is_long {
                let arguments = (x, y, z, to, packs, repeats.parameter(access.lanes)?);
                return self.long.run(launch, access, grid, arguments);
            }
            let arguments = (x, y, z, to, packs, repeats.parameter(access.lanes)?);
            self.short.run(launch, access, grid, arguments)
        }
    }
}

/// Enqueues the op over the whole output, with inputs that have all elements, or the one that the
/// entry reads.
fn whole(
    entries: &Entries<Call>,
    launch: &Launch<'_>,
    inputs: [Operand; 3],
    output: Operand,
    wide: &[Operand],
) -> Result<(), KernelError> {
    let operands: Vec<Operand> = wide.iter().copied().chain([output]).collect();
    let access = Access::whole(output.elements, &operands);
    let [x, y, z] = inputs.map(|input| input.address);
    let arguments = (x, y, z, output.address, output.elements);
    let grid = access.grid(output.elements, launch);
    // SAFETY: operands have `elements` elements, or the one that the entry reads.
    unsafe { entries.run(launch, access, grid, arguments) }
}

/// `SelectV2`; where `OLD` is set `Select`, whose condition is a scalar, or has a value for each
/// row or element.
struct Select<const OLD: bool>(Ternary);

impl<const OLD: bool> Kernel for Select<OLD> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let dtype: DType = c.attr("T")?;
        Ok(Select(Ternary::new("Select", word_of(dtype)?.0, most_lanes(&[dtype]))))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let [condition, t, e] = [0, 1, 2].map(|input| c.dims(input));
        if !OLD {
            let plan = BroadcastPlan::new([condition, t, e])?;
            return self.0.run(c, &plan, plan.output_dims());
        }
        let differs = |what: &str, found: &[i64]| {
            KernelError::invalid_argument(format!(
                "{what} must have the shape {t:?} of t, found {found:?}"
            ))
        };
        if t != e {
            return Err(differs("e", e));
        }
        let by_rows = condition.len() == 1 && !t.is_empty() && condition[0] == t[0];
        if !condition.is_empty() && !by_rows && condition != t {
            return Err(differs("condition, unless it has a value per row,", condition));
        }
        let mut dims = vec![1; t.len()];
        dims[..condition.len()].copy_from_slice(condition);
        self.0.run(c, &BroadcastPlan::new([&dims, t, e])?, t)
    }
}

register_kernel!("Select" on "CUDA": Select<true>, types = ("T", ALL), numerics = Numerics::EXACT);
register_kernel!("SelectV2" on "CUDA": Select<false>, types = ("T", ALL),
    numerics = Numerics::EXACT);

/// `ClipByValue`, with limits of the tensor's shape, or scalars.
struct Clip(Ternary);

impl Kernel for Clip {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let dtype: DType = c.attr("T")?;
        Ok(Clip(Ternary::new("ClipByValue", name_of(dtype)?, most_lanes(&[dtype]))))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let [x, low, high] = [0, 1, 2].map(|input| c.dims(input));
        for (name, limit) in [("clip_value_min", low), ("clip_value_max", high)] {
            if !limit.is_empty() && limit != x {
                return Err(KernelError::invalid_argument(format!(
                    "{name} must be a scalar or have the shape {x:?} of t, found {limit:?}"
                )));
            }
        }
        if low.is_empty() && high.is_empty() {
            let launch = Launch::new(c)?;
            let inputs = [launch.input(0)?, launch.input(1)?, launch.input(2)?];
            let output = launch.output(0, x)?;
            return whole(&self.0.scalars, &launch, inputs, output, &inputs[..1]);
        }
        self.0.run(c, &BroadcastPlan::new([x, low, high])?, x)
    }
}

register_kernel!("ClipByValue" on "CUDA": Clip, types = ("T", CLIPPED), numerics = Numerics::EXACT);
