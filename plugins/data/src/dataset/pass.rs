//! Datasets that are another with settings of how its elements are made, which this runtime chooses itself.

use super::{
    Shared,
    make::{Build, Make, dataset_in},
};
use std::sync::Arc;
use tenon_sdk::prelude::*;

struct Pass;

impl Build for Pass {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Pass)
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        Ok(Arc::clone(&dataset_in(c, 0)?.dataset))
    }
}

register_kernel!("OptionsDataset" on "CPU": Make<Pass>);
register_kernel!("ModelDataset" on "CPU": Make<Pass>);
register_kernel!("OptimizeDataset" on "CPU": Make<Pass>);
register_kernel!("OptimizeDatasetV2" on "CPU": Make<Pass>);
