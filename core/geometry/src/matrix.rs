//! Matrices in the last two dimensions, as in decompositions.

use crate::error::{GeometryError, Result};
use crate::size::validate_partial_dims;

/// The size of the square matrices in the last two dimensions; -1 is an unknown dimension.
pub fn square_size(what: &'static str, dims: &[i64]) -> Result<i64> {
    validate_partial_dims(dims)?;
    let Some(&[rows, cols]) = dims.last_chunk() else {
        return Err(GeometryError::RankTooSmall { what, expected: 2, found: dims.len() });
    };
    if rows != cols && rows != -1 && cols != -1 {
        return Err(GeometryError::NotSquare { what, rows, cols });
    }
    Ok(rows.max(cols))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn square_matrices() {
        assert_eq!(square_size("a", &[5, 3, 3]), Ok(3));
        assert_eq!(square_size("a", &[-1, 3]), Ok(3));
        assert_eq!(square_size("a", &[-1, -1]), Ok(-1));
        assert_eq!(
            square_size("a", &[2, 3, 4]).unwrap_err().to_string(),
            "a must hold square matrices, got matrices of 3 rows and 4 columns"
        );
        assert!(square_size("a", &[3]).is_err());
    }
}
