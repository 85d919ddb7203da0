//! Tensors from serialised messages and raw bytes.

use crate::shape::{input_of_rank, nothing_known, scalar_or_vector, scalar_output, unchanged};
use tenon_author::{ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{KernelError, PartialShape, op::GradientRule};

register_op!(
    "ParseExample",
    inputs = &[
        "serialized: string",
        "names: string",
        "sparse_keys: Nsparse * string",
        "dense_keys: Ndense * string",
        "dense_defaults: Tdense"
    ],
    outputs = &[
        "sparse_indices: Nsparse * int64",
        "sparse_values: sparse_types",
        "sparse_shapes: Nsparse * int64",
        "dense_values: Tdense"
    ],
    attrs = &[
        "Nsparse: int >= 0",
        "Ndense: int >= 0",
        "sparse_types: list({float, int64, string}) >= 0",
        "Tdense: list({float, int64, string}) >= 0",
        "dense_shapes: list(shape) >= 0"
    ],
    shape = parse_example,
    summary = "The features of serialised examples, of a batch.",
);

register_op!(
    "ParseExampleV2",
    inputs = &[
        "serialized: string",
        "names: string",
        "sparse_keys: string",
        "dense_keys: string",
        "ragged_keys: string",
        "dense_defaults: Tdense"
    ],
    outputs = &[
        "sparse_indices: num_sparse * int64",
        "sparse_values: sparse_types",
        "sparse_shapes: num_sparse * int64",
        "dense_values: Tdense",
        "ragged_values: ragged_value_types",
        "ragged_row_splits: ragged_split_types"
    ],
    attrs = &[
        "Tdense: list({float, int64, string}) >= 0",
        "num_sparse: int >= 0",
        "sparse_types: list({float, int64, string}) >= 0",
        "ragged_value_types: list({float, int64, string}) >= 0",
        "ragged_split_types: list({int32, int64}) >= 0",
        "dense_shapes: list(shape) >= 0"
    ],
    shape = parse_example_v2,
    summary = "The features of serialised examples, of a batch or of one.",
);

register_op!(
    "ParseSingleExample",
    inputs = &["serialized: string", "dense_defaults: Tdense"],
    outputs = &[
        "sparse_indices: num_sparse * int64",
        "sparse_values: sparse_types",
        "sparse_shapes: num_sparse * int64",
        "dense_values: Tdense"
    ],
    attrs = &[
        "num_sparse: int >= 0",
        "sparse_keys: list(string) >= 0",
        "dense_keys: list(string) >= 0",
        "sparse_types: list({float, int64, string}) >= 0",
        "Tdense: list({float, int64, string}) >= 0",
        "dense_shapes: list(shape) >= 0"
    ],
    shape = parse_single,
    summary = "The features of one serialised example.",
);

register_op!(
    "ParseSequenceExample",
    inputs =
        &["serialized: string", "debug_name: string", "context_dense_defaults: Tcontext_dense"],
    outputs = &[
        "context_sparse_indices: Ncontext_sparse * int64",
        "context_sparse_values: context_sparse_types",
        "context_sparse_shapes: Ncontext_sparse * int64",
        "context_dense_values: Tcontext_dense",
        "feature_list_sparse_indices: Nfeature_list_sparse * int64",
        "feature_list_sparse_values: feature_list_sparse_types",
        "feature_list_sparse_shapes: Nfeature_list_sparse * int64",
        "feature_list_dense_values: feature_list_dense_types",
        "feature_list_dense_lengths: Nfeature_list_dense * int64"
    ],
    attrs = &[
        "feature_list_dense_missing_assumed_empty: list(string) >= 0",
        "context_sparse_keys: list(string) >= 0",
        "context_dense_keys: list(string) >= 0",
        "feature_list_sparse_keys: list(string) >= 0",
        "feature_list_dense_keys: list(string) >= 0",
        "Ncontext_sparse: int >= 0 = 0",
        "Ncontext_dense: int >= 0 = 0",
        "Nfeature_list_sparse: int >= 0 = 0",
        "Nfeature_list_dense: int >= 0 = 0",
        "context_sparse_types: list({float, int64, string}) >= 0 = []",
        "Tcontext_dense: list({float, int64, string}) >= 0 = []",
        "feature_list_dense_types: list({float, int64, string}) >= 0 = []",
        "context_dense_shapes: list(shape) >= 0 = []",
        "feature_list_sparse_types: list({float, int64, string}) >= 0 = []",
        "feature_list_dense_shapes: list(shape) >= 0 = []"
    ],
    shape = parse_sequence,
    summary = "The features and lists of features of serialised sequence examples, of a batch.",
);

register_op!(
    "DecodeJSONExample",
    inputs = &["json_examples: string"],
    outputs = &["binary_examples: string"],
    shape = unchanged,
    summary = "Serialised examples from examples in the JSON form of their messages.",
);

register_op!(
    "ParseTensor",
    inputs = &["serialized: string"],
    outputs = &["output: out_type"],
    attrs = &["out_type: type"],
    shape = nothing_known,
    gradient = GradientRule::None,
    summary = "The tensor of a serialised message.",
);

register_op!(
    "SerializeTensor",
    inputs = &["tensor: T"],
    outputs = &["serialized: string"],
    attrs = &["T: type"],
    shape = scalar_output,
    gradient = GradientRule::None,
    summary = "A tensor as a serialised message.",
);

register_op!(
    "DecodeCompressed",
    inputs = &["bytes: string"],
    outputs = &["output: string"],
    attrs = &["compression_type: string = ''"],
    shape = unchanged,
    summary = "Strings that were compressed by zlib or gzip.",
);

register_op!(
    "DecodePaddedRaw",
    inputs = &["input_bytes: string", "fixed_length: int32"],
    outputs = &["output: out_type"],
    attrs = &[
        "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, bfloat16}",
        "little_endian: bool = true"
    ],
    shape = decode_padded_raw,
    gradient = GradientRule::None,
    summary = "Numbers from strings, which are padded with zeros to a fixed length.",
);

/// Sets the outputs of examples in an order of all ops: for each sparse feature indices, values and shape, then dense
/// values, of which `prefix` are the dimensions of the batch.
struct Features {
    sparse: usize,
    dense: Vec<PartialShape>,
    batch: Option<Vec<i64>>,
}

impl Features {
    fn set(&self, c: &ShapeContext<'_>) -> ShapeResult {
        let rank = self.batch.as_ref().map_or(-1, |batch| batch.len() as i64 + 1);
        for at in 0..self.sparse {
            c.set_output(at, c.shape_of(&[-1, rank]))?;
            c.set_output(self.sparse + at, c.shape_of(&[-1]))?;
            c.set_output(2 * self.sparse + at, c.shape_of(&[rank]))?;
        }
        for (at, shape) in self.dense.iter().enumerate() {
            c.set_output(3 * self.sparse + at, self.of_dense(c, shape))?;
        }
        Ok(())
    }

    fn of_dense(&self, c: &ShapeContext<'_>, shape: &PartialShape) -> ShapeHandle {
        match (&self.batch, shape.dims()) {
            (Some(batch), Some(dims)) => {
                let dims: Vec<i64> = batch.iter().chain(dims).copied().collect();
                c.shape_of(&dims)
            }
            _ => c.unknown(),
        }
    }
}

fn parse_example(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "serialized", 1)?;
    input_of_rank(c, 1, "names", 1)?;
    let sparse: i64 = c.attr("Nsparse")?;
    let batch = c.dims(c.input(0)).or_else(|| Some(vec![-1]));
    let features =
        Features { sparse: sparse.max(0) as usize, dense: c.attr("dense_shapes")?, batch };
    features.set(c)
}

