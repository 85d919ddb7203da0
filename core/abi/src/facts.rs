//! What passes, placement and execution must know of an op beside its signature.

use crate::ExtHeader;
use abi_stable::StableAbi;

/// What the executor does for an op, which then needs no kernel.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpRole(pub u32);

impl OpRole {
    /// Calls the op's kernel.
    pub const KERNEL: OpRole = OpRole(0);
    /// Nothing; the node only orders others.
    pub const ORDER: OpRole = OpRole(1);
    /// Nothing; the node runs even if all that it waits for is dead.
    pub const TRIGGER: OpRole = OpRole(2);
    /// Gives its first input to the output that the second one names; all other outputs are dead.
    pub const SWITCH: OpRole = OpRole(3);
    /// Passes on the first input that is not dead, and its number.
    pub const MERGE: OpRole = OpRole(4);
    /// Brings a value into a frame.
    pub const ENTER: OpRole = OpRole(5);
    /// Brings a value out of its frame.
    pub const EXIT: OpRole = OpRole(6);
    /// Brings a value into the next iteration.
    pub const NEXT_ITERATION: OpRole = OpRole(7);
    /// Passes on the condition of a loop.
    pub const LOOP_COND: OpRole = OpRole(8);
    /// Gives argument `index` of the step.
    pub const ARG: OpRole = OpRole(9);
    /// Takes result `index` of the step.
    pub const RETVAL: OpRole = OpRole(10);
    /// Gives a tensor to the rendezvous.
    pub const SEND: OpRole = OpRole(11);
    /// Takes a tensor from the rendezvous.
    pub const RECV: OpRole = OpRole(12);
    /// Calls functions of the graph's library, which attributes of the node name.
    pub const CALL: OpRole = OpRole(13);
}

/// How values follow from values. They are constants and, of int16, int32 and int64, short vectors and scalars that
/// are known in part. What an op passes on needs no rule.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueRule(pub u32);

impl ValueRule {
    /// Nothing is known of them.
    pub const NONE: ValueRule = ValueRule(0);
    /// The tensor in attribute `value`.
    pub const CONSTANT: ValueRule = ValueRule(1);
    /// Each output is the shape of the input of its number.
    pub const SHAPE: ValueRule = ValueRule(2);
    /// The number of elements of the input.
    pub const SIZE: ValueRule = ValueRule(3);
    /// The number of dimensions of the input.
    pub const RANK: ValueRule = ValueRule(4);
    /// The integers of the input, where the output's type holds them.
    pub const CAST: ValueRule = ValueRule(5);
    /// Scalars joined to a vector.
    pub const PACK: ValueRule = ValueRule(6);
    /// Vectors joined; the last input is the axis.
    pub const CONCAT: ValueRule = ValueRule(7);
    /// A part of the first input, by begin, end and strides, and the masks that `StridedSlice` has as attributes.
    pub const STRIDED_SLICE: ValueRule = ValueRule(8);
}

/// Which inputs a kernel of the op may refuse, of those that the signature accepts. A node that may fail runs even if
/// nothing reads it.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal(pub u32);

impl Refusal {
    /// Not stated: anything.
    pub const ANYTHING: Refusal = Refusal(0);
    /// Nothing.
    pub const NOTHING: Refusal = Refusal(1);
    /// Inputs that the shape function refuses once it knows the shapes of all inputs, and the values of those on which
    /// its answer depends. Of an elementwise op: shapes that do not broadcast.
    pub const SHAPES: Refusal = Refusal(2);
    /// Inputs that the shape function refuses once it knows the rank of the first input, and the values of those on
    /// which its answer depends.
    pub const AXES: Refusal = Refusal(3);
    /// Of an elementwise op of two inputs: shapes that do not broadcast, and of integers a second operand that has a 0.
    pub const DIVISORS: Refusal = Refusal(4);
    /// Of an elementwise op: shapes that do not broadcast, and of integers any value.
    pub const INTEGERS: Refusal = Refusal(5);
    /// Inputs that are not all of one shape.
    pub const UNEQUAL_SHAPES: Refusal = Refusal(6);
}

/// Whether the two inputs of an op may be swapped.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Symmetry(pub u32);

impl Symmetry {
    /// Not stated.
    pub const NONE: Symmetry = Symmetry(0);
    /// The results are equal, except for the sign of a zero and for the bits of a NaN. A fusion's pattern takes the
    /// operands in either order.
    pub const VALUES: Symmetry = Symmetry(1);
    /// The results are equal bit for bit, except for strings: two such nodes are merged.
    pub const BITS: Symmetry = Symmetry(2);
}

/// What an op states about its gradient. A gradient that is a function has a link of its own, of the tag
/// [`super::ext_tags::GRADIENT`].
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct GradientRule(pub u32);

impl GradientRule {
    /// Not stated.
    pub const UNSTATED: GradientRule = GradientRule(0);
    /// No gradient flows through the op.
    pub const NONE: GradientRule = GradientRule(1);
}

/// Facts of an op. All zero states nothing: the host then assumes that the op may fail, gives new values and has
/// a kernel. Filled by the registering side.
///
/// A fact is a promise of the op that every kernel of it keeps. The host refuses a registration with a fact that
/// contradicts the op's signature or another fact.
#[repr(C)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Bits of [`fact_flags`].
    pub flags: u32,
    /// What the executor does instead of a kernel.
    pub role: OpRole,
    /// How the values of outputs follow from what is known of the inputs before a step.
    pub value: ValueRule,
    /// What a kernel may refuse.
    pub refusal: Refusal,
    /// Whether the two operands may be swapped.
    pub symmetry: Symmetry,
    /// What the op states about its gradient.
    pub gradient: GradientRule,
    /// Position of the input argument that is passed on, if the flags say that there is one.
    pub passed_input: u32,
    /// Position of the output argument that it is passed on to.
    pub passed_output: u32,
    /// For [`Refusal::SHAPES`] and [`Refusal::AXES`]: bit `n` is set if the answer depends on the value of input
    /// argument `n` too.
    pub deciding_inputs: u64,
}

/// Bits of [`Facts::flags`].
pub mod fact_flags {
    /// The op has no state, but has to run: it checks, prints or sends. Never folded, merged or dropped.
    pub const CHECKS: u32 = 1;
    /// Each element of an output follows from the elements of the inputs at its place alone; the inputs broadcast.
    pub const ELEMENTWISE: u32 = 2;
    /// An output is an input as it is: the same value under the same shape, in the same buffer if possible.
    pub const PASSES_INPUT: u32 = 4;
    /// An output has the elements of an input, in their order, under another shape.
    pub const RESHAPES_INPUT: u32 = 8;
    /// The first input and the first output are images, in the format that attribute `data_format` names: the node may
    /// be computed in the format of its device. Of the other attributes `strides`, `dilations` and `ksize` follow the
    /// format where they have four items, `explicit_paddings` where it has eight.
    pub const IMAGES: u32 = 16;
    /// Represents a value that a step feeds; has no inputs and one output.
    pub const PLACEHOLDER: u32 = 32;
    /// Attribute `shape` says the shape that a value fed in the place of the output has.
    pub const DECLARES_SHAPE: u32 = 64;
}

/// Link [`super::ext_tags::FACTS`] of an op definition: its facts. Without the link, or
/// if it states nothing, the host assumes nothing about the op. Filled by the plugin; the host copies it.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct ExtFacts {
    /// Head, with tag [`super::ext_tags::FACTS`].
    pub header: ExtHeader,
    /// The facts.
    pub facts: Facts,
}
