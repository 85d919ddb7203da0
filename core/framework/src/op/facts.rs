//! What passes, placement and execution must know of an op: facts that its registration states.
//!
//! Nothing outside an op's registration says what the op is: a pass asks whether it is elementwise, not whether its
//! name is one of a list. So an op of a plugin is folded, merged and passed by as a built-in one is. A fact is a
//! promise: every kernel of the op keeps it. Nothing is assumed of an op that states nothing: it may fail, and its
//! values are new.
//!
//! ```
//! use tenon_framework::op::{OpDef, OpFacts, Refusal};
//!
//! let mut op = OpDef::from_spec("Twice", &["x: T"], &["y: T"], &["T: {float, double}"])?;
//! let facts = OpFacts { elementwise: true, refusal: Refusal::Nothing, ..OpFacts::NONE };
//! op.set_facts(facts)?;
//! assert!(op.facts().elementwise);
//!
//! let error = op.set_facts(OpFacts { images: true, ..OpFacts::NONE }).unwrap_err();
//! assert!(error.to_string().contains("an attribute 'data_format' of type string"), "{error}");
//! # Ok::<(), tenon_framework::op::OpError>(())
//! ```

mod check;

#[cfg(test)]
mod tests;

use super::{OpDef, OpError, Signature};
use tenon_abi::{self as abi, Facts, fact_flags};

/// An enum with the numbers of the boundary.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $variant:ident = $number:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$about])* $variant,)+
        }

        impl $name {
            const ALL: &[$name] = &[$($name::$variant),+];

            const fn to_abi(self) -> abi::$name {
                match self {
                    $($name::$variant => abi::$name::$number,)+
                }
            }

            fn from_abi(op: &str, fact: &'static str, found: abi::$name) -> Result<$name, OpError> {
                let known = $name::ALL.iter().find(|known| known.to_abi() == found);
                known.copied().ok_or_else(|| OpError::Fact {
                    op: op.to_owned(),
                    fact,
                    expected: format!("a number from 0 to {}", $name::ALL.len() - 1),
                    found: found.0.to_string(),
                })
            }
        }
    };
}

numbered! {
    /// What the executor does for an op, which then needs no kernel.
    OpRole {
        /// Calls the op's kernel.
        Kernel = KERNEL,
        /// Nothing; the node only orders others.
        Order = ORDER,
        /// Nothing; the node runs even if all that it waits for is dead.
        Trigger = TRIGGER,
        /// Gives its first input to the output that the second one names; all other outputs are dead.
        Switch = SWITCH,
        /// Passes on the first input that is not dead, and its number.
        Merge = MERGE,
        /// Brings a value into a frame.
        Enter = ENTER,
        /// Brings a value out of its frame.
        Exit = EXIT,
        /// Brings a value into the next iteration.
        NextIteration = NEXT_ITERATION,
        /// Passes on the condition of a loop.
        LoopCond = LOOP_COND,
        /// Gives argument `index` of the step.
        Arg = ARG,
        /// Takes result `index` of the step.
        Retval = RETVAL,
        /// Gives a tensor to the rendezvous.
        Sender = SEND,
        /// Takes a tensor from the rendezvous.
        Receiver = RECV,
        /// Calls functions of the graph's library, which attributes of the node name.
        Call = CALL,
    }
}

numbered! {
    /// How the values of outputs follow from what is known of the inputs before a step.
    ValueRule {
        /// Nothing is known of them.
        None = NONE,
        /// The tensor in attribute `value`.
        Constant = CONSTANT,
        /// Each output is the shape of the input of its number.
        Shape = SHAPE,
        /// The number of elements of the input.
        Size = SIZE,
        /// The number of dimensions of the input.
        Rank = RANK,
        /// The integers of the input, where the output's type holds them.
        Cast = CAST,
        /// Scalars joined to a vector.
        Pack = PACK,
        /// Vectors joined; the last input is the axis.
        Concat = CONCAT,
        /// A part of the first input, by begin, end and strides, and the masks that `StridedSlice` has as attributes.
        /// The shape function checks them, and gives the number of elements by the shape of the output.
        StridedSlice = STRIDED_SLICE,
    }
}

