//! What a fuzzer and a test try: any bytes as files of checkpoints. Reading them ends with tensors or an error.

use crate::{
    Bundle, BundleError, Files, SafeFile, SliceFiles, data_file, element_count, index_file,
    stored_size, table::around,
};
use std::{fs, io::Write, path::Path};
use tenon_files::Access;

/// The most bytes of a tensor that is read.
const MOST: u64 = 1 << 24;

/// Reads bytes as every kind of file, in an empty folder of the caller's. The first byte says whether they are a file or the
/// contents of a block, plain or compressed, whose checksum is made right. Gives the number of tensors that could be read.
pub fn judge(bytes: &[u8], folder: &Path) -> usize {
    let Some((&kind, bytes)) = bytes.split_first() else { return 0 };
    let file = match kind % 3 {
        0 => bytes.to_vec(),
        kind => around(bytes, kind - 1),
    };
    let (prefix, access) = (folder.join("x"), Access::to_any());
    let files = Files::new(&access, "file");
    let written = [index_file(&prefix), data_file(&prefix, 0, 1), prefix.with_extension("v1")];
    if written.iter().any(|path| write(path, &file).is_err()) {
        return 0;
    }
    let of_bundle = bundle(files, &prefix).unwrap_or(0);
    let of_old = old(files, written[2].as_os_str().as_encoded_bytes()).unwrap_or(0);
    let safe = SafeFile::open(files, &written[2])
        .map(|file| (0..file.tensors().len()).filter(|&at| file.read(at).is_ok()).count());
    of_bundle + of_old + safe.unwrap_or(0)
}

/// Writes a file in place: some file systems make one durable that is written anew.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    file.set_len(bytes.len() as u64)?;
    file.write_all(bytes)
}

/// The size of a tensor's elements, if it is not too large for a test.
fn size(dims: &[i64], each: usize) -> Option<usize> {
    let size = element_count(dims)?.checked_mul(each as u64)?;
    (size <= MOST).then_some(size as usize)
}

fn bundle(files: Files<'_>, prefix: &Path) -> Result<usize, BundleError> {
    let mut bundle = Bundle::open(files, prefix)?;
    let mut count = 0;
    for (name, entry) in bundle.entries()? {
        if bundle.check(&name, &entry, None).is_err() {
            continue;
        }
        let is_read = match stored_size(entry.dtype) {
            None => bundle.read_strings(&name, &entry, None).is_ok(),
            Some(each) => {
                let Some(size) = size(&entry.dims, each) else { continue };
                bundle.read(&name, &entry, None, &mut vec![0; size]).is_ok()
            }
        };
        count += usize::from(is_read);
    }
    Ok(count)
}

fn old(files: Files<'_>, pattern: &[u8]) -> Result<usize, BundleError> {
    let mut opened = SliceFiles::open(files, pattern)?;
    let mut count = 0;
    let names: Vec<_> = opened.tensors().map(|(n, t)| (n.to_vec(), t.clone())).collect();
    for (name, tensor) in names {
        if opened.check(&name, None).is_err() {
            continue;
        }
        let is_read = match stored_size(tensor.dtype) {
            None => opened.read_strings(&name, None).is_ok(),
            Some(each) => {
                let Some(size) = size(&tensor.dims, each) else { continue };
                opened.read(&name, None, &mut vec![0; size]).is_ok()
            }
        };
        count += usize::from(is_read);
    }
    Ok(count)
}
