//! `RaggedTensorToVariant`, `RaggedTensorFromVariant` and the gradient of the first: ragged tensors as
//! values of variants.

use super::splits::{nested, write};
use crate::tensors::{Held, Part, count_of, let_go, one_deeper, output_parts, sum, zeros_like};
use std::sync::Arc;
use tenon_sdk::{
    author::{EncodedValue, TensorSink},
    geometry::GeometryError,
    growth,
    prelude::*,
};

/// A ragged tensor. Its clones share the tensors.
#[derive(Clone)]
struct Ragged {
    tensors: Arc<Tensors>,
}

/// The splits, those of the outermost rows first, and at last the values.
struct Tensors(Vec<Held>);

impl Drop for Tensors {
    fn drop(&mut self) {
        let_go(std::mem::take(&mut self.0));
    }
}

impl Ragged {
    fn new(mut splits: Vec<Held>, values: Held) -> Result<Ragged, KernelError> {
        growth::push(&mut splits, values)?;
        Ok(Ragged { tensors: Arc::new(Tensors(splits)) })
    }

    fn splits(&self) -> &[Held] {
        &self.tensors.0[..self.tensors.0.len() - 1]
    }

    fn values(&self) -> &Held {
        &self.tensors.0[self.tensors.0.len() - 1]
    }

    /// The number of its rows.
    fn rows(&self) -> Result<i64, KernelError> {
        match (self.splits().first(), self.values().dims()) {
            (Some(splits), _) => Ok(numbers(splits)?.len().saturating_sub(1) as i64),
            (None, [rows, ..]) => Ok(*rows),
            (None, []) => Err(no_rows("encoded_ragged")),
        }
    }
}

fn no_rows(what: &'static str) -> KernelError {
    GeometryError::RankTooSmall { what, expected: 1, found: 0 }.into()
}

impl VariantValue for Ragged {
    const NAME: &'static str = "RaggedTensorVariant";

    /// The splits, and then the values.
    fn encode(&self, tensors: &mut TensorSink<'_>) -> Result<Vec<u8>, KernelError> {
        self.splits().iter().try_for_each(|splits| tensors.give(splits))?;
        tensors.give(self.values())?;
        Ok(Vec::new())
    }

    fn decode(encoded: &EncodedValue<'_>) -> Result<Ragged, KernelError> {
        let Some(last) = encoded.tensor_count().checked_sub(1) else {
            return Err(KernelError::invalid_argument(
                "an encoded ragged tensor: expected splits and values, found no tensor",
            ));
        };
        let splits = (0..last).map(|at| encoded.tensor(at).map(Arc::new));
        Ragged::new(growth::try_collected(splits)?, Arc::new(encoded.tensor(last)?))
    }

    fn zeros_like(&self) -> Result<Ragged, KernelError> {
        let zeros = one_deeper(|| zeros_like(self.values()))?;
        Ragged::new(growth::copied(self.splits())?, zeros)
    }

    fn add(&self, other: &Ragged) -> Result<Ragged, KernelError> {
        let (own, others) = (all_numbers(self)?, all_numbers(other)?);
        if own != others {
            return Err(KernelError::invalid_argument(
                "ragged tensors are added that have the same splits, found different ones",
            ));
        }
        let sum = one_deeper(|| sum(self.values(), other.values()))?;
        Ragged::new(growth::copied(self.splits())?, sum)
    }
}

register_variant!(Ragged);

/// The elements of splits.
fn numbers(splits: &Kept) -> Result<Vec<i64>, KernelError> {
    match splits.dtype() {
        DType::INT32 => {
            growth::collected(splits.view::<i32>()?.data.iter().map(|&number| number.into()))
        }
        _ => growth::copied(splits.view::<i64>()?.data),
    }
}

fn all_numbers(ragged: &Ragged) -> Result<Vec<Vec<i64>>, KernelError> {
    growth::try_collected(ragged.splits().iter().map(|splits| numbers(splits)))
}