fn parse_example_v2(c: &ShapeContext<'_>) -> ShapeResult {
    scalar_or_vector(c, 0, "serialized")?;
    scalar_or_vector(c, 1, "names")?;
    for (input, name) in [(2, "sparse_keys"), (3, "dense_keys"), (4, "ragged_keys")] {
        input_of_rank(c, input, name, 1)?;
    }
    let sparse: i64 = c.attr("num_sparse")?;
    let batch = c.dims(c.input(0));
    let features =
        Features { sparse: sparse.max(0) as usize, dense: c.attr("dense_shapes")?, batch };
    features.set(c)?;
    let ragged = 3 * features.sparse + features.dense.len()..c.output_count();
    let (first, count) = (ragged.start, ragged.len() / 2);
    for at in 0..count {
        c.set_output(first + at, c.shape_of(&[-1]))?;
        // A row more than examples has an end; of one example there are no rows.
        let rows = match features.batch.as_deref() {
            Some([size]) if *size >= 0 => c.shape_of(&[size + 1]),
            Some([]) => c.shape_of(&[0]),
            _ => c.shape_of(&[-1]),
        };
        c.set_output(first + count + at, rows)?;
    }
    Ok(())
}

fn parse_single(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "serialized", 0)?;
    let sparse: i64 = c.attr("num_sparse")?;
    let features = Features {
        sparse: sparse.max(0) as usize,
        dense: c.attr("dense_shapes")?,
        batch: Some(Vec::new()),
    };
    features.set(c)
}

