//! Cases as JSON, in reproducers and in messages between driver and worker.
//!
//! Attributes are in the form of the golden indexes ([`attrs`](mod@crate::attrs)); an input is written as the
//! recipe of its elements, or with the elements themselves.

mod case;
mod tensor;

pub use case::{case_from_json, case_to_json};
pub use tensor::{tensor_from_json, tensor_to_json};

use crate::attrs::AttrProblem;
use serde_json::Value;
use std::fmt;

/// A part of a case that is not what the form says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonProblem {
    /// Which part.
    pub place: String,
    /// What the form requires, and what was found.
    pub problem: AttrProblem,
}

impl JsonProblem {
    fn new(place: impl Into<String>, expected: impl Into<String>, found: &Value) -> JsonProblem {
        let (expected, found) = (expected.into(), found.to_string());
        JsonProblem { place: place.into(), problem: AttrProblem { expected, found } }
    }

    fn at(place: impl Into<String>) -> impl FnOnce(AttrProblem) -> JsonProblem {
        let place = place.into();
        move |problem| JsonProblem { place, problem }
    }
}

impl fmt::Display for JsonProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AttrProblem { expected, found } = &self.problem;
        write!(f, "{}: expected {expected}, found {found}", self.place)
    }
}
