//! `RaggedTensorToTensor`.

use super::splits::splits_in;
use crate::sparse::{MOVED, Values};
use tenon_sdk::{
    geometry::{GeometryError, element_count},
    growth,
    prelude::*,
};

/// The place of what has none, since it is beyond the size that was asked for.
const NONE: i64 = -1;

/// How values are divided into the rows of a ragged dimension.
enum Division {
    /// The number of the first value of each row, and that of all.
    Splits(Vec<i64>),
    /// The row of each value; they do not descend.
    RowIds(Vec<i64>),
}

impl Division {
    fn new(c: &ComputeContext<'_>, kind: &[u8], input: usize) -> Result<Division, KernelError> {
        match kind {
            b"ROW_SPLITS" => splits_in(c, input, None).map(Division::Splits),
            b"VALUE_ROWIDS" => {
                if c.dims(input).len() != 1 {
                    let (what, found) = ("value_rowids", c.dims(input).len());
                    return Err(GeometryError::Rank { what, expected: 1, found }.into());
                }
                let ids = c.integers(input)?;
                match ids.is_sorted() && ids.first().is_none_or(|&id| id >= 0) {
                    true => Ok(Division::RowIds(ids)),
                    false => Err(KernelError::invalid_argument(
                        "value_rowids: expected rows from 0 on that do not descend, found others",
                    )),
                }
            }
            other => Err(KernelError::invalid_argument(format!(
                "row_partition_types: expected ROW_SPLITS or VALUE_ROWIDS, after FIRST_DIM_SIZE at most, found {}",
                String::from_utf8_lossy(other)
            ))),
        }
    }

    /// The length of the longest row.
    fn width(&self) -> i64 {
        match self {
            Division::Splits(splits) => {
                splits.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
            }
            Division::RowIds(ids) => {
                let rows = ids.chunk_by(|a, b| a == b);
                rows.map(|row| row.len() as i64).max().unwrap_or(0)
            }
        }
    }

    /// The places of the values, from those of the rows. Values are `step` apart, and a row has `size` places.
    fn places(&self, rows: &[i64], step: i64, size: i64) -> Result<Vec<i64>, KernelError> {
        let mut places = Vec::new();
        let mut row_of = |row: i64, count: usize| {
            let start =
                usize::try_from(row).ok().and_then(|row| rows.get(row)).ok_or_else(|| {
                    KernelError::invalid_argument(format!(
                        "row_partition_tensors: expected rows below {}, found {row}",
                        rows.len()
                    ))
                })?;
            growth::reserve(&mut places, count)?;
            let within = |column: i64| *start != NONE && column < size;
            let columns = 0..count as i64;
            places.extend(
                columns.map(|column| if within(column) { start + column * step } else { NONE }),
            );
            Ok::<(), KernelError>(())
        };
        match self {
            Division::Splits(splits) => {
                if splits.len() - 1 != rows.len() {
                    let (what, expected) = ("row_splits", rows.len() + 1);
                    let found = splits.len();
                    return Err(GeometryError::Length { what, expected, found }.into());
                }
                for (row, pair) in splits.windows(2).enumerate() {
                    row_of(row as i64, (pair[1] - pair[0]) as usize)?;
                }
            }
            Division::RowIds(ids) => {
                for row in ids.chunk_by(|a, b| a == b) {
                    row_of(row[0], row.len())?;
                }
            }
        }
        Ok(places)
    }
}

/// How a ragged tensor is divided into rows.
struct Rows {
    /// The number of outermost rows.
    first: i64,
    /// The ragged dimensions, from the outermost one.
    divisions: Vec<Division>,
}

