//! Kernels that give handles of tables.

use super::{
    Table,
    column::Column,
    dense::{Dense, Limits},
    entries::Entries,
    key::keys,
    kind::Content,
};
use crate::place::{Maker, Naming, Place, find_or_make, output_anonymous};
use std::sync::Mutex;
use tenon_sdk::{geometry::element_count, prelude::*};

/// The kinds of tables.
#[derive(Clone, Copy)]
enum Kind {
    Once,
    Scalars,
    Tensors,
    Dense(Limits),
}

/// Where a table is found.
enum Found {
    /// Under a name that others share, or by the calls of this kernel alone.
    ByName(Maker<Table>),
    /// Under the name of the node.
    ByNode(Maker<Table>, Place),
    /// Nowhere: each call makes one.
    Anonymous(String),
}

impl Found {
    fn new(c: &CreateContext<'_>) -> Result<Found, KernelError> {
        if c.op().starts_with("Anonymous") {
            return Ok(Found::Anonymous(c.node().to_owned()));
        }
        let maker = Maker::new(c)?;
        match c.attr("use_node_name_sharing")? {
            true => Ok(Found::ByNode(maker, Naming::new(c)?.by_node())),
            false => Ok(Found::ByName(maker)),
        }
    }
}

struct Make {
    kind: Kind,
    found: Found,
    key: DType,
    value: DType,
    value_dims: Vec<i64>,
}

fn value_dims(c: &CreateContext<'_>, kind: Kind) -> Result<Vec<i64>, KernelError> {
    if matches!(kind, Kind::Once | Kind::Scalars) {
        return Ok(Vec::new());
    }
    let shape: PartialShape = c.attr("value_shape")?;
    let dims = shape.dims().filter(|dims| dims.iter().all(|&size| size >= 0));
    let fits = |dims: &&[i64]| match kind {
        Kind::Dense(_) => dims.len() <= 1,
        _ => dims.len() == 1,
    };
    dims.filter(fits).map(<[i64]>::to_vec).ok_or_else(|| {
        KernelError::invalid_argument(format!(
            "value_shape: expected {} of known size, found {shape}",
            if matches!(kind, Kind::Tensors) { "a vector" } else { "a scalar or a vector" }
        ))
    })
}

impl Kernel for Make {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let op = c.op();
        let kind = match () {
            () if op.contains("Dense") => Kind::Dense(Limits::new(c)?),
            () if op.contains("OfTensors") => Kind::Tensors,
            () if op.contains("Mutable") => Kind::Scalars,
            () => Kind::Once,
        };
        Ok(Make {
            kind,
            found: Found::new(c)?,
            key: c.attr("key_dtype")?,
            value: c.attr("value_dtype")?,
            value_dims: value_dims(c, kind)?,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let make = |place: Place| self.table(c, place);
        let (maker, table) = match &self.found {
            Found::Anonymous(node) => {
                let place = Place { container: String::new(), name: node.clone() };
                return output_anonymous(c, self.table(c, place)?);
            }
            Found::ByName(maker) => (maker, maker.get(c, make)?),
            Found::ByNode(maker, place) => (maker, find_or_make(c, place.clone(), make)?),
        };
        table.check_types(self.key, self.value)?;
        maker.output(c, &table)
    }
}

impl Make {
    fn table(&self, c: &ComputeContext<'_>, place: Place) -> Result<Table, KernelError> {
        let values = Column::new(self.value, element_count(&self.value_dims)?)?;
        let mut key_dims = Vec::new();
        let content = match self.kind {
            Kind::Once => Content::Once { entries: Entries::new(values), is_filled: false },
            Kind::Scalars | Kind::Tensors => Content::Mutable(Entries::new(values)),
            Kind::Dense(limits) => {
                key_dims = marking_dims(c)?;
                let per = element_count(&key_dims)?;
                let marking = |input| {
                    keys(c, input, per)?.pop().ok_or_else(|| {
                        KernelError::internal("a key that marks places has no elements")
                    })
                };
                Content::Dense(Dense::new(values, [marking(0)?, marking(1)?], limits)?)
            }
        };
        Ok(Table {
            name: place.label::<Table>(),
            place,
            key: self.key,
            value: self.value,
            key_dims,
            value_dims: self.value_dims.clone(),
            content: Mutex::new(content),
        })
    }
}

/// The shape of the two keys that mark places, which is that of all keys.
fn marking_dims(c: &ComputeContext<'_>) -> Result<Vec<i64>, KernelError> {
    if c.input_count() < 2 {
        return Err(KernelError::invalid_argument(
            "deleted_key: expected an input, which this op does not have: use MutableDenseHashTableV2",
        ));
    }
    let (empty, deleted) = (c.dims(0), c.dims(1));
    if empty.len() > 1 || empty.contains(&0) {
        return Err(KernelError::invalid_argument(format!(
            "empty_key: expected a scalar or a vector with elements, found shape {empty:?}"
        )));
    }
    if empty != deleted {
        return Err(KernelError::invalid_argument(format!(
            "deleted_key: expected the shape of empty_key, {empty:?}, found {deleted:?}"
        )));
    }
    Ok(empty.to_vec())
}

const KEYS: (&str, &[DType]) = ("key_dtype", &[DType::INT32, DType::INT64, DType::STRING]);
const VALUES: (&str, &[DType]) = (
    "value_dtype",
    &[DType::BOOL, DType::DOUBLE, DType::FLOAT, DType::INT32, DType::INT64, DType::STRING],
);
/// Dense tables hold no strings.
const DENSE_VALUES: (&str, &[DType]) =
    ("value_dtype", &[DType::BOOL, DType::DOUBLE, DType::FLOAT, DType::INT32, DType::INT64]);

register_kernel!("HashTable" on "CPU": Make, types = KEYS, types = VALUES);
register_kernel!("HashTableV2" on "CPU": Make, types = KEYS, types = VALUES);
register_kernel!("AnonymousHashTable" on "CPU": Make, types = KEYS, types = VALUES);
register_kernel!("MutableHashTable" on "CPU": Make, types = KEYS, types = VALUES);
register_kernel!("MutableHashTableV2" on "CPU": Make, types = KEYS, types = VALUES);
register_kernel!("AnonymousMutableHashTable" on "CPU": Make, types = KEYS, types = VALUES);
register_kernel!("MutableHashTableOfTensors" on "CPU": Make, types = KEYS, types = VALUES);
register_kernel!("MutableHashTableOfTensorsV2" on "CPU": Make, types = KEYS, types = VALUES);
register_kernel!("AnonymousMutableHashTableOfTensors" on "CPU": Make, types = KEYS, types = VALUES);
register_kernel!("MutableDenseHashTable" on "CPU": Make, types = KEYS, types = DENSE_VALUES);
register_kernel!("MutableDenseHashTableV2" on "CPU": Make, types = KEYS, types = DENSE_VALUES);
register_kernel!("AnonymousMutableDenseHashTable" on "CPU": Make, types = KEYS,
    types = DENSE_VALUES);
