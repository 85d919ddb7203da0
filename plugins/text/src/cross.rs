//! `SparseCross`, `SparseCrossV2` and `SparseCrossHashed`: the combinations of one value of each column, row by row.
//!
//! The last column varies fastest. A row in which a column has no value has no combination.

mod ragged;

use crate::{farmhash::fingerprint64, hash::sip, text};
use std::ops::Range;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::byte_size,
    growth,
    reg::Numerics,
    register_kernel,
};

fn refuse(message: String) -> KernelError {
    KernelError::invalid_argument(message)
}

/// The values of a column.
enum Values<'c> {
    Texts(Vec<&'c [u8]>),
    Numbers(&'c [i64]),
}

impl<'c> Values<'c> {
    fn new(c: &ComputeContext<'c>, input: usize) -> Result<Values<'c>, KernelError> {
        match c.slot(input)?.dtype {
            DType::STRING => c.strings(input).map(Values::Texts),
            _ => Ok(Values::Numbers(c.input::<i64>(input)?.data)),
        }
    }
}

/// Where the values of each row are.
enum Rows {
    /// In rows of one width.
    Dense(usize),
    /// The row of each value, in order.
    Sparse(Vec<i64>),
    /// Where the values of each row begin, and those of the last one end.
    Ragged(Vec<i64>),
}

struct Column<'c> {
    values: Values<'c>,
    rows: Rows,
}

impl Column<'_> {
    /// The values of a row.
    fn row(&self, row: i64) -> Range<usize> {
        match &self.rows {
            Rows::Dense(width) => row as usize * width..(row as usize + 1) * width,
            Rows::Sparse(rows) => {
                rows.partition_point(|&own| own < row)..rows.partition_point(|&own| own <= row)
            }
            Rows::Ragged(splits) => {
                splits[row as usize] as usize..splits[row as usize + 1] as usize
            }
        }
    }
}

/// All columns, and the number of their rows.
struct Columns<'c> {
    all: Vec<Column<'c>>,
    rows: i64,
}

/// The rows of a sparse column's values, and the number of rows; `inputs` are indices, values and shape.
fn sparse(c: &ComputeContext<'_>, inputs: [usize; 3]) -> Result<(Rows, i64), KernelError> {
    let [indices, values, shape] = inputs.map(|input| c.dims(input));
    let (&[count, 2], &[found], [2]) = (indices, values, shape) else {
        return Err(refuse(format!(
            "indices, values and shapes: expected two coordinates for each value and two sizes, found shapes {indices:?}, \
             {values:?} and {shape:?}"
        )));
    };
    if count != found {
        return Err(refuse(format!("values: expected {count}, as many as indices, found {found}")));
    }
    let size = c.integers(inputs[2])?[0];
    let places = c.input::<i64>(inputs[0])?.data;
    let rows = growth::collected(places.chunks_exact(2).map(|place| place[0]))?;
    let mut last = 0;
    for &row in &rows {
        if !(last..size.max(0)).contains(&row) {
            return Err(refuse(format!(
                "indices: expected rows in order, below {size}, found row {row} after row {last}"
            )));
        }
        last = row;
    }
    Ok((Rows::Sparse(rows), size))
}

