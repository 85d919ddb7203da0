//! Diagonals of matrices.
//!
//! Diagonal `d` of a matrix begins in row `max(-d, 0)` and column `max(d, 0)`. The diagonals from
//! `lower` to `upper` are packed as rows, the uppermost first, each padded to the length of the
//! longest; a single diagonal is a vector.

use crate::error::{GeometryError, Result};
use crate::size::{Dims, element_count, index, validate_dims};

/// A band of diagonals of matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiagBand {
    /// The lowest diagonal; 0 is the main diagonal, negative numbers are below it.
    pub lower: i64,
    /// The uppermost diagonal.
    pub upper: i64,
}

impl DiagBand {
    /// The main diagonal.
    pub const MAIN: DiagBand = DiagBand { lower: 0, upper: 0 };

    /// Creates a band from one diagonal, or from the lowest and the uppermost.
    pub fn new(k: &[i64]) -> Result<DiagBand> {
        let (lower, upper) = match *k {
            [only] => (only, only),
            [lower, upper] => (lower, upper),
            _ => return Err(GeometryError::Length { what: "k", expected: 2, found: k.len() }),
        };
        if lower > upper {
            let what = "the second value of k";
            return Err(GeometryError::TooSmall { what, least: lower, found: upper });
        }
        Ok(DiagBand { lower, upper })
    }

    /// The number of diagonals.
    pub fn count(&self) -> i64 {
        self.upper.saturating_sub(self.lower).saturating_add(1)
    }

    /// Checks that matrices of this size have these diagonals; every matrix has a main one.
    fn check(&self, rows: i64, cols: i64) -> Result<()> {
        for axis in [self.lower, self.upper] {
            if axis != 0 && !(-rows < axis && axis < cols) {
                return Err(GeometryError::Axis { what: "k", low: 1 - rows, high: cols, axis });
            }
        }
        Ok(())
    }

    /// The length of the longest diagonal.
    fn longest(&self, rows: i64, cols: i64) -> i64 {
        (rows + self.upper.min(0)).min(cols - self.lower.max(0)).max(0)
    }
}

/// The alignment of diagonals that are shorter than the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiagAlign {
    /// Whether diagonals above the main one are aligned left.
    pub upper_left: bool,
    /// Whether diagonals below the main one are aligned left.
    pub lower_left: bool,
}

impl DiagAlign {
    /// Reads the attribute: first the alignment above the main diagonal, then the one below.
    pub fn new(name: &str) -> Result<DiagAlign> {
        let (upper_left, lower_left) = match name {
            "LEFT_LEFT" => (true, true),
            "LEFT_RIGHT" => (true, false),
            "RIGHT_LEFT" => (false, true),
            "RIGHT_RIGHT" => (false, false),
            found => {
                let allowed = "LEFT_RIGHT, RIGHT_LEFT, LEFT_LEFT, RIGHT_RIGHT";
                return Err(GeometryError::Name {
                    what: "align",
                    allowed,
                    found: found.to_owned(),
                });
            }
        };
        Ok(DiagAlign { upper_left, lower_left })
    }
}

/// The place of one diagonal, in elements of a matrix and of its packed diagonals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Diagonal {
    /// The position of its first element in the matrix.
    pub matrix: usize,
    /// The position of its first element among the packed ones.
    pub packed: usize,
    /// Its length.
    pub len: usize,
}

/// A band of diagonals of each matrix of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiagGeometry {
    /// Shape of the matrices.
    pub matrices: Dims,
    /// Shape of the packed diagonals.
    pub packed: Dims,
    /// Rows of a matrix.
    pub rows: usize,
    /// Columns of a matrix; the next element of a diagonal is `cols + 1` elements further.
    pub cols: usize,
    /// Packed elements of a matrix.
    pub packed_len: usize,
    band: DiagBand,
    longest: i64,
}

impl DiagGeometry {
    /// The diagonals of matrices of this shape.
    pub fn of_matrices(what: &'static str, dims: &[i64], band: DiagBand) -> Result<DiagGeometry> {
        validate_dims(dims)?;
        let Some((outer, &[rows, cols])) = dims.split_last_chunk() else {
            return Err(GeometryError::RankTooSmall { what, expected: 2, found: dims.len() });
        };
        band.check(rows, cols)?;
        let mut packed = Dims::from_slice(outer)?;
        if band.lower < band.upper {
            packed.push(band.count())?;
        }
        packed.push(band.longest(rows, cols))?;
        DiagGeometry::new(Dims::from_slice(dims)?, packed, band)
    }

