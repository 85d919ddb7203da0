//! Functions of two elements, with broadcasting.

use super::{
    access::{Access, Entries, Repeats, most_lanes},
    types::{
        ADDED, ALL, DIVIDED, DOUBLES, EXAMPLES, FLOATS, INTEGERS, NUMBERS, ROUNDED, SIGNED_INTEGERS,
    },
};
use crate::{
    compile::{Source, Variant},
    kernels::{dtype::name_of, strided::Strided},
    launch::{Grid, Launch, Operand},
    source,
};
use tenon_sdk::{
    DType, KernelError,
    geometry::{BroadcastPlan, broadcast_shape},
    prelude::*,
    reg::Numerics,
};

static SOURCE: Source = source!("binary.cu", overlaps);

/// Parameters: addresses, number of elements, the attribute of an op that has one.
type Call = (u64, u64, u64, u64, f32);
/// As `Call`, with the number of packs instead of elements, and how the operands repeat.
type Broadcast<I> = (u64, u64, u64, u64, f32, Strided<I, 2>);

/// Layouts in which each operand has all elements, or one.
const WHOLE: [(&str, &str); 3] = [
    ("SAME", "binary_same"),
    ("SCALAR_LEFT", "binary_scalar_left"),
    ("SCALAR_RIGHT", "binary_scalar_right"),
];

fn variant(op: &str, from: DType, to: DType, layout: &str) -> Result<Variant, KernelError> {
    let variant = Variant::new(&SOURCE).define("T", name_of(from)?).define("U", name_of(to)?);
    Ok(variant.define("OP", op).define("LAYOUT", layout))
}

/// Every op, and every layout and width of one op.
pub(super) fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    for (op, types, to) in OPS {
        for from in types.iter().filter(|from| EXAMPLES.contains(from)) {
            all.extend(variant(op, *from, to.unwrap_or(*from), "SAME"));
        }
    }
    let layouts = ["SCALAR_LEFT", "SCALAR_RIGHT", "BROADCAST"];
    for (op, to) in [("AddV2", DType::FLOAT), ("Less", DType::BOOL)] {
        for layout in layouts {
            all.extend(variant(op, DType::FLOAT, to, layout));
            all.extend(variant(op, DType::FLOAT, to, layout).map(|variant| {
                super::access::widened(variant, Access { lanes: 1, is_long: true })
            }));
        }
    }
    all.extend(variant("AddV2", DType::FLOAT, DType::FLOAT, "SAME").map(Variant::overlapping));
    all
}

/// A function of two elements, by the name of the op.
pub(super) struct Binary {
    parameter: f32,
    whole: [Entries<Call>; 3],
    short: Entries<Broadcast<u32>>,
    long: Entries<Broadcast<u64>>,
}

impl Binary {
    /// The op of this name, in the types of a node.
    pub(super) fn of(
        c: &CreateContext<'_>,
        op: &str,
        parameter: f32,
    ) -> Result<Binary, KernelError> {
        Binary::in_types(op, c.input_types()[0], c.output_types()[0], parameter)
    }

    /// The op of this name, from one type to another.
    pub(super) fn in_types(
        op: &str,
        from: DType,
        to: DType,
        parameter: f32,
    ) -> Result<Binary, KernelError> {
        let lanes = most_lanes(&[from, to]);
        let broadcast = variant(op, from, to, "BROADCAST")?;
        let same = variant(op, from, to, WHOLE[0].0)?;
        let left = variant(op, from, to, WHOLE[1].0)?;
        let right = variant(op, from, to, WHOLE[2].0)?;
        // SAFETY: the entries take three addresses, a count and a number; the last entry also takes
        // how operands repeat, for the index type of its width, see `repeat`.
        unsafe {
            Ok(Binary {
                parameter,
                whole: [
                    Entries::new(same, WHOLE[0].1, lanes),
                    Entries::new(left, WHOLE[1].1, lanes),
                    Entries::new(right, WHOLE[2].1, lanes),
                ],
                short: Entries::new(broadcast.clone(), "binary_broadcast", lanes),
                long: Entries::new(broadcast, "binary_broadcast", lanes),
            })
        }
    }

    /// Operands that each have all elements, or one; `layout` selects the entry.
    fn run_whole(
        &self,
        launch: &Launch<'_>,
        layout: usize,
        [x, y, z]: [Operand; 3],
    ) -> Result<(), KernelError> {
        let operands = [[x, y, z], [y, y, z], [x, x, z]][layout];
        let access = Access::whole(z.elements, &operands);
        let arguments = (x.address, y.address, z.address, z.elements, self.parameter);
        let grid = access.grid(z.elements, launch);
        // SAFETY: operands have `elements` elements, or the one that the layout reads.
        unsafe { self.whole[layout].run(launch, access, grid, arguments) }
    }

