//! The records of one work item: of a file, or the item itself.

use crate::files::{Access, path_of};
use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
};
use tenon_files::Purpose;
use tenon_proto::records::{HEAD, TAIL, is_intact, length};
use tenon_sdk::{growth, prelude::*};

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// As zlib does.
    Zlib,
    /// As gzip does.
    Gzip,
}

impl Compression {
    /// The compression of this name; `what` says who has it.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for another name.
    pub fn named(what: &str, name: &[u8]) -> Result<Compression, KernelError> {
        match &name.to_ascii_lowercase()[..] {
            b"" | b"none" => Ok(Compression::None),
            b"zlib" => Ok(Compression::Zlib),
            b"gzip" => Ok(Compression::Gzip),
            _ => Err(KernelError::invalid_argument(format!(
                "{what}: expected ZLIB, GZIP or nothing, found '{}'",
                String::from_utf8_lossy(name)
            ))),
        }
    }
}

/// Sizes of a file with records of a fixed number of bytes.
#[derive(Debug, Clone, Copy)]
pub struct FixedSizes {
    /// Bytes before the first record.
    pub header: u64,
    /// Bytes of a record.
    pub record: u64,
    /// Bytes after the last record.
    pub footer: u64,
    /// Bytes from one record to the next.
    pub hop: u64,
    /// How the file is compressed.
    pub compression: Compression,
}

/// What a reader makes of a work item.
#[derive(Debug, Clone, Copy)]
pub enum Format {
    /// A file is one record.
    WholeFile,
    /// A record is a line; this many are left out at the beginning of a file that is compressed so.
    Lines(u64, Compression),
    /// Records have a fixed size.
    Fixed(FixedSizes),
    /// A TFRecord file.
    Records(Compression),
    /// The item is its only record.
    Identity,
}

/// A record, under its key.
pub type Record = (Vec<u8>, Vec<u8>);
/// A record, with the number that its key has.
type Numbered = (Option<u64>, Vec<u8>);

type Bytes = Box<dyn BufRead + Send>;

/// A work item whose records are being read.
pub struct Source {
    work: Vec<u8>,
    state: State,
    /// What is wrong with the file: every further read says so too.
    broken: Option<KernelError>,
}

enum State {
    /// The item is its only record, which was not read yet.
    Once(Option<Vec<u8>>),
    Lines {
        bytes: Bytes,
        number: u64,
    },
    Fixed {
        bytes: Bytes,
        sizes: FixedSizes,
        ahead: Vec<u8>,
        number: u64,
    },
    Records {
        bytes: Bytes,
        offset: u64,
    },
}

/// The error of the system for a file.
pub fn failed(work: &[u8], error: &std::io::Error) -> KernelError {
    let code = match error.kind() {
        std::io::ErrorKind::InvalidData | std::io::ErrorKind::InvalidInput => Code::DATA_LOSS,
        std::io::ErrorKind::UnexpectedEof => Code::DATA_LOSS,
        _ => Code::UNKNOWN,
    };
    KernelError::new(code, format!("file '{}': {error}", String::from_utf8_lossy(work)))
}

fn opened(access: &Access, work: &[u8], how: Compression) -> Result<Bytes, KernelError> {
    let file: File = access.open("the work item", &path_of(work), Purpose::Read)?;
    Ok(match how {
        Compression::None => Box::new(BufReader::new(file)),
        Compression::Zlib => Box::new(BufReader::new(flate2::read::ZlibDecoder::new(file))),
        Compression::Gzip => Box::new(BufReader::new(flate2::read::MultiGzDecoder::new(file))),
    })
}

