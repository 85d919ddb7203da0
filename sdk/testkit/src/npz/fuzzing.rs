//! What a fuzzer and a test try: any bytes as an archive, or as an array of one. Reading ends with tensors or an error.

use super::Npz;
use std::{fs::OpenOptions, io::Write, path::Path};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

/// Reads bytes as an archive in this file. The first byte says whether they are the archive, or an array of an archive,
/// stored or deflated, whose checksum is right. Gives the number of arrays that could be read.
pub fn judge(bytes: &[u8], file: &Path) -> usize {
    let Some((&kind, bytes)) = bytes.split_first() else { return 0 };
    let archive = match kind % 3 {
        0 => Some(bytes.to_vec()),
        1 => around(bytes, CompressionMethod::Stored),
        _ => around(bytes, CompressionMethod::Deflated),
    };
    if archive.is_none_or(|archive| write(file, &archive).is_err()) {
        return 0;
    }
    let Ok(mut npz) = Npz::open(file) else { return 0 };
    npz.names().iter().filter(|name| npz.tensor(name, None).is_ok()).count()
}

/// An archive with one array.
fn around(bytes: &[u8], method: CompressionMethod) -> Option<Vec<u8>> {
    let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("a.npy", SimpleFileOptions::default().compression_method(method)).ok()?;
    zip.write_all(bytes).ok()?;
    zip.finish().ok().map(std::io::Cursor::into_inner)
}

/// Writes a file in place: some file systems make one durable that is written anew.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    file.set_len(bytes.len() as u64)?;
    file.write_all(bytes)
}
