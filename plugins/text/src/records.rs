//! `DecodeRaw` and `DecodeCSV`.

use crate::{number::Parse, shown};
use std::borrow::Cow;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Element,
    geometry::Dims,
    growth,
    reg::Numerics,
    register_kernel,
};

struct DecodeRaw {
    /// Bytes of an element, and of its parts: a complex number has two parts.
    size: usize,
    part: usize,
    swap: bool,
    dtype: DType,
}

impl Kernel for DecodeRaw {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let dtype: DType = c.attr("out_type")?;
        let size = dtype.size().unwrap_or(1);
        let complex = matches!(dtype, DType::COMPLEX64 | DType::COMPLEX128);
        let swap = c.attr::<bool>("little_endian")? != cfg!(target_endian = "little");
        Ok(DecodeRaw { size, part: if complex { size / 2 } else { size }, swap, dtype })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let texts = c.strings(0)?;
        let len = texts.first().map_or(0, |text| text.len());
        if let Some(at) = texts.iter().position(|text| text.len() != len) {
            return Err(KernelError::invalid_argument(format!(
                "bytes must hold strings of one length: expected {len} at index {at}, found {}",
                texts[at].len()
            )));
        }
        if !len.is_multiple_of(self.size) {
            return Err(KernelError::invalid_argument(format!(
                "bytes must hold strings of a multiple of {} bytes, the size of {}, found {len}",
                self.size, self.dtype
            )));
        }
        let mut dims = Dims::from_slice(c.dims(0))?;
        dims.push((len / self.size) as i64)?;
        let y = c.output_bytes(0, &dims)?;
        for (y, text) in y.chunks_exact_mut(len.max(1)).zip(texts) {
            y.copy_from_slice(text);
        }
        if self.swap {
            y.chunks_exact_mut(self.part).for_each(<[u8]>::reverse);
        }
        if self.dtype == DType::BOOL {
            y.iter_mut().for_each(|y| *y = u8::from(*y != 0));
        }
        Ok(())
    }
}

register_kernel!("DecodeRaw" on "CPU": DecodeRaw, numerics = Numerics::EXACT);

struct DecodeCsv {
    delimiter: u8,
    quotes: bool,
    missing: Vec<u8>,
    /// The selected columns; empty for all.
    columns: Vec<usize>,
    types: Vec<DType>,
}

impl Kernel for DecodeCsv {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let invalid = |message: String| Err(KernelError::invalid_argument(message));
        let types = c.output_types().to_vec();
        let delimiter: &[u8] = c.attr("field_delim")?;
        let &[delimiter] = delimiter else {
            return invalid(format!("field_delim must be one byte, found '{}'", shown(delimiter)));
        };
        let columns: Vec<i64> = c.attr("select_cols")?;
        if !columns.is_empty() && columns.len() != types.len() {
            let (wanted, found) = (types.len(), columns.len());
            return invalid(format!("select_cols must name {wanted} columns, found {found}"));
        }
        if !columns.is_sorted_by(|a, b| a < b) || columns.first().is_some_and(|&first| first < 0) {
            return invalid(format!(
                "select_cols must be at least 0 and strictly increasing, found {columns:?}"
            ));
        }
        Ok(DecodeCsv {
            delimiter,
            quotes: c.attr("use_quote_delim")?,
            missing: c.attr::<&[u8]>("na_value")?.to_vec(),
            columns: columns.into_iter().map(|column| column as usize).collect(),
            types,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        for column in 0..self.types.len() {
            let dims = c.dims(1 + column);
            if dims.len() > 1 || dims.first().is_some_and(|&size| size > 1) {
                return Err(KernelError::invalid_argument(format!(
                    "record_defaults[{column}] must be a scalar or hold at most 1 value, found shape {dims:?}"
                )));
            }
        }
        let records = self.records(c)?;
        for (column, dtype) in self.types.iter().enumerate() {
            match *dtype {
                DType::FLOAT => self.numbers::<f32>(c, column, &records)?,
                DType::DOUBLE => self.numbers::<f64>(c, column, &records)?,
                DType::INT32 => self.numbers::<i32>(c, column, &records)?,
                DType::INT64 => self.numbers::<i64>(c, column, &records)?,
                _ => self.texts(c, column, &records)?,
            }
        }
        Ok(())
    }
}

register_kernel!("DecodeCSV" on "CPU": DecodeCsv, numerics = Numerics::EXACT);

/// The fields of all records, one after the other: slices of the input, except for those with
/// quotes in them.
type Fields<'a> = Vec<Cow<'a, [u8]>>;

impl DecodeCsv {
    fn is_missing(&self, field: &[u8]) -> bool {
        field.is_empty() || field == self.missing
    }

