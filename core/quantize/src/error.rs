//! Why a graph cannot be quantised.

use tenon_framework::text::{cut, cut_text};
use tenon_framework::{Code, KernelError, tensor::TensorError};
use tenon_geometry::fixed_point::FixedPointError;
use tenon_graph::GraphError;
use tenon_runtime::RuntimeError;
use thiserror::Error;

/// What is wrong with a graph, or with what it is calibrated with.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum QuantizeError {
    /// Nothing that quantisation changes.
    #[error(
        "expected a Conv2D, DepthwiseConv2dNative or MatMul of floats with constant weights to quantise, found \
         {found}: freeze the graph's variables, correct weights that are not finite, or keep fewer nodes in float",
        found = cut_text(.found)
    )]
    NothingToQuantize {
        /// What there is.
        found: String,
    },
    /// Calibration without data.
    #[error(
        "expected calibration data of at least one sample, found none: give some, or quantise without data (--dynamic)"
    )]
    NoSamples,
    /// An input that the data does not name.
    #[error(
        "expected calibration data for the input '{input}', found {found}: name each array after the input that it is for",
        input = cut(.input), found = cut_text(.found)
    )]
    MissingInput {
        /// The input.
        input: String,
        /// What there is, in words.
        found: String,
    },
    /// Data for what is no input.
    #[error(
        "calibration data '{found}': expected one of the inputs {inputs}: rename the array, or leave it out",
        found = cut_text(.found), inputs = cut_text(.inputs)
    )]
    UnknownInput {
        /// Its name.
        found: String,
        /// The inputs, in words.
        inputs: String,
    },
    /// A tensor that was never seen.
    #[error(
        "'{tensor}': expected values of it in the calibration data, found none: give data of at least one sample",
        tensor = cut(.tensor)
    )]
    NotObserved {
        /// The tensor.
        tensor: String,
    },
    /// A value that no integer stands for.
    #[error(
        "'{tensor}': expected finite numbers, found {found} in sample {sample}: correct the data, or keep what makes \
         the tensor in float (--keep)",
        tensor = cut(.tensor)
    )]
    NotFinite {
        /// The tensor.
        tensor: String,
        /// The value.
        found: f32,
        /// Number of the sample, from 0.
        sample: usize,
    },
    /// A tensor of another type than the plan says.
    #[error("'{tensor}': expected float, found {found}", tensor = cut(.tensor))]
    Type {
        /// The tensor.
        tensor: String,
        /// Its type.
        found: tenon_framework::DType,
    },
    /// A percentile that is none.
    #[error("expected a percentile above 50 and at most 100, found {found}")]
    Percentile {
        /// What was given.
        found: f64,
    },
    /// Scale and zero point of a tensor.
    #[error("'{tensor}': {source}", tensor = cut(.tensor))]
    Scale {
        /// The tensor.
        tensor: String,
        /// What is wrong.
        source: FixedPointError,
    },
    /// A function of one number that is to become a table.
    #[error(
        "node '{node}': its values for a table of 256 cannot be computed: {reason}",
        node = cut(.node), reason = cut_text(.reason)
    )]
    Table {
        /// The node.
        node: String,
        /// Why not.
        reason: String,
    },
    /// A constant cannot be read or made.
    #[error("node '{node}': {source}", node = cut(.node))]
    Tensor {
        /// The node.
        node: String,
        /// Why not.
        source: TensorError,
    },
    /// The graph, or the quantised one, is not valid.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A session or a step.
    #[error(transparent)]
    Runtime(Box<RuntimeError>),
}

impl QuantizeError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            QuantizeError::NothingToQuantize { .. } => Code::FAILED_PRECONDITION,
            QuantizeError::Graph(error) => error.code(),
            QuantizeError::Runtime(error) => error.code(),
            _ => Code::INVALID_ARGUMENT,
        }
    }
}

impl From<RuntimeError> for QuantizeError {
    fn from(error: RuntimeError) -> QuantizeError {
        QuantizeError::Runtime(Box::new(error))
    }
}

impl From<QuantizeError> for KernelError {
    fn from(error: QuantizeError) -> KernelError {
        KernelError::new(error.code(), error.to_string())
    }
}
