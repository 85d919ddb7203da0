//! Borrowed tensors of known element type in host memory.

/// A tensor that is read: dense, row-major.
#[derive(Debug, Clone, Copy)]
pub struct View<'a, T> {
    /// Dimensions, each at least 0.
    pub dims: &'a [i64],
    /// As many elements as the product of the dimensions.
    pub data: &'a [T],
}

impl<'a, T> View<'a, T> {
    /// Joins dimensions and elements; `data` holds their product.
    pub fn new(dims: &'a [i64], data: &'a [T]) -> View<'a, T> {
        debug_assert_eq!(dims.iter().product::<i64>(), data.len() as i64);
        View { dims, data }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }
}

/// A tensor that is written: dense, row-major.
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    /// Dimensions, each at least 0.
    pub dims: &'a [i64],
    /// As many elements as the product of the dimensions.
    pub data: &'a mut [T],
}

impl<'a, T> ViewMut<'a, T> {
    /// Joins dimensions and elements; `data` holds their product.
    pub fn new(dims: &'a [i64], data: &'a mut [T]) -> ViewMut<'a, T> {
        debug_assert_eq!(dims.iter().product::<i64>(), data.len() as i64);
        ViewMut { dims, data }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }
}
