//! `RestoreV2`, `Restore` and `RestoreSlice`.

use crate::{
    inputs::{text, texts},
    on_disk, variants,
};
use std::path::Path;
use tenon_bundle::{Bundle, BundleError, Entry, Files, Part, SliceFiles};
use tenon_files::{Access, path_of};
use tenon_sdk::{growth, prelude::*};

on_disk!("RestoreV2", RestoreV2, restore_v2);
on_disk!("Restore", Restore, restore);
on_disk!("RestoreSlice", RestoreSlice, restore_slice);

/// A tensor to read, by its output.
struct Wanted<'c> {
    name: &'c [u8],
    part: Option<Part>,
}

/// A name as shown in a message.
pub fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Fails unless the type in a checkpoint is that of the output, and has elements that outputs can have.
pub fn check_type(
    checkpoint: &str,
    name: &[u8],
    expected: DType,
    found: DType,
) -> Result<(), BundleError> {
    if expected.base() != found {
        let (checkpoint, name) = (checkpoint.to_owned(), shown(name));
        return Err(BundleError::Type { checkpoint, name, expected: expected.base(), found });
    }
    match found {
        DType::RESOURCE => Err(BundleError::Unsupported(format!(
            "tensor '{}' of '{checkpoint}': elements of type {} cannot be restored",
            shown(name),
            found.name()
        ))),
        DType::STRING | DType::VARIANT => Ok(()),
        found if found.size().is_none() => Err(BundleError::Unsupported(format!(
            "tensor '{}' of '{checkpoint}': type {} has elements below one byte, which cannot be restored",
            shown(name),
            found.name()
        ))),
        _ => Ok(()),
    }
}

fn restore_v2(c: &ComputeContext<'_>, access: &Access) -> Result<(), KernelError> {
    let prefix = text(c, 0, "prefix")?;
    let names = texts(c, 1, "tensor_names", c.output_count())?;
    let slices = texts(c, 2, "shape_and_slices", c.output_count())?;
    let mut wanted = growth::with_room(names.len())?;
    for (&name, slice) in names.iter().zip(slices) {
        wanted.push(Wanted { name, part: Part::parse(slice)? });
    }
    let files = Files::new(access, "prefix");
    let path = path_of(prefix);
    match Bundle::exists(files, &path)? {
        true => Ok(from_bundle(c, files, &path, &wanted)?),
        false => Ok(from_old(c, SliceFiles::open(files, prefix)?, &wanted)?),
    }
}

/// The entries of all outputs, whose names, types and shapes are compared with the index, and whose data files are opened.
fn entries(
    c: &ComputeContext<'_>,
    bundle: &mut Bundle<'_>,
    wanted: &[Wanted<'_>],
) -> Result<Vec<Entry>, BundleError> {
    let mut entries: Vec<Entry> = growth::with_room(wanted.len())?;
    let mut missing = Vec::new();
    for one in wanted {
        match bundle.find(one.name)? {
            Some(entry) => entries.push(entry),
            None => growth::push(&mut missing, shown(one.name))?,
        }
    }
    if !missing.is_empty() {
        return Err(BundleError::Missing { checkpoint: bundle.name(), names: missing });
    }
    for (at, (one, entry)) in wanted.iter().zip(&entries).enumerate() {
        check_type(&bundle.name(), one.name, c.output_slot(at)?.dtype, entry.dtype)?;
        bundle.dims(one.name, entry, one.part.as_ref())?;
        bundle.check(one.name, entry, one.part.as_ref())?;
    }
    Ok(entries)
}

/// Reads all outputs, after all names and types have been compared: nothing is read for a step that fails.
fn from_bundle(
    c: &ComputeContext<'_>,
    files: Files<'_>,
    path: &Path,
    wanted: &[Wanted<'_>],
) -> Result<(), BundleError> {
    let (mut bundle, entries) =
        Bundle::open_with(files, path, |bundle| entries(c, bundle, wanted))?;
    for (at, (one, entry)) in wanted.iter().zip(&entries).enumerate() {
        let part = one.part.as_ref();
        let dims = bundle.dims(one.name, entry, part)?;
        if entry.dtype == DType::STRING {
            let strings = bundle.read_strings(one.name, entry, part)?;
            c.set_strings(at, dims, strings.iter())?;
        } else if entry.dtype == DType::VARIANT {
            variants::set(c, at, dims, &bundle.read_strings(one.name, entry, part)?)?;
        } else {
            let out = c.output_bytes(at, dims)?;
            bundle.read(one.name, entry, part, out)?;
        }
    }
    Ok(())
}

/// As [`from_bundle`], from V1 files.
fn from_old(
    c: &ComputeContext<'_>,
    mut files: SliceFiles,
    wanted: &[Wanted<'_>],
) -> Result<(), BundleError> {
    let mut missing = Vec::new();
    for one in wanted.iter().filter(|one| files.find(one.name).is_none()) {
        growth::push(&mut missing, shown(one.name))?;
    }
    if !missing.is_empty() {
        return Err(BundleError::Missing { checkpoint: files.name().to_owned(), names: missing });
    }
    for (at, one) in wanted.iter().enumerate() {
        let found = files.find(one.name).map_or(DType::INVALID, |tensor| tensor.dtype);
        check_type(files.name(), one.name, c.output_slot(at)?.dtype, found)?;
        if found == DType::VARIANT {
            return Err(BundleError::Unsupported(format!(
                "tensor '{}' of '{}': files of the first format have no variants",
                shown(one.name),
                files.name()
            )));
        }
        files.check(one.name, one.part.as_ref())?;
    }
    for (at, one) in wanted.iter().enumerate() {
        let part = one.part.as_ref();
        let dims = files.dims(one.name, part)?;
        if c.output_slot(at)?.dtype == DType::STRING {
            let strings = files.read_strings(one.name, part)?;
            c.set_strings(at, &dims, strings.iter())?;
        } else {
            let out = c.output_bytes(at, &dims)?;
            files.read(one.name, part, out)?;
        }
    }
    Ok(())
}

fn restore(c: &ComputeContext<'_>, access: &Access) -> Result<(), KernelError> {
    restore_one(c, access, None)
}

fn restore_slice(c: &ComputeContext<'_>, access: &Access) -> Result<(), KernelError> {
    restore_one(c, access, Part::parse(text(c, 2, "shape_and_slice")?)?)
}

/// Every file of the pattern is read for what it has, so that no shard is preferred.
fn restore_one(
    c: &ComputeContext<'_>,
    access: &Access,
    part: Option<Part>,
) -> Result<(), KernelError> {
    let pattern = text(c, 0, "file_pattern")?;
    let files = SliceFiles::open(Files::new(access, "file_pattern"), pattern)?;
    let name = text(c, 1, "tensor_name")?;
    Ok(from_old(c, files, &[Wanted { name, part }])?)
}
