//! Sequence examples: features of each example, and lists of features, of which each step has one.

use super::{
    column::Column,
    example::{self, Features},
    features::{Dense, Named, Sparse, Wanted},
    ops::same_count,
};
use tenon_sdk::{geometry::element_count, growth, prelude::*};

/// A list of whose steps each has any number of values.
struct SparseSteps<'a> {
    key: &'a [u8],
    column: Column<'a>,
    /// Example and step of each step, with the number of its values.
    steps: Vec<([i64; 2], usize)>,
    most_steps: usize,
}

/// A list of whose steps each has a tensor.
struct DenseSteps<'a> {
    key: &'a [u8],
    column: Column<'a>,
    dims: &'a [i64],
    stride: usize,
    /// Whether examples may lack the list.
    may_lack: bool,
    /// Number of steps of each example.
    steps: Vec<usize>,
}

impl<'a> SparseSteps<'a> {
    fn add(&mut self, named: &Named<'_>, lists: &Features<'a>) -> Result<(), KernelError> {
        let list = lists.get(self.key).copied().unwrap_or_default();
        let mut count = 0;
        for feature in example::steps(list) {
            let values = feature.and_then(example::list).map_err(|_| named.malformed())?;
            let len = named.add(self.key, values, &mut self.column)?;
            growth::push(&mut self.steps, ([named.row as i64, count as i64], len))?;
            count += 1;
        }
        self.most_steps = self.most_steps.max(count);
        Ok(())
    }

    fn output(
        &self,
        c: &ComputeContext<'_>,
        [indices, values, shape]: [usize; 3],
        batch: usize,
    ) -> Result<(), KernelError> {
        let count = self.column.len() as i64;
        let places = self
            .steps
            .iter()
            .flat_map(|&([row, step], len)| (0..len).map(move |at| [row, step, at as i64]));
        let to = c.output::<i64>(indices, &[count, 3])?.data;
        to.chunks_exact_mut(3).zip(places).for_each(|(to, place)| to.copy_from_slice(&place));
        self.column.output(c, values, &[count])?;
        let most = self.steps.iter().map(|&(_, len)| len).max().unwrap_or(0);
        let size = [batch, self.most_steps, most].map(|size| size as i64);
        c.output::<i64>(shape, &[3])?.data.copy_from_slice(&size);
        Ok(())
    }
}

impl<'a> DenseSteps<'a> {
    fn add(&mut self, named: &Named<'_>, lists: &Features<'a>) -> Result<(), KernelError> {
        let Some(list) = lists.get(self.key) else {
            if self.may_lack {
                return growth::push(&mut self.steps, 0);
            }
            let what =
                "expected a list, since feature_list_dense_missing_assumed_empty does not name it";
            return Err(named.wrong(self.key, what));
        };
        let mut count = 0;
        for feature in example::steps(list) {
            let values = feature.and_then(example::list).map_err(|_| named.malformed())?;
            let found = named.add(self.key, values, &mut self.column)?;
            if found != self.stride {
                let what = format!(
                    "expected {} values in step {count} for a shape of {:?}, found {found}",
                    self.stride, self.dims
                );
                return Err(named.wrong(self.key, &what));
            }
            count += 1;
        }
        growth::push(&mut self.steps, count)
    }

    fn output(
        &self,
        c: &ComputeContext<'_>,
        [values, lengths]: [usize; 2],
    ) -> Result<(), KernelError> {
        let (batch, most) =
            (self.steps.len() as i64, self.steps.iter().max().map_or(0, |most| *most));
        let dims: Vec<i64> = [batch, most as i64].iter().chain(self.dims).copied().collect();
        let elements = growth::collected(self.steps.iter().map(|steps| steps * self.stride))?;
        // Steps that an example does not have are zeros.
        let none = Column::new(self.column.dtype())?;
        self.column.padded(&elements, most * self.stride, &none)?.output(c, values, &dims)?;
        let to = c.output::<i64>(lengths, &[batch])?.data;
        to.iter_mut().zip(&self.steps).for_each(|(to, &steps)| *to = steps as i64);
        Ok(())
    }
}

/// Names and types of features.
struct Kinds {
    keys: Vec<Vec<u8>>,
    types: Vec<DType>,
}

impl Kinds {
    fn new(c: &CreateContext<'_>, keys: &str, types: &str) -> Result<Kinds, KernelError> {
        let names: Vec<&[u8]> = c.attr(keys)?;
        let kinds: Vec<DType> = c.attr(types)?;
        same_count(types, names.len(), kinds.len())?;
        Ok(Kinds { keys: names.into_iter().map(<[u8]>::to_vec).collect(), types: kinds })
    }

    fn each(&self) -> impl Iterator<Item = (&[u8], DType)> {
        self.keys.iter().map(Vec::as_slice).zip(self.types.iter().copied())
    }
}