    /// Matrices made from packed diagonals: of the given size, or the smallest possible where that
    /// is -1.
    pub fn of_packed(dims: &[i64], band: DiagBand, [rows, cols]: [i64; 2]) -> Result<DiagGeometry> {
        validate_dims(dims)?;
        let taken = if band.lower < band.upper { 2 } else { 1 };
        if dims.len() < taken {
            let (what, found) = ("diagonal", dims.len());
            return Err(GeometryError::RankTooSmall { what, expected: taken, found });
        }
        let outer = dims.len() - taken;
        if taken == 2 && dims[outer] != band.count() {
            let (what, found) =
                ("the number of diagonals in diagonal, which k gives,", dims[outer]);
            return Err(GeometryError::SizeMismatch { what, expected: band.count(), found });
        }
        let longest = dims[dims.len() - 1];
        let too_large = || GeometryError::TooLarge { dims: dims.to_vec() };
        let least_rows = longest.checked_sub(band.upper.min(0)).ok_or_else(too_large)?;
        let least_cols = longest.checked_add(band.lower.max(0)).ok_or_else(too_large)?;
        let size = match (rows, cols) {
            (-1, -1) => [least_rows.max(least_cols); 2],
            (-1, cols) => [least_rows, cols],
            (rows, -1) => [rows, least_cols],
            sizes => [sizes.0, sizes.1],
        };
        let named = [("num_rows", least_rows), ("num_cols", least_cols)];
        for (found, (what, least)) in size.into_iter().zip(named) {
            if found < least {
                return Err(GeometryError::TooSmall { what, least, found });
            }
        }
        if size[0] != least_rows && size[1] != least_cols {
            let what = "num_rows, where num_cols is larger than needed,";
            return Err(GeometryError::SizeMismatch { what, expected: least_rows, found: size[0] });
        }
        let mut matrices = Dims::from_slice(&dims[..outer])?;
        matrices.push(size[0])?;
        matrices.push(size[1])?;
        DiagGeometry::new(matrices, Dims::from_slice(dims)?, band)
    }

    fn new(matrices: Dims, packed: Dims, band: DiagBand) -> Result<DiagGeometry> {
        element_count(&matrices)?;
        element_count(&packed)?;
        let [rows, cols] = [matrices.len() - 2, matrices.len() - 1].map(|at| index(matrices[at]));
        let longest = packed[packed.len() - 1];
        let packed_len = element_count(&[band.count(), longest])?;
        Ok(DiagGeometry { matrices, packed, rows, cols, packed_len, band, longest })
    }

    /// The diagonals in the order in which they are packed.
    pub fn diagonals(&self, align: DiagAlign) -> impl Iterator<Item = Diagonal> + '_ {
        let (rows, cols) = (self.rows as i64, self.cols as i64);
        (self.band.lower..=self.band.upper).rev().enumerate().map(move |(at, d)| {
            let len = (rows + d.min(0)).min(cols - d.max(0)).clamp(0, self.longest);
            let left = d >= 0 && align.upper_left || d <= 0 && align.lower_left;
            let offset = if left { 0 } else { self.longest - len };
            Diagonal {
                matrix: index((-d).max(0) * cols + d.max(0)),
                packed: index(at as i64 * self.longest + offset),
                len: index(len),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagonals_of_matrices() {
        let band = DiagBand::new(&[-1, 1]).unwrap();
        let g = DiagGeometry::of_matrices("input", &[2, 3, 4], band).unwrap();
        assert_eq!((g.packed.as_slice(), g.packed_len), (&[2, 3, 3][..], 9));
        let align = DiagAlign::new("RIGHT_LEFT").unwrap();
        let found: Vec<_> = g.diagonals(align).map(|d| (d.matrix, d.packed, d.len)).collect();
        assert_eq!(found, [(1, 0, 3), (0, 3, 3), (4, 6, 2)]);
        let found: Vec<_> =
            g.diagonals(DiagAlign::new("LEFT_RIGHT").unwrap()).map(|d| d.packed).collect();
        assert_eq!(found, [0, 3, 7]);
        let g = DiagGeometry::of_matrices("input", &[0, 4], DiagBand::new(&[3]).unwrap()).unwrap();
        assert_eq!(g.packed, [0]);
    }

    #[test]
    fn matrices_of_diagonals() {
        let size = |dims: &[i64], k: &[i64], size| {
            let g = DiagGeometry::of_packed(dims, DiagBand::new(k)?, size)?;
            Ok::<_, GeometryError>((g.rows, g.cols))
        };
        assert_eq!(size(&[2, 3], &[0], [-1, -1]), Ok((3, 3)));
        assert_eq!(size(&[2, 3], &[-1, 0], [-1, 4]), Ok((3, 4)));
        assert_eq!(size(&[3], &[-5], [-1, -1]), Ok((8, 8)));
        assert!(size(&[2, 3], &[0], [2, -1]).is_err());
        assert!(size(&[2, 3], &[0], [10, 10]).is_err());
        assert!(size(&[2, 3], &[-1, 1], [-1, -1]).is_err());
        assert!(size(&[i64::MAX], &[1], [-1, -1]).is_err());
        assert!(size(&[3], &[i64::MIN], [-1, -1]).is_err());
    }

    #[test]
    fn bands() {
        assert!(DiagBand::new(&[]).is_err() && DiagBand::new(&[0, 1, 2]).is_err());
        assert_eq!(
            DiagBand::new(&[2, 1]).unwrap_err().to_string(),
            "the second value of k must be at least 2, got 1"
        );
        let error = DiagGeometry::of_matrices("input", &[3, 4], DiagBand::new(&[4]).unwrap());
        assert_eq!(error.unwrap_err().to_string(), "k must lie in [-2, 4), got 4");
    }
}
