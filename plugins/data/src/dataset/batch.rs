//! Datasets whose elements are batches: as they are, or padded to one shape.

use super::{
    Cardinality, Context, Dataset, Element, Elements, Input, Next, Shared,
    make::{Build, Make, dataset_in, number, truth, unexpected},
};
use crate::{queue::Component, tensors::count_of};
use std::sync::Arc;
use tenon_sdk::{growth, prelude::*};

/// How many elements a batch has, and whether one with fewer counts.
#[derive(Clone, Copy)]
pub struct Sizes {
    /// Elements of a batch.
    pub size: usize,
    /// Whether elements that do not fill a batch are left out.
    pub drops_rest: bool,
}

impl Sizes {
    /// What the inputs of these places say.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a size below 1, or another shape than that of a scalar.
    pub fn new(
        c: &ComputeContext<'_>,
        size: usize,
        drops_rest: Option<usize>,
    ) -> Result<Sizes, KernelError> {
        let size = number(c, size, "batch_size")?;
        let drops_rest = drops_rest.map(|at| truth(c, at, "drop_remainder")).transpose()?;
        match usize::try_from(size) {
            Ok(size) if size > 0 => Ok(Sizes { size, drops_rest: drops_rest.unwrap_or(false) }),
            _ => Err(unexpected("batch_size", "at least 1", size)),
        }
    }
}

/// Elements one below the other.
pub struct Batch {
    /// The elements.
    pub input: Shared,
    /// The size of a batch.
    pub sizes: Sizes,
    /// How components are padded; `None` for components of one shape.
    pub padding: Option<Arc<Vec<Padding>>>,
    /// Whether an error takes the place of an element, so that a batch fails as a whole and the next one
    /// begins where it would without errors. Otherwise the next batch begins behind the error.
    pub errors_count: bool,
}

/// How a component is padded.
pub struct Padding {
    /// The sizes of the dimensions, -1 for the largest one in the batch.
    dims: Vec<i64>,
    /// The value that is put in, a scalar; `None` for zeros and empty strings.
    value: Option<Kept>,
}

struct MakeBatch;

impl Build for MakeBatch {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MakeBatch)
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        let input = Arc::clone(&dataset_in(c, 0)?.dataset);
        let sizes = Sizes::new(c, 1, (c.input_count() > 2).then_some(2))?;
        Ok(Arc::new(Batch { input, sizes, padding: None, errors_count: false }))
    }
}

struct MakePadded;

impl Build for MakePadded {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MakePadded)
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        let input = dataset_in(c, 0)?;
        let (shapes, values) = (c.input_range(2), c.input_range(3));
        let sizes = Sizes::new(c, 1, (c.input_count() > values.end).then_some(values.end))?;
        let types = &input.spec.types;
        if shapes.len() != types.len() || values.len() != types.len() {
            return Err(KernelError::invalid_argument(format!(
                "expected a padded shape and a padding value for each of {} components, found {} and {}",
                types.len(),
                shapes.len(),
                values.len()
            )));
        }
        let each = shapes.zip(values).zip(types);
        let padding = each.map(|((shape, value), &dtype)| Padding::new(c, shape, value, dtype));
        let padding = Some(Arc::new(growth::try_collected(padding)?));
        Ok(Arc::new(Batch {
            input: Arc::clone(&input.dataset),
            sizes,
            padding,
            errors_count: false,
        }))
    }
}

impl Padding {
    fn new(
        c: &ComputeContext<'_>,
        shape: usize,
        value: usize,
        dtype: DType,
    ) -> Result<Padding, KernelError> {
        let dims = c.input::<i64>(shape)?;
        if dims.dims.len() != 1 || dims.data.iter().any(|&dim| dim < -1) {
            return Err(KernelError::invalid_argument(format!(
                "padded_shapes: expected vectors of sizes of at least -1, found {:?} of shape {:?}",
                dims.data, dims.dims
            )));
        }
        let value = c.keep(value)?;
        if value.dtype() != dtype || !value.dims().is_empty() {
            return Err(KernelError::invalid_argument(format!(
                "padding_values: expected a scalar of {dtype}, found {value:?}"
            )));
        }
        let is_zero = match dtype {
            DType::STRING => value.strings()?.iter().all(|text| text.is_empty()),
            DType::VARIANT | DType::RESOURCE => true,
            _ => value.bytes()?.iter().all(|&byte| byte == 0),
        };
        let value = (!is_zero).then_some(value);
        Ok(Padding { dims: growth::copied(dims.data)?, value })
    }