struct ParseSequence {
    sparse: Kinds,
    dense: Kinds,
    dense_shapes: Vec<PartialShape>,
    sparse_lists: Kinds,
    dense_lists: Kinds,
    dense_list_dims: Vec<Vec<i64>>,
    may_lack: Vec<Vec<u8>>,
}

impl Kernel for ParseSequence {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let dense = Kinds::new(c, "context_dense_keys", "Tcontext_dense")?;
        let dense_shapes: Vec<PartialShape> = c.attr("context_dense_shapes")?;
        same_count("context_dense_shapes", dense.keys.len(), dense_shapes.len())?;
        let dense_lists = Kinds::new(c, "feature_list_dense_keys", "feature_list_dense_types")?;
        let shapes: Vec<PartialShape> = c.attr("feature_list_dense_shapes")?;
        same_count("feature_list_dense_shapes", dense_lists.keys.len(), shapes.len())?;
        let known = |shape: &PartialShape| {
            let dims = shape.dims().filter(|dims| dims.iter().all(|&size| size >= 0));
            dims.map(<[i64]>::to_vec).ok_or_else(|| {
                KernelError::invalid_argument(format!(
                    "feature_list_dense_shapes: expected known shapes, found {shape}"
                ))
            })
        };
        let may_lack: Vec<&[u8]> = c.attr("feature_list_dense_missing_assumed_empty")?;
        Ok(ParseSequence {
            sparse: Kinds::new(c, "context_sparse_keys", "context_sparse_types")?,
            dense,
            dense_shapes,
            sparse_lists: Kinds::new(c, "feature_list_sparse_keys", "feature_list_sparse_types")?,
            dense_lists,
            dense_list_dims: shapes.iter().map(known).collect::<Result<_, _>>()?,
            may_lack: may_lack.into_iter().map(<[u8]>::to_vec).collect(),
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let &[batch] = c.dims(0) else {
            return Err(KernelError::invalid_argument(format!(
                "serialized: expected a vector, found shape {:?}",
                c.dims(0)
            )));
        };
        let names = c.strings(1)?;
        if !names.is_empty() && names.len() as i64 != batch {
            return Err(KernelError::invalid_argument(format!(
                "debug_name: expected none or {batch}, one for each example, found {}",
                names.len()
            )));
        }
        let mut context = self.context(c)?;
        let (mut sparse, mut dense) = (self.sparse_steps()?, self.dense_steps()?);
        let watch = c.watch();
        for (row, bytes) in c.strings(0)?.into_iter().enumerate() {
            watch.check()?;
            let named = Named { name: names.get(row).copied().unwrap_or_default(), row };
            let [features, lists] = example::sequence(bytes).map_err(|_| named.malformed())?;
            context.add_features(&named, &features)?;
            sparse.iter_mut().try_for_each(|list| list.add(&named, &lists))?;
            dense.iter_mut().try_for_each(|list| list.add(&named, &lists))?;
        }
        context.output(c, true)?;
        let (first, count) = (3 * context.sparse.len() + context.dense.len(), sparse.len());
        for (list, at) in sparse.iter().zip(first..) {
            list.output(c, [at, count + at, 2 * count + at], batch as usize)?;
        }
        let (first, count) = (first + 3 * count, dense.len());
        dense.iter().zip(first..).try_for_each(|(list, at)| list.output(c, [at, count + at]))
    }
}

impl ParseSequence {
    fn context<'a>(&'a self, c: &ComputeContext<'a>) -> Result<Wanted<'a>, KernelError> {
        let defaults = c.input_range(2);
        same_count("context_dense_defaults", self.dense.keys.len(), defaults.len())?;
        let dense = self.dense.each().zip(&self.dense_shapes).zip(defaults);
        Ok(Wanted {
            sparse: self
                .sparse
                .each()
                .map(|(key, dtype)| Sparse::new(key, dtype))
                .collect::<Result<_, _>>()?,
            dense: dense
                .map(|(((key, dtype), shape), input)| Dense::new(c, (key, dtype, shape), input))
                .collect::<Result<_, _>>()?,
            ragged: Vec::new(),
        })
    }

    fn sparse_steps(&self) -> Result<Vec<SparseSteps<'_>>, KernelError> {
        let list = |(key, dtype)| {
            let column = Column::new(dtype)?;
            Ok(SparseSteps { key, column, steps: Vec::new(), most_steps: 0 })
        };
        self.sparse_lists.each().map(list).collect()
    }

    fn dense_steps(&self) -> Result<Vec<DenseSteps<'_>>, KernelError> {
        let mut all = Vec::new();
        for ((key, dtype), dims) in self.dense_lists.each().zip(&self.dense_list_dims) {
            let may_lack = self.may_lack.iter().any(|name| **name == *key);
            let (column, stride) = (Column::new(dtype)?, element_count(dims)?);
            all.push(DenseSteps { key, column, dims, stride, may_lack, steps: Vec::new() });
        }
        Ok(all)
    }
}

register_kernel!("ParseSequenceExample" on "CPU": ParseSequence);
