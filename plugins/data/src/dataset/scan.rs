//! Datasets of the results of a function that gets a state besides each element, and returns the next state before its
//! results.

use super::{
    Captured, Cardinality, Context, Dataset, Element, Elements, Input, Next, Shared,
    make::{Build, Make, dataset_in},
    map::mapped,
};
use crate::queue::Component;
use std::{ops::Range, sync::Arc};
use tenon_sdk::{growth, prelude::*};

/// The tensors of some inputs, as a state.
///
/// # Errors
/// As [`ComputeContext::keep`].
pub fn state_in(c: &ComputeContext<'_>, inputs: Range<usize>) -> Result<Element, KernelError> {
    growth::try_collected(inputs.map(|at| c.keep(at).map(|kept| Component::whole(&Arc::new(kept)))))
}

/// The arguments of a function: a state, and then an element.
///
/// # Errors
/// `RESOURCE_EXHAUSTED` without memory.
pub fn with_state(state: &Element, element: Element) -> Result<Element, KernelError> {
    growth::collected(state.iter().cloned().chain(element))
}

/// Checks the types of the components that a function returned.
///
/// # Errors
/// `INVALID_ARGUMENT` when there are too few or they are of other types; `what` names the function's results.
pub fn check_types(found: &[Component], expected: &[DType], what: &str) -> Result<(), KernelError> {
    let is_same = found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| found.dtype() == *expected);
    if is_same {
        return Ok(());
    }
    let found = growth::collected(found.iter().map(Component::dtype))?;
    Err(KernelError::invalid_argument(format!(
        "f: expected {what} of types {expected:?}, found {found:?}"
    )))
}

#[derive(Clone)]
struct Scan {
    input: Shared,
    function: Captured,
    state: Arc<Element>,
    how: How,
}

/// What the node says.
#[derive(Clone)]
struct How {
    state_types: Arc<Vec<DType>>,
    output_types: Arc<Vec<DType>>,
    keeps_number: bool,
}

struct MakeScan(How);

impl Build for MakeScan {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MakeScan(How {
            state_types: Arc::new(c.attr("Tstate")?),
            output_types: Arc::new(c.attr("output_types")?),
            keeps_number: c.attr("preserve_cardinality")?,
        }))
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        let input = Arc::clone(&dataset_in(c, 0)?.dataset);
        let state = Arc::new(state_in(c, c.input_range(1))?);
        let function = Captured::of(c, "f", c.input_range(2))?;
        Ok(Arc::new(Scan { input, function, state, how: self.0.clone() }))
    }
}

impl Dataset for Scan {
    fn elements(&self) -> Box<dyn Elements> {
        let (input, function) = (Input::of(&self.input), self.function.clone());
        let state = Arc::clone(&self.state);
        Box::new(Scanned { input, function, state, how: self.how.clone() })
    }

    fn cardinality(&self) -> Cardinality {
        match self.how.keeps_number {
            true => self.input.cardinality(),
            false => Cardinality::Unknown,
        }
    }
}

struct Scanned {
    input: Input,
    function: Captured,
    state: Arc<Element>,
    how: How,
}

impl Elements for Scanned {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            let Some(element) = self.input.next(context).await? else { return Ok(None) };
            let arguments = with_state(&self.state, element)?;
            let result = self.function.call(context, arguments).await;
            let Some(mut state) = mapped(result, self.how.keeps_number)? else { return Ok(None) };
            let output = state.split_off(self.how.state_types.len().min(state.len()));
            check_types(&state, &self.how.state_types, "a state")?;
            check_types(&output, &self.how.output_types, "outputs")?;
            self.state = Arc::new(state);
            Ok(Some(output))
        })
    }
}

register_kernel!("ScanDataset" on "CPU": Make<MakeScan>);
