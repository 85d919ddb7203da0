//! Datasets of the results of a function, computed one after the other.

use super::{
    Captured, Cardinality, Context, Dataset, Element, Elements, Input, Next, Shared,
    make::{Build, Make, dataset_in},
};
use std::sync::Arc;
use tenon_sdk::prelude::*;

/// What a call of a function gave, as the next element: a function may end the elements with `OUT_OF_RANGE`.
///
/// # Errors
/// Those of the call; `INVALID_ARGUMENT` for an end where the number of elements is promised.
pub fn mapped(
    result: Result<Element, KernelError>,
    keeps_number: bool,
) -> Result<Option<Element>, KernelError> {
    match result {
        Err(error) if error.code == Code::OUT_OF_RANGE && keeps_number => {
            Err(KernelError::invalid_argument(format!(
                "a function that gives an element for each one ended with OUT_OF_RANGE: {}",
                error.message
            )))
        }
        Err(error) if error.code == Code::OUT_OF_RANGE => Ok(None),
        result => result.map(Some),
    }
}

/// Results of a function.
struct Map {
    input: Shared,
    function: Captured,
    keeps_number: bool,
}

struct MakeMap {
    keeps_number: bool,
}

impl Build for MakeMap {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MakeMap { keeps_number: c.attr("preserve_cardinality")? })
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        let input = Arc::clone(&dataset_in(c, 0)?.dataset);
        let function = Captured::of(c, "f", c.input_range(1))?;
        Ok(Arc::new(Map { input, function, keeps_number: self.keeps_number }))
    }
}

impl Dataset for Map {
    fn elements(&self) -> Box<dyn Elements> {
        let (input, function) = (Input::of(&self.input), self.function.clone());
        Box::new(Mapped { input, function, keeps_number: self.keeps_number })
    }

    fn cardinality(&self) -> Cardinality {
        match self.keeps_number {
            true => self.input.cardinality(),
            false => Cardinality::Unknown,
        }
    }
}

struct Mapped {
    input: Input,
    function: Captured,
    keeps_number: bool,
}

impl Elements for Mapped {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            let Some(element) = self.input.next(context).await? else { return Ok(None) };
            mapped(self.function.call(context, element).await, self.keeps_number)
        })
    }
}

register_kernel!("MapDataset" on "CPU": Make<MakeMap>);
