//! A step that a session has compiled: what is registered at its worker, and what its feeds have to be.

use crate::{error::RuntimeError, step_graph::FeedSpec, worker::Registered};
use tenon_framework::{DType, Tensor};

/// A compiled step.
pub(super) struct Executable {
    pub registered: Registered,
    pub feeds: Vec<FeedSpec>,
    pub compile_ns: u64,
}

impl Executable {
    /// Checks the feeds.
    pub fn check_feeds(&self, feeds: &[Tensor]) -> Result<(), RuntimeError> {
        if feeds.len() != self.feeds.len() {
            let (expected, found) = (self.feeds.len(), feeds.len());
            return Err(RuntimeError::FeedCount { expected, found });
        }
        for (spec, tensor) in self.feeds.iter().zip(feeds) {
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
        let message = "it lies in a device's memory: expected host memory, copy it there first";
        return Err(RuntimeError::FeedValue { name: name(), message: message.to_owned() });
    }
    tensor
        .validate()
        .map_err(|error| RuntimeError::FeedValue { name: name(), message: error.to_string() })
}
