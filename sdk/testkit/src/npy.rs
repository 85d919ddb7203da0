//! `.npy` files to tensors and back.
//!
//! | element type | in the file |
//! |---|---|
//! | bool, integers, half, float, double, complex | NumPy's type of that size |
//! | bfloat16 | `V2`: its bits, little endian |
//! | string | `S<n>`; zero bytes at the end are padding. `U<n>` is read too, as UTF-8 |
//! | qint8, quint8, qint16, quint16, qint32 | int8, uint8, int16, uint16, int32 |
//!
//! A file does not say that its integers are quantised: the caller names the expected type. Big-endian and
//! Fortran-ordered files are converted. Files are read whole; a header that promises more than the file
//! holds allocates nothing, and one of strings without a width is refused. Archives are in [`crate::npz`]. Not here: pickled
//! objects, structured arrays.

use npyz::{
    DType as FileType, Endianness, NpyHeader, Order, TypeChar, TypeStr, WriteOptions, WriterBuilder,
};
use std::{borrow::Cow, collections::TryReserveError, fs, path::Path};
use tenon_framework::{DType, Shape, Tensor, shape::ShapeError};
use tenon_runtime::host::files::write_bytes;

mod error;

pub use error::NpyError;

/// Reads a file. `expected` is the element type that it should hold: it tells quantised integers from
/// ordinary ones, and another type is an error.
///
/// # Errors
/// The problem with the file, by its name.
pub fn read(path: impl AsRef<Path>, expected: Option<DType>) -> Result<Tensor, NpyError> {
    let path = path.as_ref();
    let file = path.display().to_string();
    let bytes = fs::read(path).map_err(|error| NpyError::Read {
        file: file.clone(),
        kind: error.kind(),
        detail: error.to_string(),
    })?;
    parse(&bytes, &file, expected)
}

/// Reads the contents of a file; `file` is its name for errors.
///
/// # Errors
/// As [`read`].
pub fn parse(bytes: &[u8], file: &str, expected: Option<DType>) -> Result<Tensor, NpyError> {
    let wrong = |detail: String| NpyError::Header { file: file.to_owned(), detail };
    check_header(bytes).map_err(wrong)?;
    let mut data = bytes;
    let header = NpyHeader::from_reader(&mut data).map_err(|error| wrong(error.to_string()))?;
    let foreign = || NpyError::ElementType { file: file.to_owned(), found: header.dtype().descr() };
    let FileType::Plain(element) = header.dtype() else { return Err(foreign()) };
    let natural = natural_type(&element).ok_or_else(foreign)?;
    let dtype = match expected {
        None => natural,
        Some(expected) if stored_as(expected) == natural => expected,
        Some(expected) => {
            return Err(NpyError::Type { file: file.to_owned(), expected, found: natural });
        }
    };
    let in_shape = |source| NpyError::Shape { file: file.to_owned(), source };
    let dims: Vec<i64> =
        header.shape().iter().map(|&dim| i64::try_from(dim).unwrap_or(i64::MAX)).collect();
    let shape = Shape::new(&dims).map_err(in_shape)?;
    let item = element.num_bytes().ok_or_else(foreign)?;
    let overflow = || in_shape(ShapeError::Overflow { dims: dims.clone() });
    let expected = (shape.elements() as u64).checked_mul(item as u64).ok_or_else(overflow)?;
    if expected != data.len() as u64 {
        let (file, shape, found) = (file.to_owned(), Box::new(shape), data.len());
        return Err(NpyError::Length { file, shape, item, expected, found });
    }
    if item == 0 && shape.elements() > 0 {
        let (file, found) = (file.to_owned(), header.dtype().descr());
        return Err(NpyError::NoWidth { file, shape: Box::new(shape), found });
    }
    let no_memory = |_| NpyError::NoMemory { file: file.to_owned(), bytes: data.len() };
    let mut data = Cow::Borrowed(data);
    if element.endianness() == Endianness::Big {
        data = Cow::Owned(swapped(&data, scalar_size(&element, item)).map_err(no_memory)?);
    }
    if header.order() == Order::Fortran && shape.rank() > 1 && item > 0 {
        data = Cow::Owned(to_row_major(&data, &dims, item).map_err(no_memory)?);
    }
    match element.type_char() {
        TypeChar::ByteStr => byte_strings(&shape, &data, item, file),
        TypeChar::UnicodeStr => texts(&shape, &data, item, file),
        _ => Tensor::from_bytes(dtype, &dims, &data)
            .map_err(|source| NpyError::Tensor { file: file.to_owned(), source }),
    }
}