impl Rows {
    fn new(c: &ComputeContext<'_>, kinds: &[Vec<u8>]) -> Result<Rows, KernelError> {
        let inputs = c.input_range(3);
        if inputs.len() != kinds.len() {
            return Err(KernelError::invalid_argument(format!(
                "row_partition_types: expected {}, one for each tensor, found {}",
                inputs.len(),
                kinds.len()
            )));
        }
        let sized = kinds.first().is_some_and(|kind| kind == b"FIRST_DIM_SIZE");
        let mut divisions = growth::with_room(kinds.len())?;
        for (input, kind) in inputs.clone().zip(kinds).skip(usize::from(sized)) {
            divisions.push(Division::new(c, kind, input)?);
        }
        if sized && matches!(divisions.first(), Some(Division::Splits(_))) {
            return Err(KernelError::invalid_argument(
                "row_partition_types: expected VALUE_ROWIDS after FIRST_DIM_SIZE, found ROW_SPLITS",
            ));
        }
        let first = match (sized, divisions.first()) {
            (_, None) => {
                return Err(KernelError::invalid_argument(
                    "row_partition_types: expected a ragged dimension, found none",
                ));
            }
            (true, _) => c.integer(inputs.start, "FIRST_DIM_SIZE")?,
            (false, Some(Division::Splits(splits))) => splits.len() as i64 - 1,
            (false, Some(Division::RowIds(_))) => {
                return Err(KernelError::invalid_argument(
                    "row_partition_types: expected FIRST_DIM_SIZE before VALUE_ROWIDS, found none",
                ));
            }
        };
        match first {
            found if found < 0 => {
                Err(GeometryError::TooSmall { what: "FIRST_DIM_SIZE", least: 0, found }.into())
            }
            first => Ok(Rows { first, divisions }),
        }
    }

    /// The sizes of the result, which input `shape` gives; those that it leaves open follow from the rows.
    fn dims(&self, c: &ComputeContext<'_>, inner: &[i64]) -> Result<Vec<i64>, KernelError> {
        let rank = 1 + self.divisions.len() + inner.len();
        let mut dims = c.integers(0)?;
        if c.dims(0).is_empty() && dims == [NONE] {
            dims = growth::filled(rank, NONE)?;
        }
        if c.dims(0).len() > 1 || dims.len() != rank {
            return Err(KernelError::invalid_argument(format!(
                "shape: expected {rank} sizes, or the scalar -1, found {dims:?} of shape {:?}",
                c.dims(0)
            )));
        }
        let own = self.divisions.iter().map(Division::width);
        let own = std::iter::once(self.first).chain(own).chain(inner.iter().copied());
        for (at, (size, own)) in dims.iter_mut().zip(own).enumerate() {
            let is_inner = at > self.divisions.len();
            match *size {
                NONE => *size = own,
                found if found < NONE => {
                    return Err(
                        GeometryError::TooSmall { what: "shape", least: NONE, found }.into()
                    );
                }
                found if is_inner && found != own => {
                    let (what, expected) = ("a size of shape", own);
                    return Err(GeometryError::SizeMismatch { what, expected, found }.into());
                }
                _ => {}
            }
        }
        Ok(dims)
    }

    /// The place of each value among the rows of `dims`, in ascending order but for [`NONE`].
    fn places(&self, dims: &[i64]) -> Result<Vec<i64>, KernelError> {
        let depth = self.divisions.len();
        // No product is too large, but where a size is 0 and nothing has a place.
        let step = |level: usize| {
            dims[level + 1..=depth].iter().fold(1i64, |step, &size| step.saturating_mul(size))
        };
        let place = |row: i64| if row < dims[0] { row * step(0) } else { NONE };
        let mut places = growth::collected((0..self.first).map(place))?;
        for (level, division) in self.divisions.iter().enumerate() {
            places = division.places(&places, step(level + 1), dims[level + 1])?;
        }
        Ok(places)
    }
}

/// For each element of a value, that of the default which broadcasts to it.
fn default_of(shape: &[i64], inner: &[i64]) -> Result<Vec<usize>, KernelError> {
    let refused = || {
        KernelError::invalid_argument(format!(
            "default_value: expected a shape that broadcasts to {inner:?}, found {shape:?}"
        ))
    };
    let before = inner.len().checked_sub(shape.len()).ok_or_else(refused)?;
    if shape.iter().zip(&inner[before..]).any(|(&size, &of)| size != 1 && size != of) {
        return Err(refused());
    }
    growth::collected((0..element_count(inner)?).map(|element| {
        let (mut rest, mut at, mut step) = (element as i64, 0, 1);
        for (position, &size) in inner.iter().enumerate().rev() {
            if let Some(own) = position.checked_sub(before).map(|own| shape[own]) {
                at += if own == 1 { 0 } else { rest % size * step };
                step *= own;
            }
            rest /= size;
        }
        at as usize
    }))
}

