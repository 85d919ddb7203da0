//! Kernels that parse examples.

use super::features::{Dense, Ragged, Sparse, Wanted};
use std::ops::Range;
use tenon_sdk::prelude::*;

/// The one string of each of some inputs.
fn texts<'a>(
    c: &ComputeContext<'a>,
    inputs: Range<usize>,
    what: &str,
) -> Result<Vec<&'a [u8]>, KernelError> {
    let text = |input: usize| match (&c.strings(input)?[..], c.dims(input)) {
        (&[text], []) => Ok(text),
        (_, dims) => Err(KernelError::invalid_argument(format!(
            "{what}: expected scalars, found shape {dims:?}"
        ))),
    };
    inputs.map(text).collect()
}

/// The strings of a vector.
fn vector<'a>(
    c: &ComputeContext<'a>,
    input: usize,
    what: &str,
) -> Result<Vec<&'a [u8]>, KernelError> {
    match c.dims(input) {
        [_] => c.strings(input),
        dims => Err(KernelError::invalid_argument(format!(
            "{what}: expected a vector, found shape {dims:?}"
        ))),
    }
}

/// Checks that there are as many of one thing as of another.
///
/// # Errors
/// `INVALID_ARGUMENT` for another number.
pub fn same_count(what: &str, expected: usize, found: usize) -> Result<(), KernelError> {
    if expected == found {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "{what}: expected {expected} of them, found {found}"
    )))
}

fn sparse<'a>(keys: &[&'a [u8]], types: &[DType]) -> Result<Vec<Sparse<'a>>, KernelError> {
    same_count("sparse_types", keys.len(), types.len())?;
    keys.iter().zip(types).map(|(key, dtype)| Sparse::new(key, *dtype)).collect()
}

/// Types and shapes of features with a shape.
struct DenseTypes {
    types: Vec<DType>,
    shapes: Vec<PartialShape>,
}

impl DenseTypes {
    fn new(c: &CreateContext<'_>) -> Result<DenseTypes, KernelError> {
        let (types, shapes): (Vec<DType>, Vec<_>) = (c.attr("Tdense")?, c.attr("dense_shapes")?);
        same_count("dense_shapes", types.len(), shapes.len())?;
        Ok(DenseTypes { types, shapes })
    }

    fn features<'a>(
        &self,
        c: &ComputeContext<'a>,
        keys: &[&'a [u8]],
        defaults: Range<usize>,
    ) -> Result<Vec<Dense<'a>>, KernelError> {
        same_count("dense_keys", self.types.len(), keys.len())?;
        same_count("dense_defaults", self.types.len(), defaults.len())?;
        let kinds = keys.iter().zip(&self.types).zip(&self.shapes);
        kinds
            .zip(defaults)
            .map(|(((key, dtype), shape), default)| Dense::new(c, (*key, *dtype, shape), default))
            .collect()
    }
}

/// Parses the examples of input 0, whose names for messages are in input 1.
fn parse<'a>(
    c: &ComputeContext<'a>,
    mut wanted: Wanted<'a>,
    named: bool,
) -> Result<(), KernelError> {
    let is_batch = !c.dims(0).is_empty();
    let serialized = c.strings(0)?;
    let names = if named { c.strings(1)? } else { Vec::new() };
    if !names.is_empty() && names.len() != serialized.len() {
        return Err(KernelError::invalid_argument(format!(
            "names: expected none or {}, one for each example, found {}",
            serialized.len(),
            names.len()
        )));
    }
    let watch = c.watch();
    for (row, bytes) in serialized.iter().enumerate() {
        watch.check()?;
        wanted.add(row, names.get(row).copied().unwrap_or_default(), bytes)?;
    }
    wanted.output(c, is_batch)
}

struct ParseExample {
    sparse: Vec<DType>,
    dense: DenseTypes,
}

