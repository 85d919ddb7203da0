//! Maps from tensors to tensors: values of variants.
//!
//! A map is changed in place where nobody else has it. Keys are equal when their types, shapes and
//! elements are; those of floats are compared by their bits.

use crate::tensors::{Held, Part, let_go, one_deeper, output_parts, sum, with_rows};
use std::{collections::BTreeMap, sync::Arc};
use tenon_sdk::{
    author::{EncodedValue, TensorSink},
    growth,
    prelude::*,
};

/// What tells a key from others: type, shape, and the bytes of its elements.
type Id = (DType, Vec<i64>, Vec<u8>);

/// A map. Its clones share the entries until one of them is changed.
#[derive(Clone, Default)]
struct TensorMap {
    entries: Arc<Entries>,
}

#[derive(Clone, Default)]
struct Entries(BTreeMap<Id, (Held, Held)>);

impl Drop for Entries {
    fn drop(&mut self) {
        let_go(std::mem::take(&mut self.0).into_values().map(|(_, value)| value).collect());
    }
}

impl TensorMap {
    fn insert(&mut self, key: Held, value: Held) -> Result<(), KernelError> {
        let id = id_of(&key)?;
        Arc::make_mut(&mut self.entries).0.insert(id, (key, value));
        Ok(())
    }
}

fn id_of(key: &Kept) -> Result<Id, KernelError> {
    let mut bytes = Vec::new();
    match key.dtype() {
        DType::STRING => {
            for text in key.strings()? {
                growth::append(&mut bytes, &(text.len() as u64).to_ne_bytes())?;
                growth::append(&mut bytes, text)?;
            }
        }
        dtype if dtype.needs_drop() => {
            return Err(KernelError::invalid_argument(format!(
                "key: expected numbers or strings, found a tensor of {dtype}"
            )));
        }
        _ => growth::append(&mut bytes, key.bytes()?)?,
    }
    Ok((key.dtype(), key.dims().to_vec(), bytes))
}

impl VariantValue for TensorMap {
    const NAME: &'static str = "tensorflow::TensorMap";

    /// Keys and values in turn.
    fn encode(&self, tensors: &mut TensorSink<'_>) -> Result<Vec<u8>, KernelError> {
        for (key, value) in self.entries.0.values() {
            tensors.give(key)?;
            tensors.give(value)?;
        }
        Ok(Vec::new())
    }

    fn decode(encoded: &EncodedValue<'_>) -> Result<TensorMap, KernelError> {
        let count = encoded.tensor_count();
        if !count.is_multiple_of(2) {
            return Err(KernelError::invalid_argument(format!(
                "an encoded map: expected keys and values in turn, found {count} tensors"
            )));
        }
        let mut map = TensorMap::default();
        for at in (0..count).step_by(2) {
            map.insert(Arc::new(encoded.tensor(at)?), Arc::new(encoded.tensor(at + 1)?))?;
        }
        Ok(map)
    }

    /// A map without entries, to which everything can be added.
    fn zeros_like(&self) -> Result<TensorMap, KernelError> {
        Ok(TensorMap::default())
    }

    fn add(&self, other: &TensorMap) -> Result<TensorMap, KernelError> {
        let mut all = self.clone();
        for (id, (key, value)) in &other.entries.0 {
            let value = match all.entries.0.get(id) {
                Some((_, own)) => one_deeper(|| sum(own, value))?,
                None => Arc::clone(value),
            };
            all.insert(Arc::clone(key), value)?;
        }
        Ok(all)
    }
}

register_variant!(TensorMap);

fn check_scalar(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    match c.dims(0) {
        [] => Ok(()),
        found => Err(KernelError::invalid_argument(format!(
            "input_handle: expected a map, a scalar, found shape {found:?}"
        ))),
    }
}

fn map_in<'c>(c: &ComputeContext<'c>) -> Result<&'c TensorMap, KernelError> {
    check_scalar(c)?;
    c.variant::<TensorMap>(0)
}

fn no_key(key: &Kept) -> KernelError {
    let (dtype, dims) = (key.dtype(), key.dims());
    KernelError::invalid_argument(format!("key: the map has no such key, of {dtype} {dims:?}"))
}

fn empty(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.set_variant(0, Variant::new(TensorMap::default()))
}

register_kernel!("EmptyTensorMap" on "CPU": fn empty);

fn size(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let count = map_in(c)?.entries.0.len();
    c.output::<i32>(0, &[])?.data[0] = i32::try_from(count).unwrap_or(i32::MAX);
    Ok(())
}

register_kernel!("TensorMapSize" on "CPU": fn size);

fn has_key(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let id = id_of(&c.keep(1)?)?;
    c.output::<bool>(0, &[])?.data[0] = map_in(c)?.entries.0.contains_key(&id);
    Ok(())
}

register_kernel!("TensorMapHasKey" on "CPU": fn has_key);

struct Lookup {
    value: DType,
}

impl Kernel for Lookup {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Lookup { value: c.attr("value_dtype")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let key = c.keep(1)?;
        let (_, value) = map_in(c)?.entries.0.get(&id_of(&key)?).ok_or_else(|| no_key(&key))?;
        if value.dtype() != self.value {
            return Err(KernelError::invalid_argument(format!(
                "key: expected a value of {}, found one of {}",
                self.value,
                value.dtype()
            )));
        }
        c.output_kept(0, value)
    }
}

register_kernel!("TensorMapLookup" on "CPU": Lookup);

fn insert(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_scalar(c)?;
    let (key, value) = (Arc::new(c.keep(1)?), Arc::new(c.keep(2)?));
    c.change_variants(0, 0, |_, map: &mut TensorMap| {
        map.insert(Arc::clone(&key), Arc::clone(&value))
    })
}

register_kernel!("TensorMapInsert" on "CPU": fn insert);

fn erase(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_scalar(c)?;
    let key = c.keep(1)?;
    let id = id_of(&key)?;
    c.change_variants(0, 0, |_, map: &mut TensorMap| {
        if !map.entries.0.contains_key(&id) {
            return Err(no_key(&key));
        }
        Arc::make_mut(&mut map.entries).0.remove(&id);
        Ok(())
    })
}

register_kernel!("TensorMapErase" on "CPU": fn erase);

struct StackKeys {
    key: DType,
}

impl Kernel for StackKeys {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(StackKeys { key: c.attr("key_dtype")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let map = map_in(c)?;
        let Some((first, _)) = map.entries.0.values().next() else {
            return Err(KernelError::invalid_argument(
                "input_handle: the map has no keys, whose shape the output would have",
            ));
        };
        let row = first.dims();
        for (key, _) in map.entries.0.values() {
            if key.dtype() != self.key || key.dims() != row {
                return Err(KernelError::invalid_argument(format!(
                    "input_handle: expected keys of {} {row:?}, found one of {} {:?}",
                    self.key,
                    key.dtype(),
                    key.dims()
                )));
            }
        }
        let keys = map.entries.0.values().map(|(key, _)| Part::Tensor(key));
        let keys = growth::collected(keys)?;
        output_parts(c, 0, self.key, &with_rows(keys.len(), row), &keys)
    }
}

register_kernel!("TensorMapStackKeys" on "CPU": StackKeys);
