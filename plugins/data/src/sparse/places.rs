//! Coordinates of values.

use std::cmp::Ordering;
use tenon_sdk::{geometry::GeometryError, growth, prelude::*};

/// The coordinates of values in a shape.
pub struct Places {
    /// Row by row.
    data: Vec<i64>,
    /// The sizes of the dimensions.
    pub shape: Vec<i64>,
    /// How many values there are.
    pub count: usize,
}

/// Checks the rank of an input.
pub fn rank(
    c: &ComputeContext<'_>,
    input: usize,
    what: &'static str,
    expected: usize,
) -> Result<(), GeometryError> {
    match c.dims(input).len() {
        found if found != expected => Err(GeometryError::Rank { what, expected, found }),
        _ => Ok(()),
    }
}

/// Checks a size.
pub fn size(what: &'static str, expected: i64, found: i64) -> Result<(), GeometryError> {
    match expected == found {
        false => Err(GeometryError::SizeMismatch { what, expected, found }),
        true => Ok(()),
    }
}

/// The sizes in a vector, none of which is negative.
pub fn shape_in(
    c: &ComputeContext<'_>,
    input: usize,
    what: &'static str,
) -> Result<Vec<i64>, KernelError> {
    rank(c, input, what, 1)?;
    let sizes = c.integers(input)?;
    if let Some(&found) = sizes.iter().find(|&&size| size < 0) {
        return Err(GeometryError::TooSmall { what, least: 0, found }.into());
    }
    Ok(sizes)
}

impl Places {
    /// The coordinates in one input for the values in another, in the shape of a third. They may be outside of the shape.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for inputs that do not fit together.
    pub fn new(
        c: &ComputeContext<'_>,
        [indices, values, shape]: [usize; 3],
    ) -> Result<Places, KernelError> {
        rank(c, indices, "indices", 2)?;
        rank(c, values, "values", 1)?;
        let shape = shape_in(c, shape, "shape")?;
        let &[rows, columns] = c.dims(indices) else {
            return Err(KernelError::internal("indices without two dimensions"));
        };
        size("the number of values", rows, c.dims(values)[0])?;
        size("the second dimension of indices", shape.len() as i64, columns)?;
        Ok(Places { data: c.integers(indices)?, shape, count: rows as usize })
    }

    /// As [`Places::new`], all inside of the shape.
    ///
    /// # Errors
    /// As [`Places::new`], and `INVALID_ARGUMENT` for coordinates outside of the shape.
    pub fn inside(c: &ComputeContext<'_>, inputs: [usize; 3]) -> Result<Places, KernelError> {
        let places = Places::new(c, inputs)?;
        (0..places.count).try_for_each(|at| places.check(at))?;
        Ok(places)
    }

    /// Coordinates that a kernel made.
    pub fn of(data: Vec<i64>, shape: Vec<i64>, count: usize) -> Places {
        Places { data, shape, count }
    }

    /// The coordinates of a value.
    pub fn at(&self, value: usize) -> &[i64] {
        let rank = self.shape.len();
        &self.data[value * rank..][..rank]
    }

    /// Checks that a value is inside of the shape.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` where it is not.
    pub fn check(&self, value: usize) -> Result<(), KernelError> {
        let at = self.at(value);
        match at.iter().zip(&self.shape).all(|(at, size)| (0..*size).contains(at)) {
            true => Ok(()),
            false => Err(KernelError::invalid_argument(format!(
                "indices: expected places inside of shape {:?}, found {at:?} for value {value}",
                self.shape
            ))),
        }
    }

    /// The number of the element that a value is, of all elements of the shape.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a place outside of the shape, or a shape of too many elements.
    pub fn flat(&self, value: usize) -> Result<usize, KernelError> {
        self.check(value)?;
        let mut flat = 0i64;
        for (at, size) in self.at(value).iter().zip(&self.shape) {
            let next = flat.checked_mul(*size).and_then(|flat| flat.checked_add(*at));
            flat = next.ok_or_else(|| GeometryError::TooLarge { dims: self.shape.clone() })?;
        }
        Ok(flat as usize)
    }

    /// The order of two values by their places.
    pub fn compare(&self, a: usize, b: usize) -> Ordering {
        self.at(a).cmp(self.at(b))
    }

    /// The numbers of the values in the order of their places; equal places keep their order.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` without memory for them.
    pub fn sorted(&self) -> Result<Vec<usize>, KernelError> {
        let mut order = growth::collected(0..self.count)?;
        if !(1..self.count).all(|at| self.compare(at - 1, at).is_le()) {
            order.sort_by(|&a, &b| self.compare(a, b));
        }
        Ok(order)
    }

    /// Checks that the places are in order, each once.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` where one is not.
    pub fn check_order(&self) -> Result<(), KernelError> {
        let wrong = (1..self.count).find(|&at| self.compare(at - 1, at).is_ge());
        let Some(at) = wrong else { return Ok(()) };
        Err(KernelError::invalid_argument(format!(
            "indices: expected places in order, each once, found {:?} after {:?} for value {at}",
            self.at(at),
            self.at(at - 1)
        )))
    }

    /// Runs of values, which are sorted, with the same coordinates but for the last. There is one at least in each.
    pub fn rows<'a>(&'a self, sorted: &'a [usize]) -> impl Iterator<Item = &'a [usize]> {
        let last = self.shape.len().saturating_sub(1);
        sorted.chunk_by(move |&a, &b| self.at(a)[..last] == self.at(b)[..last])
    }

    /// Writes the coordinates of these values.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(
        &self,
        c: &ComputeContext<'_>,
        output: usize,
        values: &[usize],
    ) -> Result<(), KernelError> {
        let rank = self.shape.len();
        let y = c.output::<i64>(output, &[values.len() as i64, rank as i64])?.data;
        for (at, &value) in values.iter().enumerate() {
            y[at * rank..][..rank].copy_from_slice(self.at(value));
        }
        Ok(())
    }
}

/// Writes a vector of numbers.
pub fn write_numbers(
    c: &ComputeContext<'_>,
    output: usize,
    numbers: &[i64],
) -> Result<(), KernelError> {
    c.output::<i64>(output, &[numbers.len() as i64])?.data.copy_from_slice(numbers);
    Ok(())
}
