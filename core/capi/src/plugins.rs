//! Libraries with ops and kernels: Tenon's plugins.

use crate::{
    buffer::TF_Buffer,
    fail::{Failure, Fallback},
    process::runtime,
    raw::Text,
    registry::op_list,
    status::TF_Status,
};
use std::{collections::HashSet, path::PathBuf};

/// A library that was loaded.
pub struct TF_Library {
    /// The ops that it added.
    ops: TF_Buffer,
}

impl Drop for TF_Library {
    fn drop(&mut self) {
        if let Some(deallocate) = self.ops.data_deallocator {
            // SAFETY: the buffer is the library's own, and is gone after this call.
            unsafe { deallocate(self.ops.data.cast_mut(), self.ops.length) };
        }
    }
}

fn load(file: &str) -> Result<TF_Library, Failure> {
    let runtime = runtime()?;
    let before = runtime.registry();
    let had: HashSet<&str> = before.ops().map(|op| op.name.as_str()).collect();
    let report = runtime.load([PathBuf::from(file)]);
    report.into_result().map_err(|error| Failure::new(error.code(), error.to_string()))?;
    let after = runtime.registry();
    let new = after.ops().map(|op| &**op).filter(|op| !had.contains(op.name.as_str()));
    Ok(TF_Library { ops: TF_Buffer::of_message(&op_list(new)?)? })
}

api! {
    /// Loads a plugin of Tenon. It stays loaded until the process ends.
    fn TF_LoadLibrary(
        file: Text<'_>,
        status: Option<&mut TF_Status>,
    ) -> Option<Box<TF_Library>> [status] {
        load(file.required("the name of the file")?).map(|library| Some(Box::new(library)))
    }

    /// The ops that a library added, as an `OpList` that stays as long as the handle.
    fn TF_GetOpList(library: Option<&TF_Library>) -> TF_Buffer {
        library.map_or_else(TF_Buffer::fallback, |library| {
            TF_Buffer { data_deallocator: None, ..library.ops }
        })
    }

    /// Deletes the handle of a library.
    fn TF_DeleteLibraryHandle(library: Option<Box<TF_Library>>) { drop(library) }
}
