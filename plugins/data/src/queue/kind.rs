//! What a queue is: the attributes of the node that makes it.

use super::Component;
use crate::place::Place;
use tenon_sdk::prelude::*;

/// A queue without a limit; TensorFlow's.
const UNBOUNDED: i32 = i32::MAX;

/// What a queue in random order has besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shuffle {
    /// How many elements stay in an open queue, to be mixed with those that come.
    pub min_after_dequeue: usize,
    /// The seeds.
    pub seeds: [i64; 2],
}

/// What a queue is.
#[derive(Clone, PartialEq, Eq)]
pub struct Kind {
    /// Name of the op that makes it, without `V2`.
    op: String,
    /// How many elements it has room for.
    pub capacity: i32,
    /// Types of the components.
    pub types: Vec<DType>,
    /// Shapes of the components; none where they may have any.
    shapes: Vec<PartialShape>,
    /// Whether batches are padded.
    pub pads: bool,
    /// Whether component 0 is a priority.
    pub has_priority: bool,
    /// The order is random.
    pub shuffle: Option<Shuffle>,
}

impl Kind {
    /// The attributes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for shapes that such a queue cannot have, and numbers out of range.
    pub fn new(c: &CreateContext<'_>) -> Result<Kind, KernelError> {
        let op = c.op().strip_suffix("V2").unwrap_or(c.op());
        let (pads, has_priority) = (op == "PaddingFIFOQueue", op == "PriorityQueue");
        let mut types: Vec<DType> = c.attr("component_types")?;
        let mut shapes: Vec<PartialShape> = c.attr("shapes")?;
        if has_priority {
            if shapes.is_empty() {
                return Err(expected("shapes", "one for each component", "none"));
            }
            types.insert(0, DType::INT64);
            shapes.insert(0, PartialShape::new(&[]).unwrap_or_default());
        }
        let capacity: i64 = c.attr("capacity")?;
        let capacity = if capacity < 0 { Ok(UNBOUNDED) } else { i32::try_from(capacity) };
        let capacity = capacity.map_err(|_| expected("capacity", "an int32", "one beyond"))?;
        let shuffle =
            if op == "RandomShuffleQueue" { Some(Shuffle::new(c, capacity)?) } else { None };
        let op = op.to_owned();
        let kind = Kind { op, capacity, types, shapes, pads, has_priority, shuffle };
        kind.check_shapes()?;
        Ok(kind)
    }

    fn check_shapes(&self) -> Result<(), KernelError> {
        let (types, shapes) = (self.types.len(), self.shapes.len());
        if shapes != types && (shapes > 0 || self.pads) {
            let found = format!("{shapes} for {types} components");
            return Err(expected("shapes", "one for each component", &found));
        }
        for shape in &self.shapes {
            if self.pads && shape.rank().is_none() {
                return Err(expected("shapes", "shapes of known rank", &format!("{shape:?}")));
            }
            if !self.pads && shape.full().is_none() {
                return Err(expected("shapes", "known sizes", &format!("{shape:?}")));
            }
        }
        Ok(())
    }

    /// Checks that a queue under a shared name is what this node stands for.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` where it is not.
    pub fn check_same(&self, found: &Kind, place: &Place) -> Result<(), KernelError> {
        let differs = |what: &str, expected: &str, found: &str| {
            let op = &self.op;
            Err(KernelError::invalid_argument(format!(
                "{op}: expected queue {place} with {what} {expected}, found it with {found}"
            )))
        };
        let text = |value: &dyn std::fmt::Debug| format!("{value:?}");
        match self {
            _ if self.op != found.op => differs("op", &self.op, &found.op),
            _ if self.capacity != found.capacity => {
                differs("capacity", &text(&self.capacity), &text(&found.capacity))
            }
            _ if self.types != found.types => {
                differs("component types", &text(&self.types), &text(&found.types))
            }
            _ if self.shapes != found.shapes => {
                differs("shapes", &text(&self.shapes), &text(&found.shapes))
            }
            _ if self.shuffle != found.shuffle => {
                differs("order", &text(&self.shuffle), &text(&found.shuffle))
            }
            _ => Ok(()),
        }
    }

    /// Checks the types of the components of an op.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for others than those of the queue.
    pub fn check_types(
        &self,
        found: impl ExactSizeIterator<Item = DType> + Clone,
        label: &str,
    ) -> Result<(), KernelError> {
        if self.types.iter().copied().eq(found.clone()) {
            return Ok(());
        }
        let found: Vec<DType> = found.collect();
        Err(KernelError::invalid_argument(format!(
            "components: expected types {:?} of {label}, found {found:?}",
            self.types
        )))
    }

    /// Checks the shape of a component of an element.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a shape that it cannot have.
    pub fn check_shape(&self, at: usize, dims: &[i64], label: &str) -> Result<(), KernelError> {
        match self.shapes.get(at) {
            Some(shape) if !shape.accepts(dims) => Err(KernelError::invalid_argument(format!(
                "components: expected shape {shape:?} of component {at} of {label}, found {dims:?}"
            ))),
            _ => Ok(()),
        }
    }

    /// Checks that batches can be put together.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for components of any shapes.
    pub fn check_batches(&self, label: &str) -> Result<(), KernelError> {
        if self.shapes.len() == self.types.len() {
            return Ok(());
        }
        Err(KernelError::invalid_argument(format!(
            "a batch: expected {label} with the shapes of its components, found it without"
        )))
    }

    /// The sizes of a row of a batch: of component `at`, which is that of each element.
    pub fn row_dims<'c>(
        &self,
        at: usize,
        components: impl Iterator<Item = &'c Component>,
    ) -> Vec<i64> {
        let shape = self.shapes.get(at).and_then(PartialShape::dims).unwrap_or_default();
        let mut row: Vec<i64> = shape.iter().map(|&dim| dim.max(0)).collect();
        for component in components.filter(|_| self.pads) {
            row.iter_mut().zip(component.dims()).for_each(|(row, &dim)| *row = dim.max(*row));
        }
        row
    }
}

impl Shuffle {
    fn new(c: &CreateContext<'_>, capacity: i32) -> Result<Shuffle, KernelError> {
        let least: i64 = c.attr("min_after_dequeue")?;
        if !(0..i64::from(capacity)).contains(&least) {
            let wanted = format!("0 or more and less than the capacity of {capacity}");
            return Err(expected("min_after_dequeue", &wanted, &least.to_string()));
        }
        let seeds = [c.attr("seed")?, c.attr("seed2")?];
        Ok(Shuffle { min_after_dequeue: least as usize, seeds })
    }
}

fn expected(name: &str, expected: &str, found: &str) -> KernelError {
    KernelError::invalid_argument(format!("{name}: expected {expected}, found {found}"))
}
