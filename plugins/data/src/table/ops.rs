//! Kernels that use tables.

use super::{
    Table,
    column::Values,
    key::{keys, set_keys},
    kind::Content,
};
use crate::place::input;
use tenon_sdk::{geometry::element_count, prelude::*};

/// Checks keys, input 1, and values, input 2; the number of elements of a key.
fn entries_of(c: &ComputeContext<'_>, table: &Table) -> Result<usize, KernelError> {
    table.check_types(c.slot(1)?.dtype, c.slot(2)?.dtype)?;
    let outer = table.outer("keys", c.dims(1))?;
    table.check_values(outer, c.dims(2))?;
    Ok(element_count(&table.key_dims)?)
}

fn initialize(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let table = input::<Table>(c)?;
    if c.dims(1).len() != 1 {
        return Err(KernelError::invalid_argument(format!(
            "keys: expected a vector for {}, found shape {:?}",
            table.name,
            c.dims(1)
        )));
    }
    let per = entries_of(c, &table)?;
    let (keys, values) = (keys(c, 1, per)?, Values::new(c, 2)?);
    table.content().fill(&table.name, keys, &values)
}

fn find(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let table = input::<Table>(c)?;
    table.check_types(c.slot(1)?.dtype, c.slot(2)?.dtype)?;
    let outer = table.outer("keys", c.dims(1))?;
    let dims = table.values_of(outer);
    let is_per_key = c.dims(2) == dims;
    if !is_per_key && c.dims(2) != table.value_dims {
        return Err(KernelError::invalid_argument(format!(
            "default_value: expected the shape of a value of {}, {:?}, or that of all values, {dims:?}, found {:?}",
            table.name,
            table.value_dims,
            c.dims(2)
        )));
    }
    let per = element_count(&table.key_dims)?;
    let (keys, default) = (keys(c, 1, per)?, Values::new(c, 2)?);
    let content = table.content();
    let numbers = content.numbers(&table.name, &keys)?;
    content.entries().values().pick(c, &dims, &numbers, (&default, is_per_key))
}

fn insert(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let table = input::<Table>(c)?;
    let per = entries_of(c, &table)?;
    let (keys, values) = (keys(c, 1, per)?, Values::new(c, 2)?);
    table.content().insert(&table.name, keys, &values)
}

fn remove(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let table = input::<Table>(c)?;
    table.check_key_type(c.slot(1)?.dtype)?;
    table.outer("keys", c.dims(1))?;
    let keys = keys(c, 1, element_count(&table.key_dims)?)?;
    table.content().remove(&table.name, &keys)
}

fn size(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let size = input::<Table>(c)?.content().entries().len();
    c.output::<i64>(0, &[])?.data[0] = size as i64;
    Ok(())
}

fn export(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let table = input::<Table>(c)?;
    table.check_types(c.output_slot(0)?.dtype, c.output_slot(1)?.dtype)?;
    let content = table.content();
    content.check_exportable(&table.name)?;
    if let Content::Dense(dense) = &*content {
        let sizes = [element_count(&table.key_dims)?, element_count(&table.value_dims)?];
        return dense.export(c, sizes);
    }
    let entries = content.entries();
    let count = entries.len() as i64;
    let dims =
        |one: &[i64]| -> Vec<i64> { std::iter::once(count).chain(one.iter().copied()).collect() };
    set_keys(c, 0, &dims(&table.key_dims), entries.keys().iter())?;
    entries.values().output(c, 1, &dims(&table.value_dims), entries.len())
}

fn import(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let table = input::<Table>(c)?;
    let per = entries_of(c, &table)?;
    let (keys, values) = (keys(c, 1, per)?, Values::new(c, 2)?);
    table.content().import(&table.name, keys, &values)
}

register_kernel!("InitializeTable" on "CPU": fn initialize);
register_kernel!("InitializeTableV2" on "CPU": fn initialize);
register_kernel!("LookupTableFind" on "CPU": fn find);
register_kernel!("LookupTableFindV2" on "CPU": fn find);
register_kernel!("LookupTableInsert" on "CPU": fn insert);
register_kernel!("LookupTableInsertV2" on "CPU": fn insert);
register_kernel!("LookupTableRemoveV2" on "CPU": fn remove);
register_kernel!("LookupTableSize" on "CPU": fn size);
register_kernel!("LookupTableSizeV2" on "CPU": fn size);
register_kernel!("LookupTableExport" on "CPU": fn export);
register_kernel!("LookupTableExportV2" on "CPU": fn export);
register_kernel!("LookupTableImport" on "CPU": fn import);
register_kernel!("LookupTableImportV2" on "CPU": fn import);