/// A number that an attribute gives.
fn count(c: &ShapeContext<'_>, attr: &str) -> Result<usize, KernelError> {
    let count: i64 = c.attr(attr)?;
    Ok(usize::try_from(count).unwrap_or(0))
}

fn parse_sequence(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "serialized", 1)?;
    let batch = c.dims(c.input(0)).unwrap_or_else(|| vec![-1]);
    let sparse = count(c, "Ncontext_sparse")?;
    let dense: Vec<PartialShape> = c.attr("context_dense_shapes")?;
    let first = 3 * sparse + dense.len();
    Features { sparse, dense, batch: Some(batch.clone()) }.set(c)?;
    let sparse = count(c, "Nfeature_list_sparse")?;
    for at in first..first + sparse {
        c.set_output(at, c.shape_of(&[-1, 3]))?;
        c.set_output(sparse + at, c.shape_of(&[-1]))?;
        c.set_output(2 * sparse + at, c.shape_of(&[3]))?;
    }
    // Each list has as many steps as it has in the example where it is longest.
    let dense: Vec<PartialShape> = c.attr("feature_list_dense_shapes")?;
    let steps = Features { sparse: 0, dense, batch: Some(vec![batch[0], -1]) };
    let (first, lists) = (first + 3 * sparse, steps.dense.len());
    for (at, shape) in steps.dense.iter().enumerate() {
        c.set_output(first + at, steps.of_dense(c, shape))?;
        c.set_output(first + lists + at, c.shape_of(&batch))?;
    }
    Ok(())
}

fn decode_padded_raw(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "fixed_length", 0)?;
    let Some(dims) = c.dims(c.input(0)) else { return c.set_output(0, c.unknown()) };
    let mut dims: Vec<_> = (0..dims.len()).map(|at| c.dim(c.input(0), at)).collect();
    let dtype: tenon_framework::DType = c.attr("out_type")?;
    let width = i64::from(dtype.bits() / 8).max(1);
    let length = c.constant_integers(1).and_then(|values| values.first().copied());
    if let Some(length) = length.filter(|&length| length <= 0 || length % width != 0) {
        return Err(KernelError::invalid_argument(format!(
            "fixed_length: expected a positive multiple of {width}, the bytes of a {dtype}, found {length}"
        )));
    }
    dims.push(c.make_dim(length.map(|length| length / width)));
    c.set_output(0, c.make_shape(&dims))
}
