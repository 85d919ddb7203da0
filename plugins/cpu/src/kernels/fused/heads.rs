//! Geometry of `_FusedAttention`: the positions of a head's queries, keys and values.

use super::mask::Steps;
use tenon_sdk::geometry::{Dims, GeometryError, broadcast_shape};

/// The position of the heads among the dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `[..., rows, cols]`.
    HeadsFirst,
    /// `[batch, rows, heads, cols]`.
    HeadsInside,
}

/// Sizes of an attention, and the positions of its parts.
#[derive(Debug)]
pub struct Heads {
    layout: Layout,
    /// Dimensions of scores and results before the last two, including heads.
    lead: Dims,
    /// Number of queries.
    pub m: usize,
    /// Number of keys.
    pub n: usize,
    /// Elements of a query.
    pub d: usize,
    /// Elements of a value.
    pub e: usize,
    /// Number of heads side by side in a row of the output.
    pub inside: usize,
    inputs: [Input; 3],
}

/// The matrices of an input.
#[derive(Debug)]
struct Input {
    rows: usize,
    cols: usize,
    /// Elements between rows; 0 if one row is repeated.
    stride: usize,
    starts: Steps,
}

/// A part of an input: its beginning; rows, columns, and elements between rows.
#[derive(Debug, Clone, Copy)]
pub struct Matrix {
    /// Index of its first element.
    pub at: usize,
    /// Rows, columns, elements between rows.
    pub size: (usize, usize, usize),
}

/// A block of queries of one head.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Index of its first row among those of the scores.
    pub row: usize,
    /// Number of rows.
    pub rows: usize,
    /// Queries, keys, values.
    pub matrices: [Matrix; 3],
}

/// The dimensions of an input, split into those of matrices, rows and columns.
struct Split {
    lead: Dims,
    rows: i64,
    cols: i64,
}

impl Split {
    fn new(layout: Layout, what: &'static str, dims: &[i64]) -> Result<Split, GeometryError> {
        match (layout, dims) {
            (Layout::HeadsFirst, [lead @ .., rows, cols]) => {
                Ok(Split { lead: Dims::from_slice(lead)?, rows: *rows, cols: *cols })
            }
            (Layout::HeadsFirst, _) => {
                Err(GeometryError::RankTooSmall { what, expected: 2, found: dims.len() })
            }
            (Layout::HeadsInside, &[batch, rows, heads, cols]) => {
                Ok(Split { lead: Dims::from_slice(&[batch, heads])?, rows, cols })
            }
            (Layout::HeadsInside, _) => {
                Err(GeometryError::Rank { what, expected: 4, found: dims.len() })
            }
        }
    }

    /// The matrices, repeated to `rows` rows and along the dimensions `all`.
    fn input(&self, layout: Layout, rows: usize, all: &[i64]) -> Input {
        let [own, cols] = [self.rows as usize, self.cols as usize];
        let (stride, starts) = match (layout, &self.lead[..]) {
            (Layout::HeadsInside, &[batch, heads]) => {
                let stride = cols.saturating_mul(heads as usize);
                let apart = [(heads, cols), (batch, stride.saturating_mul(own))];
                (stride, Steps::apart(apart, all))
            }
            _ => (cols, Steps::new(&self.lead, all, own.saturating_mul(cols))),
        };
        Input { rows, cols, stride: if own == rows { stride } else { 0 }, starts }
    }
}

/// The dimensions to which those of two tensors broadcast; heads inside must be equal, as in a
/// product by labels.
fn joined(layout: Layout, a: &[i64], b: &[i64]) -> Result<Dims, GeometryError> {
    if layout == Layout::HeadsInside && a != b {
        return Err(GeometryError::Incompatible { a: a.to_vec(), b: b.to_vec() });
    }
    broadcast_shape(a, b)
}

impl Heads {
    /// The geometry for queries, keys and values of these dimensions, and masks of these.
    ///
    /// # Errors
    /// Dimensions that do not match.
    pub fn new(
        layout: Layout,
        [q, k, v]: [&[i64]; 3],
        masks: &[&[i64]],
    ) -> Result<Heads, GeometryError> {
        let incompatible =
            |a: &[i64], b: &[i64]| GeometryError::Incompatible { a: a.to_vec(), b: b.to_vec() };
        let [own_q, own_k, own_v] =
            [Split::new(layout, "q", q)?, Split::new(layout, "k", k)?, Split::new(layout, "v", v)?];
        if own_q.cols != own_k.cols {
            return Err(incompatible(q, k));
        }
        let mut scores = joined(layout, &own_q.lead, &own_k.lead)?;
        scores.push(own_q.rows)?;
        scores.push(own_k.rows)?;
        for mask in masks {
            scores = broadcast_shape(&scores, mask)?;
        }
        let [lead @ .., m, n] = &scores[..] else { return Err(incompatible(q, k)) };
        if *n != own_v.rows {
            return Err(incompatible(&scores, v));
        }
        let lead = joined(layout, lead, &own_v.lead)?;
        let (m, n) = (*m as usize, *n as usize);
        let inputs = [
            own_q.input(layout, m, &lead),
            own_k.input(layout, n, &lead),
            own_v.input(layout, n, &lead),
        ];
        let inside = match layout {
            Layout::HeadsFirst => 1,
            Layout::HeadsInside => lead.last().map_or(1, |&heads| heads as usize),
        };
        let (d, e) = (own_q.cols as usize, own_v.cols as usize);
        Ok(Heads { layout, lead, m, n, d, e, inside, inputs })
    }

