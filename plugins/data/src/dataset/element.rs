//! Elements of datasets, and what a dataset says of them.

use crate::{queue::Component, shapes::merged};
use std::sync::Arc;
use tenon_sdk::{growth, prelude::*};

/// A component for each output of the dataset.
pub type Element = Vec<Component>;

/// The types and shapes of the components of every element.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Element types.
    pub types: Vec<DType>,
    /// What the shapes agree with.
    pub shapes: Vec<PartialShape>,
}

impl Spec {
    /// What the attributes of a node say; of an op without them, that elements are strings.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` unless there are as many shapes as types.
    pub fn new(c: &CreateContext<'_>) -> Result<Spec, KernelError> {
        let name = ["output_types", "Toutput_types"].into_iter().find(|name| c.attrs().has(name));
        let Some(name) = name else {
            let scalar = PartialShape::new(&[]);
            let scalar = scalar.map_err(|error| KernelError::internal(error.to_string()))?;
            return Ok(Spec { types: vec![DType::STRING], shapes: vec![scalar] });
        };
        let (types, shapes): (Vec<DType>, Vec<PartialShape>) =
            (c.attr(name)?, c.attr("output_shapes")?);
        if types.len() != shapes.len() {
            return Err(KernelError::invalid_argument(format!(
                "output_shapes: expected a shape for each of {} components, found {}",
                types.len(),
                shapes.len()
            )));
        }
        Ok(Spec { types, shapes })
    }

    /// Checks that elements of `found` are elements of this.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the types differ or the shapes contradict each other; `what` names what has `found`.
    pub fn check(&self, found: &Spec, what: &str) -> Result<(), KernelError> {
        self.check_types(&found.types, what)?;
        for (at, (expected, found)) in self.shapes.iter().zip(&found.shapes).enumerate() {
            merged(expected, found, &format!("component {at} of {what}"))?;
        }
        Ok(())
    }

    /// Checks the components of an element.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when they are of other types or shapes.
    pub fn check_element(&self, element: &[Component]) -> Result<(), KernelError> {
        let types = growth::collected(element.iter().map(Component::dtype))?;
        self.check_types(&types, "the element")?;
        for (at, (expected, found)) in self.shapes.iter().zip(element).enumerate() {
            if !expected.accepts(found.dims()) {
                return Err(KernelError::invalid_argument(format!(
                    "component {at} of the element: expected a shape that agrees with {expected}, found {:?}",
                    found.dims()
                )));
            }
        }
        Ok(())
    }

    /// Checks types.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when they are others; `what` names what has `found`.
    pub fn check_types(&self, found: &[DType], what: &str) -> Result<(), KernelError> {
        if self.types == found {
            return Ok(());
        }
        let names =
            |types: &[DType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Err(KernelError::invalid_argument(format!(
            "{what}: expected components of types {}, found {}",
            names(&self.types),
            names(found)
        )))
    }
}

/// An element of whole tensors.
///
/// # Errors
/// `RESOURCE_EXHAUSTED` without memory.
pub fn whole(tensors: impl IntoIterator<Item = Kept>) -> Result<Element, KernelError> {
    growth::collected(tensors.into_iter().map(|tensor| Component::whole(&Arc::new(tensor))))
}
