//! Sums of gradients.

use tenon_sdk::{growth, prelude::*};

/// Rows of a sparse sum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    /// Which row of the dense form each one is.
    pub indices: Vec<i64>,
    /// How many gradients had it.
    pub counts: Vec<u32>,
}

/// Gradients of one type, added up.
#[derive(Debug, Clone, PartialEq)]
pub struct Sum<T> {
    /// Sizes of the values.
    pub dims: Vec<i64>,
    /// The values, row by row.
    pub values: Vec<T>,
    /// `None` for a dense sum.
    pub rows: Option<Rows>,
}

impl<T: Number> Sum<T> {
    /// A gradient by itself; with the indices of its rows where it is sparse.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when there is no memory for a copy.
    pub fn of(values: &View<'_, T>, indices: Option<&[i64]>) -> Result<Sum<T>, KernelError> {
        let rows = match indices {
            None => None,
            Some(indices) => Some(Rows {
                indices: growth::copied(indices)?,
                counts: growth::filled(indices.len(), 1)?,
            }),
        };
        Ok(Sum { dims: values.dims.to_vec(), values: growth::copied(values.data)?, rows })
    }

    /// Adds another one of the same form: where both are sparse, rows of equal indices, each list of
    /// indices being in ascending order.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when there is no memory for rows that are new; then nothing was added.
    pub fn add(&mut self, other: &Sum<T>) -> Result<(), KernelError> {
        match (&self.rows, &other.rows) {
            (Some(rows), Some(others)) => {
                let merged = merge((rows, &self.values), (others, &other.values))?;
                (self.rows, self.values) = (Some(merged.0), merged.1);
                if let (Some(dim), Some(rows)) = (self.dims.first_mut(), &self.rows) {
                    *dim = rows.indices.len() as i64;
                }
            }
            _ => add_to(&mut self.values, &other.values),
        }
        Ok(())
    }

    /// Writes the mean of `count` gradients, by row where they are sparse.
    pub fn average(&self, count: u64, mean: &mut [T]) {
        mean.copy_from_slice(&self.values);
        let Some(rows) = &self.rows else { return divide(mean, count) };
        let size = width(&self.values, rows);
        for (row, &count) in mean.chunks_mut(size).zip(&rows.counts) {
            divide(row, count.into());
        }
    }
}

fn add_to<T: Number>(values: &mut [T], others: &[T]) {
    values.iter_mut().zip(others).for_each(|(value, &other)| *value = value.add(other));
}

fn divide<T: Number>(values: &mut [T], count: u64) {
    let count = T::from_f64(count as f64).to_f64();
    values.iter_mut().for_each(|value| *value = T::from_f64(value.to_f64() / count));
}

/// Elements of a row, of which there is at least one.
fn width<T>(values: &[T], rows: &Rows) -> usize {
    (values.len() / rows.indices.len().max(1)).max(1)
}

type Side<'s, T> = (&'s Rows, &'s Vec<T>);

fn merge<T: Number>(a: Side<'_, T>, b: Side<'_, T>) -> Result<(Rows, Vec<T>), KernelError> {
    let size = width(a.1, a.0).max(width(b.1, b.0));
    let most = a.0.indices.len() + b.0.indices.len();
    let mut indices = growth::with_room(most)?;
    let mut counts = growth::with_room(most)?;
    let mut values = growth::with_room(a.1.len() + b.1.len())?;
    let (mut i, mut j) = (0, 0);
    loop {
        let (left, right) = (a.0.indices.get(i).copied(), b.0.indices.get(j).copied());
        let index = match (left, right) {
            (Some(left), Some(right)) => left.min(right),
            (Some(index), None) | (None, Some(index)) => index,
            (None, None) => break,
        };
        let (begin, mut count) = (values.len(), 0);
        if left == Some(index) {
            values.extend(a.1.iter().skip(i * size).take(size));
            count += a.0.counts[i];
            i += 1;
        }
        if right == Some(index) {
            let row = b.1.chunks(size).nth(j).unwrap_or_default();
            match values.len() - begin {
                0 => values.extend(row),
                _ => add_to(&mut values[begin..], row),
            }
            count += b.0.counts[j];
            j += 1;
        }
        indices.push(index);
        counts.push(count);
    }
    Ok((Rows { indices, counts }, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sparse(indices: &[i64], values: &[f32]) -> Sum<f32> {
        let dims = [indices.len() as i64, (values.len() / indices.len().max(1)) as i64];
        Sum::of(&View { dims: &dims, data: values }, Some(indices)).unwrap()
    }

    #[test]
    fn rows_of_equal_indices_are_added_and_counted() {
        let mut sum = sparse(&[1, 4], &[1.0, 2.0, 3.0, 4.0]);
        sum.add(&sparse(&[0, 4, 7], &[9.0, 9.0, 1.0, 1.0, 5.0, 6.0])).unwrap();
        let rows = sum.rows.as_ref().unwrap();
        assert_eq!((&rows.indices[..], &rows.counts[..]), (&[0, 1, 4, 7][..], &[1, 1, 2, 1][..]));
        assert_eq!(sum.dims, [4, 2]);
        assert_eq!(sum.values, [9.0, 9.0, 1.0, 2.0, 4.0, 5.0, 5.0, 6.0]);
        let mut mean = [0.0; 8];
        sum.average(2, &mut mean);
        assert_eq!(mean, [9.0, 9.0, 1.0, 2.0, 2.0, 2.5, 5.0, 6.0]);
    }

    #[test]
    fn a_gradient_without_rows_changes_nothing() {
        let empty = sparse(&[], &[]);
        let mut sum = sparse(&[3], &[1.0, 2.0]);
        sum.add(&empty).unwrap();
        assert_eq!(sum.values, [1.0, 2.0]);
        let mut sum = empty;
        sum.add(&sparse(&[3], &[1.0, 2.0])).unwrap();
        assert_eq!((sum.values, sum.dims), (vec![1.0, 2.0], vec![1, 0]));
    }

    #[test]
    fn a_dense_sum_is_divided_by_the_number_of_gradients() {
        let values = [f16::from_f64(1.0), f16::from_f64(2.0)];
        let view = View { dims: &[2], data: &values };
        let mut sum = Sum::of(&view, None).unwrap();
        sum.add(&Sum::of(&view, None).unwrap()).unwrap();
        sum.add(&Sum::of(&view, None).unwrap()).unwrap();
        let mut mean = [f16::ZERO; 2];
        sum.average(3, &mut mean);
        assert_eq!(mean, values);
    }
}