    /// Operands of one number of elements; the result may be one of the others.
    pub(super) fn run_same(
        &self,
        launch: &Launch<'_>,
        operands: [Operand; 3],
    ) -> Result<(), KernelError> {
        self.run_whole(launch, 0, operands)
    }

    fn repeat(
        &self,
        launch: &Launch<'_>,
        plan: &BroadcastPlan<2>,
        [x, y, z]: [Operand; 3],
    ) -> Result<(), KernelError> {
        let repeats = Repeats::new(plan);
        let access = repeats.access([x, y], z);
        let packs = z.elements / access.lanes;
        let grid = access.grid(z.elements, launch);
        let (x, y, z) = (x.address, y.address, z.address);
        // SAFETY: the repetitions stay within the operands, and the count is the number of packs.
        unsafe {
            if access.is_long {
                let arguments = (x, y, z, packs, self.parameter, repeats.parameter(access.lanes)?);
                return self.long.run(launch, access, grid, arguments);
            }
            let arguments = (x, y, z, packs, self.parameter, repeats.parameter(access.lanes)?);
            self.short.run(launch, access, grid, arguments)
        }
    }

    fn run(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let plan = BroadcastPlan::new([c.dims(0), c.dims(1)])?;
        self.run_as(c, &plan, plan.output_dims())
    }

    /// Inputs 0 and 1, broadcast as planned, to an output of these dimensions.
    pub(super) fn run_as(
        &self,
        c: &ComputeContext<'_>,
        plan: &BroadcastPlan<2>,
        dims: &[i64],
    ) -> Result<(), KernelError> {
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.input(1)?);
        let z = launch.output(0, dims)?;
        let operands = [x, y, z];
        match (x.elements == z.elements, y.elements == z.elements) {
            (true, true) => self.run_whole(&launch, 0, operands),
            (false, true) if x.elements == 1 => self.run_whole(&launch, 1, operands),
            (true, false) if y.elements == 1 => self.run_whole(&launch, 2, operands),
            _ if z.elements == 0 => Ok(()),
            _ => self.repeat(&launch, plan, operands),
        }
    }
}

impl Kernel for Binary {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Binary::of(c, c.op(), 0.0)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        self.run(c)
    }
}

/// Like [`Binary`], for tensors of the same shape, or where `ANY_SHAPE`, of the same number of
/// elements.
struct Alike<const ANY_SHAPE: bool>(Binary);

impl<const ANY_SHAPE: bool> Kernel for Alike<ANY_SHAPE> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let parameter = match c.op() {
            "LeakyReluGrad" => c.attr("alpha")?,
            "ApproximateEqual" => c.attr("tolerance")?,
            _ => 0.0,
        };
        Binary::of(c, c.op(), parameter).map(Alike)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.input(1)?);
        let fits = if ANY_SHAPE { x.elements == y.elements } else { c.dims(0) == c.dims(1) };
        if !fits {
            let what = if ANY_SHAPE { "number of elements" } else { "shape" };
            return Err(KernelError::invalid_argument(format!(
                "both inputs must have the same {what}, found shapes {:?} and {:?}",
                c.dims(0),
                c.dims(1)
            )));
        }
        let z = launch.output(0, c.dims(0))?;
        self.0.run_whole(&launch, 0, [x, y, z])
    }
}

/// `Equal` and `NotEqual`; if the node says so, shapes that do not broadcast are allowed, and count
/// as not equal.
struct Equality {
    binary: Binary,
    wants_one_shape: bool,
    /// Whether the op yields true for unequal elements.
    is_negated: bool,
}

static FILL: Source = source!("fill.cu");

impl Equality {
    /// Writes the scalar result for shapes that do not broadcast.
    fn not_equal(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let launch = Launch::new(c)?;
        let z = launch.output(0, &[])?;
        let module = launch.device().modules().get(&Variant::new(&FILL).define("T", "u8"))?;
        // SAFETY: `fill_constant` takes an address, a value of the size of T, and a count.
        let entry = unsafe { module.entry::<(u64, u8, u64)>("fill_constant")? };
        // SAFETY: the output has one element.
        unsafe { launch.run(&entry, Grid::new(1, 32), (z.address, u8::from(self.is_negated), 1)) }
    }
}

