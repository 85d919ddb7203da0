//! What is wanted of each example, and the outputs that are made of it.

use super::{
    column::{Column, NotAdded},
    example::{self, Features, List},
};
use tenon_sdk::{geometry::element_count, growth, prelude::*};

/// A feature of which each example has any number of values.
pub struct Sparse<'a> {
    key: &'a [u8],
    column: Column<'a>,
    /// Values of each example.
    lengths: Vec<usize>,
}

/// A feature of which each example has a tensor.
pub struct Dense<'a> {
    key: &'a [u8],
    column: Column<'a>,
    default: Column<'a>,
    /// Shape of the tensor, -1 in front where examples differ.
    dims: Vec<i64>,
    /// Values of a tensor, or of a row of one where examples differ.
    stride: usize,
    lengths: Vec<usize>,
}

/// As [`Sparse`], in other outputs.
pub struct Ragged<'a> {
    values: Sparse<'a>,
    splits: DType,
}

impl<'a> Sparse<'a> {
    /// A feature of this type.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a type that features do not have.
    pub fn new(key: &'a [u8], dtype: DType) -> Result<Sparse<'a>, KernelError> {
        Ok(Sparse { key, column: Column::new(dtype)?, lengths: Vec::new() })
    }
}

impl<'a> Ragged<'a> {
    /// A feature of these types.
    ///
    /// # Errors
    /// As [`Sparse::new`].
    pub fn new(key: &'a [u8], dtype: DType, splits: DType) -> Result<Ragged<'a>, KernelError> {
        Ok(Ragged { values: Sparse::new(key, dtype)?, splits })
    }
}

impl<'a> Dense<'a> {
    /// A feature of a type and shape, whose default value is an input: without elements where it is required.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a shape that is not known but for its first dimension, and for a default value that does
    /// not have it.
    pub fn new(
        c: &ComputeContext<'a>,
        (key, dtype, shape): (&'a [u8], DType, &PartialShape),
        default: usize,
    ) -> Result<Dense<'a>, KernelError> {
        let name = String::from_utf8_lossy(key);
        let dims = shape.dims().unwrap_or(&[-1, -1]).to_vec();
        if dims.iter().skip(1).any(|&size| size < 0) {
            return Err(KernelError::invalid_argument(format!(
                "dense_shapes: expected the shape of feature '{name}' but for its first dimension, found {shape}"
            )));
        }
        let is_variable = dims.first() == Some(&-1);
        let stride = element_count(&dims[usize::from(is_variable)..])?;
        let value = Column::of_input(c, default)?;
        if value.dtype() != dtype {
            return Err(KernelError::invalid_argument(format!(
                "dense_defaults: expected {dtype} for feature '{name}', found {}",
                value.dtype()
            )));
        }
        let fits = match is_variable {
            true => value.len() == 1,
            false => value.len() == 0 || c.dims(default) == dims,
        };
        if !fits {
            return Err(KernelError::invalid_argument(format!(
                "dense_defaults: expected {} for feature '{name}', found shape {:?}",
                if is_variable { "one element".to_owned() } else { format!("shape {dims:?}") },
                c.dims(default)
            )));
        }
        let column = Column::new(dtype)?;
        Ok(Dense { key, column, default: value, dims, stride, lengths: Vec::new() })
    }

    fn is_variable(&self) -> bool {
        self.dims.first() == Some(&-1)
    }
}

/// All that is wanted of each example.
#[derive(Default)]
pub struct Wanted<'a> {
    /// Features of any length.
    pub sparse: Vec<Sparse<'a>>,
    /// Features with a shape.
    pub dense: Vec<Dense<'a>>,
    /// Features of any length, in outputs of another form.
    pub ragged: Vec<Ragged<'a>>,
}

/// Says what is wrong with an example.
pub struct Named<'a> {
    /// Its name; empty where it has none.
    pub name: &'a [u8],
    /// Its number.
    pub row: usize,
}

impl Named<'_> {
    /// The error of a feature.
    pub fn wrong(&self, key: &[u8], what: &str) -> KernelError {
        KernelError::invalid_argument(format!(
            "serialized: feature '{}' of example {}{}: {what}",
            String::from_utf8_lossy(key),
            self.row,
            match self.name {
                b"" => String::new(),
                name => format!(", '{}'", String::from_utf8_lossy(name)),
            }
        ))
    }

    /// The error of bytes that do not follow the format.
    pub fn malformed(&self) -> KernelError {
        KernelError::invalid_argument(format!(
            "serialized: expected an Example message as element {}, found bytes that are not one",
            self.row
        ))
    }

    /// Adds the values of a feature, of which there may be none; how many.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for values of another type.
    pub fn add<'a>(
        &self,
        key: &[u8],
        list: Option<List<'a>>,
        column: &mut Column<'a>,
    ) -> Result<usize, KernelError> {
        let Some(list) = list else { return Ok(0) };
        if list.dtype != column.dtype() {
            let what = format!("expected type {}, found {}", column.dtype(), list.dtype);
            return Err(self.wrong(key, &what));
        }
        column.append(&list).map_err(|error| match error {
            NotAdded::Malformed => self.malformed(),
            NotAdded::NoMemory(error) => error,
        })
    }

    fn add_dense<'a>(
        &self,
        list: Option<List<'a>>,
        dense: &mut Dense<'a>,
    ) -> Result<(), KernelError> {
        let found = match list {
            Some(_) => self.add(dense.key, list, &mut dense.column)?,
            None if dense.is_variable() => 0,
            None if dense.default.len() == 0 && dense.stride > 0 => {
                return Err(self.wrong(dense.key, "expected one, since it has no default value"));
            }
            None => {
                dense.column.append_all(&dense.default)?;
                dense.stride
            }
        };
        let fits = match dense.is_variable() {
            true if dense.stride == 0 => found == 0,
            true => found.is_multiple_of(dense.stride),
            false => found == dense.stride,
        };
        if !fits {
            let what = format!(
                "expected {} values for a shape of {:?}, found {found}",
                dense.stride, dense.dims
            );
            return Err(self.wrong(dense.key, &what));
        }
        growth::push(&mut dense.lengths, found)
    }
}

