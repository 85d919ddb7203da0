//! The expected results of a call.

use crate::compare::Rule;
use tenon_framework::{Code, Tensor};

/// What an independent oracle says of a call.
#[derive(Debug, Clone)]
pub enum Expectation {
    /// These outputs, each within its rule.
    Outputs(Vec<(Tensor, Rule)>),
    /// An error of this code, and why.
    Refused(Code, String),
    /// Nothing independent says it, and why.
    Unverified(String),
}
