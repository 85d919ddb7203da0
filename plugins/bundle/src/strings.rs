//! Elements whose sizes differ: strings, and variants as serialised messages.

use crate::{
    BundleError,
    table::{put_varint, varint},
};
use tenon_proto::checksum::{extend, mask, unmask};
use tenon_sdk::{DType, KernelError, growth};

/// The elements of a tensor of strings, or of variants in their serialised form, in one piece of memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strings {
    bytes: Vec<u8>,
    /// Begin and end of each element in `bytes`.
    places: Vec<(usize, usize)>,
}

impl Strings {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The elements, in the order of the tensor.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.places.iter().map(|&(begin, end)| &self.bytes[begin..end])
    }

    /// Appends an element.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` without memory.
    pub fn push(&mut self, element: &[u8]) -> Result<(), KernelError> {
        let begin = self.bytes.len();
        growth::append(&mut self.bytes, element)?;
        growth::push(&mut self.places, (begin, self.bytes.len()))
    }

    /// An element.
    pub(crate) fn get(&self, at: usize) -> &[u8] {
        let (begin, end) = self.places[at];
        &self.bytes[begin..end]
    }
}

/// A length as it enters a checksum.
fn add_length(crc: u32, length: u64, is_wide: bool, is_big: bool) -> u32 {
    match u32::try_from(length) {
        Ok(short) if !is_wide => {
            extend(crc, &if is_big { short.to_be_bytes() } else { short.to_le_bytes() })
        }
        _ => extend(crc, &if is_big { length.to_be_bytes() } else { length.to_le_bytes() }),
    }
}

/// Why bytes of a data file are not elements.
pub(crate) enum Wrong {
    /// What is wrong, and where among the bytes.
    Damaged(usize, String),
    Memory(KernelError),
}

fn number(bytes: [u8; 4], is_big: bool) -> u32 {
    if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

/// Reads all elements from the bytes of a tensor; the checksum of what was read is compared with `stored`.
pub(crate) fn parse(
    dtype: DType,
    bytes: Vec<u8>,
    count: u64,
    stored: u32,
    is_big: bool,
) -> Result<Strings, Wrong> {
    let fits = usize::try_from(count).ok().filter(|&count| count <= bytes.len());
    let count = fits.ok_or_else(|| {
        Wrong::Damaged(0, format!("expected {count} elements, found {} bytes", bytes.len()))
    })?;
    let mut places = growth::with_room(count).map_err(Wrong::Memory)?;
    let crc = match dtype {
        DType::VARIANT => variants(&bytes, count, is_big, &mut places)?,
        _ => strings(&bytes, count, is_big, &mut places)?,
    };
    if places.last().map_or(0, |&(_, end)| end) != end_of(dtype, bytes.len(), count) {
        return Err(Wrong::Damaged(0, "the elements have another size than the tensor".to_owned()));
    }
    check(crc, stored)?;
    Ok(Strings { bytes, places })
}

/// Where the last element ends: at the end of the tensor, or before the checksum of the last variant.
fn end_of(dtype: DType, len: usize, count: usize) -> usize {
    match dtype {
        DType::VARIANT if count > 0 => len.saturating_sub(4),
        DType::VARIANT => len,
        // The checksum of no lengths is all that a tensor without strings has.
        _ if count == 0 => len.saturating_sub(4),
        _ => len,
    }
}

/// Compares a checksum with the masked one of the index.
pub(crate) fn check(found: u32, stored: u32) -> Result<(), Wrong> {
    match found == unmask(stored) {
        true => Ok(()),
        false => Err(Wrong::Damaged(
            0,
            format!(
                "Checksum does not match: stored {} vs. calculated on the restored bytes {found}",
                unmask(stored)
            ),
        )),
    }
}

fn strings(
    bytes: &[u8],
    count: usize,
    is_big: bool,
    places: &mut Vec<(usize, usize)>,
) -> Result<u32, Wrong> {
    let mut rest = bytes;
    let (mut crc, mut sum) = (0, 0usize);
    let short = |at: usize| Wrong::Damaged(at, "the lengths of strings do not fit".to_owned());
    for _ in 0..count {
        let at = bytes.len() - rest.len();
        let length = varint(&mut rest).ok_or_else(|| short(at))?;
        crc = add_length(crc, length, false, is_big);
        let end = usize::try_from(length).ok().and_then(|length| sum.checked_add(length));
        let end = end.filter(|&end| end <= bytes.len()).ok_or_else(|| short(at))?;
        places.push((sum, end));
        sum = end;
    }
    let at = bytes.len() - rest.len();
    let (stored, contents) = rest.split_first_chunk::<4>().ok_or_else(|| short(at))?;
    if unmask(number(*stored, is_big)) != crc {
        return Err(Wrong::Damaged(
            at,
            "the checksum of the lengths of strings differs".to_owned(),
        ));
    }
    if contents.len() != sum {
        return Err(short(at));
    }
    let begin = at + 4;
    places.iter_mut().for_each(|place| *place = (place.0 + begin, place.1 + begin));
    Ok(extend(extend(crc, stored), contents))
}

fn variants(
    bytes: &[u8],
    count: usize,
    is_big: bool,
    places: &mut Vec<(usize, usize)>,
) -> Result<u32, Wrong> {
    let (mut rest, mut crc) = (bytes, 0);
    for _ in 0..count {
        let at = bytes.len() - rest.len();
        let wrong = || Wrong::Damaged(at, "a variant does not fit".to_owned());
        let length = varint(&mut rest).ok_or_else(wrong)?;
        let len = usize::try_from(length).map_err(|_| wrong())?;
        let begin = bytes.len() - rest.len();
        let (element, after) = rest.split_at_checked(len).ok_or_else(wrong)?;
        let (stored, after) = after.split_first_chunk::<4>().ok_or_else(wrong)?;
        crc = extend(add_length(crc, length, true, is_big), element);
        if unmask(number(*stored, is_big)) != crc {
            return Err(Wrong::Damaged(at, "the checksum of a variant differs".to_owned()));
        }
        crc = extend(crc, stored);
        places.push((begin, begin + len));
        rest = after;
    }
    Ok(crc)
}

/// Gives the bytes of elements to `write`, piece by piece; their masked checksum.
pub(crate) fn write_all<'e>(
    dtype: DType,
    elements: impl Iterator<Item = &'e [u8]> + Clone,
    mut write: impl FnMut(&[u8]) -> Result<(), BundleError>,
) -> Result<u32, BundleError> {
    let (mut crc, mut length) = (0, Vec::new());
    let is_variant = dtype == DType::VARIANT;
    for element in elements.clone() {
        length.clear();
        put_varint(&mut length, element.len() as u64);
        crc = add_length(crc, element.len() as u64, is_variant, false);
        write(&length)?;
        if is_variant {
            write(element)?;
            crc = extend(crc, element);
            let sum = mask(crc).to_le_bytes();
            write(&sum)?;
            crc = extend(crc, &sum);
        }
    }
    if is_variant {
        return Ok(mask(crc));
    }
    let sum = mask(crc).to_le_bytes();
    write(&sum)?;
    crc = extend(crc, &sum);
    for element in elements {
        crc = extend(crc, element);
        write(element)?;
    }
    Ok(mask(crc))
}
