//! Datasets of windows: each element has a dataset of some elements for each component.

use super::{
    Cardinality, Context, Dataset, DatasetValue, Element, Elements, Input, Next, Shared, Spec,
    element::whole,
    make::{Build, Make, dataset_in, number, truth, unexpected},
};
use crate::queue::Component;
use std::{collections::VecDeque, sync::Arc};
use tenon_sdk::{growth, prelude::*};

/// Which elements a window has.
#[derive(Clone, Copy)]
struct Sizes {
    /// How many.
    size: usize,
    /// How far the next window begins after this one.
    shift: usize,
    /// How far they are apart.
    stride: usize,
    /// How many elements of the input a whole window needs.
    needed: usize,
    drops_rest: bool,
}

#[derive(Clone)]
struct Windows {
    input: Shared,
    /// What the elements of the input are.
    spec: Arc<Spec>,
    sizes: Sizes,
}

struct MakeWindows;

impl Build for MakeWindows {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MakeWindows)
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        let positive = |input, name: &str| {
            let found = number(c, input, name)?;
            let fits = usize::try_from(found).ok().filter(|&number| number > 0);
            fits.ok_or_else(|| unexpected(name, "at least 1", found))
        };
        let (size, shift) = (positive(1, "size")?, positive(2, "shift")?);
        let (stride, drops_rest) = (positive(3, "stride")?, truth(c, 4, "drop_remainder")?);
        let needed = (size - 1).saturating_mul(stride).saturating_add(1);
        let DatasetValue { dataset, spec, .. } = dataset_in(c, 0)?;
        Ok(Arc::new(Windows {
            input: Arc::clone(dataset),
            spec: Arc::clone(spec),
            sizes: Sizes { size, shift, stride, needed, drops_rest },
        }))
    }
}

impl Dataset for Windows {
    fn elements(&self) -> Box<dyn Elements> {
        let input = Some(Input::of(&self.input));
        Box::new(Walk { windows: self.clone(), input, ahead: VecDeque::new() })
    }

    fn cardinality(&self) -> Cardinality {
        let Sizes { shift, needed, drops_rest, .. } = self.sizes;
        let (shift, needed) = (shift as u64, needed as u64);
        self.input.cardinality().finite(|rows| match drops_rest {
            true => rows.checked_sub(needed).map_or(0, |rest| rest / shift + 1),
            false => rows.div_ceil(shift),
        })
    }
}

struct Walk {
    windows: Windows,
    /// `None` after the end.
    input: Option<Input>,
    /// Elements of this window and of later ones, and errors in the place of elements.
    ahead: VecDeque<Result<Element, KernelError>>,
}

impl Elements for Walk {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            let Sizes { shift, needed, drops_rest, .. } = self.windows.sizes;
            while self.ahead.len() < needed
                && let Some(found) = self.take(context).await?
            {
                self.ahead.try_reserve(1).map_err(|_| no_room())?;
                self.ahead.push_back(found);
            }
            if self.ahead.is_empty() || (drops_rest && self.ahead.len() < needed) {
                self.ahead.clear();
                return Ok(None);
            }
            let window = self.window();
            let there = self.ahead.len();
            self.ahead.drain(..shift.min(there));
            for _ in there..shift {
                if self.take(context).await?.is_none() {
                    break;
                }
            }
            window.map(Some)
        })
    }
}

impl Walk {
    /// The next element of the input, or its error; `None` at the end.
    async fn take(
        &mut self,
        context: &Context,
    ) -> Result<Option<Result<Element, KernelError>>, KernelError> {
        context.check()?;
        let Some(input) = &mut self.input else { return Ok(None) };
        let found = input.next(context).await.transpose();
        if found.is_none() {
            self.input = None;
        }
        Ok(found)
    }

    /// The window at the beginning of the elements.
    fn window(&self) -> Result<Element, KernelError> {
        let Sizes { size, stride, .. } = self.windows.sizes;
        let elements = self.ahead.iter().step_by(stride).take(size);
        let elements: Vec<&Element> =
            growth::try_collected(elements.map(|found| found.as_ref().map_err(Clone::clone)))?;
        let spec = &self.windows.spec;
        whole(growth::try_collected((0..spec.types.len()).map(|at| {
            let column = elements.iter().map(|element| {
                element.get(at).cloned().ok_or_else(|| {
                    KernelError::internal("an element has fewer components than its dataset says")
                })
            });
            let dataset = Arc::new(Column(Arc::new(growth::try_collected(column)?)));
            let spec = Spec { types: vec![spec.types[at]], shapes: vec![spec.shapes[at].clone()] };
            let value = DatasetValue { dataset, spec: Arc::new(spec), depth: 1 };
            Kept::from_variants(&[], &[Variant::new(value)])
        }))?)
    }
}

fn no_room() -> KernelError {
    KernelError::new(Code::RESOURCE_EXHAUSTED, "no memory for the elements of a window")
}

/// Elements of one component, which are there.
struct Column(Arc<Vec<Component>>);

impl Dataset for Column {
    fn elements(&self) -> Box<dyn Elements> {
        Box::new(Rows { column: Arc::clone(&self.0), next: 0 })
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Finite(self.0.len() as u64)
    }
}

struct Rows {
    column: Arc<Vec<Component>>,
    next: usize,
}

impl Elements for Rows {
    fn next<'a>(&'a mut self, _: &'a Context) -> Next<'a> {
        Box::pin(async move {
            let found = self.column.get(self.next).cloned();
            self.next += 1;
            Ok(found.map(|component| vec![component]))
        })
    }
}

register_kernel!("WindowDataset" on "CPU": Make<MakeWindows>);
