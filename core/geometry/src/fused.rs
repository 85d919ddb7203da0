//! What fused ops have in their attributes: the steps that follow a product ([`Epilogue`]), and the program of
//! a chain of elementwise ops ([`Program`]).
//!
//! Both are texts in a graph. Here they are read, once for shape functions, passes and kernels alike.
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

/// What is wrong with the attributes of a fused op.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FusedError {
    /// A step that no epilogue has.
    #[error("fused_ops: expected {known}, found '{found}' as step {at}")]
    Step {
        /// Which step.
        at: usize,
        /// Its name.
        found: String,
        /// The names there are.
        known: String,
    },
    /// Another number of further inputs than the steps take.
    #[error("args: the steps [{steps}] take {expected} further inputs, found {found}")]
    Args {
        /// The steps.
        steps: String,
        /// Inputs that they take.
        expected: usize,
        /// Inputs there are.
        found: usize,
    },
    /// An instruction that is none.
    #[error("program: instruction {at} is '{found}': {expected}")]
    Instruction {
        /// Which instruction.
        at: usize,
        /// Its text.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// Another number of instructions.
    #[error("program: expected 1 to {MAX_INSTRUCTIONS} instructions, found {found}")]
    Length {
        /// How many there are.
        found: usize,
    },
}

impl From<FusedError> for KernelError {
    fn from(error: FusedError) -> KernelError {
        KernelError::new(Code::INVALID_ARGUMENT, error.to_string())
    }
}