/// Splits of a type, from 0 on.
fn splits_of(part: &[i64], dtype: DType) -> Result<Held, KernelError> {
    let first = part.first().copied().unwrap_or(0);
    let dims = [part.len() as i64];
    let from_zero = part.iter().map(|number| number - first);
    let splits = match dtype {
        // They are parts of splits of this type.
        DType::INT32 => {
            Kept::new(&dims, &growth::collected(from_zero.map(|number| number as i32))?)
        }
        _ => Kept::new(&dims, &growth::collected(from_zero)?),
    };
    splits.map(Arc::new)
}

struct ToVariant {
    by_row: bool,
    splits: DType,
}

impl ToVariant {
    /// One row of the ragged tensor.
    fn row(
        &self,
        c: &ComputeContext<'_>,
        levels: &[Vec<i64>],
        row: usize,
    ) -> Result<Variant, KernelError> {
        let values = c.input_range(0).end;
        let (dims, mut within) = (c.dims(values), (row as i64, row as i64 + 1));
        let mut splits = growth::with_room(levels.len())?;
        for (depth, level) in levels.iter().enumerate() {
            let (from, to) = (within.0 as usize, within.1 as usize);
            if depth > 0 {
                splits.push(splits_of(&level[from..=to], self.splits)?);
            }
            within = (level[from], level[to]);
        }
        let mut shape = dims.to_vec();
        shape[0] = within.1 - within.0;
        // A row of a whole tensor has one dimension less.
        let shape = if levels.is_empty() { &shape[1..] } else { &shape[..] };
        let first = within.0 * count_of(&dims[1..])?;
        let part = c.keep_part(values, first as u64, shape)?;
        Ragged::new(splits, Arc::new(part)).map(Variant::new)
    }
}

impl Kernel for ToVariant {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ToVariant { by_row: c.attr("batched_input")?, splits: c.attr("Tsplits")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let inputs = c.input_range(0);
        let values = inputs.end;
        if !self.by_row {
            let splits = growth::try_collected(inputs.map(|at| c.keep(at).map(Arc::new)))?;
            let ragged = Ragged::new(splits, Arc::new(c.keep(values)?))?;
            return c.set_variant(0, Variant::new(ragged));
        }
        let levels = nested(c, inputs, values)?;
        let rows = match (levels.first(), c.dims(values)) {
            (Some(splits), _) => splits.len() as i64 - 1,
            (None, dims) => *dims.first().ok_or_else(|| no_rows("rt_dense_values"))?,
        };
        c.make_variants(0, &[rows], |row| self.row(c, &levels, row).map(Some))
    }
}

register_kernel!("RaggedTensorToVariant" on "CPU": ToVariant);

struct FromVariant {
    inner: i64,
    outer: usize,
    values: DType,
    splits: DType,
}