/// Writes a host tensor.
///
/// # Errors
/// Elements that a file cannot keep (resources, strings that end in a zero byte), memory of a device, and
/// what the system says.
pub fn write(path: impl AsRef<Path>, tensor: &Tensor) -> Result<(), NpyError> {
    let path = path.as_ref();
    let file = path.display().to_string();
    let bytes = encode(tensor, &file)?;
    write_bytes(path, bytes).map_err(|error| NpyError::Write { file, detail: error.to_string() })
}

/// The contents of the file of a host tensor; `file` is its name for errors.
///
/// # Errors
/// As [`write()`].
pub fn encode(tensor: &Tensor, file: &str) -> Result<Vec<u8>, NpyError> {
    let refused = |source| NpyError::Tensor { file: file.to_owned(), source };
    let (element, data) = match file_type(tensor.dtype()) {
        Some(element) => (element.to_owned(), tensor.as_bytes().map_err(refused)?.to_vec()),
        None => {
            let strings = tensor.as_strings().map_err(refused)?;
            let width = strings.iter().map(|value| value.len()).max().unwrap_or(0).max(1);
            (format!("|S{width}"), padded(&strings, width, file)?)
        }
    };
    let failed = |detail: String| NpyError::Write { file: file.to_owned(), detail };
    let element: TypeStr = element.parse().map_err(|error| failed(format!("{error}")))?;
    let shape: Vec<u64> = tensor.shape().dims().iter().map(|&dim| dim as u64).collect();
    let mut bytes = WriteOptions::new_header_only()
        .dtype(FileType::new_scalar(element))
        .shape(&shape)
        .writer(Vec::with_capacity(data.len() + 128))
        .write_header_only()
        .map_err(|error| failed(error.to_string()))?;
    bytes.extend_from_slice(&data);
    Ok(bytes)
}

/// Whether a file has a place for numbers of this type, or keeps their bits.
pub fn has_type(dtype: DType) -> bool {
    file_type(dtype).is_some()
}

/// NumPy's type of the elements; `None` for strings and what only fails later.
fn file_type(dtype: DType) -> Option<&'static str> {
    Some(match stored_as(dtype) {
        DType::BOOL => "|b1",
        DType::INT8 => "|i1",
        DType::INT16 => "<i2",
        DType::INT32 => "<i4",
        DType::INT64 => "<i8",
        DType::UINT8 => "|u1",
        DType::UINT16 => "<u2",
        DType::UINT32 => "<u4",
        DType::UINT64 => "<u8",
        DType::HALF => "<f2",
        DType::BFLOAT16 => "|V2",
        DType::FLOAT => "<f4",
        DType::DOUBLE => "<f8",
        DType::COMPLEX64 => "<c8",
        DType::COMPLEX128 => "<c16",
        _ => return None,
    })
}

/// The type under which a quantised type is stored; others are themselves.
fn stored_as(dtype: DType) -> DType {
    match dtype {
        DType::QINT8 => DType::INT8,
        DType::QUINT8 => DType::UINT8,
        DType::QINT16 => DType::INT16,
        DType::QUINT16 => DType::UINT16,
        DType::QINT32 => DType::INT32,
        other => other,
    }
}

