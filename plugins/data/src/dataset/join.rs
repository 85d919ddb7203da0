//! Datasets of the elements of several: side by side, and one after the other.

use super::{
    Cardinality, Context, Dataset, Element, Elements, Input, Next, Shared,
    make::{Build, Make, dataset_in},
};
use std::sync::Arc;
use tenon_sdk::{growth, prelude::*};

/// All inputs.
fn inputs(c: &ComputeContext<'_>) -> Result<Vec<Shared>, KernelError> {
    growth::try_collected(
        (0..c.input_count()).map(|at| Ok(Arc::clone(&dataset_in(c, at)?.dataset))),
    )
}

/// Elements that have the components of an element of each dataset.
struct Zip(Vec<Shared>);

impl Build for Zip {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Zip(Vec::new()))
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        Ok(Arc::new(Zip(inputs(c)?)))
    }
}

/// The size of batches, where all datasets have the same.
fn one_size(parts: &[Shared]) -> Option<usize> {
    let first = parts.first()?.batch_size();
    first.filter(|_| parts.iter().all(|part| part.batch_size() == first))
}

impl Dataset for Zip {
    fn elements(&self) -> Box<dyn Elements> {
        Box::new(Zipped(self.0.iter().map(Input::of).collect()))
    }

    fn cardinality(&self) -> Cardinality {
        let counts = self.0.iter().map(|part| part.cardinality());
        counts.reduce(Cardinality::beside).unwrap_or(Cardinality::Infinite)
    }

    fn batch_size(&self) -> Option<usize> {
        one_size(&self.0)
    }
}

struct Zipped(Vec<Input>);

impl Elements for Zipped {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            let (mut all, mut error, mut is_end) = (Element::new(), None, false);
            // After an error, or the end of one, the others move on too: they stay side by side.
            for input in &mut self.0 {
                match input.next(context).await {
                    Ok(Some(element)) => growth::append(&mut all, &element)?,
                    Ok(None) => is_end = true,
                    // After the end of one, errors of the others say nothing.
                    Err(_) if is_end => {}
                    Err(found) => drop(error.get_or_insert(found)),
                }
            }
            if is_end {
                self.0.clear();
            }
            match error {
                Some(error) => Err(error),
                None if self.0.is_empty() => Ok(None),
                None => Ok(Some(all)),
            }
        })
    }
}

/// The elements of one dataset, then those of another.
struct Concatenate(Vec<Shared>);

impl Build for Concatenate {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Concatenate(Vec::new()))
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        let (first, second) = (dataset_in(c, 0)?, dataset_in(c, 1)?);
        first.spec.check_types(&second.spec.types, "another_dataset")?;
        Ok(Arc::new(Concatenate(inputs(c)?)))
    }
}

impl Dataset for Concatenate {
    fn elements(&self) -> Box<dyn Elements> {
        let rest = self.0.iter().rev().map(Arc::clone).collect();
        Box::new(Concatenated { current: None, rest })
    }

    fn cardinality(&self) -> Cardinality {
        let counts = self.0.iter().map(|part| part.cardinality());
        counts.fold(Cardinality::Finite(0), Cardinality::then)
    }

    fn batch_size(&self) -> Option<usize> {
        one_size(&self.0)
    }
}

struct Concatenated {
    current: Option<Input>,
    /// The last one comes first.
    rest: Vec<Shared>,
}

impl Elements for Concatenated {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            loop {
                if let Some(current) = &mut self.current {
                    if let Some(element) = current.next(context).await? {
                        return Ok(Some(element));
                    }
                    self.current = None;
                }
                let Some(next) = self.rest.pop() else { return Ok(None) };
                self.current = Some(Input::of(&next));
            }
        })
    }
}

register_kernel!("ZipDataset" on "CPU": Make<Zip>);
register_kernel!("ConcatenateDataset" on "CPU": Make<Concatenate>);
