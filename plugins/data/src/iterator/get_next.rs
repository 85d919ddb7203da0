//! The kernels that ask for the next element.

use super::{
    Iterator,
    active::{Active, Outcome, State},
};
use crate::{
    attempts::{Attempt, Progress, TAKE},
    dataset::{Element, Spec},
    optional::Optional,
    place::input,
};
use std::sync::Arc;
use tenon_sdk::prelude::*;

/// What the output of a call is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The components; an error at the end.
    Components,
    /// An optional value, which at the end is none.
    Optional,
}

/// Asks for the next element.
struct GetNext {
    spec: Arc<Spec>,
    form: Form,
}

/// Waits for the next element.
struct Wait {
    spec: Arc<Spec>,
    form: Form,
    /// Keeps the walk.
    _active: Arc<Active>,
    outcome: Option<Outcome>,
}

impl Attempt<State> for Wait {
    fn run(&mut self, state: &mut State) -> Progress {
        self.outcome = state.outcome.take();
        if self.outcome.is_some() {
            return Progress::Done(Ok(()));
        }
        state.is_wanted = true;
        Progress::Stuck
    }

    fn finish(&mut self, call: &mut AsyncCall) -> Result<(), KernelError> {
        let c = call.context();
        let Some(outcome) = self.outcome.take() else {
            return Err(KernelError::internal("a call has no element that was made for it"));
        };
        match (outcome?, self.form) {
            (Some(element), Form::Components) => output_element(&c, &self.spec, &element),
            (Some(element), Form::Optional) => {
                self.spec.check_element(&element)?;
                Optional::of_element(&element)?.output(&c)
            }
            (None, Form::Optional) => Optional::default().output(&c),
            (None, Form::Components) => {
                Err(KernelError::new(Code::OUT_OF_RANGE, "End of sequence"))
            }
        }
    }
}

/// Returns the components of an element as outputs.
///
/// # Errors
/// `INVALID_ARGUMENT` for other components than the node says.
pub fn output_element(
    c: &ComputeContext<'_>,
    spec: &Spec,
    element: &Element,
) -> Result<(), KernelError> {
    spec.check_element(element)?;
    element.iter().enumerate().try_for_each(|(at, component)| component.output(c, at))
}

impl Kernel for GetNext {
    const MODE: Mode = Mode::Async;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let form = match c.op() {
            "IteratorGetNextAsOptional" => Form::Optional,
            _ => Form::Components,
        };
        Ok(GetNext { spec: Arc::new(Spec::new(c)?), form })
    }

    fn compute(&self, _: &ComputeContext<'_>) -> Result<(), KernelError> {
        Err(KernelError::internal("a call for an element is started, not computed"))
    }

    fn start(&self, mut call: AsyncCall) {
        let active = input::<Iterator>(&call.context()).and_then(|iterator| iterator.active());
        let active = match active {
            Ok(active) => active,
            Err(error) => return call.finish(Err(error)),
        };
        let (spec, form) = (Arc::clone(&self.spec), self.form);
        let wait = Wait { spec, form, _active: Arc::clone(&active), outcome: None };
        active.attempts().start(TAKE, call, Box::new(wait));
        active.work();
    }
}

register_kernel!("IteratorGetNext" on "CPU": GetNext);
register_kernel!("IteratorGetNextSync" on "CPU": GetNext);
register_kernel!("IteratorGetNextAsOptional" on "CPU": GetNext);
