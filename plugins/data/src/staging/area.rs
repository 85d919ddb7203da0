//! Areas whose elements wait in order.

use super::{Limits, bytes_of, values};
use crate::{
    attempts::{Answer, Async, Attempt, Attempts, Begins, Begun, Order, PUT, Progress, TAKE},
    place::{Naming, Place, Shared, find_or_make},
};
use std::{collections::VecDeque, sync::Arc};
use tenon_sdk::prelude::*;

/// An area.
struct Area {
    place: Place,
    attempts: Arc<Attempts<State>>,
}

impl Shared for Area {
    const NAME: &'static str = "tenon_data.StagingArea";
    const WHAT: &'static str = "staging area";

    fn place(&self) -> &Place {
        &self.place
    }
}

type Values = Vec<Arc<Kept>>;

struct State {
    limits: Limits,
    bytes: u64,
    elements: VecDeque<(Values, u64)>,
}

/// Finds the area of a node.
struct Finder {
    place: Place,
    limits: Limits,
}

impl Finder {
    fn new(c: &CreateContext<'_>) -> Result<Finder, KernelError> {
        Ok(Finder { place: Naming::new(c)?.by_node(), limits: Limits::new(c)? })
    }

    fn get(&self, c: &ComputeContext<'_>) -> Result<Arc<Area>, KernelError> {
        find_or_make(c, self.place.clone(), |place| {
            let state = State { limits: self.limits, bytes: 0, elements: VecDeque::new() };
            // An element that fits goes in, and a peek at a later element does not delay other calls.
            let orders = [Order::Any, Order::Any];
            let attempts = Arc::new(Attempts::new(place.label::<Area>(), state, orders));
            Ok(Area { place, attempts })
        })
    }
}

struct Put {
    values: Values,
    bytes: u64,
}

impl Attempt<State> for Put {
    fn run(&mut self, state: &mut State) -> Progress {
        let State { limits, bytes, elements } = state;
        if !limits.has_place(elements.len()) || !limits.has_bytes(*bytes, self.bytes) {
            return Progress::Stuck;
        }
        *bytes += self.bytes;
        elements.push_back((std::mem::take(&mut self.values), self.bytes));
        Progress::Done(Ok(()))
    }
}

struct Stage(Finder);

impl Begins for Stage {
    type State = State;
    type Attempt = Put;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Finder::new(c).map(Stage)
    }

    fn begin(&self, c: &ComputeContext<'_>) -> Answer<State, Put> {
        let (area, values) = (self.0.get(c)?, values(c, 0)?);
        let bytes = values.iter().map(|value| bytes_of(value)).sum();
        area.attempts.read(|state| state.limits.check(bytes, area.attempts.label()))?;
        let attempts = Arc::clone(&area.attempts);
        Ok(Some(Begun { attempts, list: PUT, attempt: Put { values, bytes } }))
    }
}

register_kernel!("Stage" on "CPU": Async<Stage>);

/// Takes the first element, or looks at one.
struct Take {
    label: String,
    outputs: usize,
    /// Which one is looked at.
    look: Option<usize>,
    taken: Option<(Values, u64)>,
}

impl Attempt<State> for Take {
    fn run(&mut self, state: &mut State) -> Progress {
        let Some((values, bytes)) = state.elements.get(self.look.unwrap_or(0)) else {
            return Progress::Stuck;
        };
        if values.len() != self.outputs {
            return Progress::Done(Err(KernelError::invalid_argument(format!(
                "dtypes: expected {} components, those of the element of {}, found {}",
                values.len(),
                self.label,
                self.outputs
            ))));
        }
        if self.look.is_some() {
            self.taken = Some((values.clone(), *bytes));
        } else if let Some((values, bytes)) = state.elements.pop_front() {
            state.bytes -= bytes;
            self.taken = Some((values, bytes));
        }
        Progress::Done(Ok(()))
    }

    fn finish(&mut self, call: &mut AsyncCall) -> Result<(), KernelError> {
        let (c, values) = (call.context(), self.taken.iter().flat_map(|(values, _)| values));
        values.enumerate().try_for_each(|(at, value)| c.output_kept(at, value))
    }

    fn abandon(&mut self, state: &mut State) {
        if let (None, Some((values, bytes))) = (self.look, self.taken.take()) {
            state.bytes += bytes;
            state.elements.push_front((values, bytes));
        }
    }
}

struct Unstage(Finder);

impl Begins for Unstage {
    type State = State;
    type Attempt = Take;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Finder::new(c).map(Unstage)
    }

    fn begin(&self, c: &ComputeContext<'_>) -> Answer<State, Take> {
        let (area, mut look) = (self.0.get(c)?, None);
        let label = area.attempts.label().to_owned();
        if c.input_count() > 0 {
            let index = c.integer(0, "index")?;
            look = Some(usize::try_from(index).map_err(|_| {
                KernelError::invalid_argument(format!(
                    "index: expected the place of an element of {label}, found {index}"
                ))
            })?);
        }
        let attempt = Take { label, outputs: c.output_count(), look, taken: None };
        let attempts = Arc::clone(&area.attempts);
        Ok(Some(Begun { attempts, list: TAKE, attempt }))
    }
}

register_kernel!("Unstage" on "CPU": Async<Unstage>);
register_kernel!("StagePeek" on "CPU": Async<Unstage>);

struct Size(Finder);

impl Kernel for Size {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Finder::new(c).map(Size)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let size = self.0.get(c)?.attempts.read(|state| state.elements.len());
        c.output::<i32>(0, &[])?.data[0] = size as i32;
        Ok(())
    }
}

register_kernel!("StageSize" on "CPU": Size);

struct Clear(Finder);

impl Kernel for Clear {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Finder::new(c).map(Clear)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        self.0.get(c)?.attempts.update(|state| {
            state.bytes = 0;
            state.elements.clear();
        });
        Ok(())
    }
}

register_kernel!("StageClear" on "CPU": Clear);
