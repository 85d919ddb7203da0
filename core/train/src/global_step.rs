//! The variable that counts steps.

use crate::{Initial, TrainError, Variable, VariableOptions, Variables};
use tenon_framework::DType;
use tenon_graph::GraphBuilder;

/// The name of the variable that counts steps.
pub const GLOBAL_STEP: &str = "global_step";

/// The variable `global_step`, an int64 scalar, which is added if it is not there yet (TensorFlow's
/// `get_or_create_global_step`).
///
/// # Errors
/// There is a variable of this name that is not an integer scalar, or the graph refuses a node.
pub fn global_step(
    b: &mut GraphBuilder<'_>,
    variables: &mut Variables,
) -> Result<Variable, TrainError> {
    if let Some(found) = variables.find(GLOBAL_STEP) {
        if matches!(found.dtype, DType::INT64 | DType::INT32) && found.shape.rank() == 0 {
            return Ok(found.clone());
        }
        let found = format!("{} of shape {}", found.dtype, found.shape);
        return Err(TrainError::argument("variable 'global_step'", "an integer scalar", found));
    }
    let options = VariableOptions { is_trainable: false, ..VariableOptions::default() };
    variables.add_with(b, GLOBAL_STEP, DType::INT64, &[], &Initial::Zeros, options)
}