fn natural_type(element: &TypeStr) -> Option<DType> {
    Some(match (element.type_char(), element.size_field()) {
        (TypeChar::Bool, 1) => DType::BOOL,
        (TypeChar::Int, 1) => DType::INT8,
        (TypeChar::Int, 2) => DType::INT16,
        (TypeChar::Int, 4) => DType::INT32,
        (TypeChar::Int, 8) => DType::INT64,
        (TypeChar::Uint, 1) => DType::UINT8,
        (TypeChar::Uint, 2) => DType::UINT16,
        (TypeChar::Uint, 4) => DType::UINT32,
        (TypeChar::Uint, 8) => DType::UINT64,
        (TypeChar::Float, 2) => DType::HALF,
        (TypeChar::Float, 4) => DType::FLOAT,
        (TypeChar::Float, 8) => DType::DOUBLE,
        (TypeChar::Complex, 8) => DType::COMPLEX64,
        (TypeChar::Complex, 16) => DType::COMPLEX128,
        (TypeChar::RawData, 2) => DType::BFLOAT16,
        (TypeChar::ByteStr | TypeChar::UnicodeStr, _) => DType::STRING,
        _ => return None,
    })
}

/// Longest header that is read; NumPy's own have some hundred bytes.
const HEADER_BYTES: usize = 64 << 10;
/// Deepest nesting of brackets: a dictionary with a tuple in it, and one to spare.
const HEADER_DEPTH: usize = 3;

/// Checks the assumptions of the parser: a header that is in the file, is short and flat, and whose
/// numbers multiply to less than 2^63.
fn check_header(bytes: &[u8]) -> Result<(), String> {
    let Some(([0x93, b'N', b'U', b'M', b'P', b'Y', major, _], rest)) = bytes.split_first_chunk()
    else {
        return Err("a file that does not begin as one".to_owned());
    };
    let (length, rest) = match (major, rest) {
        (1, [a, b, rest @ ..]) => (u64::from(u16::from_le_bytes([*a, *b])), rest),
        (2 | 3, [a, b, c, d, rest @ ..]) => (u64::from(u32::from_le_bytes([*a, *b, *c, *d])), rest),
        (1..=3, _) => return Err("a file that ends in its header".to_owned()),
        _ => return Err(format!("format version {major}, while 1 to 3 are known")),
    };
    if length > HEADER_BYTES as u64 {
        return Err(format!("a header of {length} bytes, while {HEADER_BYTES} are read at most"));
    }
    let text = rest.get(..length as usize).ok_or("a file that ends in its header")?;
    check_header_text(std::str::from_utf8(text).map_err(|_| "a header that is not UTF-8")?)
}

fn check_header_text(text: &str) -> Result<(), String> {
    let (mut quote, mut depth, mut number, mut product) = (None, 0usize, 0i64, 1i64);
    let overflow = || "a shape of more than 2^63 - 1 elements".to_owned();
    for c in text.chars() {
        if let Some(digit) = c.to_digit(10).filter(|_| quote.is_none()) {
            let next = number.checked_mul(10).and_then(|n| n.checked_add(i64::from(digit)));
            number = next.ok_or_else(overflow)?;
            continue;
        }
        // A zero makes the array empty, and excuses no overflow beside it.
        product = product.checked_mul(number.max(1)).ok_or_else(overflow)?;
        number = 0;
        match (quote, c) {
            (_, '\\') => return Err("a header with a backslash".to_owned()),
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '{' | '(' | '[') => depth += 1,
            (None, '}' | ')' | ']') => depth = depth.saturating_sub(1),
            (None, c) if c.is_whitespace() || ":,TrueFalse".contains(c) => {}
            (None, c) => return Err(format!("a header with {c:?} outside of quotes")),
        }
        if depth > HEADER_DEPTH {
            return Err(format!("a header nested more than {HEADER_DEPTH} deep"));
        }
    }
    Ok(())
}

