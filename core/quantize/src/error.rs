//! Errors of quantisation.

use tenon_framework::text::{cut, cut_text};
use tenon_framework::{Code, KernelError, tensor::TensorError};
use tenon_geometry::fixed_point::FixedPointError;
use tenon_graph::GraphError;
use tenon_runtime::RuntimeError;
use thiserror::Error;

/// The reason why a graph cannot be quantised.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum QuantizeError {
    /// The graph has nothing that quantisation changes.
    #[error(
        "expected a Conv2D, DepthwiseConv2dNative or MatMul of floats with constant weights to quantise, found \
         {found}: freeze the graph's variables, correct weights that are not finite, or keep fewer nodes in float",
        found = cut_text(.found)
    )]
    NothingToQuantize {
        /// What the graph has instead.
        found: String,
    },
    /// Static quantisation without calibration data.
    #[error(
        "expected calibration data of at least one sample, found none: give some, or quantise without data (--dynamic)"
    )]
    NoSamples,
    /// An input without calibration data.
    #[error(
        "expected calibration data for the input '{input}', found {found}: name each array after the input that it is for",
        input = cut(.input), found = cut_text(.found)
    )]
    MissingInput {
        /// The input.
        input: String,
        /// The names in the data, as text.
        found: String,
    },
    /// Calibration data for an unknown input.
    #[error(
        "calibration data '{found}': expected one of the inputs {inputs}: rename the array, or leave it out",
        found = cut_text(.found), inputs = cut_text(.inputs)
    )]
    UnknownInput {
        /// The name in the data.
        found: String,
        /// The names of the inputs, as text.
        inputs: String,
    },
    /// A tensor without observed values.
    #[error(
        "'{tensor}': expected its values in the calibration data, found none: give data of at least one sample",
        tensor = cut(.tensor)
    )]
    NotObserved {
        /// The tensor.
        tensor: String,
    },
    /// A value that cannot be quantised.
    #[error(
        "'{tensor}': expected finite numbers, found {found} in sample {sample}: correct the data, or keep the node of \
         the tensor in float (--keep)",
        tensor = cut(.tensor)
    )]
    NotFinite {
        /// The tensor.
        tensor: String,
        /// The value.
        found: f32,
        /// The number of the sample, from 0.
        sample: usize,
    },
    /// A tensor whose type differs from the plan.
    #[error("'{tensor}': expected float, found {found}", tensor = cut(.tensor))]
    Type {
        /// The tensor.
        tensor: String,
        /// The type found.
        found: tenon_framework::DType,
    },
    /// An invalid percentile.
    #[error("expected a percentile above 50 and at most 100, found {found}")]
    Percentile {
        /// The percentile as given.
        found: f64,
    },
    /// An invalid scale or zero point of a tensor.
    #[error("'{tensor}': {source}", tensor = cut(.tensor))]
    Scale {
        /// The tensor.
        tensor: String,
        /// The error.
        source: FixedPointError,
    },
    /// A function whose table cannot be computed.
    #[error(
        "node '{node}': its values for a table of 256 cannot be computed: {reason}",
        node = cut(.node), reason = cut_text(.reason)
    )]
    Table {
        /// The node.
        node: String,
        /// The reason.
        reason: String,
    },
    /// A constant cannot be read or created.
    #[error("node '{node}': {source}", node = cut(.node))]
    Tensor {
        /// The node.
        node: String,
        /// The error.
        source: TensorError,
    },
    /// The given graph or the quantised one is invalid.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// An error of a session or a step.
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
