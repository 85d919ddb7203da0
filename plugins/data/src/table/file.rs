//! Tables that are filled with the lines of a file.

use super::{
    Table,
    column::Values,
    key::{Key, owned},
};
use crate::{
    files::{Access, path_of},
    place::input,
};
use std::io::{BufReader, Read};
use tenon_sdk::{growth, prelude::*};

/// What a line gives for a key or a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// All of it.
    Line,
    /// Its number, from 0 on.
    Number,
    /// A column.
    Column(usize),
}

impl Part {
    fn new(c: &CreateContext<'_>, attr: &str) -> Result<Part, KernelError> {
        match c.attr::<i64>(attr)? {
            -2 => Ok(Part::Line),
            -1 => Ok(Part::Number),
            column => usize::try_from(column).map(Part::Column).map_err(|_| {
                KernelError::invalid_argument(format!(
                    "{attr}: expected -2 for the line, -1 for its number or a column, found {column}"
                ))
            }),
        }
    }

    /// Checks that elements of a type can be made of it.
    fn check(self, what: &str, table: &Table, dtype: DType) -> Result<(), KernelError> {
        let expected = match self {
            Part::Number if dtype != DType::INT64 => "int64 for the number of a line",
            Part::Line if !matches!(dtype, DType::STRING | DType::INT32 | DType::INT64) => {
                "string or an integer type for a whole line"
            }
            _ if dtype == DType::BOOL => "string or a type of numbers for a column",
            _ => return Ok(()),
        };
        Err(KernelError::invalid_argument(format!(
            "{what}: expected type {expected}, found {dtype} in {}",
            table.name
        )))
    }
}

struct FromFile {
    access: Access,
    key: Part,
    value: Part,
    size: Option<u64>,
    delimiter: u8,
    /// What is added to the numbers of lines and, as in TensorFlow, to columns of int32.
    offset: i64,
}

impl Kernel for FromFile {
    const MODE: Mode = Mode::Blocking;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let delimiter = c.attr::<&[u8]>("delimiter")?;
        let &[delimiter] = delimiter else {
            return Err(KernelError::invalid_argument(format!(
                "delimiter: expected one character of one byte, found {} bytes",
                delimiter.len()
            )));
        };
        Ok(FromFile {
            access: crate::files::access(c)?,
            key: Part::new(c, "key_index")?,
            value: Part::new(c, "value_index")?,
            size: u64::try_from(c.attr::<i64>("vocab_size")?).ok(),
            delimiter,
            offset: c.attr("offset")?,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let table = input::<Table>(c)?;
        self.key.check("key_index", &table, table.key)?;
        self.value.check("value_index", &table, table.value)?;
        let (&[name], []) = (&c.strings(1)?[..], c.dims(1)) else {
            return Err(KernelError::invalid_argument(format!(
                "filename: expected a scalar, found shape {:?}",
                c.dims(1)
            )));
        };
        let path = path_of(name);
        let file = self.access.open("filename", &path, tenon_files::Purpose::Read)?;
        let mut lines = Lines::new(file, path.display().to_string());
        let parsed = self.parse(c, &table, &mut lines)?;
        let values = parsed.values.as_values()?;
        match table.content().fill(&table.name, parsed.keys, &values) {
            // Many nodes may fill a table from its file, of which one does.
            Err(error)
                if error.code == Code::FAILED_PRECONDITION && table.content().is_filled() =>
            {
                Ok(())
            }
            result => result,
        }
    }
}

/// Values that were made of lines.
enum Made {
    Bytes(Vec<u8>),
    Texts(Vec<Box<[u8]>>),
}

impl Made {
    fn as_values(&self) -> Result<Values<'_>, KernelError> {
        Ok(match self {
            Made::Bytes(bytes) => Values::Bytes(bytes),
            Made::Texts(texts) => {
                Values::Texts(growth::collected(texts.iter().map(|text| &**text))?)
            }
        })
    }

    fn push(&mut self, dtype: DType, text: &[u8], line: &Lines) -> Result<(), KernelError> {
        let bytes = match self {
            Made::Texts(texts) => return growth::push(texts, owned(text)?),
            Made::Bytes(bytes) => bytes,
        };
        match dtype {
            DType::INT64 => growth::append(bytes, &line.parsed::<i64>(text)?.to_ne_bytes()),
            DType::FLOAT => growth::append(bytes, &line.parsed::<f32>(text)?.to_ne_bytes()),
            _ => growth::append(bytes, &line.parsed::<f64>(text)?.to_ne_bytes()),
        }
    }
}

