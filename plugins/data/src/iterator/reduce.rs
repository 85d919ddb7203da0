//! The state that a function makes of an initial one and of all elements of a dataset.

use super::get_next::output_element;
use crate::dataset::{
    Captured, Context, DatasetValue, Element, Spec, caught, check_types, dataset_in, in_the_middle,
    pace, spawn, state_in, with_state,
};
use std::sync::Arc;
use tenon_sdk::prelude::*;

struct Reduce {
    spec: Arc<Spec>,
    state_types: Arc<Vec<DType>>,
}

/// One call.
struct Fold {
    dataset: DatasetValue,
    context: Context,
    function: Captured,
    state: Element,
    state_types: Arc<Vec<DType>>,
}

impl Reduce {
    fn begin(&self, c: &ComputeContext<'_>) -> Result<Fold, KernelError> {
        let dataset = dataset_in(c, 0)?.clone();
        Ok(Fold {
            context: Context::new(dataset.depth),
            dataset,
            function: Captured::of(c, "f", c.input_range(2))?,
            state: state_in(c, c.input_range(1))?,
            state_types: Arc::clone(&self.state_types),
        })
    }
}

impl Kernel for Reduce {
    const MODE: Mode = Mode::Async;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (spec, state_types) = (Arc::new(Spec::new(c)?), Arc::new(c.attr("Tstate")?));
        Ok(Reduce { spec, state_types })
    }

    fn compute(&self, _: &ComputeContext<'_>) -> Result<(), KernelError> {
        Err(KernelError::internal("a call for a state is started, not computed"))
    }

    fn start(&self, mut call: AsyncCall) {
        let begun = self.begin(&call.context());
        let fold = match begun {
            Ok(fold) => fold,
            Err(error) => return call.finish(Err(error)),
        };
        let (spec, ended) = (Arc::clone(&self.spec), fold.context.clone());
        call.on_cancel(move || ended.end());
        spawn(async move {
            let found = caught("reducing a dataset", fold.all()).await;
            let result = found.and_then(|state| output_element(&call.context(), &spec, &state));
            call.finish(result);
        });
    }
}

impl Fold {
    /// The last state.
    async fn all(self) -> Result<Element, KernelError> {
        let Fold { dataset, context, function, mut state, state_types } = self;
        let mut elements = dataset.dataset.elements();
        loop {
            pace().await;
            context.check()?;
            let found = elements.next(&context).await.map_err(in_the_middle)?;
            let Some(element) = found else { return Ok(state) };
            let arguments = with_state(&state, element)?;
            state = function.call(&context, arguments).await.map_err(in_the_middle)?;
            check_types(&state, &state_types, "a state")?;
        }
    }
}

register_kernel!("ReduceDataset" on "CPU": Reduce);