impl<'a> Wanted<'a> {
    /// Adds the values of an example.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for bytes that are not an example, or one that does not have what is wanted.
    pub fn add(&mut self, row: usize, name: &[u8], bytes: &'a [u8]) -> Result<(), KernelError> {
        let named = Named { name, row };
        let features = example::features(bytes).map_err(|_| named.malformed())?;
        self.add_features(&named, &features)
    }

    /// Adds the values of an example with these features.
    ///
    /// # Errors
    /// As [`Wanted::add`].
    pub fn add_features(
        &mut self,
        named: &Named<'_>,
        features: &Features<'a>,
    ) -> Result<(), KernelError> {
        let list = |key: &[u8]| match features.get(key) {
            Some(feature) => example::list(feature).map_err(|_| named.malformed()),
            None => Ok(None),
        };
        for dense in &mut self.dense {
            named.add_dense(list(dense.key)?, dense)?;
        }
        let ragged = self.ragged.iter_mut().map(|ragged| &mut ragged.values);
        for sparse in self.sparse.iter_mut().chain(ragged) {
            let found = named.add(sparse.key, list(sparse.key)?, &mut sparse.column)?;
            growth::push(&mut sparse.lengths, found)?;
        }
        Ok(())
    }

    /// Returns all outputs, in the order of TensorFlow's ops; `is_batch` says that outputs have a first dimension for the
    /// examples.
    ///
    /// # Errors
    /// As the outputs of [`ComputeContext`].
    pub fn output(&self, c: &ComputeContext<'_>, is_batch: bool) -> Result<(), KernelError> {
        let count = self.sparse.len();
        for (at, sparse) in self.sparse.iter().enumerate() {
            sparse.output(c, [at, count + at, 2 * count + at], is_batch)?;
        }
        let first = 3 * count;
        for (at, dense) in self.dense.iter().enumerate() {
            dense.output(c, first + at, is_batch)?;
        }
        let first = first + self.dense.len();
        for (at, ragged) in self.ragged.iter().enumerate() {
            ragged.output(c, [first + at, first + self.ragged.len() + at], is_batch)?;
        }
        Ok(())
    }
}

impl Sparse<'_> {
    fn output(
        &self,
        c: &ComputeContext<'_>,
        [indices, values, shape]: [usize; 3],
        is_batch: bool,
    ) -> Result<(), KernelError> {
        let rank = 1 + i64::from(is_batch);
        let count = self.column.len() as i64;
        let places = self
            .lengths
            .iter()
            .enumerate()
            .flat_map(|(row, &len)| (0..len).map(move |at| [row as i64, at as i64]));
        let to = c.output::<i64>(indices, &[count, rank])?.data;
        for (to, place) in to.chunks_exact_mut(rank as usize).zip(places) {
            to.copy_from_slice(&place[usize::from(!is_batch)..]);
        }
        self.column.output(c, values, &[count])?;
        let most = self.lengths.iter().copied().max().unwrap_or(0) as i64;
        let size = [self.lengths.len() as i64, most];
        let to = c.output::<i64>(shape, &[rank])?.data;
        to.copy_from_slice(&size[usize::from(!is_batch)..]);
        Ok(())
    }
}

impl Dense<'_> {
    fn output(
        &self,
        c: &ComputeContext<'_>,
        output: usize,
        is_batch: bool,
    ) -> Result<(), KernelError> {
        let mut dims = Vec::new();
        if is_batch {
            dims.push(self.lengths.len() as i64);
        }
        dims.extend(&self.dims);
        if !self.is_variable() {
            return self.column.output(c, output, &dims);
        }
        let most = self.lengths.iter().copied().max().unwrap_or(0);
        dims[usize::from(is_batch)] = most.checked_div(self.stride).unwrap_or(0) as i64;
        self.column.padded(&self.lengths, most, &self.default)?.output(c, output, &dims)
    }
}

impl Ragged<'_> {
    fn output(
        &self,
        c: &ComputeContext<'_>,
        [values, splits]: [usize; 2],
        is_batch: bool,
    ) -> Result<(), KernelError> {
        let Sparse { column, lengths, .. } = &self.values;
        column.output(c, values, &[column.len() as i64])?;
        let mut end = 0;
        let ends = lengths.iter().map(|&len| {
            end += len as i64;
            end
        });
        let ends = growth::collected(std::iter::once(0).chain(ends))?;
        // One example has no rows to split.
        let ends = if is_batch { &ends[..] } else { &[] };
        let dims = [ends.len() as i64];
        match self.splits {
            DType::INT32 => {
                let to = c.output::<i32>(splits, &dims)?.data;
                for (to, &end) in to.iter_mut().zip(ends) {
                    *to = i32::try_from(end).map_err(|_| {
                        KernelError::invalid_argument(format!(
                            "ragged_split_types: expected int64 for {end} values, found int32"
                        ))
                    })?;
                }
            }
            _ => c.output::<i64>(splits, &dims)?.data.copy_from_slice(ends),
        }
        Ok(())
    }
}
