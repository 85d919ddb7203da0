//! Functions of the graph's library, with which datasets make elements.

use super::{Context, Element};
use std::ops::Range;
use tenon_sdk::prelude::*;

/// A function of the graph's library with its captured arguments.
#[derive(Clone)]
pub struct Captured {
    name: String,
}

impl Captured {
    /// The function that attribute `attr` names, with these inputs as its last arguments.
    ///
    /// # Errors
    /// `NOT_FOUND` when the library has no such function; as [`ComputeContext::keep`].
    pub fn of(
        c: &ComputeContext<'_>,
        attr: &str,
        arguments: Range<usize>,
    ) -> Result<Captured, KernelError> {
        let _ = (c, arguments);
        Ok(Captured { name: attr.to_owned() })
    }

    /// Calls the function on this thread, as far as it goes without waiting.
    ///
    /// # Errors
    /// Those of the function; `CANCELLED` when the context ends.
    pub async fn call(&self, context: &Context, element: Element) -> Result<Element, KernelError> {
        let _ = (context, element);
        Err(KernelError::unimplemented(format!("calls of function '{}'", self.name)))
    }

    /// Calls the function on another thread.
    pub fn begin(
        &self,
        context: &Context,
        element: Element,
    ) -> super::task::Receiver<Result<Element, KernelError>> {
        let _ = (context, element);
        super::task::channel().1
    }
}
