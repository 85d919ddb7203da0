//! The gradient of an op: a function of its author, which [`gradient`](crate::gradient) runs.

use super::{GradientRule, OpDef, OpError};
use tenon_abi::{Code, GradientCall, GradientTable, Host};

/// The entry that runs a gradient.
pub type GradientFn = unsafe extern "C" fn(
    host: *const Host,
    call: *mut GradientCall,
    table: *const GradientTable,
) -> Code;

impl OpDef {
    /// The op's gradient, if it has one in this process.
    pub fn gradient(&self) -> Option<GradientFn> {
        self.gradient
    }

    /// Gives the op its gradient.
    ///
    /// # Errors
    /// [`OpError::Fact`]: the op states that no gradient flows through it.
    pub fn set_gradient(&mut self, gradient: GradientFn) -> Result<(), OpError> {
        if self.facts.gradient == GradientRule::None {
            return Err(OpError::Fact {
                op: self.name.clone(),
                fact: "gradient",
                expected: "either a function or GradientRule::None".to_owned(),
                found: "both".to_owned(),
            });
        }
        self.gradient = Some(gradient);
        Ok(())
    }
}
