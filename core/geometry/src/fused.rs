//! The attributes of fused ops: the steps that follow a product ([`Epilogue`]), and the program of
//! a chain of elementwise ops ([`Program`]).
//!
//! Both are texts in a graph. They are parsed here for shape functions, passes and kernels alike.
//!
//! ```
//! use tenon_geometry::fused::{Epilogue, Program};
//!
//! let epilogue = Epilogue::parse(&["BiasAdd", "Relu"])?;
//! assert_eq!(epilogue.args(), 1);
//! let program = Program::parse("AddV2 i0 i1; Relu %0; Mul %1 i1", 2)?;
//! assert_eq!(program.instructions().len(), 3);
//! # Ok::<(), tenon_geometry::fused::FusedError>(())
//! ```

mod epilogue;
mod program;

pub use epilogue::{Epilogue, EpilogueStep};
pub use program::{Instruction, MAX_INSTRUCTIONS, Operand, Program, ProgramOp};

use tenon_abi::Code;
use tenon_framework::KernelError;
use thiserror::Error;

/// The error of a fused op's attributes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FusedError {
    /// An unknown step of an epilogue.
    #[error("fused_ops: expected {known}, found '{found}' as step {at}")]
    Step {
        /// The position of the step.
        at: usize,
        /// Its name.
        found: String,
        /// The known names.
        known: String,
    },
    /// A number of further inputs that does not fit the steps.
    #[error("args: the steps [{steps}] take {expected} further inputs, found {found}")]
    Args {
        /// The steps.
        steps: String,
        /// The number of inputs that they take.
        expected: usize,
        /// The number of inputs found.
        found: usize,
    },
    /// An invalid instruction.
    #[error("program: instruction {at} is '{found}': {expected}")]
    Instruction {
        /// The number of the instruction.
        at: usize,
        /// Its text.
        found: String,
        /// The expected form.
        expected: String,
    },
    /// A number of instructions outside the limits.
    #[error("program: expected 1 to {MAX_INSTRUCTIONS} instructions, found {found}")]
    Length {
        /// The number of instructions.
        found: usize,
    },
}

impl From<FusedError> for KernelError {
    fn from(error: FusedError) -> KernelError {
        KernelError::new(Code::INVALID_ARGUMENT, error.to_string())
    }
}