    /// The sizes of a row of a batch.
    fn row(&self, at: usize, components: &[&Component]) -> Result<Vec<i64>, KernelError> {
        let mut row: Vec<i64> = self.dims.iter().map(|&dim| dim.max(0)).collect();
        for component in components {
            let found = component.dims();
            if found.len() != row.len() {
                return Err(KernelError::invalid_argument(format!(
                    "padded_shapes: expected the rank of component {at}, {}, found {:?}",
                    found.len(),
                    self.dims
                )));
            }
            for ((row, &fixed), &found) in row.iter_mut().zip(&self.dims).zip(found) {
                if fixed >= 0 && found > fixed {
                    return Err(KernelError::new(
                        Code::DATA_LOSS,
                        format!(
                            "component {at}: expected sizes of at most the padded shape {:?}, found {:?}",
                            self.dims,
                            component.dims()
                        ),
                    ));
                }
                *row = found.max(*row);
            }
        }
        Ok(row)
    }

    /// A tensor of such a row that is nothing but padding.
    fn filled(&self, row: &[i64]) -> Result<Option<Kept>, KernelError> {
        let Some(value) = &self.value else { return Ok(None) };
        let count = usize::try_from(count_of(row)?).unwrap_or(0);
        let pieces = (0..count).map(|to| Piece { from: value, start: 0, len: 1, to });
        Kept::from_pieces(value.dtype(), row, pieces).map(Some)
    }
}

impl Dataset for Batch {
    fn elements(&self) -> Box<dyn Elements> {
        let Batch { ref input, sizes, ref padding, errors_count } = *self;
        Box::new(Batches { input: Input::of(input), sizes, padding: padding.clone(), errors_count })
    }

    fn cardinality(&self) -> Cardinality {
        let Sizes { size, drops_rest } = self.sizes;
        let size = size as u64;
        self.input
            .cardinality()
            .finite(|rows| if drops_rest { rows / size } else { rows.div_ceil(size) })
    }

    fn batch_size(&self) -> Option<usize> {
        Some(self.sizes.size)
    }
}

struct Batches {
    input: Input,
    sizes: Sizes,
    padding: Option<Arc<Vec<Padding>>>,
    errors_count: bool,
}

impl Elements for Batches {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            let (mut elements, mut taken, mut failed) = (Vec::<Element>::new(), 0, None);
            while taken < self.sizes.size {
                context.check()?;
                match self.input.next(context).await {
                    Ok(Some(element)) => growth::push(&mut elements, element)?,
                    Ok(None) => break,
                    Err(error) if self.errors_count => drop(failed.get_or_insert(error)),
                    Err(error) => return Err(error),
                }
                taken += 1;
            }
            if let Some(error) = failed {
                return Err(error);
            }
            let is_short = elements.len() < self.sizes.size && self.sizes.drops_rest;
            if elements.is_empty() || is_short {
                return Ok(None);
            }
            self.joined(&elements).map(Some)
        })
    }
}

impl Batches {
    fn joined(&self, elements: &[Element]) -> Result<Element, KernelError> {
        let width = elements.first().map_or(0, Vec::len);
        if let Some(other) = elements.iter().find(|element| element.len() != width) {
            return Err(KernelError::invalid_argument(format!(
                "a batch: expected elements of {width} components, found one of {}",
                other.len()
            )));
        }
        growth::try_collected((0..width).map(|at| {
            let components = growth::collected(elements.iter().map(|element| &element[at]))?;
            match self.padding.as_ref().and_then(|all| all.get(at)) {
                None => {
                    let row = same_dims(at, &components)?;
                    Component::joined(&components, row, None)
                }
                Some(padding) => {
                    let row = padding.row(at, &components)?;
                    let under = padding.filled(&row)?;
                    Component::joined(&components, &row, under.as_ref())
                }
            }
        }))
    }
}

/// The sizes that all components have.
fn same_dims<'c>(at: usize, components: &[&'c Component]) -> Result<&'c [i64], KernelError> {
    let first = components.first().map_or(&[][..], |first| first.dims());
    match components.iter().position(|component| component.dims() != first) {
        None => Ok(first),
        Some(other) => Err(KernelError::invalid_argument(format!(
            "a batch: expected one shape of component {at}, found {first:?} in element 0 and {:?} in element {other}: use a padded batch",
            components[other].dims()
        ))),
    }
}

register_kernel!("BatchDataset" on "CPU": Make<MakeBatch>);
register_kernel!("BatchDatasetV2" on "CPU": Make<MakeBatch>);
register_kernel!("PaddedBatchDataset" on "CPU": Make<MakePadded>);
register_kernel!("PaddedBatchDatasetV2" on "CPU": Make<MakePadded>);
