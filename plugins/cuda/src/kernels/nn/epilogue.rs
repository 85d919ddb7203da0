//! Steps after a convolution, applied to each element before it is written; `conv_steps.cuh`
//! defines them.

use crate::launch::Launch;
use std::fmt::Write;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext},
    fused::{self, EpilogueStep},
    geometry::DataFormat,
};

/// Most inputs of the steps.
const MOST_INPUTS: usize = 32;

/// Index of the first input of the steps.
const FIRST: usize = 2;

/// `EpilogueInputs` in `conv_steps.cuh`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Inputs {
    at: [u64; MOST_INPUTS],
    epsilon: f32,
    alpha: f32,
}

impl Inputs {
    /// The address of an input.
    pub fn at(&self, input: usize) -> u64 {
        self.at.get(input).copied().unwrap_or(0)
    }
}

/// The steps of a node; none for ops that are not fused.
pub(super) struct Epilogue {
    steps: fused::Epilogue,
    epsilon: f32,
    alpha: f32,
}

impl Epilogue {
    /// Reads the attributes.
    ///
    /// # Errors
    /// An unknown step; `UNIMPLEMENTED` for steps with more inputs than a launch has parameters.
    pub fn new(c: &CreateContext<'_>) -> Result<Epilogue, KernelError> {
        if !c.attrs().has("fused_ops") {
            return Ok(Epilogue { steps: fused::Epilogue::default(), epsilon: 0.0, alpha: 0.0 });
        }
        let names: Vec<&str> = c.attr("fused_ops")?;
        let steps = fused::Epilogue::parse(&names)?;
        if steps.args() > MOST_INPUTS {
            return Err(KernelError::unimplemented(format!(
                "CUDA has fused ops whose steps take up to {MOST_INPUTS} inputs, found {}",
                steps.args()
            )));
        }
        Ok(Epilogue { steps, epsilon: c.attr("epsilon")?, alpha: c.attr("leakyrelu_alpha")? })
    }

    /// The steps.
    pub fn steps(&self) -> &[EpilogueStep] {
        self.steps.steps()
    }

    /// The value of the define `STEPS`.
    pub fn text(&self) -> String {
        text(&self.steps)
    }

    /// The inputs of a call whose output has this shape.
    ///
    /// # Errors
    /// The number of inputs is wrong, or the steps do not accept their shapes.
    pub fn bind(
        &self,
        c: &ComputeContext<'_>,
        launch: &Launch<'_>,
        output: &[i64],
        format: DataFormat,
    ) -> Result<Inputs, KernelError> {
        self.steps.check_args(c.input_count() - FIRST)?;
        let mut inputs = Inputs { at: [0; MOST_INPUTS], epsilon: self.epsilon, alpha: self.alpha };
        let vector = [output[format.channel_dim(output.len())]];
        for (step, first) in self.steps.placed() {
            let expected: &[i64] = if step.takes_whole() { output } else { &vector };
            for at in first..first + step.args() {
                let found = c.dims(FIRST + at);
                if found != expected {
                    return Err(KernelError::invalid_argument(format!(
                        "args: {} takes an input of shape {expected:?}, found {found:?} as input {}",
                        step.name(),
                        FIRST + at
                    )));
                }
                inputs.at[at] = launch.input(FIRST + at)?.address;
            }
        }
        Ok(inputs)
    }
}

fn text(steps: &fused::Epilogue) -> String {
    let mut text = String::new();
    for (step, first) in steps.placed() {
        let separator = if text.is_empty() { "" } else { " " };
        // Writing to a string does not fail.
        let _ = write!(text, "{separator}STEP({}, {first})", step.name());
    }
    text
}

/// Values of `STEPS` that represent all others: each step occurs in one of them.
pub(super) fn examples() -> Vec<String> {
    let lists: [&[&str]; 7] = [
        &["BiasAdd", "Relu"],
        &["FusedBatchNorm", "Add", "Relu6"],
        &["BiasAdd", "Elu"],
        &["BiasAdd", "LeakyRelu", "Tanh"],
        &["BiasAdd", "Sigmoid"],
        &["GeluApproximate", "GeluExact"],
        &["ReluGrad", "TanhGrad", "SigmoidGrad"],
    ];
    let parsed = lists.iter().filter_map(|names| fused::Epilogue::parse(names).ok());
    parsed.map(|steps| text(&steps)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_named_with_their_inputs() {
        let steps = fused::Epilogue::parse(&["FusedBatchNorm", "Add", "Relu"]).unwrap();
        assert_eq!(text(&steps), "STEP(FusedBatchNorm, 0) STEP(Add, 4) STEP(Relu, 5)");
    }

    #[test]
    fn every_step_has_an_example() {
        let all = examples().join(" ");
        for step in EpilogueStep::ALL {
            assert!(all.contains(&format!("STEP({},", step.name())), "{}", step.name());
        }
    }
}
