//! Components of elements, alone and in batches.

use crate::tensors::{count_of, with_rows};
use std::sync::Arc;
use tenon_sdk::prelude::*;

/// A component of an element: a tensor, or a row of one.
#[derive(Debug, Clone)]
pub struct Component {
    tensor: Arc<Kept>,
    row: Option<usize>,
}

impl Component {
    /// The whole tensor.
    pub fn whole(tensor: &Arc<Kept>) -> Component {
        Component { tensor: Arc::clone(tensor), row: None }
    }

    /// Row `row` of the tensor, which has at least one dimension and as many rows.
    pub fn row(tensor: &Arc<Kept>, row: usize) -> Component {
        Component { tensor: Arc::clone(tensor), row: Some(row) }
    }

    /// Its sizes.
    pub fn dims(&self) -> &[i64] {
        match self.row {
            None => self.tensor.dims(),
            Some(_) => self.tensor.dims().get(1..).unwrap_or_default(),
        }
    }

    /// Its element type.
    pub fn dtype(&self) -> DType {
        self.tensor.dtype()
    }

    /// How many bytes its elements have; of strings, also those of the texts.
    pub fn bytes(&self) -> usize {
        let elements = elements(self.dims()).saturating_mul(self.dtype().size().unwrap_or(1));
        let texts = match self.dtype() {
            DType::STRING => self.texts().unwrap_or_default(),
            _ => Vec::new(),
        };
        texts.iter().fold(elements, |sum, text| sum.saturating_add(text.len()))
    }

    /// It as a tensor of its own; a whole tensor without a copy.
    ///
    /// # Errors
    /// As [`Kept::part`].
    pub fn kept(&self) -> Result<Arc<Kept>, KernelError> {
        match self.row {
            None => Ok(Arc::clone(&self.tensor)),
            Some(_) => self.tensor.part(self.start() as u64, self.dims()).map(Arc::new),
        }
    }

    /// Components one below the other, of which there is at least one. `dims` are the sizes of a row; a smaller
    /// component is padded at the end of each dimension, with the elements of `under` or with zeros.
    ///
    /// # Errors
    /// As [`Kept::from_pieces`].
    pub fn joined(
        components: &[&Component],
        dims: &[i64],
        under: Option<&Kept>,
    ) -> Result<Component, KernelError> {
        let all = with_rows(components.len(), dims);
        let (size, dtype) = (count_of(dims)? as usize, components[0].dtype());
        count_of(&all)?;
        let pieces = components.iter().enumerate().flat_map(|(at, component)| {
            let padding = under.map(|from| Piece { from, start: 0, len: size, to: at * size });
            padding.into_iter().chain(pieces_of(component, dims, at * size))
        });
        Ok(Component::whole(&Arc::new(Kept::from_pieces(dtype, &all, pieces)?)))
    }

    /// Where its elements begin in the tensor.
    fn start(&self) -> usize {
        self.row.unwrap_or(0) * elements(self.dims())
    }

    /// Its one element, where it is a scalar.
    pub fn scalar<T: Element>(&self) -> Result<Option<T>, KernelError> {
        if !self.dims().is_empty() {
            return Ok(None);
        }
        Ok(self.tensor.view::<T>()?.data.get(self.start()).copied())
    }

    /// Its strings.
    ///
    /// # Errors
    /// As [`Kept::strings`].
    pub fn texts(&self) -> Result<Vec<&[u8]>, KernelError> {
        let (start, len) = (self.start(), elements(self.dims()));
        let mut texts = self.tensor.strings()?;
        texts.truncate(start + len);
        texts.drain(..start.min(texts.len()));
        Ok(texts)
    }

    /// Returns it as an output; a whole tensor without a copy.
    pub fn output(&self, c: &ComputeContext<'_>, output: usize) -> Result<(), KernelError> {
        if self.row.is_none() {
            return c.output_kept(output, &self.tensor);
        }
        let dims = self.dims();
        let (start, len) = (self.start(), elements(dims));
        c.output_pieces(output, dims, [Piece { from: &self.tensor, start, len, to: 0 }])
    }
}

