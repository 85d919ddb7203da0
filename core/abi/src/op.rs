//! What a plugin registers: ops, kernels, knobs.

use crate::{Code, DType, ExtHeader, Host, KernelTable, KnobKind, ShapeCall, Source, Str, Strs};
use abi_stable::StableAbi;

/// A shape function: sets the shapes of the outputs, or refuses the inputs.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy)]
pub struct ShapeFn {
    /// Null: the shapes of the outputs are unknown.
    pub run: Option<unsafe extern "C" fn(host: *const Host, call: *mut ShapeCall) -> Code>,
}

/// An op. Filled by the registering side; the host copies what it keeps, except `shape`.
///
/// Arguments and attributes are written as `REGISTER_OP` writes them: `"x: T"`, `"values: N * T"`,
/// `"x: Ref(T)"`, `"components: Tlist"`; `"T: {float, double} = DT_FLOAT"`, `"N: int >= 1"`,
/// `"strides: list(int)"`, `"padding: {'SAME', 'VALID'}"`.
#[repr(C)]
#[derive(StableAbi)]
pub struct OpDef {
    /// Size of this struct.
    pub struct_size: u32,
    /// Bits of [`op_flags`].
    pub flags: u32,
    /// Name in CamelCase.
    pub name: Str,
    /// Input arguments.
    pub inputs: Strs,
    /// Output arguments.
    pub outputs: Strs,
    /// Attributes.
    pub attrs: Strs,
    /// One sentence; may be empty.
    pub summary: Str,
    /// The contract; may be empty.
    pub description: Str,
    /// Shape function.
    pub shape: ShapeFn,
    /// Where it is registered.
    pub source: Source,
    /// Growth; may be null.
    pub ext: *const ExtHeader,
}

/// Bits of [`OpDef::flags`].
pub mod op_flags {
    /// Has state or effects: never folded, merged or dropped.
    pub const STATEFUL: u32 = 1;
    /// Swapping the inputs gives the same result.
    pub const COMMUTATIVE: u32 = 2;
    /// Adds up any number of inputs of one type.
    pub const AGGREGATE: u32 = 4;
    /// May be given a reference that has no value yet.
    pub const ALLOWS_UNINITIALIZED_INPUT: u32 = 8;
}

/// The element types that a kernel takes for one type attribute. Filled by the registering side.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct TypeConstraint {
    /// Name of the attribute.
    pub attr: Str,
    /// First allowed type.
    pub types: *const DType,
    /// Number of allowed types, at least 1.
    pub count: usize,
}

/// An output that may take over the buffer of an input. Positions of the named arguments. Filled by the
/// registering side.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct InPlace {
    /// Input argument.
    pub input: u32,
    /// Output argument.
    pub output: u32,
}

/// How far a result may be from the exact one.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToleranceKind(pub u32);

impl ToleranceKind {
    /// Not stated.
    pub const UNSPECIFIED: ToleranceKind = ToleranceKind(0);
    /// Equal bit for bit.
    pub const EXACT: ToleranceKind = ToleranceKind(1);
    /// Within `ulps` units in the last place.
    pub const ULPS: ToleranceKind = ToleranceKind(2);
    /// Within `absolute + relative * |expected|`; for sums, relative to the sum of the absolute terms.
    pub const ABSOLUTE_RELATIVE: ToleranceKind = ToleranceKind(3);
}

/// What two runs on the same inputs share.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Determinism(pub u32);

impl Determinism {
    /// Nothing is promised.
    pub const NONE: Determinism = Determinism(0);
    /// The same bits on the same machine with the same number of threads.
    pub const RUN_TO_RUN: Determinism = Determinism(1);
    /// The same bits, whatever the machine and the threads.
    pub const BITWISE: Determinism = Determinism(2);
}

/// Numerics contract of a kernel. Filled by the registering side.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Numerics {
    /// Which of the figures below apply.
    pub tolerance: ToleranceKind,
    /// Determinism.
    pub determinism: Determinism,
    /// Units in the last place.
    pub ulps: f64,
    /// Absolute part.
    pub absolute: f64,
    /// Relative part.
    pub relative: f64,
    /// Type in which sums are kept; `INVALID` for the element type itself.
    pub accumulation: DType,
    /// Zero.
    pub reserved: u32,
}

/// A kernel. Filled by the registering side; the host copies what it keeps, except `table`.
#[repr(C)]
#[derive(StableAbi)]
pub struct KernelDef {
    /// Size of this struct.
    pub struct_size: u32,
    /// Bits of [`kernel_def_flags`].
    pub flags: u32,
    /// Name of the op.
    pub op: Str,
    /// Device type, such as `CPU`; `DEFAULT` for every type.
    pub device_type: Str,
    /// Label of the variant; empty for the ordinary kernel.
    pub label: Str,
    /// Priority: the kernel with the highest number wins.
    pub priority: i32,
    /// Zero.
    pub reserved: u32,
    /// Type constraints, one per constrained attribute.
    pub constraints: *const TypeConstraint,
    /// Number of constraints.
    pub constraint_count: usize,
    /// Names of arguments that are in host memory, whatever the device.
    pub host_memory: Strs,
    /// In-place pairs.
    pub in_place: *const InPlace,
    /// Number of in-place pairs.
    pub in_place_count: usize,
    /// Features of the processor that the kernel needs, such as `avx2` or `avx512f`; without them it is never a
    /// candidate. The host refuses an unknown name when it loads the plugin, with a list of the known names.
    pub features: Strs,
    /// Numerics contract.
    pub numerics: Numerics,
    /// Entries.
    pub table: *const KernelTable,
    /// Where it is registered.
    pub source: Source,
    /// Growth; may be null.
    pub ext: *const ExtHeader,
}

/// Bits of [`KernelDef::flags`].
pub mod kernel_def_flags {
    /// Never chosen by policy, only when its label is requested.
    pub const ON_REQUEST: u32 = 1;
    /// Computes with gradual underflow: denormal operands and results keep their values instead of becoming zero. For
    /// kernels whose results are useful only then; the processor takes longer for each denormal number.
    pub const KEEPS_DENORMALS: u32 = 2;
    /// Refuses by itself every shape that the op's shape function refuses. Without this flag, the host runs the shape
    /// function before a call whose shapes were not known before the step ran, once for each combination of shapes.
    pub const CHECKS_SHAPES: u32 = 4;
}

/// A setting that a plugin declares. Filled by the registering side.
#[repr(C)]
#[derive(StableAbi)]
pub struct KnobDef {
    /// Size of this struct.
    pub struct_size: u32,
    /// Type of the value.
    pub kind: KnobKind,
    /// Name within the plugin's scope, in snake_case.
    pub name: Str,
    /// Default, as text.
    pub default_value: Str,
    /// One sentence.
    pub help: Str,
    /// Where it is registered.
    pub source: Source,
    /// Growth; may be null.
    pub ext: *const ExtHeader,
}