numbered! {
    /// Which inputs a kernel of an op may refuse, of those that the signature accepts.
    Refusal {
        /// Not stated: anything.
        Anything = ANYTHING,
        /// Nothing.
        Nothing = NOTHING,
        /// Inputs that the shape function refuses once it knows the shapes of all inputs, and the values of those on
        /// which its answer depends. Of an elementwise op: shapes that do not broadcast.
        Shapes = SHAPES,
        /// Inputs that the shape function refuses once it knows the rank of the first input, and the values of those
        /// on which its answer depends.
        Axes = AXES,
        /// Of an elementwise op of two inputs: shapes that do not broadcast, and of integers a second operand that has
        /// a 0.
        Divisors = DIVISORS,
        /// Of an elementwise op: shapes that do not broadcast, and of integers any value.
        Integers = INTEGERS,
        /// Inputs that are not all of one shape.
        UnequalShapes = UNEQUAL_SHAPES,
    }
}

numbered! {
    /// Whether the two inputs of an op may be swapped.
    Symmetry {
        /// Not stated.
        None = NONE,
        /// The results are equal, except for the sign of a zero and for the bits of a NaN: a fusion's pattern takes the
        /// operands in either order.
        Values = VALUES,
        /// The results are equal bit for bit, except for strings: two such nodes are merged.
        Bits = BITS,
    }
}

numbered! {
    /// What an op states about its gradient.
    GradientRule {
        /// Not stated.
        Unstated = UNSTATED,
        /// No gradient flows through the op.
        None = NONE,
    }
}

/// An input argument that an output argument passes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// Position of the input argument.
    pub input: usize,
    /// Position of the output argument.
    pub output: usize,
    /// Whether the output has the elements under another shape; otherwise it is the input as it is.
    pub reshaped: bool,
}

/// What an op's registration states beside its signature. [`Facts`] is the same at the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpFacts {
    /// The op has no state, but has to run: it checks, prints or sends. Never folded, merged or dropped.
    pub checks: bool,
    /// Each element of an output follows from the elements of the inputs at its place alone; the inputs broadcast.
    pub elementwise: bool,
    /// The first input and the first output are images, in the format that attribute `data_format` names.
    pub images: bool,
    /// Represents a value that a step feeds.
    pub placeholder: bool,
    /// Attribute `shape` says the shape that a value fed in the place of the output has.
    pub declares_shape: bool,
    /// The argument that the op passes on.
    pub passed: Option<Passed>,
    /// What the executor does instead of a kernel.
    pub role: OpRole,
    /// How values follow from values.
    pub value: ValueRule,
    /// What a kernel may refuse.
    pub refusal: Refusal,
    /// For [`Refusal::Shapes`] and [`Refusal::Axes`]: bit `n` is set if the answer depends on the value of input
    /// argument `n` too.
    pub deciding: u64,
    /// Whether the operands may be swapped.
    pub symmetry: Symmetry,
    /// What the op states about its gradient.
    pub gradient: GradientRule,
}

impl Default for OpFacts {
    fn default() -> OpFacts {
        OpFacts::NONE
    }
}

/// The flag `bit` if `on` is set.
const fn flag(on: bool, bit: u32) -> u32 {
    if on { bit } else { 0 }
}

impl OpFacts {
    /// Nothing stated.
    pub const NONE: OpFacts = OpFacts {
        checks: false,
        elementwise: false,
        images: false,
        placeholder: false,
        declares_shape: false,
        passed: None,
        role: OpRole::Kernel,
        value: ValueRule::None,
        refusal: Refusal::Anything,
        deciding: 0,
        symmetry: Symmetry::None,
        gradient: GradientRule::Unstated,
    };

    /// The flat inputs and outputs of a node that are the same value, as pairs.
    pub fn passed_on(&self, signature: &Signature) -> impl Iterator<Item = (usize, usize)> {
        let ranges = self.passed.and_then(|passed| {
            let input = signature.input_args.get(passed.input)?;
            Some((input, signature.output_args.get(passed.output)?))
        });
        ranges.into_iter().flat_map(|(input, output)| {
            let flat =
                |at: u32| (input.start as usize + at as usize, output.start as usize + at as usize);
            (0..input.len.min(output.len)).map(flat)
        })
    }

    /// The flat input that a node passes on to this flat output.
    pub fn passed_to(&self, signature: &Signature, output: usize) -> Option<usize> {
        let passed = self.passed?;
        let from = signature.input_args.get(passed.input)?;
        let to = signature.output_args.get(passed.output)?;
        let at = output.checked_sub(to.start as usize)?;
        (at < from.len.min(to.len) as usize).then(|| from.start as usize + at)
    }

