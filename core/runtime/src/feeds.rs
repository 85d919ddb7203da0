//! The specification of feeds.

use crate::error::RuntimeError;
use tenon_framework::{DType, PartialShape, Tensor};

/// The specification of a feed.
#[derive(Debug, Clone)]
pub(crate) struct FeedSpec {
    pub name: String,
    pub dtype: DType,
    pub shape: PartialShape,
}

/// The specifications of a step's feeds, in order.
#[derive(Debug, Clone)]
pub(crate) struct FeedSpecs(pub Vec<FeedSpec>);

impl FeedSpecs {
    /// Checks the feeds.
    pub fn check(&self, feeds: &[Tensor]) -> Result<(), RuntimeError> {
        if feeds.len() != self.0.len() {
            let (expected, found) = (self.0.len(), feeds.len());
            return Err(RuntimeError::FeedCount { expected, found });
        }
        for (spec, tensor) in self.0.iter().zip(feeds) {
            if tensor.dtype() != spec.dtype
                || !spec.shape.accepts(tensor.shape())
                || tensor.dtype() == DType::BOOL
                || !tensor.is_on_host()
            {
                check_feed(spec, tensor)?;
            }
        }
        Ok(())
    }
}

#[cold]
fn check_feed(spec: &FeedSpec, tensor: &Tensor) -> Result<(), RuntimeError> {
    let name = || spec.name.clone();
    if tensor.dtype() != spec.dtype {
        let (expected, found) = (spec.dtype, tensor.dtype());
        return Err(RuntimeError::FeedType { name: name(), expected, found });
    }
    if !spec.shape.accepts(tensor.shape()) {
        let (expected, found) = (spec.shape.clone(), Box::new(*tensor.shape()));
        return Err(RuntimeError::FeedShape { name: name(), expected, found });
    }
    if !tensor.is_on_host() {
        let message = "it is in a device's memory: expected host memory, copy it there first";
        return Err(RuntimeError::FeedValue { name: name(), message: message.to_owned() });
    }
    tensor
        .validate()
        .map_err(|error| RuntimeError::FeedValue { name: name(), message: error.to_string() })
}
