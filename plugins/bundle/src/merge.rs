//! Merging of bundles: the data files of several get names of one, and one index has the entries of all.

use crate::{
    Bundle, BundleError,
    entry::Entry,
    files::Files,
    ordered::slice_key,
    reader::{data_file, index_file},
    writer::{Index, discard_data, other_count, shards_of},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};
use tenon_files::Identity;
use tenon_sdk::growth;

/// The most data files of a merged bundle: their names have five digits.
const MOST_SHARDS: usize = 99_999;

#[derive(Default)]
struct Merged {
    entries: BTreeMap<Vec<u8>, Entry>,
    /// The data files, in the order of their new numbers.
    data: Vec<PathBuf>,
}

impl Merged {
    fn add(&mut self, files: Files<'_>, prefix: &Path) -> Result<(), BundleError> {
        let mut bundle = Bundle::open(files, prefix)?;
        if bundle.is_big_endian() {
            return Err(BundleError::Unsupported(format!(
                "prefix '{}': bundles of big-endian machines are read, and not merged",
                prefix.display()
            )));
        }
        // All files are checked before any is renamed: a merge that begins to rename should not fail.
        bundle.open_all()?;
        let first = self.data.len() as u32;
        for shard in 0..bundle.shards() {
            growth::push(&mut self.data, data_file(prefix, shard, bundle.shards()))?;
            if self.data.len() > MOST_SHARDS {
                let what =
                    format!("expected at most {MOST_SHARDS} data files to merge, found more");
                return Err(BundleError::Argument(what));
            }
        }
        for (name, mut entry) in bundle.entries()? {
            if entry.slices.is_empty() {
                bundle.check(&name, &entry, None)?;
                entry.shard += first;
            }
            for slice in &entry.slices {
                let key = slice_key(&name, &slice.0);
                let mut piece = bundle.piece(&name, &entry, slice)?;
                bundle.check(&name, &piece, None)?;
                piece.shard += first;
                if self.entries.insert(key, piece).is_some() {
                    return Err(duplicate(&name, "a slice that is there already"));
                }
            }
            self.put(name, entry)?;
        }
        Ok(())
    }

    /// The parts of a tensor come together; a whole tensor is there once.
    fn put(&mut self, name: Vec<u8>, entry: Entry) -> Result<(), BundleError> {
        let Some(known) = self.entries.get_mut(&name) else {
            self.entries.insert(name, entry);
            return Ok(());
        };
        if known.slices.is_empty() || entry.slices.is_empty() {
            return Err(duplicate(&name, "a non-slice bundle entry"));
        }
        if known.dtype != entry.dtype || known.dims != entry.dims {
            return Err(duplicate(&name, "slices of another type or shape"));
        }
        Ok(growth::append(&mut known.slices, &entry.slices)?)
    }
}

fn duplicate(name: &[u8], what: &str) -> BundleError {
    let name = String::from_utf8_lossy(name);
    BundleError::Argument(format!(
        "Duplicate tensor keyed by {name}; attempting to merge in {what}"
    ))
}

/// Merges bundles into one at `destination`, whose data files are theirs under new names. Their indices are removed, and
/// with `delete_folders` those of their folders that are then empty.
///
/// All bundles are checked, and the index is written, before the first file is renamed. A merge that is interrupted after that leaves bundles whose
/// data files have other names already: what they were saved from must be saved and merged again. The bundle that
/// `destination` had before stays complete until the index is replaced, unless it is one of those that are merged.
///
/// # Errors
/// A bundle is missing (unless `allow_missing`, if at least one is there), damaged, or named twice; two have a tensor of the
/// same name; the system's error.
pub fn merge(
    files: Files<'_>,
    prefixes: &[PathBuf],
    destination: &Path,
    delete_folders: bool,
    allow_missing: bool,
) -> Result<(), BundleError> {
    let mut merged = Merged::default();
    let mut used = Used::default();
    for prefix in prefixes {
        if !Bundle::exists(files, prefix)? {
            if allow_missing {
                continue;
            }
            return Err(BundleError::Argument(format!(
                "allow_missing_files was set to false and {} did not exist",
                prefix.display()
            )));
        }
        used.add(files, prefix)?;
        merged.add(files, prefix)?;
    }
    if used.prefixes.is_empty() {
        let what = "At least one prefix checkpoint file must exist, but none existed.";
        return Err(BundleError::Argument(what.to_owned()));
    }
    publish(files, &mut merged, destination)?;
    let new = index_file(destination);
    for prefix in &used.prefixes {
        let index = index_file(prefix);
        if is_one(files, &index, &new) {
            continue;
        }
        files.discard(&index);
        if let Some(folder) = index.parent().filter(|folder| {
            delete_folders && !folder.as_os_str().is_empty() && Some(*folder) != new.parent()
        }) {
            files.discard_folder(folder);
        }
    }
    Ok(())
}

/// The bundles that are merged.
#[derive(Default)]
struct Used {
    prefixes: BTreeSet<PathBuf>,
    /// The prefix by which each index was found first.
    indices: BTreeMap<Identity, PathBuf>,
}

impl Used {
    /// Adds a bundle, whose data files can be renamed once only: its prefix is another one than those before, and so is its
    /// index.
    fn add(&mut self, files: Files<'_>, prefix: &Path) -> Result<(), BundleError> {
        if !self.prefixes.insert(prefix.to_owned()) {
            return Err(BundleError::Argument(format!(
                "checkpoint_prefixes: '{}' is named twice",
                prefix.display()
            )));
        }
        let Some(index) = files.identity(&index_file(prefix))? else { return Ok(()) };
        match self.indices.insert(index, prefix.to_owned()) {
            None => Ok(()),
            Some(same) => Err(BundleError::Argument(format!(
                "checkpoint_prefixes: expected different bundles, found '{}' and '{}', which have one index file",
                same.display(),
                prefix.display()
            ))),
        }
    }
}

/// Whether two paths name one file: by the files where the system tells it, and else by the names. One that cannot be opened
/// counts as the same, so that it is kept.
fn is_one(files: Files<'_>, a: &Path, b: &Path) -> bool {
    match (files.identity(a), files.identity(b)) {
        (Ok(Some(a)), Ok(Some(b))) => a == b,
        (Ok(_), Ok(_)) => a == b,
        _ => true,
    }
}

fn publish(files: Files<'_>, merged: &mut Merged, destination: &Path) -> Result<(), BundleError> {
    let index = index_file(destination);
    files.create_folders(&index)?;
    let publishing = files.lock(&index)?;
    let old = shards_of(files, destination);
    let count = merged.data.len() as u32;
    let shards = other_count(count, old);
    let new = Index::create(files, destination, shards, &merged.entries)?;
    for (number, path) in merged.data.iter().enumerate() {
        files.rename(path, &data_file(destination, number as u32, shards))?;
    }
    new.publish(&publishing)?;
    discard_data(files, destination, old, shards);
    Ok(())
}
