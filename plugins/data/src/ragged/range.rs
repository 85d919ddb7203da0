//! `RaggedRange`.

use super::splits::write;
use tenon_sdk::{geometry::GeometryError, growth, prelude::*};

/// A type of numbers that rows are made of.
trait Step: Number {
    /// How many numbers there are from `start` on to before `limit`; `None` where there are too many to be counted.
    fn count(start: Self, limit: Self, delta: Self) -> Option<i64>;
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Step for $ty {
            fn count(start: $ty, limit: $ty, delta: $ty) -> Option<i64> {
                let (distance, step) =
                    (i128::from(limit) - i128::from(start), i128::from(delta));
                let whole = distance / step + i128::from(distance % step != 0);
                i64::try_from(if (distance > 0) == (step > 0) { whole } else { 0 }).ok()
            }
        }
    )*};
}

integers!(i32, i64);

macro_rules! floats {
    ($($ty:ty),*) => {$(
        impl Step for $ty {
            fn count(start: $ty, limit: $ty, delta: $ty) -> Option<i64> {
                if (delta > 0.0 && limit < start) || (delta < 0.0 && limit > start) {
                    return Some(0);
                }
                let count = ((limit - start) / delta).abs().ceil();
                (f64::from(count) < i64::MAX as f64).then_some(count as i64)
            }
        }
    )*};
}

floats!(f32, f64);

/// Numbers of a row each; a scalar is the number of every row.
fn of_row<T: Copy>(view: View<'_, T>, row: usize) -> T {
    view.data[if view.dims.is_empty() { 0 } else { row }]
}

fn range<T: Step>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let mut rows = None;
    for (at, what) in ["starts", "limits", "deltas"].into_iter().enumerate() {
        match (c.dims(at), rows) {
            ([], _) => {}
            (&[size], None) => rows = Some(size),
            (&[found], Some(expected)) if found == expected => {}
            (&[found], Some(expected)) => {
                let what = "the length of starts, limits and deltas";
                return Err(GeometryError::SizeMismatch { what, expected, found }.into());
            }
            (dims, _) => {
                return Err(GeometryError::Rank { what, expected: 1, found: dims.len() }.into());
            }
        }
    }
    let rows = rows.unwrap_or(1) as usize;
    let (starts, limits, deltas) = (c.input::<T>(0)?, c.input::<T>(1)?, c.input::<T>(2)?);
    let of = |row| (of_row(starts, row), of_row(limits, row), of_row(deltas, row));
    let mut splits = growth::with_room(rows + 1)?;
    splits.push(0i64);
    for row in 0..rows {
        let (start, limit, delta) = of(row);
        if delta == T::ZERO {
            return Err(KernelError::invalid_argument(format!(
                "deltas: expected numbers other than 0, found 0 for row {row}"
            )));
        }
        let end = T::count(start, limit, delta).and_then(|count| splits[row].checked_add(count));
        splits.push(end.ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "limits: expected fewer than 2^63 numbers, found more in the rows up to {row}"
            ))
        })?);
    }
    write(c, 0, &splits)?;
    let y = c.output::<T>(1, &[splits[rows]])?.data;
    for row in 0..rows {
        let (start, _, delta) = of(row);
        let mut value = start;
        for y in &mut y[splits[row] as usize..splits[row + 1] as usize] {
            *y = value;
            // By sums, as TensorFlow's: products would round otherwise.
            value = value.add(delta);
        }
    }
    Ok(())
}

register_kernel!("RaggedRange" on "CPU": fn range<T> for "T" in [i32, i64, f32, f64]);

#[cfg(test)]
mod tests {
    use super::Step;

    #[test]
    fn numbers_end_before_the_limit() {
        let cases = [(0, 10, 3, 4), (0, 9, 3, 3), (10, 0, -3, 4), (0, 10, -1, 0), (5, 5, 1, 0)];
        for (start, limit, delta, count) in cases {
            assert_eq!(i32::count(start, limit, delta), Some(i64::from(count)));
            let [start, limit, delta] = [start, limit, delta].map(f64::from);
            assert_eq!(f64::count(start, limit, delta), Some(i64::from(count)));
        }
        assert_eq!(i64::count(i64::MIN, i64::MAX, 1), None);
        assert_eq!(i64::count(i64::MIN, i64::MAX, i64::MAX), Some(3));
        assert_eq!(f64::count(0.0, f64::INFINITY, 1.0), None);
    }
}