impl Kernel for FromVariant {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(FromVariant {
            inner: c.attr("input_ragged_rank")?,
            outer: c.attr::<i64>("output_ragged_rank")? as usize,
            values: c.attr("Tvalues")?,
            splits: c.attr("Tsplits")?,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = c.dims(0);
        let inner = self.inner(dims.len())?;
        let elements = c.variants(0)?;
        let all = elements.iter().map(|element| self.checked(element, inner));
        let all = growth::try_collected(all)?;
        match (&all[..], dims) {
            (&[one], []) => {
                for (output, splits) in one.splits().iter().enumerate() {
                    c.output_kept(output, splits)?;
                }
                c.output_kept(self.outer, one.values())
            }
            _ if self.outer == 0 => self.stacked(c, &all),
            _ => self.joined(c, &all, inner),
        }
    }
}

impl FromVariant {
    /// The number of splits of each variant.
    fn inner(&self, rank: usize) -> Result<usize, KernelError> {
        let (rank, outer) = (rank as i64, self.outer as i64);
        let inner = match self.inner {
            -1 if outer == 0 => 0,
            -1 => outer - rank,
            inner => inner,
        };
        let fits = inner + rank == outer || outer == 0 && inner == 0;
        usize::try_from(inner).ok().filter(|_| fits).ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "output_ragged_rank: expected input_ragged_rank and the dimensions of encoded_ragged together, found {outer}, {} and {rank}",
                self.inner
            ))
        })
    }

    /// The value of an element, with so many splits and these types.
    fn checked<'v>(
        &self,
        element: &VariantRef<'v>,
        inner: usize,
    ) -> Result<&'v Ragged, KernelError> {
        let ragged: &Ragged = element.get().ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "encoded_ragged: expected ragged tensors, found {element:?}"
            ))
        })?;
        if ragged.splits().len() != inner {
            return Err(KernelError::invalid_argument(format!(
                "encoded_ragged: expected ragged tensors with {inner} ragged dimensions, found one with {}",
                ragged.splits().len()
            )));
        }
        let wrong = ragged.splits().iter().find(|splits| splits.dtype() != self.splits);
        if let Some(splits) = wrong {
            return Err(KernelError::invalid_argument(format!(
                "encoded_ragged: expected splits of {}, found {}",
                self.splits,
                splits.dtype()
            )));
        }
        if ragged.values().dtype() != self.values {
            return Err(KernelError::invalid_argument(format!(
                "encoded_ragged: expected values of {}, found {}",
                self.values,
                ragged.values().dtype()
            )));
        }
        Ok(ragged)
    }

    /// Writes the values of whole tensors of one shape, under the dimensions of the variants.
    fn stacked(&self, c: &ComputeContext<'_>, all: &[&Ragged]) -> Result<(), KernelError> {
        let one = all.first().map_or(&[][..], |first| first.values().dims());
        same_rows(all, one, |dims| dims.get(..))?;
        let mut dims = c.dims(0).to_vec();
        dims.extend(one);
        let parts = growth::collected(all.iter().map(|ragged| Part::Tensor(ragged.values())))?;
        output_parts(c, 0, self.values, &dims, &parts)
    }

    /// Writes one ragged tensor whose outer dimensions are those of the variants.
    fn joined(
        &self,
        c: &ComputeContext<'_>,
        all: &[&Ragged],
        inner: usize,
    ) -> Result<(), KernelError> {
        let batch = c.dims(0);
        let Some((_, outer)) = batch.split_last() else { return Err(no_rows("encoded_ragged")) };
        let mut rows = 1i64;
        for (level, &size) in outer.iter().enumerate() {
            rows = rows.saturating_mul(size);
            let step = batch[level + 1];
            let splits = (0..=rows).map(|row| row.saturating_mul(step));
            write(c, level, &growth::collected(splits)?)?;
        }
        let counts = all.iter().map(|ragged| ragged.rows());
        write(c, outer.len(), &ends(counts)?)?;
        for level in 0..inner {
            let mut splits = growth::copied(&[0])?;
            for ragged in all {
                let own = numbers(&ragged.splits()[level])?;
                let base = splits.last().copied().unwrap_or(0);
                let moved = own.iter().skip(1).map(|number| sum_of(base, *number));
                growth::append(&mut splits, &growth::try_collected(moved)?)?;
            }
            write(c, batch.len() + level, &splits)?;
        }
        self.write_values(c, all)
    }

    fn write_values(&self, c: &ComputeContext<'_>, all: &[&Ragged]) -> Result<(), KernelError> {
        let row = match all.first() {
            Some(first) => first.values().dims().get(1..).ok_or_else(|| no_rows("the values"))?,
            None => &[],
        };
        same_rows(all, row, |dims| dims.get(1..))?;
        let lengths = all.iter().map(|ragged| Ok(ragged.values().dims()[0]));
        let mut dims = growth::copied(&[ends(lengths)?.last().copied().unwrap_or(0)])?;
        growth::append(&mut dims, row)?;
        let parts = growth::collected(all.iter().map(|ragged| Part::Tensor(ragged.values())))?;
        output_parts(c, self.outer, self.values, &dims, &parts)
    }
}