impl Kernel for Equality {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let wants_one_shape = c.attr("incompatible_shape_error")?;
        let is_negated = c.op() == "NotEqual";
        Ok(Equality { binary: Binary::of(c, c.op(), 0.0)?, wants_one_shape, is_negated })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if !self.wants_one_shape && broadcast_shape(c.dims(0), c.dims(1)).is_err() {
            return self.not_equal(c);
        }
        self.binary.run(c)
    }
}

/// Registers ops with the attribute T, with the type of the result where it differs, and lists
/// them.
macro_rules! register {
    ($($kernel:ty: $op:literal $types:ident $(to $to:ident)?, $numerics:expr;)*) => {
        const OPS: &[(&str, &[DType], Option<DType>)] =
            &[$(($op, $types, register!(@to $($to)?))),*];
        $(register_kernel!($op on "CUDA": $kernel, types = ("T", $types), numerics = $numerics);)*
    };
    (@to $to:ident) => { Some(DType::$to) };
    (@to) => { None };
}

const EXACT: Numerics = Numerics::EXACT;

const fn ulps(ulps: f64) -> Numerics {
    Numerics::ulps(ulps)
}

// An integer divided by 0, and one to a negative power, is 0 here and an error on the CPU: see
// `op_binary.cuh`.
register! {
    Binary: "Add" ADDED, EXACT;
    Binary: "AddV2" NUMBERS, EXACT;
    Binary: "Sub" NUMBERS, EXACT;
    Binary: "Mul" NUMBERS, EXACT;
    Binary: "Div" NUMBERS, EXACT;
    Binary: "RealDiv" FLOATS, EXACT;
    Binary: "FloorDiv" NUMBERS, EXACT;
    Binary: "FloorMod" NUMBERS, EXACT;
    Binary: "TruncateDiv" NUMBERS, EXACT;
    Binary: "TruncateMod" DIVIDED, EXACT;
    Binary: "Mod" DIVIDED, EXACT;
    Binary: "Maximum" NUMBERS, EXACT;
    Binary: "Minimum" NUMBERS, EXACT;
    Binary: "SquaredDifference" ROUNDED, ulps(2.0);
    Binary: "Pow" FLOATS, ulps(5.0);
    Binary: "Pow" SIGNED_INTEGERS, EXACT;
    Binary: "Atan2" FLOATS, ulps(4.0);
    Binary: "Xdivy" FLOATS, ulps(1.0);
    Binary: "Xlogy" FLOATS, ulps(3.0);
    Binary: "Xlog1py" FLOATS, ulps(3.0);
    Binary: "MulNoNan" FLOATS, ulps(1.0);
    Binary: "DivNoNan" FLOATS, ulps(1.0);
    Binary: "NextAfter" DOUBLES, EXACT;
    Binary: "Less" NUMBERS to BOOL, EXACT;
    Binary: "LessEqual" NUMBERS to BOOL, EXACT;
    Binary: "Greater" NUMBERS to BOOL, EXACT;
    Binary: "GreaterEqual" NUMBERS to BOOL, EXACT;
    Equality: "Equal" ALL to BOOL, EXACT;
    Equality: "NotEqual" ALL to BOOL, EXACT;
    Binary: "BitwiseAnd" INTEGERS, EXACT;
    Binary: "BitwiseOr" INTEGERS, EXACT;
    Binary: "BitwiseXor" INTEGERS, EXACT;
    Binary: "LeftShift" INTEGERS, EXACT;
    Binary: "RightShift" INTEGERS, EXACT;
    Alike<false>: "ApproximateEqual" DOUBLES to BOOL, EXACT;
    Alike<false>: "ReluGrad" NUMBERS, EXACT;
    Alike<false>: "Relu6Grad" NUMBERS, EXACT;
    Alike<false>: "LeakyReluGrad" FLOATS, EXACT;
    Alike<false>: "EluGrad" FLOATS, ulps(2.0);
    Alike<false>: "SeluGrad" FLOATS, ulps(2.0);
    Alike<false>: "SoftplusGrad" FLOATS, ulps(4.0);
    Alike<false>: "SoftsignGrad" FLOATS, ulps(3.0);
    Alike<true>: "SigmoidGrad" FLOATS, ulps(3.0);
    Alike<true>: "TanhGrad" FLOATS, ulps(3.0);
    Alike<true>: "SqrtGrad" FLOATS, ulps(1.0);
    Alike<true>: "RsqrtGrad" FLOATS, ulps(3.0);
    Alike<true>: "ReciprocalGrad" FLOATS, ulps(2.0);
    Alike<true>: "InvGrad" FLOATS, ulps(2.0);
}

register_kernel!("LogicalAnd" on "CUDA": Binary, numerics = Numerics::EXACT);
register_kernel!("LogicalOr" on "CUDA": Binary, numerics = Numerics::EXACT);