impl Kernel for ParseExample {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ParseExample { sparse: c.attr("sparse_types")?, dense: DenseTypes::new(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if c.dims(0).len() != 1 || c.dims(1).len() != 1 {
            return Err(KernelError::invalid_argument(format!(
                "serialized and names: expected vectors, found shapes {:?} and {:?}",
                c.dims(0),
                c.dims(1)
            )));
        }
        let sparse_keys = texts(c, c.input_range(2), "sparse_keys")?;
        let dense_keys = texts(c, c.input_range(3), "dense_keys")?;
        let wanted = Wanted {
            sparse: sparse(&sparse_keys, &self.sparse)?,
            dense: self.dense.features(c, &dense_keys, c.input_range(4))?,
            ragged: Vec::new(),
        };
        parse(c, wanted, true)
    }
}

struct ParseExampleV2 {
    sparse: Vec<DType>,
    dense: DenseTypes,
    ragged: Vec<DType>,
    splits: Vec<DType>,
}

impl Kernel for ParseExampleV2 {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (ragged, splits): (Vec<DType>, Vec<DType>) =
            (c.attr("ragged_value_types")?, c.attr("ragged_split_types")?);
        same_count("ragged_split_types", ragged.len(), splits.len())?;
        let (sparse, dense) = (c.attr("sparse_types")?, DenseTypes::new(c)?);
        Ok(ParseExampleV2 { sparse, dense, ragged, splits })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if c.dims(0).len() > 1 {
            return Err(KernelError::invalid_argument(format!(
                "serialized: expected a scalar or a vector, found shape {:?}",
                c.dims(0)
            )));
        }
        let ragged_keys = vector(c, 4, "ragged_keys")?;
        same_count("ragged_keys", self.ragged.len(), ragged_keys.len())?;
        let types = self.ragged.iter().zip(&self.splits);
        let ragged = ragged_keys.iter().zip(types);
        let wanted = Wanted {
            sparse: sparse(&vector(c, 2, "sparse_keys")?, &self.sparse)?,
            dense: self.dense.features(c, &vector(c, 3, "dense_keys")?, c.input_range(5))?,
            ragged: ragged
                .map(|(key, (dtype, splits))| Ragged::new(key, *dtype, *splits))
                .collect::<Result<_, _>>()?,
        };
        parse(c, wanted, true)
    }
}

struct ParseSingle {
    sparse_keys: Vec<Vec<u8>>,
    sparse: Vec<DType>,
    dense_keys: Vec<Vec<u8>>,
    dense: DenseTypes,
}

impl Kernel for ParseSingle {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let keys = |name: &str| {
            let keys: Vec<&[u8]> = c.attr(name)?;
            Ok::<_, KernelError>(keys.into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>())
        };
        let (sparse_keys, dense_keys) = (keys("sparse_keys")?, keys("dense_keys")?);
        let (sparse, dense) = (c.attr("sparse_types")?, DenseTypes::new(c)?);
        Ok(ParseSingle { sparse_keys, sparse, dense_keys, dense })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if !c.dims(0).is_empty() {
            return Err(KernelError::invalid_argument(format!(
                "serialized: expected a scalar, found shape {:?}",
                c.dims(0)
            )));
        }
        let sparse_keys: Vec<&[u8]> = self.sparse_keys.iter().map(Vec::as_slice).collect();
        let dense_keys: Vec<&[u8]> = self.dense_keys.iter().map(Vec::as_slice).collect();
        let wanted = Wanted {
            sparse: sparse(&sparse_keys, &self.sparse)?,
            dense: self.dense.features(c, &dense_keys, c.input_range(1))?,
            ragged: Vec::new(),
        };
        parse(c, wanted, false)
    }
}

register_kernel!("ParseExample" on "CPU": ParseExample);
register_kernel!("ParseExampleV2" on "CPU": ParseExampleV2);
register_kernel!("ParseSingleExample" on "CPU": ParseSingle);