    fn numbers<T: Element + Parse>(
        &self,
        c: &ComputeContext<'_>,
        column: usize,
        records: &Fields<'_>,
    ) -> Result<(), KernelError> {
        let default = c.input::<T>(1 + column)?.data.first();
        let y = c.output::<T>(column, c.dims(0))?.data;
        for (number, y) in y.iter_mut().enumerate() {
            let field = &records[number * self.types.len() + column];
            *y = if self.is_missing(field) {
                *default.ok_or_else(|| required(number, column))?
            } else {
                T::parse(field).ok_or_else(|| {
                    let (field, dtype) = (shown(field), T::DTYPE);
                    KernelError::invalid_argument(format!(
                        "records[{number}]: field {column} is '{field}', which is not a value of {dtype}"
                    ))
                })?
            };
        }
        Ok(())
    }

    fn texts(
        &self,
        c: &ComputeContext<'_>,
        column: usize,
        records: &Fields<'_>,
    ) -> Result<(), KernelError> {
        let default = c.strings(1 + column)?.first().copied();
        c.write_texts(column, c.dims(0), |number, text| {
            match &records[number * self.types.len() + column] {
                field if self.is_missing(field) => {
                    growth::append(text, default.ok_or_else(|| required(number, column))?)
                }
                field => growth::append(text, field),
            }
        })
    }

    /// The selected fields of all records.
    fn records<'a>(&self, c: &ComputeContext<'a>) -> Result<Fields<'a>, KernelError> {
        let mut records = Fields::new();
        for (number, record) in c.strings(0)?.into_iter().enumerate() {
            if number % LOOK == 0 {
                c.watch().check()?;
            }
            let before = records.len();
            self.fields(record, &mut records).map_err(|why| match why {
                Wrong::Form(why) => {
                    KernelError::invalid_argument(format!("records[{number}]: {why}"))
                }
                Wrong::Memory(error) => error,
            })?;
            let (wanted, found) = (self.types.len(), records.len() - before);
            if found != wanted {
                return Err(KernelError::invalid_argument(format!(
                    "records[{number}]: expected {wanted} fields, found {found}"
                )));
            }
        }
        Ok(records)
    }

    /// Whether field `number` of a record is selected, after `taken` selected ones.
    fn wants(&self, number: usize, taken: usize) -> bool {
        self.columns.is_empty() || self.columns.get(taken) == Some(&number)
    }

    /// Appends the selected fields of a record.
    fn fields<'a>(&self, record: &'a [u8], fields: &mut Fields<'a>) -> Result<(), Wrong> {
        let (before, mut at, mut number) = (fields.len(), 0, 0);
        while at < record.len() {
            // Only before a field: a line end within a field is refused.
            if matches!(record[at], b'\n' | b'\r') {
                at += 1;
                continue;
            }
            let quoted = self.quotes && record[at] == b'"';
            let (field, next) =
                if quoted { self.quoted(record, at + 1)? } else { self.unquoted(record, at)? };
            at = next;
            if self.wants(number, fields.len() - before) {
                growth::push(fields, field)?;
                if fields.len() - before == self.columns.len() {
                    return Ok(());
                }
            }
            number += 1;
        }
        if record.last() == Some(&self.delimiter) && self.wants(number, fields.len() - before) {
            growth::push(fields, Cow::Borrowed(&[][..]))?;
        }
        Ok(())
    }

    fn unquoted<'a>(&self, record: &'a [u8], at: usize) -> Result<(Cow<'a, [u8]>, usize), Wrong> {
        let rest = &record[at..];
        let len = rest.iter().position(|c| *c == self.delimiter).unwrap_or(rest.len());
        let field = &rest[..len];
        if field.iter().any(|c| matches!(c, b'\n' | b'\r') || (self.quotes && *c == b'"')) {
            let why = "a field without quotes around it holds a quote or an end of line";
            return Err(Wrong::Form(why));
        }
        Ok((Cow::Borrowed(field), at + len + 1))
    }

    /// Parses a field after its opening quote.
    fn quoted<'a>(&self, record: &'a [u8], mut at: usize) -> Result<(Cow<'a, [u8]>, usize), Wrong> {
        let mut field = Vec::new();
        loop {
            match (record.get(at), record.get(at + 1)) {
                (Some(b'"'), None) => return Ok((field.into(), at + 2)),
                (Some(b'"'), Some(c)) if *c == self.delimiter => return Ok((field.into(), at + 2)),
                (Some(b'"'), Some(b'"')) => {
                    growth::push(&mut field, b'"')?;
                    at += 2;
                }
                (Some(b'"'), _) => {
                    return Err(Wrong::Form("a quote inside quotes must be written twice"));
                }
                (Some(c), Some(_)) => {
                    growth::push(&mut field, *c)?;
                    at += 1;
                }
                _ => {
                    return Err(Wrong::Form("a field that begins with a quote must end with one"));
                }
            }
        }
    }
}

/// What is wrong with a record.
enum Wrong {
    /// An invalid form.
    Form(&'static str),
    /// Out of memory for its fields.
    Memory(KernelError),
}

impl From<KernelError> for Wrong {
    fn from(error: KernelError) -> Wrong {
        Wrong::Memory(error)
    }
}

/// Number of records between checks whether the step still needs the fields.
const LOOK: usize = 1024;

fn required(record: usize, column: usize) -> KernelError {
    KernelError::invalid_argument(format!(
        "records[{record}]: field {column} is empty, and record_defaults[{column}] holds no value"
    ))
}
