//! The kernels of areas whose elements wait under keys.
//!
//! Of areas with and without order, both give the least key where any is asked for.

use super::{
    Limits, bytes_of,
    keyed::{Put, State, Take, Way},
    values,
};
use crate::{
    attempts::{Answer, Async, Attempts, Begins, Begun, Order, PUT, TAKE},
    place::{Naming, Place, Shared, find_or_make},
};
use std::sync::Arc;
use tenon_sdk::prelude::*;

/// An area; one with order is another than one without, under the same name.
struct Map<const ORDERED: bool> {
    place: Place,
    attempts: Arc<Attempts<State>>,
}

impl<const ORDERED: bool> Shared for Map<ORDERED> {
    const NAME: &'static str =
        if ORDERED { "tenon_data.OrderedStagingMap" } else { "tenon_data.StagingMap" };
    const WHAT: &'static str = "staging area";

    fn place(&self) -> &Place {
        &self.place
    }
}

/// Finds the area of a node.
struct Finder {
    place: Place,
    limits: Limits,
    ordered: bool,
}

impl Finder {
    fn new(c: &CreateContext<'_>) -> Result<Finder, KernelError> {
        let ordered = c.op().starts_with("Ordered");
        Ok(Finder { place: Naming::new(c)?.by_node(), limits: Limits::new(c)?, ordered })
    }

    fn get(&self, c: &ComputeContext<'_>) -> Result<Arc<Attempts<State>>, KernelError> {
        match self.ordered {
            true => self.of::<true>(c),
            false => self.of::<false>(c),
        }
    }

    fn of<const ORDERED: bool>(
        &self,
        c: &ComputeContext<'_>,
    ) -> Result<Arc<Attempts<State>>, KernelError> {
        let map = find_or_make(c, self.place.clone(), |place| {
            // A call that waits for a key does not delay those that wait for another one.
            let (label, orders) = (place.label::<Map<ORDERED>>(), [Order::Any, Order::Any]);
            let attempts = Arc::new(Attempts::new(label, State::new(self.limits), orders));
            Ok(Map::<ORDERED> { place, attempts })
        })?;
        Ok(Arc::clone(&map.attempts))
    }
}

/// The one key of an input.
fn key(c: &ComputeContext<'_>, label: &str) -> Result<i64, KernelError> {
    match c.input::<i64>(0)?.data {
        &[key] => Ok(key),
        _ => Err(KernelError::invalid_argument(format!(
            "key: expected one key of {label}, found shape {:?}",
            c.dims(0)
        ))),
    }
}

/// An input of places of components, in ascending order.
fn indices(c: &ComputeContext<'_>, input: usize, label: &str) -> Result<Vec<usize>, KernelError> {
    let found = c.input::<i32>(input)?.data;
    let indices: Result<Vec<usize>, _> = found.iter().map(|&index| index.try_into()).collect();
    let ascend = |indices: &Vec<usize>| {
        !indices.is_empty() && indices.windows(2).all(|pair| pair[0] < pair[1])
    };
    indices.ok().filter(ascend).ok_or_else(|| {
        KernelError::invalid_argument(format!(
            "indices: expected components of {label} in ascending order, found {found:?}"
        ))
    })
}

struct Stage {
    finder: Finder,
    types: Vec<DType>,
}

impl Begins for Stage {
    type State = State;
    type Attempt = Put;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Stage { finder: Finder::new(c)?, types: c.attr("dtypes")? })
    }

    fn begin(&self, c: &ComputeContext<'_>) -> Answer<State, Put> {
        let attempts = self.finder.get(c)?;
        let label = attempts.label().to_owned();
        let (key, indices, values) = (key(c, &label)?, indices(c, 1, &label)?, values(c, 2)?);
        let found: Vec<DType> = values.iter().map(|value| value.dtype()).collect();
        let expected: Option<Vec<DType>> =
            indices.iter().map(|&index| self.types.get(index).copied()).collect();
        if expected.as_ref() != Some(&found) {
            return Err(KernelError::invalid_argument(format!(
                "indices: expected places of values of types {found:?} among the components {:?} of {label}, found {indices:?}",
                self.types
            )));
        }
        let bytes = values.iter().map(|value| bytes_of(value)).sum();
        attempts.read(|state| state.limits().check(bytes, &label))?;
        let components = self.types.len();
        let attempt = Put { label, key, components, indices, values, bytes };
        Ok(Some(Begun { attempts, list: PUT, attempt }))
    }
}

register_kernel!("MapStage" on "CPU": Async<Stage>);
register_kernel!("OrderedMapStage" on "CPU": Async<Stage>);

struct Unstage {
    finder: Finder,
    way: Way,
}

impl Begins for Unstage {
    type State = State;
    type Attempt = Take;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let way = match c.op() {
            "MapPeek" | "OrderedMapPeek" => Way::Look,
            "MapUnstageNoKey" | "OrderedMapUnstageNoKey" => Way::TakeAny,
            _ => Way::Take,
        };
        Ok(Unstage { finder: Finder::new(c)?, way })
    }

    fn begin(&self, c: &ComputeContext<'_>) -> Answer<State, Take> {
        let (attempts, way) = (self.finder.get(c)?, self.way);
        let label = attempts.label().to_owned();
        let (key, indices, outputs) = match way {
            Way::TakeAny => (0, indices(c, 0, &label)?, c.output_count() - 1),
            _ => (key(c, &label)?, indices(c, 1, &label)?, c.output_count()),
        };
        if indices.len() != outputs {
            return Err(KernelError::invalid_argument(format!(
                "indices: expected {outputs} components of {label}, one for each output, found {indices:?}"
            )));
        }
        let attempt = Take { label, key, indices, way, taken: Vec::new() };
        Ok(Some(Begun { attempts, list: TAKE, attempt }))
    }
}

register_kernel!("MapPeek" on "CPU": Async<Unstage>);
register_kernel!("MapUnstage" on "CPU": Async<Unstage>);
register_kernel!("MapUnstageNoKey" on "CPU": Async<Unstage>);
register_kernel!("OrderedMapPeek" on "CPU": Async<Unstage>);
register_kernel!("OrderedMapUnstage" on "CPU": Async<Unstage>);
register_kernel!("OrderedMapUnstageNoKey" on "CPU": Async<Unstage>);

struct Size {
    finder: Finder,
    size: fn(&State) -> usize,
}

impl Kernel for Size {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let is_complete = !c.op().ends_with("IncompleteSize");
        let size = if is_complete { State::complete } else { State::incomplete };
        Ok(Size { finder: Finder::new(c)?, size })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let size = self.finder.get(c)?.read(self.size);
        c.output::<i32>(0, &[])?.data[0] = size as i32;
        Ok(())
    }
}

register_kernel!("MapSize" on "CPU": Size);
register_kernel!("MapIncompleteSize" on "CPU": Size);
register_kernel!("OrderedMapSize" on "CPU": Size);
register_kernel!("OrderedMapIncompleteSize" on "CPU": Size);

struct Clear(Finder);

impl Kernel for Clear {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Finder::new(c).map(Clear)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        self.0.get(c)?.update(State::clear);
        Ok(())
    }
}

register_kernel!("MapClear" on "CPU": Clear);
register_kernel!("OrderedMapClear" on "CPU": Clear);
