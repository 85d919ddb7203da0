//! Datasets of the elements for which a function gives true.

use super::{
    Captured, Context, Dataset, Elements, Input, Next, Shared, in_the_middle,
    make::{Build, Make, dataset_in},
};
use crate::queue::Component;
use std::sync::Arc;
use tenon_sdk::{growth, prelude::*};

struct Filter {
    input: Shared,
    predicate: Captured,
}

struct MakeFilter;

impl Build for MakeFilter {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MakeFilter)
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        let input = Arc::clone(&dataset_in(c, 0)?.dataset);
        let predicate = Captured::of(c, "predicate", c.input_range(1))?;
        Ok(Arc::new(Filter { input, predicate }))
    }
}

impl Dataset for Filter {
    fn elements(&self) -> Box<dyn Elements> {
        let predicate = self.predicate.clone();
        Box::new(Filtered { input: Input::of(&self.input), predicate })
    }

    fn batch_size(&self) -> Option<usize> {
        self.input.batch_size()
    }
}

struct Filtered {
    input: Input,
    predicate: Captured,
}

impl Elements for Filtered {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            loop {
                context.check()?;
                let Some(element) = self.input.next(context).await? else { return Ok(None) };
                let answer = self.predicate.call(context, growth::copied(&element)?).await;
                let answer = answer.map_err(in_the_middle)?;
                if is_true(&answer)? {
                    return Ok(Some(element));
                }
            }
        })
    }
}

/// The answer of a predicate.
fn is_true(answer: &[Component]) -> Result<bool, KernelError> {
    let found = match answer {
        [one] if one.dtype() == DType::BOOL => one.scalar::<bool>()?,
        _ => None,
    };
    found.ok_or_else(|| {
        KernelError::invalid_argument(format!(
            "predicate: expected a function that returns a scalar bool, found {answer:?}"
        ))
    })
}

register_kernel!("FilterDataset" on "CPU": Make<MakeFilter>);
