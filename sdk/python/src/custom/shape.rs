//! Shape functions in Python.

use super::{answer, dict, find};
use crate::attrs::{shape_object, shape_of};
use pyo3::prelude::*;
use tenon_framework::{
    KernelError, PartialShape,
    attr_view::AttrTable,
    infer::{Symbols, ValueInfo},
    op::{RemoteShape, Signature},
};

/// The shape function of the op of this name.
pub(super) struct PythonShape(pub String);

impl RemoteShape for PythonShape {
    fn infer(
        &self,
        attrs: &AttrTable,
        inputs: &[&ValueInfo],
        symbols: &mut Symbols,
    ) -> Result<Vec<ValueInfo>, KernelError> {
        let custom = find(&self.0)?;
        let signature = Signature::resolve(&custom.def, attrs.attrs())
            .map_err(|error| KernelError::new(error.code(), error.to_string()))?;
        let shapes: Vec<_> =
            inputs.iter().map(|input| shape_object(&input.shape.partial())).collect();
        let count = signature.outputs.len();
        let made: Vec<PartialShape> = answer(&self.0, |py| {
            let named = attrs.attrs().iter().map(|(name, value)| (name.as_str(), value));
            let attrs = dict(py, named)?;
            let made = custom.object.bind(py).call_method1("_infer", (shapes, attrs, count))?;
            let made: Vec<Bound<'_, PyAny>> = made.extract()?;
            made.iter().map(shape_of).collect()
        })?;
        Ok(made.iter().map(|shape| ValueInfo::of_shape(shape, symbols)).collect())
    }
}