impl<'c> Columns<'c> {
    fn new(c: &ComputeContext<'c>) -> Result<Columns<'c>, KernelError> {
        let [indices, values, shapes] = [0, 1, 2].map(|arg| c.input_range(arg));
        if values.len() != indices.len() {
            return Err(refuse(format!(
                "values: expected {} tensors, as many as indices, found {}",
                indices.len(),
                values.len()
            )));
        }
        let mut columns = Columns { all: Vec::new(), rows: 0 };
        for at in 0..indices.len() {
            columns.add_sparse(c, [&indices, &values, &shapes].map(|inputs| inputs.start + at))?;
        }
        c.input_range(3).try_for_each(|input| columns.add_dense(c, input))?;
        Ok(columns)
    }

    fn add_sparse(
        &mut self,
        c: &ComputeContext<'c>,
        inputs: [usize; 3],
    ) -> Result<(), KernelError> {
        let (rows, size) = sparse(c, inputs)?;
        self.add(Column { values: Values::new(c, inputs[1])?, rows }, "shapes", size)
    }

    fn add_dense(&mut self, c: &ComputeContext<'c>, input: usize) -> Result<(), KernelError> {
        let &[size, width] = c.dims(input) else {
            let dims = c.dims(input);
            return Err(refuse(format!("dense_inputs: expected matrices, found shape {dims:?}")));
        };
        let rows = Rows::Dense(width as usize);
        self.add(Column { values: Values::new(c, input)?, rows }, "dense_inputs", size)
    }

    fn add(&mut self, column: Column<'c>, what: &str, rows: i64) -> Result<(), KernelError> {
        if !self.all.is_empty() && rows != self.rows {
            return Err(refuse(format!(
                "{what}: expected {} rows, as before, found {rows}",
                self.rows
            )));
        }
        if rows < 0 {
            return Err(refuse(format!("{what}: expected sizes of 0 or more, found {rows}")));
        }
        self.rows = rows;
        growth::push(&mut self.all, column)
    }

    /// The rows that have combinations, each with their number.
    fn counts(&self) -> Result<Vec<(i64, i64)>, KernelError> {
        let mut counts = Vec::new();
        // Rows without values, which may be many more than there are values, are left out.
        let of_sparse = self.all.iter().find_map(|column| match &column.rows {
            Rows::Sparse(rows) => Some(&rows[..]),
            Rows::Dense(_) | Rows::Ragged(_) => None,
        });
        let is_empty = self.all.iter().any(|column| matches!(column.rows, Rows::Dense(0)));
        let dense = if is_empty || of_sparse.is_some() { 0 } else { self.rows };
        let sparse = of_sparse.unwrap_or_default().chunk_by(|a, b| a == b).map(|rows| rows[0]);
        for row in sparse.chain(0..dense) {
            let product =
                |count: i64, column: &Column<'_>| count.checked_mul(column.row(row).len() as i64);
            let count = self.all.iter().try_fold(1, product).ok_or_else(|| {
                refuse(format!(
                    "values: expected fewer than 2^63 combinations, found more in row {row}"
                ))
            })?;
            if count > 0 {
                growth::push(&mut counts, (row, count))?;
            }
        }
        Ok(counts)
    }

    /// Calls a function with the values of each combination of some rows, in order.
    fn for_each(
        &self,
        c: &ComputeContext<'_>,
        counts: &[(i64, i64)],
        mut each: impl FnMut(&[usize]) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let watch = c.watch();
        for &(row, count) in counts {
            watch.check()?;
            let ranges = growth::collected(self.all.iter().map(|column| column.row(row)))?;
            let mut chosen = growth::collected(ranges.iter().map(|range| range.start))?;
            for _ in 0..count {
                each(&chosen)?;
                for (at, range) in chosen.iter_mut().zip(&ranges).rev() {
                    *at += 1;
                    if *at < range.end {
                        break;
                    }
                    *at = range.start;
                }
            }
        }
        Ok(())
    }

    /// Calls a function with the text of each combination of some rows, in order.
    fn for_each_text(
        &self,
        c: &ComputeContext<'_>,
        counts: &[(i64, i64)],
        separator: &[u8],
        mut each: impl FnMut(Vec<u8>) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        self.for_each(c, counts, |chosen| {
            let mut joined = Vec::new();
            for (at, (column, &value)) in self.all.iter().zip(chosen).enumerate() {
                if at > 0 {
                    growth::append(&mut joined, separator)?;
                }
                match &column.values {
                    Values::Texts(all) => growth::append(&mut joined, all[value])?,
                    Values::Numbers(all) => {
                        growth::append(&mut joined, all[value].to_string().as_bytes())?
                    }
                }
            }
            each(joined)
        })
    }

    /// The fingerprint of a combination under a key, as the number of a bucket.
    fn fingerprint(&self, chosen: &[usize], key: u64, buckets: i64) -> u64 {
        let hashes = self.all.iter().zip(chosen).map(|(column, &at)| match &column.values {
            Values::Texts(all) => fingerprint64(all[at]),
            Values::Numbers(all) => all[at] as u64,
        });
        bucket(hashes.fold(key, joined), buckets)
    }

    /// Writes the coordinates and the shape of all combinations; how many there are.
    fn write_places(
        &self,
        c: &ComputeContext<'_>,
        counts: &[(i64, i64)],
    ) -> Result<i64, KernelError> {
        let total = counts.iter().try_fold(0i64, |total, (_, count)| total.checked_add(*count));
        let total = total.unwrap_or(i64::MAX);
        byte_size(&[total, 2], 16)?;
        let mut y = c.output::<i64>(0, &[total, 2])?.data.chunks_exact_mut(2);
        for &(row, count) in counts {
            for (at, y) in (0..count).zip(&mut y) {
                y.copy_from_slice(&[row, at]);
            }
        }
        let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
        c.output::<i64>(2, &[2])?.data.copy_from_slice(&[self.rows, most]);
        Ok(total)
    }

    /// Writes combinations as numbers.
    fn write_hashes(
        &self,
        c: &ComputeContext<'_>,
        hash: impl Fn(&[usize]) -> u64,
    ) -> Result<(), KernelError> {
        let counts = self.counts()?;
        let total = self.write_places(c, &counts)?;
        let mut y = c.output::<i64>(1, &[total])?.data.iter_mut();
        self.for_each(c, &counts, |chosen| {
            if let Some(y) = y.next() {
                *y = hash(chosen) as i64;
            }
            Ok(())
        })
    }

    /// Writes combinations as texts.
    fn write_texts(&self, c: &ComputeContext<'_>, separator: &[u8]) -> Result<(), KernelError> {
        let counts = self.counts()?;
        let total = self.write_places(c, &counts)?;
        let mut texts = Vec::new();
        self.for_each_text(c, &counts, separator, |text| growth::push(&mut texts, text))?;
        c.set_strings(1, &[total], texts.iter())
    }
}

/// The fingerprint of two things from those of each.
fn joined(first: u64, second: u64) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    let mixed = |x: u64| x ^ (x >> 47);
    let both = first ^ FACTOR ^ mixed(second.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    mixed(mixed(both.wrapping_mul(FACTOR)).wrapping_mul(FACTOR))
}

/// A hash as the number of a bucket; without buckets, as a number that is not negative.
fn bucket(hash: u64, buckets: i64) -> u64 {
    hash % if buckets > 0 { buckets as u64 } else { i64::MAX as u64 }
}

struct SparseCross {
    buckets: i64,
    key: u64,
    /// Whether values that are numbers are refused.
    is_text: bool,
}

impl Kernel for SparseCross {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let internal: DType = c.attr("internal_type")?;
        Ok(SparseCross {
            buckets: c.attr("num_buckets")?,
            key: c.attr::<i64>("hash_key")? as u64,
            is_text: internal == DType::STRING,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let columns = Columns::new(c)?;
        let is_number = |column: &Column<'_>| matches!(column.values, Values::Numbers(_));
        if self.is_text && columns.all.iter().any(is_number) {
            return Err(refuse(
                "values: expected strings, as internal_type says, found int64".to_owned(),
            ));
        }
        if c.output_slot(1)?.dtype == DType::STRING {
            return columns.write_texts(c, b"_X_");
        }
        columns.write_hashes(c, |chosen| columns.fingerprint(chosen, self.key, self.buckets))
    }
}

/// `SparseCrossV2`.
fn cross_texts(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let separator = text(c, c.input_range(4).start, "sep")?;
    Columns::new(c)?.write_texts(c, separator)
}

/// `SparseCrossHashed`. As in TensorFlow, half of the bytes of a number count, those of its lower half, but for numbers
/// of whole columns, which are their own hashes without a strong one.
fn cross_hashed(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let [buckets, strong, salt] = [4, 5, 6].map(|arg| c.input_range(arg).start);
    let buckets = c.integer(buckets, "num_buckets")?;
    let (&[is_strong], []) = (c.input::<bool>(strong)?.data, c.dims(strong)) else {
        let dims = c.dims(strong);
        return Err(refuse(format!("strong_hash must be a scalar, found shape {dims:?}")));
    };
    let (&[first, second], [2]) = (&c.integers(salt)?[..], c.dims(salt)) else {
        return Err(refuse(format!("salt must be a vector of 2, found shape {:?}", c.dims(salt))));
    };
    let columns = Columns::new(c)?;
    let hash = |bytes: &[u8]| match is_strong {
        true => sip(bytes, [first as u64, second as u64]),
        false => fingerprint64(bytes),
    };
    columns.write_hashes(c, |chosen| {
        let hashes = columns.all.iter().zip(chosen).map(|(column, &at)| {
            match (&column.values, &column.rows) {
                (Values::Texts(all), _) => hash(all[at]),
                (Values::Numbers(all), Rows::Dense(_)) if !is_strong => all[at] as u64,
                (Values::Numbers(all), _) => hash(&all[at].to_le_bytes()[..4]),
            }
        });
        bucket(hashes.reduce(joined).unwrap_or(0), buckets)
    })
}

register_kernel!("SparseCross" on "CPU": SparseCross, numerics = Numerics::EXACT);
register_kernel!("SparseCrossV2" on "CPU": fn cross_texts, host_memory = &["sep"],
    numerics = Numerics::EXACT);
register_kernel!("SparseCrossHashed" on "CPU": fn cross_hashed,
    host_memory = &["num_buckets", "strong_hash", "salt"], numerics = Numerics::EXACT);
