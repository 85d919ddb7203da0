//! `MergeV2Checkpoints`.

use crate::inputs::text;
use tenon_bundle::Files;
use tenon_files::{Access, path_of};
use tenon_sdk::{growth, prelude::*};

struct Merge {
    access: Access,
    delete_old_dirs: bool,
    allow_missing_files: bool,
}

impl Kernel for Merge {
    const MODE: Mode = Mode::Blocking;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Merge {
            access: crate::access(c)?,
            delete_old_dirs: c.attr("delete_old_dirs")?,
            allow_missing_files: c.attr("allow_missing_files")?,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let [_] = c.dims(0) else {
            return Err(KernelError::invalid_argument(format!(
                "checkpoint_prefixes: expected a vector, found shape {:?}",
                c.dims(0)
            )));
        };
        let mut prefixes = Vec::new();
        for prefix in c.strings(0)? {
            growth::push(&mut prefixes, path_of(prefix))?;
        }
        let destination = path_of(text(c, 1, "destination_prefix")?);
        let files = Files::new(&self.access, "checkpoint_prefixes");
        tenon_bundle::merge(
            files,
            &prefixes,
            &destination,
            self.delete_old_dirs,
            self.allow_missing_files,
        )?;
        Ok(())
    }
}

register_kernel!("MergeV2Checkpoints" on "CPU": Merge, numerics = Numerics::EXACT);
