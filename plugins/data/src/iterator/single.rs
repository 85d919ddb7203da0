//! The only element of a dataset.

use super::get_next::output_element;
use crate::dataset::{
    Context, DatasetValue, Element, Spec, caught, dataset_in, in_the_middle, spawn,
};
use std::sync::Arc;
use tenon_sdk::prelude::*;

struct Single {
    spec: Arc<Spec>,
}

impl Kernel for Single {
    const MODE: Mode = Mode::Async;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Single { spec: Arc::new(Spec::new(c)?) })
    }

    fn compute(&self, _: &ComputeContext<'_>) -> Result<(), KernelError> {
        Err(KernelError::internal("a call for an element is started, not computed"))
    }

    fn start(&self, mut call: AsyncCall) {
        let dataset = dataset_in(&call.context(), 0).cloned();
        let dataset = match dataset {
            Ok(dataset) => dataset,
            Err(error) => return call.finish(Err(error)),
        };
        let (spec, context) = (Arc::clone(&self.spec), Context::new(dataset.depth));
        let ended = context.clone();
        call.on_cancel(move || ended.end());
        spawn(async move {
            let found = caught("making the element", single(dataset, context)).await;
            let result = found.and_then(|element| output_element(&call.context(), &spec, &element));
            call.finish(result);
        });
    }
}

/// The one element of a dataset.
async fn single(dataset: DatasetValue, context: Context) -> Result<Element, KernelError> {
    let mut elements = dataset.dataset.elements();
    let Some(element) = elements.next(&context).await.map_err(in_the_middle)? else {
        return Err(KernelError::invalid_argument("dataset: expected one element, found none"));
    };
    match elements.next(&context).await.map_err(in_the_middle)? {
        None => Ok(element),
        Some(_) => Err(KernelError::invalid_argument("dataset: expected one element, found more")),
    }
}

register_kernel!("DatasetToSingleElement" on "CPU": Single);
