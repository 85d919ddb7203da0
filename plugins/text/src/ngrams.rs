//! `StringNGrams`: sequences of neighbours in rows of strings.
//!
//! A row of `n` strings, with `p` pads on either side, has `n + 2 p - w + 1` sequences of `w` neighbours. There are at
//! most `w - 1` pads, so that each sequence has a string of the row, if it has one at all.

use crate::join::join;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::byte_size,
    growth,
    reg::Numerics,
    register_kernel,
};

struct NGrams {
    separator: Vec<u8>,
    widths: Vec<i64>,
    left: Vec<u8>,
    right: Vec<u8>,
    /// Most pads on a side; none for as many as there may be.
    pads: Option<i64>,
    keeps_short: bool,
}

/// Sequences of one width in a row.
#[derive(Clone, Copy)]
struct Run {
    /// The first string of the row.
    first: usize,
    width: i64,
    pads: i64,
    count: i64,
}

impl Run {
    /// The strings of a sequence: pads before the row, a part of it, pads after it.
    fn parts(&self, at: i64) -> (i64, std::ops::Range<usize>, i64) {
        let left = (self.pads - at).max(0);
        let right = (self.pads - (self.count - 1 - at)).max(0);
        let start = self.first + (at - self.pads).max(0) as usize;
        let taken = (self.width - left - right).max(0) as usize;
        (left, start..start + taken, right)
    }
}

#[cold]
fn too_many(widths: &[i64]) -> KernelError {
    KernelError::invalid_argument(format!(
        "ngram_widths: expected sequences whose number fits in 63 bits and in the type of data_splits, found widths {widths:?}"
    ))
}

impl NGrams {
    /// The sequences of one width in a row.
    fn run(&self, first: usize, len: i64, width: i64) -> Result<Run, KernelError> {
        let pads = self.pads.unwrap_or(width - 1).min(width - 1);
        let padded = pads.checked_mul(2).and_then(|pads| pads.checked_add(len));
        let padded = padded.ok_or_else(|| too_many(&self.widths))?;
        Ok(Run { first, width, pads, count: (padded - width + 1).max(0) })
    }

    /// A row that is shorter than all widths, as one sequence.
    fn whole(&self, first: usize, len: i64) -> Result<Run, KernelError> {
        let Some(pads) = self.pads else {
            return Err(KernelError::invalid_argument(
                "pad_width: expected at least 0 with preserve_short_sequences and no ngram_widths, found a negative one",
            ));
        };
        let width = pads.checked_mul(2).and_then(|pads| pads.checked_add(len));
        let width = width.ok_or_else(|| too_many(&[len]))?;
        Ok(Run { first, width, pads, count: 1 })
    }

    /// The sequences of all rows, and the number of sequences before each row.
    fn runs(&self, splits: &[i64]) -> Result<(Vec<Run>, Vec<i64>), KernelError> {
        let (mut runs, mut totals) = (Vec::new(), growth::with_room(splits.len())?);
        let mut total = 0i64;
        totals.push(total);
        for row in splits.windows(2) {
            let (first, len, before) = (row[0] as usize, row[1] - row[0], total);
            for &width in &self.widths {
                let run = self.run(first, len, width)?;
                total = total.checked_add(run.count).ok_or_else(|| too_many(&self.widths))?;
                growth::push(&mut runs, run)?;
            }
            if self.keeps_short && len > 0 && total == before {
                growth::push(&mut runs, self.whole(first, len)?)?;
                total += 1;
            }
            totals.push(total);
        }
        runs.retain(|run| run.count > 0);
        Ok((runs, totals))
    }
}

/// Checks that splits are those of rows of this many strings.
fn check_splits(splits: &[i64], strings: usize) -> Result<(), KernelError> {
    let wrong = |what: String| Err(KernelError::invalid_argument(format!("data_splits: {what}")));
    let Some((&first, rest)) = splits.split_first() else { return Ok(()) };
    if first != 0 {
        return wrong(format!("expected 0 first, found {first}"));
    }
    let mut last = first;
    for &split in rest {
        if !(last..=strings as i64).contains(&split) {
            return wrong(format!("expected {last} to {strings} after {last}, found {split}"));
        }
        last = split;
    }
    match last == strings as i64 {
        true => Ok(()),
        false => wrong(format!("expected {strings} last, the number of strings, found {last}")),
    }
}

fn write_splits(c: &ComputeContext<'_>, splits: &[i64]) -> Result<(), KernelError> {
    let dims = [splits.len() as i64];
    if c.output_slot(1)?.dtype == DType::INT64 {
        c.output::<i64>(1, &dims)?.data.copy_from_slice(splits);
        return Ok(());
    }
    for (y, &split) in c.output::<i32>(1, &dims)?.data.iter_mut().zip(splits) {
        *y = i32::try_from(split).map_err(|_| too_many(&[split]))?;
    }
    Ok(())
}

impl Kernel for NGrams {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let text = |name: &str| growth::copied(c.attr::<&[u8]>(name)?);
        let widths: Vec<i64> = c.attr("ngram_widths")?;
        if let Some(found) = widths.iter().find(|&&width| width < 1) {
            return Err(KernelError::invalid_argument(format!(
                "ngram_widths must be at least 1, found {found}"
            )));
        }
        Ok(NGrams {
            separator: text("separator")?,
            widths,
            left: text("left_pad")?,
            right: text("right_pad")?,
            pads: Some(c.attr::<i64>("pad_width")?).filter(|&pads| pads >= 0),
            keeps_short: c.attr("preserve_short_sequences")?,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        for (at, what) in [(0, "data"), (1, "data_splits")] {
            if c.dims(at).len() != 1 {
                let dims = c.dims(at);
                let message = format!("{what} must be a vector, found shape {dims:?}");
                return Err(KernelError::invalid_argument(message));
            }
        }
        let (data, splits) = (c.strings(0)?, c.integers(1)?);
        check_splits(&splits, data.len())?;
        if data.is_empty() || splits.is_empty() {
            write_splits(c, &growth::filled(splits.len(), 0)?)?;
            return c.set_strings(0, &[0], [b""; 0].iter());
        }
        let (runs, totals) = self.runs(&splits)?;
        write_splits(c, &totals)?;
        let count = totals.last().copied().unwrap_or(0);
        byte_size(&[count], 24)?;
        let (watch, mut runs, mut next) = (c.watch(), runs.iter(), 0);
        let mut run = runs.next().copied();
        c.write_texts(0, &[count], |at, text| {
            if at % 1024 == 0 {
                watch.check()?;
            }
            if run.is_some_and(|run| next == run.count) {
                (run, next) = (runs.next().copied(), 0);
            }
            let Some(run) = run else { return Ok(()) };
            let (left, own, right) = run.parts(next);
            next += 1;
            let pads = |pad, count: i64| std::iter::repeat_n(pad, count as usize);
            let parts = pads(&self.left[..], left).chain(data[own].iter().copied());
            join(parts.chain(pads(&self.right[..], right)), &self.separator, text)
        })
    }
}

register_kernel!("StringNGrams" on "CPU": NGrams, numerics = Numerics::EXACT);