    /// Whether the op gives an input as it is.
    pub fn is_identity(&self) -> bool {
        self.passed.is_some_and(|passed| !passed.reshaped)
    }

    /// The facts in the form of the boundary.
    pub const fn to_abi(self) -> Facts {
        let (input, output, pass) = match self.passed {
            None => (0, 0, 0),
            Some(Passed { input, output, reshaped: false }) => {
                (input as u32, output as u32, fact_flags::PASSES_INPUT)
            }
            Some(Passed { input, output, .. }) => {
                (input as u32, output as u32, fact_flags::RESHAPES_INPUT)
            }
        };
        Facts {
            flags: flag(self.checks, fact_flags::CHECKS)
                | flag(self.elementwise, fact_flags::ELEMENTWISE)
                | flag(self.images, fact_flags::IMAGES)
                | flag(self.placeholder, fact_flags::PLACEHOLDER)
                | flag(self.declares_shape, fact_flags::DECLARES_SHAPE)
                | pass,
            role: self.role.to_abi(),
            value: self.value.to_abi(),
            refusal: self.refusal.to_abi(),
            symmetry: self.symmetry.to_abi(),
            gradient: self.gradient.to_abi(),
            passed_input: input,
            passed_output: output,
            deciding_inputs: self.deciding,
        }
    }

    /// Reads what a plugin handed over; whether it fits the op is checked by [`OpDef::set_facts`].
    pub(super) fn from_abi(op: &str, found: &Facts) -> Result<OpFacts, OpError> {
        let has = |bit: u32| found.flags & bit != 0;
        let known = fact_flags::CHECKS
            | fact_flags::ELEMENTWISE
            | fact_flags::PASSES_INPUT
            | fact_flags::RESHAPES_INPUT
            | fact_flags::IMAGES
            | fact_flags::PLACEHOLDER
            | fact_flags::DECLARES_SHAPE;
        let wrong = |expected: String, found: String| OpError::Fact {
            op: op.to_owned(),
            fact: "flags",
            expected,
            found,
        };
        if found.flags & !known != 0 {
            let flags = format!("{:#x}", found.flags);
            return Err(wrong(format!("bits of {known:#x}"), flags));
        }
        let passed = Passed {
            input: found.passed_input as usize,
            output: found.passed_output as usize,
            reshaped: has(fact_flags::RESHAPES_INPUT),
        };
        if has(fact_flags::PASSES_INPUT) && passed.reshaped {
            let expected = "PASSES_INPUT or RESHAPES_INPUT".to_owned();
            return Err(wrong(expected, "both".to_owned()));
        }
        let passes = has(fact_flags::PASSES_INPUT) || passed.reshaped;
        Ok(OpFacts {
            checks: has(fact_flags::CHECKS),
            elementwise: has(fact_flags::ELEMENTWISE),
            images: has(fact_flags::IMAGES),
            placeholder: has(fact_flags::PLACEHOLDER),
            declares_shape: has(fact_flags::DECLARES_SHAPE),
            passed: passes.then_some(passed),
            role: OpRole::from_abi(op, "role", found.role)?,
            value: ValueRule::from_abi(op, "value", found.value)?,
            refusal: Refusal::from_abi(op, "refusal", found.refusal)?,
            deciding: found.deciding_inputs,
            symmetry: Symmetry::from_abi(op, "symmetry", found.symmetry)?,
            gradient: GradientRule::from_abi(op, "gradient", found.gradient)?,
        })
    }
}

impl OpDef {
    /// What the op's registration states.
    pub fn facts(&self) -> &OpFacts {
        &self.facts
    }

    /// States the op's facts.
    ///
    /// # Errors
    /// [`OpError::Fact`]: a fact that does not fit the signature, or another fact.
    pub fn set_facts(&mut self, facts: OpFacts) -> Result<(), OpError> {
        check::check(self, &facts)?;
        self.facts = facts;
        Ok(())
    }

    /// Whether nodes of the op give the tensor in their attribute `value`.
    pub fn is_constant(&self) -> bool {
        self.facts.value == ValueRule::Constant
    }

    /// Whether the executor does the op's work itself, so that it needs no kernel.
    pub fn is_built_in(&self) -> bool {
        self.facts.role != OpRole::Kernel
    }
}
