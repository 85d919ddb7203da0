//! The steps that are applied to a product or convolution before it is written.

use super::FusedError;

/// One step, applied to every element of the product, with the name of the corresponding op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpilogueStep {
    /// Adds a vector of one value per channel (of a matrix: per column).
    BiasAdd,
    /// Normalises each channel by four vectors (scale, offset, mean, variance), like
    /// `FusedBatchNormV3` outside training:
    /// `(x - mean) * (scale / sqrt(variance + epsilon)) + offset`.
    FusedBatchNorm,
    /// Adds a tensor of the product's shape.
    Add,
    /// `max(x, 0)`; NaN stays NaN.
    Relu,
    /// `min(max(x, 0), 6)`; NaN stays NaN.
    Relu6,
    /// `x` if it is above 0, otherwise `exp(x) - 1`.
    Elu,
    /// `x` if it is above 0, otherwise `leakyrelu_alpha * x`.
    LeakyRelu,
    /// Hyperbolic tangent.
    Tanh,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`.
    GeluApproximate,
    /// `0.5 x (1 + erf(x / sqrt(2)))`.
    GeluExact,
    /// Multiplies by 1 where a tensor of the product's shape is above 0, otherwise by 0: the gradient of `Relu` from its
    /// output.
    ReluGrad,
    /// Multiplies by `1 - y^2` for a tensor `y` of the product's shape: the gradient of `Tanh` from its output.
    TanhGrad,
    /// Multiplies by `y (1 - y)` for a tensor `y` of the product's shape: the gradient of `Sigmoid` from its output.
    SigmoidGrad,
}

impl EpilogueStep {
    /// Every step.
    pub const ALL: &[EpilogueStep] = &[
        EpilogueStep::BiasAdd,
        EpilogueStep::FusedBatchNorm,
        EpilogueStep::Add,
        EpilogueStep::Relu,
        EpilogueStep::Relu6,
        EpilogueStep::Elu,
        EpilogueStep::LeakyRelu,
        EpilogueStep::Tanh,
        EpilogueStep::Sigmoid,
        EpilogueStep::GeluApproximate,
        EpilogueStep::GeluExact,
        EpilogueStep::ReluGrad,
        EpilogueStep::TanhGrad,
        EpilogueStep::SigmoidGrad,
    ];

    /// The name in `fused_ops`.
    pub fn name(self) -> &'static str {
        match self {
            EpilogueStep::BiasAdd => "BiasAdd",
            EpilogueStep::FusedBatchNorm => "FusedBatchNorm",
            EpilogueStep::Add => "Add",
            EpilogueStep::Relu => "Relu",
            EpilogueStep::Relu6 => "Relu6",
            EpilogueStep::Elu => "Elu",
            EpilogueStep::LeakyRelu => "LeakyRelu",
            EpilogueStep::Tanh => "Tanh",
            EpilogueStep::Sigmoid => "Sigmoid",
            EpilogueStep::GeluApproximate => "GeluApproximate",
            EpilogueStep::GeluExact => "GeluExact",
            EpilogueStep::ReluGrad => "ReluGrad",
            EpilogueStep::TanhGrad => "TanhGrad",
            EpilogueStep::SigmoidGrad => "SigmoidGrad",
        }
    }

    /// The number of further inputs of this step.
    pub fn args(self) -> usize {
        match self {
            EpilogueStep::BiasAdd => 1,
            EpilogueStep::FusedBatchNorm => 4,
            step => usize::from(step.takes_whole()),
        }
    }

    /// Whether its further input has the product's shape.
    pub fn takes_whole(self) -> bool {
        use EpilogueStep::{Add, ReluGrad, SigmoidGrad, TanhGrad};
        matches!(self, Add | ReluGrad | TanhGrad | SigmoidGrad)
    }
}

/// The steps of a fused op, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Epilogue {
    steps: Vec<EpilogueStep>,
}

impl Epilogue {
    /// Reads attribute `fused_ops`.
    ///
    /// # Errors
    /// A name is not that of a step.
    pub fn parse<S: AsRef<str>>(names: &[S]) -> Result<Epilogue, FusedError> {
        let step = |(at, name): (usize, &S)| {
            let found = EpilogueStep::ALL.iter().find(|step| step.name() == name.as_ref());
            found.copied().ok_or_else(|| FusedError::Step {
                at,
                found: name.as_ref().to_owned(),
                known: EpilogueStep::ALL
                    .iter()
                    .map(|step| step.name())
                    .collect::<Vec<_>>()
                    .join(", "),
            })
        };
        let steps = names.iter().enumerate().map(step).collect::<Result<_, _>>()?;
        Ok(Epilogue { steps })
    }

    /// The steps.
    pub fn steps(&self) -> &[EpilogueStep] {
        &self.steps
    }

    /// The steps, each with the position of its first further input.
    pub fn placed(&self) -> impl Iterator<Item = (EpilogueStep, usize)> + '_ {
        self.steps.iter().scan(0, |next, &step| {
            let first = *next;
            *next += step.args();
            Some((step, first))
        })
    }

    /// The number of further inputs of all steps.
    pub fn args(&self) -> usize {
        self.steps.iter().map(|step| step.args()).sum()
    }

    /// Checks the number of further inputs.
    ///
    /// # Errors
    /// The number differs from [`Epilogue::args`].
    pub fn check_args(&self, found: usize) -> Result<(), FusedError> {
        let expected = self.args();
        if expected == found {
            return Ok(());
        }
        let names: Vec<&str> = self.steps.iter().map(|step| step.name()).collect();
        Err(FusedError::Args { steps: names.join(", "), expected, found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_their_inputs_in_order() {
        let epilogue = Epilogue::parse(&["FusedBatchNorm", "Add", "Relu", "BiasAdd"]).unwrap();
        let placed: Vec<(EpilogueStep, usize)> = epilogue.placed().collect();
        let expected = [
            (EpilogueStep::FusedBatchNorm, 0),
            (EpilogueStep::Add, 4),
            (EpilogueStep::Relu, 5),
            (EpilogueStep::BiasAdd, 5),
        ];
        assert_eq!(placed, expected);
        assert_eq!((epilogue.args(), epilogue.check_args(6)), (6, Ok(())));
        let error = epilogue.check_args(2).unwrap_err().to_string();
        assert!(error.contains("take 6 further inputs, found 2"), "{error}");
    }

    #[test]
    fn a_step_that_is_not_known_is_named() {
        let error = Epilogue::parse(&["BiasAdd", "Swish"]).unwrap_err().to_string();
        assert!(error.contains("found 'Swish' as step 1") && error.contains("Relu6"), "{error}");
    }
}