/// What fills a part of the result: a range of values, or this number of defaults.
enum Run {
    Values(std::ops::Range<usize>),
    Defaults(usize),
}

impl Run {
    /// How many rows of the result it is.
    fn rows(&self) -> usize {
        match self {
            Run::Values(rows) => rows.len(),
            Run::Defaults(count) => *count,
        }
    }
}

/// Calls `body` for the parts of a result of `total` rows, in order.
fn runs(
    places: &[i64],
    total: usize,
    mut body: impl FnMut(Run) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    let (mut filled, mut at) = (0, 0);
    while at < places.len() {
        let Ok(place) = usize::try_from(places[at]) else {
            at += 1;
            continue;
        };
        let run =
            places[at..].iter().zip(places[at]..).take_while(|(found, next)| **found == *next);
        let end = at + run.count();
        if place > filled {
            body(Run::Defaults(place - filled))?;
        }
        body(Run::Values(at..end))?;
        (filled, at) = (place + end - at, end);
    }
    if total > filled { body(Run::Defaults(total - filled)) } else { Ok(()) }
}

struct ToTensor {
    kinds: Vec<Vec<u8>>,
}

impl Kernel for ToTensor {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let kinds: Vec<&[u8]> = c.attr("row_partition_types")?;
        Ok(ToTensor { kinds: kinds.into_iter().map(<[u8]>::to_vec).collect() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let Some((&count, inner)) = c.dims(1).split_first() else {
            let (what, expected, found) = ("values", 1, 0);
            return Err(GeometryError::RankTooSmall { what, expected, found }.into());
        };
        let rows = Rows::new(c, &self.kinds)?;
        let dims = rows.dims(c, inner)?;
        let default = default_of(c.dims(2), inner)?;
        element_count(&dims)?;
        let total = element_count(&dims[..=rows.divisions.len()])?;
        let places = rows.places(&dims)?;
        if places.len() as i64 != count {
            let (what, expected) = ("the number of values", places.len() as i64);
            return Err(GeometryError::SizeMismatch { what, expected, found: count }.into());
        }
        write(c, &dims, &default, |body| runs(&places, total, body))
    }
}

/// Writes the result; `each` calls a function for each part of it.
fn write(
    c: &ComputeContext<'_>,
    dims: &[i64],
    default: &[usize],
    each: impl FnOnce(&mut dyn FnMut(Run) -> Result<(), KernelError>) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    let inner = default.len();
    match Values::new(c, [1, 2])? {
        Values::Texts(texts) => {
            let mut all = Vec::new();
            each(&mut |run| match run {
                Run::Values(rows) => {
                    growth::append(&mut all, &texts[0][rows.start * inner..rows.end * inner])
                }
                Run::Defaults(count) => {
                    growth::reserve(&mut all, count * inner)?;
                    let row = || default.iter().map(|&at| texts[1][at]);
                    (0..count).for_each(|_| all.extend(row()));
                    Ok(())
                }
            })?;
            c.set_strings(0, dims, all.into_iter())
        }
        Values::Bytes(bytes, size) => {
            let mut row = growth::with_room(inner * size)?;
            default.iter().for_each(|&at| row.extend_from_slice(&bytes[1][at * size..][..size]));
            let (is_zero, width) = (row.iter().all(|&byte| byte == 0), row.len());
            let mut rest = c.output_bytes(0, dims)?;
            each(&mut |run| {
                let (part, after) = std::mem::take(&mut rest).split_at_mut(run.rows() * width);
                rest = after;
                match run {
                    Run::Values(rows) => {
                        part.copy_from_slice(&bytes[0][rows.start * width..rows.end * width]);
                    }
                    Run::Defaults(_) if is_zero => part.fill(0),
                    Run::Defaults(_) => {
                        part.chunks_exact_mut(width).for_each(|part| part.copy_from_slice(&row));
                    }
                }
                Ok(())
            })
        }
    }
}

register_kernel!("RaggedTensorToTensor" on "CPU": ToTensor, types = ("T", MOVED),
    host_memory = &["shape", "row_partition_tensors"]);
