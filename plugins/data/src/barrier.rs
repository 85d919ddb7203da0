//! Barriers: elements whose components come one by one, under keys.
//!
//! A key whose components are not all there is *incomplete*; then its element is *ready*, and is taken
//! in the order in which the keys came. `state` has both, this file the kernels.

mod state;

use crate::{
    attempts::{Answer, Async, Attempts, Begins, Begun, Order, TAKE},
    place::{Maker, Place, Shared, input},
    queue::{Component, check_timeout},
};
use state::{State, Take};
use std::sync::Arc;
use tenon_sdk::prelude::*;

/// A barrier.
struct Barrier {
    place: Place,
    types: Vec<DType>,
    shapes: Vec<Shape>,
    attempts: Arc<Attempts<State>>,
}

impl Shared for Barrier {
    const NAME: &'static str = "tenon_data.Barrier";
    const WHAT: &'static str = "barrier";

    fn place(&self) -> &Place {
        &self.place
    }
}

struct Make {
    maker: Maker<Barrier>,
    types: Vec<DType>,
    shapes: Vec<Shape>,
}

impl Kernel for Make {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let types: Vec<DType> = c.attr("component_types")?;
        let found: Vec<PartialShape> = c.attr("shapes")?;
        let shapes: Option<Vec<Shape>> = found.iter().map(PartialShape::full).collect();
        let shapes = shapes.filter(|shapes| shapes.len() == types.len()).ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "shapes: expected known sizes of each of {} components, found {found:?}",
                types.len()
            ))
        })?;
        match c.attr::<i64>("capacity")? {
            -1 => Ok(Make { maker: Maker::new(c)?, types, shapes }),
            found => Err(KernelError::invalid_argument(format!(
                "capacity: expected -1, found {found}; a queue in front of the barrier limits it"
            ))),
        }
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let barrier = self.maker.get(c, |place| {
            let (types, shapes) = (self.types.clone(), self.shapes.clone());
            let attempts =
                Attempts::new(place.label::<Barrier>(), State::new(), [Order::First, Order::First]);
            Ok(Barrier { place, types, shapes, attempts: Arc::new(attempts) })
        })?;
        if barrier.types != self.types || barrier.shapes != self.shapes {
            return Err(KernelError::invalid_argument(format!(
                "Barrier: expected barrier {} with types {:?} and shapes {:?}, found it with {:?} and {:?}",
                barrier.place, self.types, self.shapes, barrier.types, barrier.shapes
            )));
        }
        self.maker.output(c, &barrier)
    }
}

register_kernel!("Barrier" on "CPU": Make);

struct InsertMany {
    component: i64,
}

impl InsertMany {
    /// The rows of the values, and the component that they are.
    fn rows(
        &self,
        c: &ComputeContext<'_>,
        barrier: &Barrier,
    ) -> Result<(usize, Vec<Component>), KernelError> {
        let label = barrier.attempts.label();
        let at = usize::try_from(self.component).ok().filter(|&at| at < barrier.types.len());
        let at = at.ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "component_index: expected less than {}, the number of components of {label}, found {}",
                barrier.types.len(),
                self.component
            ))
        })?;
        let (values, keys) = (Arc::new(c.keep(2)?), c.dims(1));
        if values.dtype() != barrier.types[at] {
            return Err(KernelError::invalid_argument(format!(
                "values: expected {} of component {at} of {label}, found {}",
                barrier.types[at],
                values.dtype()
            )));
        }
        let (count, row) = match (keys, values.dims()) {
            (&[keys], &[rows, ref row @ ..]) if keys == rows => (keys as usize, row),
            (keys, found) => {
                return Err(KernelError::invalid_argument(format!(
                    "values: expected a row for each key of a list of keys for {label}, found shape {found:?} for keys of \
                     shape {keys:?}"
                )));
            }
        };
        if count > 0 && (row.contains(&0) || row != barrier.shapes[at].dims()) {
            return Err(KernelError::invalid_argument(format!(
                "values: expected rows of shape {:?}, with elements, of component {at} of {label}, found {row:?}",
                barrier.shapes[at]
            )));
        }
        Ok((at, (0..count).map(|row| Component::row(&values, row)).collect()))
    }
}

impl Kernel for InsertMany {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(InsertMany { component: c.attr("component_index")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let barrier = input::<Barrier>(c)?;
        let (component, rows) = self.rows(c, &barrier)?;
        let (keys, label) = (c.strings(1)?, barrier.attempts.label());
        let components = barrier.types.len();
        barrier.attempts.update(|state| {
            state.insert_all(label, components, component, keys.into_iter().zip(rows))
        })
    }
}

register_kernel!("BarrierInsertMany" on "CPU": InsertMany);

struct TakeMany {
    types: Vec<DType>,
    small: bool,
}

impl Begins for TakeMany {
    type State = State;
    type Attempt = Take;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        check_timeout(c)?;
        Ok(TakeMany { types: c.attr("component_types")?, small: c.attr("allow_small_batch")? })
    }

    fn begin(&self, c: &ComputeContext<'_>) -> Answer<State, Take> {
        let barrier = input::<Barrier>(c)?;
        let label = barrier.attempts.label().to_owned();
        let wanted = c.integer(1, "num_elements")?;
        let wanted = usize::try_from(wanted).map_err(|_| {
            KernelError::invalid_argument(format!(
                "num_elements: expected the number of elements to take from {label}, found {wanted}"
            ))
        })?;
        if barrier.types != self.types {
            return Err(KernelError::invalid_argument(format!(
                "component_types: expected types {:?} of {label}, found {:?}",
                barrier.types, self.types
            )));
        }
        let (shapes, attempts) = (barrier.shapes.clone(), Arc::clone(&barrier.attempts));
        let attempt = Take { label, shapes, small: self.small, wanted, taken: Vec::new() };
        Ok(Some(Begun { attempts, list: TAKE, attempt }))
    }
}

register_kernel!("BarrierTakeMany" on "CPU": Async<TakeMany>);

struct Close {
    cancel: bool,
}

impl Kernel for Close {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Close { cancel: c.attr("cancel_pending_enqueues")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let attempts = &input::<Barrier>(c)?.attempts;
        attempts.update(|state| state.close(attempts.label(), self.cancel))
    }
}

register_kernel!("BarrierClose" on "CPU": Close);

fn ready_size(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let size = input::<Barrier>(c)?.attempts.read(State::ready);
    c.output::<i32>(0, &[])?.data[0] = size as i32;
    Ok(())
}

register_kernel!("BarrierReadySize" on "CPU": fn ready_size);

fn incomplete_size(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let size = input::<Barrier>(c)?.attempts.read(State::incomplete);
    c.output::<i32>(0, &[])?.data[0] = size as i32;
    Ok(())
}

register_kernel!("BarrierIncompleteSize" on "CPU": fn incomplete_size);