/// Size of what has an order of bytes within an element.
fn scalar_size(element: &TypeStr, item: usize) -> usize {
    match element.type_char() {
        TypeChar::Complex => item / 2,
        TypeChar::UnicodeStr => 4,
        _ => item,
    }
}

fn swapped(data: &[u8], size: usize) -> Result<Vec<u8>, TryReserveError> {
    let mut swapped = reserved(data.len())?;
    swapped.extend_from_slice(data);
    swapped.chunks_exact_mut(size.max(1)).for_each(<[u8]>::reverse);
    Ok(swapped)
}

/// Empty, with room for this many.
fn reserved<T>(len: usize) -> Result<Vec<T>, TryReserveError> {
    let mut values = Vec::new();
    values.try_reserve_exact(len)?;
    Ok(values)
}

/// Elements in the order of Fortran, first index fastest, brought into row-major order.
fn to_row_major(data: &[u8], dims: &[i64], item: usize) -> Result<Vec<u8>, TryReserveError> {
    let mut strides = Vec::with_capacity(dims.len());
    let mut stride = 1usize;
    for &dim in dims {
        strides.push(stride);
        stride *= dim as usize;
    }
    let mut index = vec![0usize; dims.len()];
    let mut out = reserved(data.len())?;
    for _ in 0..data.len() / item {
        let at: usize = index.iter().zip(&strides).map(|(index, stride)| index * stride).sum();
        out.extend_from_slice(&data[at * item..(at + 1) * item]);
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            if index[axis] < dims[axis] as usize {
                break;
            }
            index[axis] = 0;
        }
    }
    Ok(out)
}

fn without_padding(value: &[u8]) -> &[u8] {
    let end = value.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &value[..end]
}

fn byte_strings(shape: &Shape, data: &[u8], item: usize, file: &str) -> Result<Tensor, NpyError> {
    let no_memory = |_| NpyError::NoMemory { file: file.to_owned(), bytes: data.len() };
    let mut values = reserved(shape.elements()).map_err(no_memory)?;
    values.extend(data.chunks_exact(item.max(1)).map(without_padding));
    Tensor::from_strings(shape.dims(), &values)
        .map_err(|source| NpyError::Tensor { file: file.to_owned(), source })
}

/// Texts of 32-bit characters, little endian by now.
fn texts(shape: &Shape, data: &[u8], item: usize, file: &str) -> Result<Tensor, NpyError> {
    let no_memory = |_| NpyError::NoMemory { file: file.to_owned(), bytes: data.len() };
    let mut values = reserved(shape.elements()).map_err(no_memory)?;
    for index in 0..shape.elements() {
        let mut text = String::new();
        for unit in data[index * item..(index + 1) * item].chunks_exact(4) {
            let value = u32::from_le_bytes([unit[0], unit[1], unit[2], unit[3]]);
            let file = || file.to_owned();
            let character = char::from_u32(value).ok_or_else(|| NpyError::Character {
                file: file(),
                index,
                value,
            })?;
            text.push(character);
        }
        values.push(text.trim_end_matches('\0').to_owned());
    }
    Tensor::from_strings(shape.dims(), &values)
        .map_err(|source| NpyError::Tensor { file: file.to_owned(), source })
}

fn padded(strings: &[&[u8]], width: usize, file: &str) -> Result<Vec<u8>, NpyError> {
    let too_large = || {
        let dims = vec![strings.len() as i64, width as i64];
        NpyError::Shape { file: file.to_owned(), source: ShapeError::Overflow { dims } }
    };
    let total = strings.len().checked_mul(width).filter(|&n| n <= isize::MAX as usize);
    let mut data = Vec::with_capacity(total.ok_or_else(too_large)?);
    for (index, value) in strings.iter().enumerate() {
        if value.last() == Some(&0) {
            return Err(NpyError::TrailingZero { file: file.to_owned(), index });
        }
        data.extend_from_slice(value);
        data.resize(data.len() + (width - value.len()), 0);
    }
    Ok(data)
}

#[cfg(test)]
mod tests;