impl Source {
    /// Opens a work item.
    ///
    /// # Errors
    /// The file does not exist, must not be read, or ends too early.
    pub fn open(work: Vec<u8>, format: Format, access: &Access) -> Result<Source, KernelError> {
        let state = match format {
            Format::Identity => State::Once(Some(growth::copied(&work)?)),
            Format::WholeFile => {
                State::Once(Some(access.contents("the work item", &path_of(&work))?))
            }
            Format::Lines(skipped, how) => {
                let bytes = opened(access, &work, how)?;
                let state = State::Lines { bytes, number: 0 };
                let mut source = Source { work, state, broken: None };
                for _ in 0..skipped {
                    if source.next_value()?.is_none() {
                        break;
                    }
                }
                return Ok(source);
            }
            Format::Fixed(sizes) => {
                let mut bytes = opened(access, &work, sizes.compression)?;
                if !skip(&mut bytes, sizes.header).map_err(|error| failed(&work, &error))? {
                    return Err(KernelError::new(
                        Code::OUT_OF_RANGE,
                        format!(
                            "file '{}': expected a header of {} bytes, found the end",
                            String::from_utf8_lossy(&work),
                            sizes.header
                        ),
                    ));
                }
                State::Fixed { bytes, sizes, ahead: Vec::new(), number: 0 }
            }
            Format::Records(compression) => {
                State::Records { bytes: opened(access, &work, compression)?, offset: 0 }
            }
        };
        Ok(Source { work, state, broken: None })
    }

    /// Opens a work item whose first record is that at a byte.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn open_at(
        work: Vec<u8>,
        format: Format,
        access: &Access,
        first: u64,
    ) -> Result<Source, KernelError> {
        let mut source = Source::open(work, format, access)?;
        if let State::Records { bytes, offset } = &mut source.state {
            // A file that ends before has no records.
            skip(bytes, first).map_err(|error| failed(&source.work, &error))?;
            *offset = first;
        }
        Ok(source)
    }

    /// The number of bytes after the last record, of a file with records of a fixed size that is at its end.
    pub fn rest(&self) -> Option<usize> {
        match &self.state {
            State::Fixed { ahead, .. } => Some(ahead.len()),
            _ => None,
        }
    }

    /// Whether there may be further records.
    pub fn has_more(&self) -> bool {
        !matches!(self.state, State::Once(None))
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// `DATA_LOSS` for a file that is damaged or cut off; the system's error.
    pub fn next(&mut self) -> Result<Option<Record>, KernelError> {
        let Some((number, value)) = self.next_numbered()? else { return Ok(None) };
        let mut key = growth::copied(&self.work)?;
        if let Some(number) = number {
            growth::append(&mut key, format!(":{number}").as_bytes())?;
        }
        Ok(Some((key, value)))
    }

    /// The next record without its key.
    ///
    /// # Errors
    /// As [`Source::next`].
    pub fn next_value(&mut self) -> Result<Option<Vec<u8>>, KernelError> {
        Ok(self.next_numbered()?.map(|(_, value)| value))
    }

    fn next_numbered(&mut self) -> Result<Option<Numbered>, KernelError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let found = self.read();
        self.broken = found.as_ref().err().cloned();
        found
    }

    fn read(&mut self) -> Result<Option<Numbered>, KernelError> {
        let work = &self.work;
        Ok(match &mut self.state {
            State::Once(value) => value.take().map(|value| (None, value)),
            State::Lines { bytes, number } => line(bytes, work)?.map(|line| {
                *number += 1;
                (Some(*number), line)
            }),
            State::Fixed { bytes, sizes, ahead, number } => {
                fixed(bytes, sizes, ahead, *number == 0, work)?.map(|record| {
                    *number += 1;
                    (Some(*number - 1), record)
                })
            }
            State::Records { bytes, offset } => record(bytes, work, *offset)?.map(|record| {
                let at = *offset;
                // A record is between its length with a checksum and a checksum.
                *offset += record.len() as u64 + 16;
                (Some(at), record)
            }),
        })
    }
}

/// Skips a number of bytes; whether the source had that many.
fn skip(bytes: &mut Bytes, count: u64) -> std::io::Result<bool> {
    Ok(std::io::copy(&mut bytes.take(count), &mut std::io::sink())? == count)
}

/// Appends `count` bytes, or as many as there are; their number.
fn append(
    bytes: &mut Bytes,
    count: u64,
    to: &mut Vec<u8>,
    work: &[u8],
) -> Result<u64, KernelError> {
    let mut left = count;
    while left > 0 {
        let found = match bytes.fill_buf() {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(work, &error)),
        };
        let taken = found.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if taken == 0 {
            break;
        }
        growth::append(to, &found[..taken])?;
        bytes.consume(taken);
        left -= taken as u64;
    }
    Ok(count - left)
}

