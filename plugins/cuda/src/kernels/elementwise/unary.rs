//! Functions of one element, and casts.

use super::{
    access::{Access, Entries, most_lanes},
    types::{ALL, DOUBLES, FLOATS, INTEGERS, NUMBERS, ROUNDED, SIGNED, WITHOUT_BF16},
};
use crate::{
    compile::{Source, Variant},
    kernels::dtype::name_of,
    launch::Launch,
    source,
};
use tenon_sdk::{DType, KernelError, prelude::*, reg::Numerics};

static SOURCE: Source = source!("unary.cu", overlaps);

/// Parameters: addresses, number of elements, the attribute of an op that has one.
type Call = (u64, u64, u64, f32);

fn variant(op: &str, from: DType, to: DType) -> Result<Variant, KernelError> {
    let variant = Variant::new(&SOURCE).define("T", name_of(from)?).define("U", name_of(to)?);
    Ok(variant.define("OP", op))
}

/// Every op, in those types of its registration that it computes differently.
pub(super) fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    for (op, types, to) in OPS {
        for from in types.iter().filter(|from| super::types::EXAMPLES.contains(from)) {
            all.extend(variant(op, *from, to.unwrap_or(*from)));
        }
    }
    let gelu = |op| FLOATS.iter().flat_map(move |dtype| variant(op, *dtype, *dtype));
    all.extend(["GeluExact", "GeluApproximate"].into_iter().flat_map(gelu));
    for from in super::types::EXAMPLES {
        all.extend(super::types::EXAMPLES.iter().flat_map(|to| variant("Cast", *from, *to)));
    }
    all.extend(variant("Relu", DType::FLOAT, DType::FLOAT).map(Variant::overlapping));
    all
}

/// A function of one element, by the name of the op.
struct Unary {
    parameter: f32,
    entries: Entries<Call>,
}

impl Kernel for Unary {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (from, to) = (c.input_types()[0], c.output_types()[0]);
        let (op, parameter) = match c.op() {
            "LeakyRelu" => ("LeakyRelu", c.attr("alpha")?),
            "Cast" if c.attr("Truncate")? => ("CastTruncate", 0.0),
            "_FusedGelu" if c.attr("approximate")? => ("GeluApproximate", 0.0),
            "_FusedGelu" => ("GeluExact", 0.0),
            op => (op, 0.0),
        };
        let lanes = most_lanes(&[from, to]);
        // SAFETY: `unary` takes two addresses, a count and a number.
        let entries = unsafe { Entries::new(variant(op, from, to)?, "unary", lanes) };
        Ok(Unary { parameter, entries })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, c.dims(0))?);
        let access = Access::whole(y.elements, &[x, y]);
        let arguments = (x.address, y.address, y.elements, self.parameter);
        let grid = access.grid(y.elements, &launch);
        // SAFETY: both operands have `elements` elements.
        unsafe { self.entries.run(&launch, access, grid, arguments) }
    }
}

/// Registers ops with the attribute T, with the type of the result where it differs, and lists
/// them.
macro_rules! register {
    ($($op:literal $types:ident $(to $to:ident)?, $numerics:expr;)*) => {
        const OPS: &[(&str, &[DType], Option<DType>)] =
            &[$(($op, $types, register!(@to $($to)?))),*];
        $(register_kernel!($op on "CUDA": Unary, types = ("T", $types), numerics = $numerics);)*
    };
    (@to $to:ident) => { Some(DType::$to) };
    (@to) => { None };
}

const EXACT: Numerics = Numerics::EXACT;

const fn ulps(ulps: f64) -> Numerics {
    Numerics::ulps(ulps)
}

// The bounds are those of the CUDA programming guide for its math library, with one unit for each
// further operation.
register! {
    "Abs" SIGNED, EXACT;
    "Neg" SIGNED, EXACT;
    "Sign" SIGNED, EXACT;
    "Square" NUMBERS, EXACT;
    "Sqrt" FLOATS, EXACT;
    "Rsqrt" FLOATS, ulps(2.0);
    "Reciprocal" FLOATS, EXACT;
    "Inv" FLOATS, EXACT;
    "Exp" FLOATS, ulps(2.0);
    "Expm1" FLOATS, ulps(2.0);
    "Log" FLOATS, ulps(2.0);
    "Log1p" FLOATS, ulps(2.0);
    "Sin" FLOATS, ulps(2.0);
    "Cos" FLOATS, ulps(2.0);
    "Tan" FLOATS, ulps(4.0);
    "Asin" FLOATS, ulps(3.0);
    "Acos" FLOATS, ulps(3.0);
    "Atan" FLOATS, ulps(3.0);
    "Sinh" FLOATS, ulps(4.0);
    "Cosh" FLOATS, ulps(3.0);
    "Tanh" FLOATS, ulps(3.0);
    "Asinh" FLOATS, ulps(4.0);
    "Acosh" FLOATS, ulps(5.0);
    "Atanh" FLOATS, ulps(4.0);
    "Sigmoid" FLOATS, ulps(4.0);
    "Erf" FLOATS, ulps(4.0);
    "Erfc" FLOATS, ulps(6.0);
    "Lgamma" WITHOUT_BF16, Numerics::relative(2e-6, 2e-6);
    "Digamma" WITHOUT_BF16, Numerics::relative(1e-13, 1e-13);
    "Floor" FLOATS, EXACT;
    "Ceil" FLOATS, EXACT;
    "Round" ROUNDED, EXACT;
    "Rint" DOUBLES, EXACT;
    "IsNan" FLOATS to BOOL, EXACT;
    "IsInf" FLOATS to BOOL, EXACT;
    "IsFinite" FLOATS to BOOL, EXACT;
    "Invert" INTEGERS, EXACT;
    "PopulationCount" INTEGERS to UINT8, EXACT;
    "Relu" NUMBERS, EXACT;
    "Relu6" NUMBERS, EXACT;
    "Elu" FLOATS, ulps(2.0);
    "Selu" FLOATS, ulps(4.0);
    "LeakyRelu" FLOATS, EXACT;
    "Softplus" FLOATS, ulps(4.0);
    "Softsign" FLOATS, ulps(2.0);
}

register_kernel!("LogicalNot" on "CUDA": Unary, numerics = Numerics::EXACT);
register_kernel!("Cast" on "CUDA": Unary, types = ("SrcT", ALL), types = ("DstT", ALL),
    numerics = Numerics::EXACT);

// As accurate as the CPU's kernels: a relative error of the number, and an absolute error where
// terms cancel.
macro_rules! gelu {
    ($($dtype:ident $absolute:literal $relative:literal;)*) => {$(
        register_kernel!("_FusedGelu" on "CUDA": Unary, types = ("T", &[DType::$dtype]),
            numerics = Numerics::relative($absolute, $relative));
    )*};
}

gelu! {
    FLOAT 1e-6 2e-6;
    DOUBLE 4e-15 4e-15;
    HALF 1e-6 1e-3;
    BFLOAT16 1e-6 8e-3;
}
