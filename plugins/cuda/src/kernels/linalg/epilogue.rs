//! The epilogue of a product: attribute `fused_ops` as steps of `epilogue.cuh`, and the further
//! inputs as addresses.

use crate::launch::Launch;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext},
    fused::{Epilogue, EpilogueStep},
};

/// Further inputs that `epilogue.cuh` has room for.
const MAX_ARGUMENTS: usize = 12;

/// `Arguments` in `epilogue.cuh`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(in crate::kernels) struct Arguments {
    inputs: [u64; MAX_ARGUMENTS],
    epsilon: f32,
    alpha: f32,
}

impl Arguments {
    /// The address of a further input; 0 for an absent one.
    pub fn at(&self, input: usize) -> u64 {
        self.inputs.get(input).copied().unwrap_or(0)
    }
}

/// The attributes of a product with steps.
pub(in crate::kernels) struct Attributes {
    epilogue: Epilogue,
    epsilon: f32,
    alpha: f32,
}

/// Index of the first input of the steps.
const FIRST: usize = 2;

impl Attributes {
    /// Reads the attributes.
    ///
    /// # Errors
    /// An unknown step; more inputs than [`MAX_ARGUMENTS`].
    pub fn new(c: &CreateContext<'_>) -> Result<Attributes, KernelError> {
        let names: Vec<&str> = c.attr("fused_ops")?;
        let epilogue = Epilogue::parse(&names)?;
        if epilogue.args() > MAX_ARGUMENTS {
            return Err(KernelError::unimplemented(format!(
                "fused_ops with {} further inputs: CUDA takes up to {MAX_ARGUMENTS}",
                epilogue.args()
            )));
        }
        let (epsilon, alpha) = (c.attr("epsilon")?, c.attr("leakyrelu_alpha")?);
        Ok(Attributes { epilogue, epsilon, alpha })
    }

    /// Like [`Attributes::new`], for ops that may have steps.
    ///
    /// # Errors
    /// As [`Attributes::new`].
    pub fn where_fused(c: &CreateContext<'_>) -> Result<Option<Attributes>, KernelError> {
        if c.attrs().has("fused_ops") { Attributes::new(c).map(Some) } else { Ok(None) }
    }

    /// The steps.
    pub fn steps(&self) -> &[EpilogueStep] {
        self.epilogue.steps()
    }

    /// The value of the define `EPILOGUE`, without the first `skip` steps.
    pub fn define(&self, skip: usize) -> String {
        define(&self.epilogue, skip)
    }

    /// The inputs of a call, for a product of these dimensions, whose last one is the channels.
    ///
    /// # Errors
    /// The number of inputs is wrong, or the steps do not accept their shapes.
    pub fn bind(
        &self,
        c: &ComputeContext<'_>,
        launch: &Launch<'_>,
        output: &[i64],
    ) -> Result<Arguments, KernelError> {
        self.epilogue.check_args(c.input_count() - FIRST)?;
        let (epsilon, alpha) = (self.epsilon, self.alpha);
        let mut arguments = Arguments { epsilon, alpha, ..Arguments::default() };
        let channels = &output[output.len() - 1..];
        for (step, first) in self.epilogue.placed() {
            let expected = if step.takes_whole() { output } else { channels };
            for at in first..first + step.args() {
                check(c, step, FIRST + at, expected)?;
                arguments.inputs[at] = launch.input(FIRST + at)?.address;
            }
        }
        Ok(arguments)
    }
}

fn check(
    c: &ComputeContext<'_>,
    step: EpilogueStep,
    at: usize,
    expected: &[i64],
) -> Result<(), KernelError> {
    let found = c.dims(at);
    if found == expected {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "args: {} takes an input of shape {expected:?}, found {found:?} as input {at}",
        step.name()
    )))
}

fn define(epilogue: &Epilogue, skip: usize) -> String {
    let step = |(step, at): (EpilogueStep, usize)| format!("STEP_{}({at})", step.name());
    epilogue.placed().skip(skip).map(step).collect::<Vec<_>>().join(" ")
}

/// All steps, one after the other.
pub(super) fn every_step() -> String {
    let names: Vec<&str> = EpilogueStep::ALL.iter().map(|step| step.name()).collect();
    Epilogue::parse(&names).map(|all| define(&all, 0)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_its_place_among_the_inputs() {
        let text = every_step();
        assert!(text.starts_with("STEP_BiasAdd(0) STEP_FusedBatchNorm(1) STEP_Add(5) "), "{text}");
        let header = include_str!("../cu/epilogue.cuh");
        for step in EpilogueStep::ALL {
            assert!(header.contains(&format!("#define STEP_{}(at)", step.name())), "{step:?}");
        }
        assert!(header.contains(&format!("MAX_ARGUMENTS = {MAX_ARGUMENTS};")));
    }
}