/// The number of elements of a tensor.
fn elements(dims: &[i64]) -> usize {
    dims.iter().fold(1, |elements: usize, &dim| elements.saturating_mul(dim as usize))
}

/// Returns components as an output, one below the other. `dims` are the sizes of a row; a smaller
/// component is padded at the end of each dimension.
///
/// # Errors
/// As [`ComputeContext::output_pieces`].
pub fn output_batch(
    c: &ComputeContext<'_>,
    output: usize,
    components: &[&Component],
    dims: &[i64],
) -> Result<(), KernelError> {
    let all: Vec<i64> =
        std::iter::once(components.len() as i64).chain(dims.iter().copied()).collect();
    // The output is made first, which checks that the sizes fit the address space.
    c.prepare(output, &all)?;
    let size = elements(dims);
    let pieces = components
        .iter()
        .enumerate()
        .flat_map(|(at, component)| pieces_of(component, dims, at * size));
    c.output_pieces(output, &all, pieces)
}

/// The pieces of a component in a tensor in which a row of sizes `dims` begins at element `to`.
fn pieces_of<'c>(
    component: &'c Component,
    dims: &[i64],
    to: usize,
) -> impl Iterator<Item = Piece<'c>> {
    let start = component.start();
    runs(component.dims(), dims).map(move |run| Piece {
        from: &component.tensor,
        start: start + run.from,
        len: run.len,
        to: to + run.to,
    })
}

/// Elements that lie one after the other in a tensor and in a larger one.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    from: usize,
    to: usize,
    len: usize,
}

/// The runs of a tensor of sizes `inner` at the beginning of one of sizes `outer`, of the same rank.
fn runs(inner: &[i64], outer: &[i64]) -> impl Iterator<Item = Run> {
    // From this dimension on, the sizes are the same.
    let same = inner.iter().zip(outer).rposition(|(a, b)| a != b).map_or(0, |at| at + 1);
    let split = same.saturating_sub(1);
    let (len, step) = (elements(&inner[split..]), elements(&outer[split..]));
    let (inner, outer) = (inner[..split].to_vec(), outer[..split].to_vec());
    let count = if len == 0 { 0 } else { elements(&inner) };
    (0..count).map(move |at| {
        let (mut rest, mut place, mut stride) = (at, 0, 1);
        for (&inner, &outer) in inner.iter().zip(&outer).rev() {
            place += rest % inner as usize * stride;
            rest /= inner as usize;
            stride *= outer as usize;
        }
        Run { from: at * len, to: place * step, len }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from 1, padded with zeros.
    fn padded(inner: &[i64], outer: &[i64]) -> Vec<usize> {
        let mut result = vec![0; elements(outer)];
        for run in runs(inner, outer) {
            for at in 0..run.len {
                assert_eq!(result[run.to + at], 0, "written twice");
                result[run.to + at] = run.from + at + 1;
            }
        }
        result
    }

    #[test]
    fn a_tensor_of_the_same_sizes_is_one_run() {
        assert_eq!(runs(&[2, 3], &[2, 3]).collect::<Vec<_>>(), [Run { from: 0, to: 0, len: 6 }]);
        assert_eq!(runs(&[], &[]).collect::<Vec<_>>(), [Run { from: 0, to: 0, len: 1 }]);
        assert_eq!(runs(&[0, 3], &[2, 3]).count(), 0);
    }

    #[test]
    fn what_is_smaller_lies_in_the_corner() {
        assert_eq!(padded(&[2], &[4]), [1, 2, 0, 0]);
        assert_eq!(padded(&[2, 2], &[2, 3]), [1, 2, 0, 3, 4, 0]);
        assert_eq!(padded(&[1, 2], &[2, 2]), [1, 2, 0, 0]);
        assert_eq!(padded(&[2, 1, 2], &[2, 2, 2]), [1, 2, 0, 0, 3, 4, 0, 0]);
        assert_eq!(padded(&[1, 2, 1], &[2, 2, 2]), [1, 0, 2, 0, 0, 0, 0, 0]);
    }
}