    /// Dimensions of the scores, repeated as the values require.
    pub fn scores(&self) -> Vec<i64> {
        [&self.lead[..], &[self.m as i64, self.n as i64]].concat()
    }

    /// Dimensions of the output.
    pub fn output(&self) -> Vec<i64> {
        let mut dims = [&self.lead[..], &[self.m as i64, self.e as i64]].concat();
        if self.layout == Layout::HeadsInside {
            dims.swap(1, 2);
        }
        dims
    }

    /// The place of `rows` queries from `first` on, of head `number`.
    pub fn place(&self, number: usize, first: usize, rows: usize) -> Place {
        let matrix = |input: &Input| Matrix {
            at: input.starts.at(number),
            size: (input.rows, input.cols, input.stride),
        };
        let [mut queries, keys, values] = [0, 1, 2].map(|at| matrix(&self.inputs[at]));
        queries.at += first * queries.size.2;
        queries.size.0 = rows;
        Place { row: number * self.m + first, rows, matrices: [queries, keys, values] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads(layout: Layout, dims: [&[i64]; 3], masks: &[&[i64]]) -> Result<Heads, String> {
        Heads::new(layout, dims, masks).map_err(|error| error.to_string())
    }

    fn starts(heads: &Heads, number: usize) -> [usize; 3] {
        heads.place(number, 0, 1).matrices.map(|matrix| matrix.at)
    }

    #[test]
    fn heads_first_broadcast() {
        let found =
            heads(Layout::HeadsFirst, [&[2, 1, 5, 3], &[4, 7, 3], &[7, 6]], &[&[1, 7]]).unwrap();
        assert_eq!((found.scores(), found.output()), (vec![2, 4, 5, 7], vec![2, 4, 5, 6]));
        assert_eq!(starts(&found, 6), [15, 2 * 21, 0]);
        let place = found.place(6, 2, 3);
        assert_eq!((place.row, place.matrices[0].at), (32, 15 + 6));
        assert_eq!(place.matrices.map(|matrix| matrix.size), [(3, 3, 3), (7, 3, 3), (7, 6, 6)]);
    }

    #[test]
    fn a_mask_repeats_batches_queries_and_keys() {
        let found = heads(Layout::HeadsFirst, [&[1, 3], &[1, 3], &[7, 6]], &[&[4, 5, 7]]).unwrap();
        assert_eq!((found.scores(), found.output()), (vec![4, 5, 7], vec![4, 5, 6]));
        let place = found.place(3, 1, 2);
        assert_eq!(place.matrices.map(|matrix| matrix.at), [0, 0, 0]);
        assert_eq!(place.matrices.map(|matrix| matrix.size), [(2, 3, 0), (7, 3, 0), (7, 6, 6)]);
    }

    #[test]
    fn heads_inside_are_found_by_their_distance() {
        let dims: [&[i64]; 3] = [&[2, 5, 4, 3], &[2, 7, 4, 3], &[2, 7, 4, 6]];
        let found = heads(Layout::HeadsInside, dims, &[]).unwrap();
        assert_eq!((found.scores(), found.output()), (vec![2, 4, 5, 7], vec![2, 5, 4, 6]));
        assert_eq!(starts(&found, 6), [60 + 6, 84 + 6, 168 + 12]);
        assert_eq!(found.place(6, 2, 3).matrices[0].at, 60 + 6 + 24);
        assert_eq!(found.place(0, 0, 5).matrices[2].size, (7, 6, 24));
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let first = |dims| heads(Layout::HeadsFirst, dims, &[]).unwrap_err();
        assert_eq!(first([&[3], &[4, 3], &[4, 5]]), "q must have at least 2 dimensions, got 1");
        assert!(first([&[2, 3], &[4, 4], &[4, 5]]).contains("[2, 3]"));
        assert!(first([&[2, 3], &[4, 3], &[5, 5]]).contains("[5, 5]"));
        assert!(first([&[2, 2, 3], &[3, 4, 3], &[4, 5]]).contains("do not broadcast"));
        let inside = |dims| heads(Layout::HeadsInside, dims, &[]).unwrap_err();
        assert_eq!(inside([&[3, 3], &[4, 3], &[4, 5]]), "q must have 4 dimensions, got 2");
        let dims: [&[i64]; 3] = [&[1, 5, 4, 3], &[2, 7, 4, 3], &[2, 7, 4, 6]];
        assert!(inside(dims).contains("[1, 4] and [2, 4] do not broadcast"));
    }
}
