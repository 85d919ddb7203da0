//! Tables from keys to values.
//!
//! A handle knows the types and shapes of its table's keys and values. In older graphs a table is a
//! reference to two strings, its container and its name.

mod vocabulary;

use crate::shape::{handle_input, input_of_rank, nothing_known, scalar_output, two_texts};
use tenon_author::{ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{DType, KernelError, PartialShape, op::GradientRule};

/// The attributes of a table whose values are scalars.
const OF_SCALARS: &[&str] = &[
    "container: string = ''",
    "shared_name: string = ''",
    "use_node_name_sharing: bool = false",
    "key_dtype: type",
    "value_dtype: type",
];

/// The attributes of a table whose values are tensors.
const OF_TENSORS: &[&str] = &[
    "container: string = ''",
    "shared_name: string = ''",
    "use_node_name_sharing: bool = false",
    "key_dtype: type",
    "value_dtype: type",
    "value_shape: shape = []",
];

/// The attributes of ops that fill a table from the lines of a file.
const OF_LINES: &[&str] = &[
    "key_index: int >= -2",
    "value_index: int >= -2",
    "vocab_size: int >= -1 = -1",
    "delimiter: string = '\\t'",
    "offset: int = 0",
];

register_op!(
    "HashTableV2",
    outputs = &["table_handle: resource"],
    attrs = OF_SCALARS,
    stateful = true,
    shape = scalar_output,
    gradient = GradientRule::None,
    summary = "The handle of a table that is filled once.",
);

register_op!(
    "AnonymousHashTable",
    outputs = &["table_handle: resource"],
    attrs = &["key_dtype: type", "value_dtype: type"],
    stateful = true,
    shape = scalar_output,
    summary = "The handle of a new table without a name that is filled once.",
);

register_op!(
    "MutableHashTableV2",
    outputs = &["table_handle: resource"],
    attrs = OF_SCALARS,
    stateful = true,
    shape = of_scalars,
    gradient = GradientRule::None,
    summary = "The handle of a table from keys to scalars.",
);

register_op!(
    "AnonymousMutableHashTable",
    outputs = &["table_handle: resource"],
    attrs = &["key_dtype: type", "value_dtype: type"],
    stateful = true,
    shape = of_scalars,
    summary = "The handle of a new table without a name from keys to scalars.",
);

register_op!(
    "MutableHashTableOfTensorsV2",
    outputs = &["table_handle: resource"],
    attrs = OF_TENSORS,
    stateful = true,
    shape = of_tensors,
    gradient = GradientRule::None,
    summary = "The handle of a table from keys to tensors of one shape.",
);

register_op!(
    "AnonymousMutableHashTableOfTensors",
    outputs = &["table_handle: resource"],
    attrs = &["key_dtype: type", "value_dtype: type", "value_shape: shape = []"],
    stateful = true,
    shape = of_tensors,
    summary = "The handle of a new table without a name from keys to tensors of one shape.",
);

register_op!(
    "MutableDenseHashTableV2",
    inputs = &["empty_key: key_dtype", "deleted_key: key_dtype"],
    outputs = &["table_handle: resource"],
    attrs = &[
        "container: string = ''",
        "shared_name: string = ''",
        "use_node_name_sharing: bool = false",
        "key_dtype: type",
        "value_dtype: type",
        "value_shape: shape = []",
        "initial_num_buckets: int = 131072",
        "max_load_factor: float = 0.8"
    ],
    stateful = true,
    shape = dense,
    gradient = GradientRule::None,
    summary = "The handle of a table in which two keys mark what is empty and what was removed.",
);

register_op!(
    "AnonymousMutableDenseHashTable",
    inputs = &["empty_key: key_dtype", "deleted_key: key_dtype"],
    outputs = &["table_handle: resource"],
    attrs = &[
        "key_dtype: type",
        "value_dtype: type",
        "value_shape: shape = []",
        "initial_num_buckets: int = 131072",
        "max_load_factor: float = 0.8"
    ],
    stateful = true,
    shape = dense,
    summary = "The handle of a new table without a name in which two keys mark what is empty and what was removed.",
);

register_op!(
    "InitializeTableV2",
    inputs = &["table_handle: resource", "keys: Tkey", "values: Tval"],
    attrs = &["Tkey: type", "Tval: type"],
    stateful = true,
    shape = initialize,
    gradient = GradientRule::None,
    summary = "Fills a table with keys and values, once.",
);

register_op!(
    "InitializeTableFromTextFileV2",
    inputs = &["table_handle: resource", "filename: string"],
    attrs = OF_LINES,
    stateful = true,
    shape = from_file,
    gradient = GradientRule::None,
    summary = "Fills a table with the lines of a file, once.",
);

register_op!(
    "LookupTableFindV2",
    inputs = &["table_handle: resource", "keys: Tin", "default_value: Tout"],
    outputs = &["values: Tout"],
    attrs = &["Tin: type", "Tout: type"],
    stateful = true,
    shape = find,
    gradient = GradientRule::None,
    summary = "The values of keys; the default value where a key is not there.",
);

register_op!(
    "LookupTableInsertV2",
    inputs = &["table_handle: resource", "keys: Tin", "values: Tout"],
    attrs = &["Tin: type", "Tout: type"],
    stateful = true,
    shape = with_handle,
    gradient = GradientRule::None,
    summary = "Sets the values of keys.",
);

register_op!(
    "LookupTableRemoveV2",
    inputs = &["table_handle: resource", "keys: Tin"],
    attrs = &["Tin: type"],
    stateful = true,
    shape = with_handle,
    summary = "Removes keys with their values.",
);

register_op!(
    "LookupTableSizeV2",
    inputs = &["table_handle: resource"],
    outputs = &["size: int64"],
    stateful = true,
    shape = size,
    gradient = GradientRule::None,
    summary = "The number of keys in a table.",
);

register_op!(
    "LookupTableExportV2",
    inputs = &["table_handle: resource"],
    outputs = &["keys: Tkeys", "values: Tvalues"],
    attrs = &["Tkeys: type", "Tvalues: type"],
    stateful = true,
    shape = export,
    summary = "All keys and values of a table.",
);

register_op!(
    "LookupTableImportV2",
    inputs = &["table_handle: resource", "keys: Tin", "values: Tout"],
    attrs = &["Tin: type", "Tout: type"],
    stateful = true,
    shape = with_handle,
    summary = "Replaces all keys and values of a table.",
);

register_op!(
    "HashTable",
    outputs = &["table_handle: Ref(string)"],
    attrs = OF_SCALARS,
    stateful = true,
    shape = two_texts,
    gradient = GradientRule::None,
    summary = "A reference to the name of a table that is filled once.",
);

register_op!(
    "MutableHashTable",
    outputs = &["table_handle: Ref(string)"],
    attrs = OF_SCALARS,
    stateful = true,
    shape = two_texts,
    gradient = GradientRule::None,
    summary = "A reference to the name of a table from keys to scalars.",
);

register_op!(
    "MutableHashTableOfTensors",
    outputs = &["table_handle: Ref(string)"],
    attrs = OF_TENSORS,
    stateful = true,
    shape = two_texts,
    gradient = GradientRule::None,
    summary = "A reference to the name of a table from keys to tensors of one shape.",
);

register_op!(
    "MutableDenseHashTable",
    inputs = &["empty_key: key_dtype"],
    outputs = &["table_handle: Ref(string)"],
    attrs = &[
        "container: string = ''",
        "shared_name: string = ''",
        "use_node_name_sharing: bool = false",
        "key_dtype: type",
        "value_dtype: type",
        "value_shape: shape = []",
        "initial_num_buckets: int = 131072",
        "max_load_factor: float = 0.8"
    ],
    stateful = true,
    shape = two_texts,
    gradient = GradientRule::None,
    summary = "A reference to the name of a table in which a key marks what is empty.",
);

register_op!(
    "InitializeTable",
    inputs = &["table_handle: Ref(string)", "keys: Tkey", "values: Tval"],
    attrs = &["Tkey: type", "Tval: type"],
    shape = initialize,
    gradient = GradientRule::None,
    summary = "Fills a table behind a reference with keys and values, once.",
);

register_op!(
    "InitializeTableFromTextFile",
    inputs = &["table_handle: Ref(string)", "filename: string"],
    attrs = OF_LINES,
    shape = from_file,
    gradient = GradientRule::None,
    summary = "Fills a table behind a reference with the lines of a file, once.",
);

register_op!(
    "LookupTableFind",
    inputs = &["table_handle: Ref(string)", "keys: Tin", "default_value: Tout"],
    outputs = &["values: Tout"],
    attrs = &["Tin: type", "Tout: type"],
    shape = find,
    gradient = GradientRule::None,
    summary = "The values of keys in a table behind a reference; the default value where a key is not there.",
);

register_op!(
    "LookupTableInsert",
    inputs = &["table_handle: Ref(string)", "keys: Tin", "values: Tout"],
    attrs = &["Tin: type", "Tout: type"],
    shape = with_handle,
    gradient = GradientRule::None,
    summary = "Sets the values of keys in a table behind a reference.",
);

register_op!(
    "LookupTableSize",
    inputs = &["table_handle: Ref(string)"],
    outputs = &["size: int64"],
    shape = size,
    gradient = GradientRule::None,
    summary = "The number of keys in a table behind a reference.",
);

register_op!(
    "LookupTableExport",
    inputs = &["table_handle: Ref(string)"],
    outputs = &["keys: Tkeys", "values: Tvalues"],
    attrs = &["Tkeys: type", "Tvalues: type"],
    shape = export,
    summary = "All keys and values of a table behind a reference.",
);

register_op!(
    "LookupTableImport",
    inputs = &["table_handle: Ref(string)", "keys: Tin", "values: Tout"],
    attrs = &["Tin: type", "Tout: type"],
    shape = with_handle,
    summary = "Replaces all keys and values of a table behind a reference.",
);

/// The output is the handle of a table with keys and values of these shapes.
fn table(c: &ShapeContext<'_>, key: ShapeHandle, value: ShapeHandle) -> ShapeResult {
    c.add_output_handle(0, c.attr("key_dtype")?, key)?;
    c.add_output_handle(0, c.attr("value_dtype")?, value)?;
    scalar_output(c)
}

fn of_scalars(c: &ShapeContext<'_>) -> ShapeResult {
    table(c, c.scalar(), c.scalar())
}

fn value_shape(c: &ShapeContext<'_>) -> Result<ShapeHandle, KernelError> {
    let shape: PartialShape = c.attr("value_shape")?;
    Ok(shape.dims().map_or_else(|| c.unknown(), |dims| c.shape_of(dims)))
}

fn of_tensors(c: &ShapeContext<'_>) -> ShapeResult {
    table(c, c.scalar(), value_shape(c)?)
}

fn dense(c: &ShapeContext<'_>) -> ShapeResult {
    table(c, c.input(0), value_shape(c)?)
}

fn with_handle(c: &ShapeContext<'_>) -> ShapeResult {
    handle_input(c, 0, "table_handle")
}

fn initialize(c: &ShapeContext<'_>) -> ShapeResult {
    with_handle(c)?;
    let keys = input_of_rank(c, 1, "keys", 1)?;
    c.merge(keys, c.input(2)).map(drop)
}

fn from_file(c: &ShapeContext<'_>) -> ShapeResult {
    with_handle(c)?;
    input_of_rank(c, 1, "filename", 0).map(drop)
}

fn size(c: &ShapeContext<'_>) -> ShapeResult {
    with_handle(c)?;
    scalar_output(c)
}

/// The shapes of a key and a value behind the handle, where they are known; their types must be those of the
/// attributes.
fn parts(
    c: &ShapeContext<'_>,
    [key, value]: [&str; 2],
) -> Result<Option<[ShapeHandle; 2]>, KernelError> {
    let parts = c.input_handle(0);
    let &[(key_type, key_shape), (value_type, value_shape)] = &parts[..] else { return Ok(None) };
    for (name, there) in [(key, key_type), (value, value_type)] {
        let found: DType = c.attr(name)?;
        if found != there {
            return Err(KernelError::invalid_argument(format!(
                "{name}: expected {there}, the type of the table, found {found}"
            )));
        }
    }
    Ok(Some([key_shape, value_shape]))
}

/// The output has a value for each key: the dimensions of the keys before those of one key, and those of a value.
fn find(c: &ShapeContext<'_>) -> ShapeResult {
    with_handle(c)?;
    let Some([key, value]) = parts(c, ["Tin", "Tout"])? else {
        return c.set_output(0, c.unknown());
    };
    let (Some(keys), Some(key), Some(value)) = (c.dims(c.input(1)), c.dims(key), c.dims(value))
    else {
        return c.set_output(0, c.unknown());
    };
    let outer = keys.len().checked_sub(key.len()).ok_or_else(|| {
        KernelError::invalid_argument(format!(
            "keys: expected at least the dimensions of a key, {key:?}, found shape {keys:?}"
        ))
    })?;
    let mut dims: Vec<_> = (0..outer).map(|at| c.dim(c.input(1), at)).collect();
    dims.extend(value.iter().map(|&size| c.make_dim((size >= 0).then_some(size))));
    c.set_output(0, c.make_shape(&dims))
}

/// Nothing is known of the outputs: a dense table gives scalars as rows of one element.
fn export(c: &ShapeContext<'_>) -> ShapeResult {
    with_handle(c)?;
    parts(c, ["Tkeys", "Tvalues"])?;
    nothing_known(c)
}