/// Checks that a part of the dimensions of all values is one.
fn same_rows(
    all: &[&Ragged],
    expected: &[i64],
    part: impl Fn(&[i64]) -> Option<&[i64]>,
) -> Result<(), KernelError> {
    let differs = |ragged: &&&Ragged| part(ragged.values().dims()) != Some(expected);
    match all.iter().find(differs) {
        None => Ok(()),
        Some(ragged) => Err(KernelError::invalid_argument(format!(
            "encoded_ragged: expected values whose elements have shape {expected:?}, found values of shape {:?}",
            ragged.values().dims()
        ))),
    }
}

fn sum_of(a: i64, b: i64) -> Result<i64, KernelError> {
    a.checked_add(b).ok_or_else(|| {
        KernelError::invalid_argument(format!(
            "encoded_ragged: expected splits whose sums are numbers of int64, found {a} and {b}"
        ))
    })
}

/// 0, and where each of some neighbours with these lengths ends.
fn ends(
    lengths: impl ExactSizeIterator<Item = Result<i64, KernelError>>,
) -> Result<Vec<i64>, KernelError> {
    let mut ends = growth::with_room(lengths.len() + 1)?;
    let mut end = 0;
    ends.push(end);
    for length in lengths {
        end = sum_of(end, length?)?;
        ends.push(end);
    }
    Ok(ends)
}

register_kernel!("RaggedTensorFromVariant" on "CPU": FromVariant);

struct ToVariantGradient {
    values: DType,
}

impl Kernel for ToVariantGradient {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ToVariantGradient { values: c.attr("Tvalues")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (elements, splits) = (c.variants(0)?, c.integers(1)?);
        let dims = c.integer_list(2, "dense_values_shape")?;
        let row = count_of(dims.get(1..).unwrap_or_default())?;
        let parts = elements.iter().enumerate().map(|(at, element)| {
            let Some(ragged) = element.get::<Ragged>() else {
                // No row without a gradient has a value.
                return absent(element, splits.get(at..at + 2), row);
            };
            if ragged.values().dtype() != self.values {
                return Err(KernelError::invalid_argument(format!(
                    "encoded_ragged_grad: expected values of {}, found {}",
                    self.values,
                    ragged.values().dtype()
                )));
            }
            Ok(Part::Tensor(ragged.values()))
        });
        let parts = growth::try_collected(parts)?;
        let count = parts.iter().try_fold(0i64, |count, part| {
            let more = match part {
                Part::Tensor(values) => count_of(values.dims())?,
                Part::Zeros(zeros) => *zeros,
            };
            sum_of(count, more)
        })?;
        if count != count_of(&dims)? {
            return Err(KernelError::invalid_argument(format!(
                "encoded_ragged_grad: expected gradients of values of shape {dims:?}, found {count} elements"
            )));
        }
        output_parts(c, 0, self.values, &dims, &parts)
    }
}

/// Zeros for a row without a gradient.
fn absent<'a>(
    element: &VariantRef<'_>,
    splits: Option<&[i64]>,
    row: i64,
) -> Result<Part<'a>, KernelError> {
    match (element.is_none(), splits) {
        (true, Some(&[from, to])) if from <= to => {
            let zeros = to.checked_sub(from).and_then(|rows| rows.checked_mul(row));
            zeros.map(Part::Zeros).ok_or_else(|| {
                KernelError::invalid_argument(format!(
                    "row_splits: expected numbers of rows, found {from} and {to}"
                ))
            })
        }
        _ => Err(KernelError::invalid_argument(format!(
            "encoded_ragged_grad: expected a ragged tensor, or none for a row of row_splits, found {element:?}"
        ))),
    }
}

register_kernel!("RaggedTensorToVariantGradient" on "CPU": ToVariantGradient);
