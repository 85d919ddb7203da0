//! `SaveV2`, `Save` and `SaveSlices`.

use crate::{
    inputs::{all_strings, contents, text, texts, with_input},
    on_disk,
};
use tenon_bundle::{BundleError, BundleWriter, Files, Part, Saved, write_slices};
use tenon_files::{Access, path_of};
use tenon_sdk::{growth, prelude::*};

on_disk!("SaveV2", SaveV2, save_v2);
on_disk!("Save", Save, save);
on_disk!("SaveSlices", SaveSlices, save_slices);

/// What a text of `shape_and_slices` says of the tensor that is saved.
fn part_of(text: &[u8], dims: &[i64]) -> Result<Option<Part>, BundleError> {
    let part = Part::parse(text)?;
    match &part {
        Some(part) if part.part != dims => Err(BundleError::Argument(format!(
            "Slice in shape_and_slice specification does not match the shape of the tensor to save: {}, tensor: {dims:?}",
            String::from_utf8_lossy(text)
        ))),
        _ => Ok(part),
    }
}

fn save_v2(c: &ComputeContext<'_>, access: &Access) -> Result<(), KernelError> {
    let prefix = path_of(text(c, 0, "prefix")?);
    let count = c.input_count() - 3;
    let names = texts(c, 1, "tensor_names", count)?;
    let slices = texts(c, 2, "shape_and_slices", count)?;
    let mut writer = BundleWriter::create(Files::new(access, "prefix"), &prefix)?;
    for (at, (name, slice)) in names.iter().zip(slices).enumerate() {
        let dims = c.dims(3 + at);
        let part = part_of(slice, dims)?;
        with_input(c, 3 + at, |dtype, content| match &part {
            None => writer.add(name, dtype, dims, content),
            Some(part) => writer.add_part(name, part, dtype, content),
        })?;
    }
    Ok(writer.finish()?)
}

fn save(c: &ComputeContext<'_>, access: &Access) -> Result<(), KernelError> {
    let count = c.input_count() - 2;
    let parts = growth::filled(count, None)?;
    Ok(save_old(c, access, 2, &parts)?)
}

fn save_slices(c: &ComputeContext<'_>, access: &Access) -> Result<(), KernelError> {
    let count = c.input_count() - 3;
    let slices = texts(c, 2, "shapes_and_slices", count)?;
    let mut parts = growth::with_room(count)?;
    for (at, slice) in slices.iter().enumerate() {
        parts.push(part_of(slice, c.dims(3 + at))?);
    }
    Ok(save_old(c, access, 3, &parts)?)
}

/// Saves the inputs from `first` on.
fn save_old(
    c: &ComputeContext<'_>,
    access: &Access,
    first: usize,
    parts: &[Option<Part>],
) -> Result<(), BundleError> {
    let path = path_of(text(c, 0, "filename")?);
    let names = texts(c, 1, "tensor_names", parts.len())?;
    let strings = all_strings(c, first)?;
    let mut saved = growth::with_room(parts.len())?;
    for (at, (dtype, content)) in contents(c, first, &strings)?.into_iter().enumerate() {
        let (name, part, dims) = (names[at], parts[at].as_ref(), c.dims(first + at));
        saved.push(Saved { name, part, dtype, dims, content });
    }
    write_slices(Files::new(access, "filename"), &path, &saved)
}