/// The next `N` bytes; `None` where fewer are left.
fn array<const N: usize>(bytes: &mut Bytes, work: &[u8]) -> Result<Option<[u8; N]>, KernelError> {
    let mut found = Vec::new();
    append(bytes, N as u64, &mut found, work)?;
    Ok(found.try_into().ok())
}

/// A line without its end, and without carriage returns.
fn line(bytes: &mut Bytes, work: &[u8]) -> Result<Option<Vec<u8>>, KernelError> {
    let (mut line, mut is_there) = (Vec::new(), false);
    loop {
        let found = bytes.fill_buf().map_err(|error| failed(work, &error))?;
        if found.is_empty() {
            break;
        }
        is_there = true;
        let end = found.iter().position(|byte| *byte == b'\n');
        let text = &found[..end.unwrap_or(found.len())];
        growth::reserve(&mut line, text.len())?;
        line.extend(text.iter().filter(|byte| **byte != b'\r'));
        let taken = end.map_or(found.len(), |end| end + 1);
        bytes.consume(taken);
        if end.is_some() {
            break;
        }
    }
    Ok(is_there.then_some(line))
}

/// A record of a fixed size, if as many bytes as record and footer have are there.
fn fixed(
    bytes: &mut Bytes,
    sizes: &FixedSizes,
    ahead: &mut Vec<u8>,
    is_first: bool,
    work: &[u8],
) -> Result<Option<Vec<u8>>, KernelError> {
    if !is_first {
        let cached = (ahead.len() as u64).min(sizes.hop);
        ahead.drain(..cached as usize);
        let rest = skip(bytes, sizes.hop - cached).map_err(|error| failed(work, &error))?;
        if !rest {
            return Ok(None);
        }
    }
    let wanted = sizes.record + sizes.footer;
    let missing = wanted.saturating_sub(ahead.len() as u64);
    if append(bytes, missing, ahead, work)? < missing {
        return Ok(None);
    }
    growth::copied(&ahead[..sizes.record as usize]).map(Some)
}

/// A record of a TFRecord file. A file may end within the length of a record, as for TensorFlow: what was being
/// appended when its writer ended does not count as a record.
fn record(bytes: &mut Bytes, work: &[u8], offset: u64) -> Result<Option<Vec<u8>>, KernelError> {
    let lost = |what: &str| {
        KernelError::new(
            Code::DATA_LOSS,
            format!(
                "file '{}': {what} in the record at byte {offset}",
                String::from_utf8_lossy(work)
            ),
        )
    };
    let Some(head) = array::<HEAD>(bytes, work)? else { return Ok(None) };
    let length = length(&head).ok_or_else(|| lost("the checksum of the length is wrong"))?;
    let mut data = Vec::new();
    let found = append(bytes, length, &mut data, work)?;
    if found < length {
        return Err(lost(&format!("expected {length} bytes, found {found}")));
    }
    let tail = array::<TAIL>(bytes, work)?;
    let tail = tail.ok_or_else(|| lost("expected a checksum, found the end"))?;
    if !is_intact(&data, &tail) {
        return Err(lost("the checksum of the bytes is wrong"));
    }
    Ok(Some(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every wrong byte of a file is an error, and every cut but one within a length; none gives another record.
    #[test]
    fn damaged_records_are_refused() {
        let mut file = Vec::new();
        for data in [&b"first"[..], b""] {
            tenon_proto::records::write(&mut file, data).unwrap();
        }
        let read = |file: Vec<u8>| {
            let mut bytes: Bytes = Box::new(std::io::Cursor::new(file));
            let mut records = Vec::new();
            while let Some(found) = record(&mut bytes, b"f", 0)? {
                records.push(found);
            }
            Ok::<_, KernelError>(records)
        };
        assert_eq!(read(file.clone()).unwrap(), [&b"first"[..], b""]);
        for at in 0..file.len() {
            let mut wrong = file.clone();
            wrong[at] ^= 1;
            assert_eq!(read(wrong).unwrap_err().code, Code::DATA_LOSS, "byte {at}");
            let cut = read(file[..at].to_vec());
            match cut {
                Ok(records) => {
                    assert!(at < 12 || (21..33).contains(&at), "cut at {at}");
                    assert_eq!(records.len(), usize::from(at >= 21));
                }
                Err(error) => assert_eq!(error.code, Code::DATA_LOSS),
            }
        }
    }
}
