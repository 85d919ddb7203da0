//! The variables of a model, as its checkpoint lists them.

use crate::{ImportError, folder};
use std::path::Path;
use tenon_bundle::{Bundle, Files};
use tenon_files::Access;
use tenon_framework::DType;

/// The entry in which TensorFlow 2 keeps how objects hang together.
const OBJECTS: &[u8] = b"_CHECKPOINTABLE_OBJECT_GRAPH";

/// A value in the checkpoint of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name there.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// Its shape.
    pub dims: Vec<i64>,
}

/// The variables of a model, in the order of their names; none where it has no checkpoint.
pub(crate) fn list(model: &Path) -> Result<Vec<Variable>, ImportError> {
    let access = Access::to_any();
    let files = Files::new(&access, "variables");
    let prefix = folder::variables(model);
    if !Bundle::exists(files, &prefix)? {
        return Ok(Vec::new());
    }
    let entries = Bundle::open(files, &prefix)?.entries()?;
    let variables = entries.into_iter().filter(|(name, _)| name != OBJECTS);
    let variable = |(name, entry): (Vec<u8>, tenon_bundle::Entry)| Variable {
        name: String::from_utf8_lossy(&name).into_owned(),
        dtype: entry.dtype,
        dims: entry.dims,
    };
    Ok(variables.map(variable).collect())
}