struct Parsed {
    keys: Vec<Key>,
    values: Made,
}

impl FromFile {
    fn parse(
        &self,
        c: &ComputeContext<'_>,
        table: &Table,
        lines: &mut Lines,
    ) -> Result<Parsed, KernelError> {
        let values = match table.value {
            DType::STRING => Made::Texts(Vec::new()),
            _ => Made::Bytes(Vec::new()),
        };
        let mut parsed = Parsed { keys: Vec::new(), values };
        let (watch, mut number) = (c.watch(), 0u64);
        while self.size.is_none_or(|size| number < size) && lines.next_word()? {
            watch.check()?;
            let text = self.offset.wrapping_add(number as i64).to_string();
            let key = self.part(self.key, &text, lines)?;
            growth::push(
                &mut parsed.keys,
                match table.key {
                    DType::STRING => Key::Text(owned(key)?),
                    DType::INT32 => Key::Integer(self.int32(lines, key)?.into()),
                    _ => Key::Integer(lines.parsed(key)?),
                },
            )?;
            let value = self.part(self.value, &text, lines)?;
            match &mut parsed.values {
                Made::Bytes(bytes) if table.value == DType::INT32 => {
                    growth::append(bytes, &self.int32(lines, value)?.to_ne_bytes())?;
                }
                values => values.push(table.value, value, lines)?,
            }
            number += 1;
        }
        match self.size {
            Some(size) if number < size => Err(KernelError::invalid_argument(format!(
                "vocab_size: expected {size} lines in '{}', found {number}",
                lines.name
            ))),
            _ => Ok(parsed),
        }
    }

    fn int32(&self, lines: &Lines, text: &[u8]) -> Result<i32, KernelError> {
        Ok(lines.parsed::<i32>(text)?.wrapping_add(self.offset as i32))
    }

    fn part<'l>(
        &self,
        part: Part,
        number: &'l str,
        lines: &'l Lines,
    ) -> Result<&'l [u8], KernelError> {
        match part {
            Part::Line => Ok(&lines.line),
            Part::Number => Ok(number.as_bytes()),
            Part::Column(at) => {
                let mut columns = lines.line.split(|byte| *byte == self.delimiter);
                columns
                    .nth(at)
                    .ok_or_else(|| lines.wrong(&format!("expected at least {} columns", at + 1)))
            }
        }
    }
}

/// The lines of a file, without their ends.
pub(super) struct Lines {
    bytes: std::io::Bytes<BufReader<std::fs::File>>,
    pub(super) name: String,
    /// The line that was read last.
    pub(super) line: Vec<u8>,
    /// Its number, from 1 on.
    number: u64,
}

impl Lines {
    pub(super) fn new(file: std::fs::File, name: String) -> Lines {
        Lines { bytes: BufReader::new(file).bytes(), name, line: Vec::new(), number: 0 }
    }

    /// Reads a line, which must not be empty; whether there was one.
    pub(super) fn next_word(&mut self) -> Result<bool, KernelError> {
        match self.next()? {
            true if self.line.is_empty() => Err(self.wrong("expected a line that is not empty")),
            found => Ok(found),
        }
    }

    /// Reads a line; whether there was one.
    fn next(&mut self) -> Result<bool, KernelError> {
        self.line.clear();
        let mut is_there = false;
        for byte in &mut self.bytes {
            let byte = byte.map_err(|error| {
                KernelError::new(Code::UNKNOWN, format!("file '{}': {error}", self.name))
            })?;
            is_there = true;
            match byte {
                b'\n' => break,
                b'\r' => {}
                byte => growth::push(&mut self.line, byte)?,
            }
        }
        self.number += u64::from(is_there);
        Ok(is_there)
    }

    fn wrong(&self, expected: &str) -> KernelError {
        KernelError::invalid_argument(format!(
            "line {} of '{}': {expected}, found '{}'",
            self.number,
            self.name,
            String::from_utf8_lossy(&self.line)
        ))
    }

    fn parsed<T: std::str::FromStr>(&self, text: &[u8]) -> Result<T, KernelError> {
        let number = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
        number.ok_or_else(|| {
            self.wrong(&format!("expected {} in a column", std::any::type_name::<T>()))
        })
    }
}

register_kernel!("InitializeTableFromTextFile" on "CPU": FromFile);
register_kernel!("InitializeTableFromTextFileV2" on "CPU": FromFile);
