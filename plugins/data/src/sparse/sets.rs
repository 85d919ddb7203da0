//! `SetSize`, `DenseToDenseSetOperation`, `DenseToSparseSetOperation`, `SparseToSparseSetOperation`: sets of the values in
//! each row of the last dimension.
//!
//! Integers of all types are compared as the widest; texts byte by byte. Rows without values have no part in anything.

use super::places::{Places, write_numbers};
use std::cmp::Ordering;
use tenon_sdk::{
    geometry::{GeometryError, byte_size},
    growth,
    prelude::*,
};

/// An operation on two sets: whether an element stays that the first has, or the second.
#[derive(Clone, Copy)]
struct Operation {
    of_first: bool,
    of_second: bool,
    of_both: bool,
}

impl Operation {
    fn new(name: &str) -> Result<Operation, KernelError> {
        let all = [
            ("a-b", Operation { of_first: true, of_second: false, of_both: false }),
            ("b-a", Operation { of_first: false, of_second: true, of_both: false }),
            ("intersection", Operation { of_first: false, of_second: false, of_both: true }),
            ("union", Operation { of_first: true, of_second: true, of_both: true }),
        ];
        let found = all.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
        found.map(|(_, operation)| operation).ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "set_operation must be 'a-b', 'b-a', 'intersection' or 'union', found '{name}'"
            ))
        })
    }

    /// Appends the elements that stay of two sorted sets.
    fn apply<V: Ord + Clone>(self, a: &[V], b: &[V], to: &mut Vec<V>) -> Result<(), KernelError> {
        let (mut i, mut j) = (0, 0);
        while i < a.len() || j < b.len() {
            let order = match (a.get(i), b.get(j)) {
                (Some(a), Some(b)) => a.cmp(b),
                (Some(_), None) => Ordering::Less,
                _ => Ordering::Greater,
            };
            let (value, stays) = match order {
                Ordering::Less => (&a[i], self.of_first),
                Ordering::Greater => (&b[j], self.of_second),
                Ordering::Equal => (&a[i], self.of_both),
            };
            if stays {
                growth::push(to, value.clone())?;
            }
            i += usize::from(order.is_le());
            j += usize::from(order.is_ge());
        }
        Ok(())
    }
}

/// Where the values of an operand are.
enum Operand {
    /// In the rows of a whole tensor.
    Dense { dims: Vec<i64> },
    /// At places, which are in this order.
    Sparse { places: Places, order: Vec<usize> },
}

/// Sets of values, row by row.
struct Sets<V> {
    /// The coordinates of each row.
    keys: Vec<i64>,
    /// The end of each row's values.
    ends: Vec<usize>,
    values: Vec<V>,
    /// How many coordinates a row has.
    rank: usize,
}

impl<V: Ord + Clone> Sets<V> {
    fn none(rank: usize) -> Sets<V> {
        Sets { keys: Vec::new(), ends: Vec::new(), values: Vec::new(), rank }
    }

    fn key(&self, row: usize) -> &[i64] {
        &self.keys[row * self.rank..][..self.rank]
    }

    fn row(&self, row: usize) -> &[V] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.values[start..self.ends[row]]
    }

    /// Ends a row, whose values are the last ones from `start` on.
    fn end_row(&mut self, key: &[i64]) -> Result<(), KernelError> {
        growth::append(&mut self.keys, key)?;
        growth::push(&mut self.ends, self.values.len())
    }

    /// Adds a row of values in any order.
    fn add(&mut self, key: &[i64], row: &mut Vec<V>) -> Result<(), KernelError> {
        row.sort_unstable();
        row.dedup();
        growth::append(&mut self.values, row)?;
        row.clear();
        self.end_row(key)
    }

    fn new(operand: &Operand, values: &[V]) -> Result<Sets<V>, KernelError> {
        match operand {
            Operand::Dense { dims } => Sets::of_rows(dims, values),
            Operand::Sparse { places, order } => Sets::of_places(places, order, values),
        }
    }

    fn of_rows(dims: &[i64], values: &[V]) -> Result<Sets<V>, KernelError> {
        let (mut sets, mut row) = (Sets::none(dims.len() - 1), Vec::new());
        let mut key = growth::filled(sets.rank, 0i64)?;
        // A tensor of many rows may have no values.
        let width = (dims[sets.rank] as usize).max(1);
        for values in values.chunks_exact(width) {
            growth::append(&mut row, values)?;
            sets.add(&key, &mut row)?;
            for (at, size) in key.iter_mut().zip(dims).rev() {
                *at += 1;
                if *at < *size {
                    break;
                }
                *at = 0;
            }
        }
        Ok(sets)
    }

    fn of_places(places: &Places, order: &[usize], values: &[V]) -> Result<Sets<V>, KernelError> {
        let (mut sets, mut row) = (Sets::none(places.shape.len() - 1), Vec::new());
        for values_of_row in places.rows(order) {
            for &value in values_of_row {
                growth::push(&mut row, values[value].clone())?;
            }
            sets.add(&places.at(values_of_row[0])[..sets.rank], &mut row)?;
        }
        Ok(sets)
    }

    /// The result of an operation on the rows of both.
    fn combined(&self, other: &Sets<V>, operation: Operation) -> Result<Sets<V>, KernelError> {
        let mut result = Sets::none(self.rank);
        let (mut i, mut j) = (0, 0);
        while i < self.ends.len() || j < other.ends.len() {
            let order = match (i < self.ends.len(), j < other.ends.len()) {
                (true, true) => self.key(i).cmp(other.key(j)),
                (true, false) => Ordering::Less,
                _ => Ordering::Greater,
            };
            let before = result.values.len();
            let a = if order.is_le() { self.row(i) } else { &[] };
            let b = if order.is_ge() { other.row(j) } else { &[] };
            operation.apply(a, b, &mut result.values)?;
            if result.values.len() > before {
                result.end_row(if order.is_le() { self.key(i) } else { other.key(j) })?;
            }
            i += usize::from(order.is_le());
            j += usize::from(order.is_ge());
        }
        Ok(result)
    }

    /// Writes coordinates and shape, for rows of a tensor of these dimensions.
    fn write_places(&self, c: &ComputeContext<'_>, rows: &[i64]) -> Result<(), KernelError> {
        let columns = self.rank + 1;
        let y = c.output::<i64>(0, &[self.values.len() as i64, columns as i64])?.data;
        let (mut places, mut most) = (y.chunks_exact_mut(columns), 0);
        for row in 0..self.ends.len() {
            let len = self.row(row).len();
            most = most.max(len);
            for (at, place) in places.by_ref().take(len).enumerate() {
                place[..self.rank].copy_from_slice(self.key(row));
                place[self.rank] = at as i64;
            }
        }
        let mut shape = growth::copied(rows)?;
        growth::push(&mut shape, most as i64)?;
        write_numbers(c, 2, &shape)
    }
}

/// A sparse operand, checked.
fn sparse(
    c: &ComputeContext<'_>,
    inputs: [usize; 3],
    what: &'static str,
    is_checked: bool,
) -> Result<Operand, KernelError> {
    let places = Places::inside(c, inputs)?;
    check_rank(what, places.shape.len())?;
    if is_checked {
        places.check_order()?;
    }
    let order = places.sorted()?;
    Ok(Operand::Sparse { places, order })
}

fn check_rank(what: &'static str, found: usize) -> Result<(), GeometryError> {
    match found {
        0 | 1 => Err(GeometryError::RankTooSmall { what, expected: 2, found }),
        _ => Ok(()),
    }
}

impl Operand {
    fn dense(
        c: &ComputeContext<'_>,
        input: usize,
        what: &'static str,
    ) -> Result<Operand, KernelError> {
        check_rank(what, c.dims(input).len())?;
        Ok(Operand::Dense { dims: growth::copied(c.dims(input))? })
    }

    /// The dimensions but for the last.
    fn rows(&self) -> &[i64] {
        let (Operand::Dense { dims } | Operand::Sparse { places: Places { shape: dims, .. }, .. }) =
            self;
        &dims[..dims.len() - 1]
    }
}

/// The integers of an input, of any of the types of sets.
fn numbers(c: &ComputeContext<'_>, input: usize) -> Result<Vec<i64>, KernelError> {
    fn widen<T: Element + Into<i64>>(
        c: &ComputeContext<'_>,
        input: usize,
    ) -> Result<Vec<i64>, KernelError> {
        growth::collected(c.input::<T>(input)?.data.iter().map(|&x| x.into()))
    }
    match c.slot(input)?.dtype {
        DType::INT8 => widen::<i8>(c, input),
        DType::UINT8 => widen::<u8>(c, input),
        DType::UINT16 => widen::<u16>(c, input),
        _ => c.integers(input),
    }
}

/// Writes integers, each of which came from the type of the output.
fn write_values(c: &ComputeContext<'_>, values: &[i64]) -> Result<(), KernelError> {
    fn narrow<T: Element>(
        c: &ComputeContext<'_>,
        values: &[i64],
        convert: fn(i64) -> T,
    ) -> Result<(), KernelError> {
        let y = c.output::<T>(1, &[values.len() as i64])?.data;
        y.iter_mut().zip(values).for_each(|(y, &value)| *y = convert(value));
        Ok(())
    }
    match c.output_slot(1)?.dtype {
        DType::INT8 => narrow(c, values, |x| x as i8),
        DType::UINT8 => narrow(c, values, |x| x as u8),
        DType::INT16 => narrow(c, values, |x| x as i16),
        DType::UINT16 => narrow(c, values, |x| x as u16),
        DType::INT32 => narrow(c, values, |x| x as i32),
        _ => narrow(c, values, |x| x),
    }
}

struct SetSize {
    is_checked: bool,
}

impl SetSize {
    fn write<V: Ord + Clone>(
        c: &ComputeContext<'_>,
        operand: &Operand,
        values: &[V],
    ) -> Result<(), KernelError> {
        let sets = Sets::new(operand, values)?;
        let rows = operand.rows();
        byte_size(rows, 4)?;
        let y = c.output::<i32>(0, rows)?.data;
        y.fill(0);
        for row in 0..sets.ends.len() {
            let key = sets.key(row).iter().zip(rows);
            let at = key.fold(0, |flat, (at, size)| flat * size + at);
            y[at as usize] = sets.row(row).len() as i32;
        }
        Ok(())
    }
}

impl Kernel for SetSize {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(SetSize { is_checked: c.attr("validate_indices")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let operand = sparse(c, [0, 1, 2], "set_shape", self.is_checked)?;
        match c.slot(1)?.dtype {
            DType::STRING => SetSize::write(c, &operand, &c.strings(1)?),
            _ => SetSize::write(c, &operand, &numbers(c, 1)?),
        }
    }
}

struct SetOperation {
    operation: Operation,
    is_checked: bool,
}

impl SetOperation {
    /// Both operands, and the inputs that have their values.
    fn operands(&self, c: &ComputeContext<'_>) -> Result<([Operand; 2], [usize; 2]), KernelError> {
        match c.input_count() {
            2 => Ok(([Operand::dense(c, 0, "set1")?, Operand::dense(c, 1, "set2")?], [0, 1])),
            4 => {
                let dense = Operand::dense(c, 0, "set1")?;
                Ok(([dense, sparse(c, [1, 2, 3], "set2_shape", self.is_checked)?], [0, 2]))
            }
            _ => {
                let first = sparse(c, [0, 1, 2], "set1_shape", self.is_checked)?;
                Ok(([first, sparse(c, [3, 4, 5], "set2_shape", self.is_checked)?], [1, 4]))
            }
        }
    }
}

impl Kernel for SetOperation {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let operation = Operation::new(c.attr("set_operation")?)?;
        Ok(SetOperation { operation, is_checked: c.attr("validate_indices")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let ([a, b], [first, second]) = self.operands(c)?;
        if a.rows() != b.rows() {
            return Err(KernelError::invalid_argument(format!(
                "set2: expected the dimensions {:?} before the last, those of set1, found {:?}",
                a.rows(),
                b.rows()
            )));
        }
        if c.slot(first)?.dtype == DType::STRING {
            let (x, y) = (Sets::new(&a, &c.strings(first)?)?, Sets::new(&b, &c.strings(second)?)?);
            let result = x.combined(&y, self.operation)?;
            c.set_strings(1, &[result.values.len() as i64], result.values.iter())?;
            return result.write_places(c, a.rows());
        }
        let (x, y) = (Sets::new(&a, &numbers(c, first)?)?, Sets::new(&b, &numbers(c, second)?)?);
        let result = x.combined(&y, self.operation)?;
        write_values(c, &result.values)?;
        result.write_places(c, a.rows())
    }
}

/// The types of values of sets.
const TYPES: &[DType] = &[
    DType::INT8,
    DType::INT16,
    DType::INT32,
    DType::INT64,
    DType::UINT8,
    DType::UINT16,
    DType::STRING,
];

register_kernel!("SetSize" on "CPU": SetSize, types = ("T", TYPES), host_memory = &["set_shape"]);
register_kernel!("DenseToDenseSetOperation" on "CPU": SetOperation, types = ("T", TYPES));
register_kernel!("DenseToSparseSetOperation" on "CPU": SetOperation, types = ("T", TYPES),
    host_memory = &["set2_shape"]);
register_kernel!("SparseToSparseSetOperation" on "CPU": SetOperation, types = ("T", TYPES),
    host_memory = &["set1_shape", "set2_shape"]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_keep_what_they_say() {
        let cases: [(&str, &[i64]); 4] = [
            ("A-b", &[1, 5]),
            ("b-a", &[2, 7]),
            ("intersection", &[3]),
            ("Union", &[1, 2, 3, 5, 7]),
        ];
        for (name, expected) in cases {
            let mut found = Vec::new();
            Operation::new(name).unwrap().apply(&[1, 3, 5], &[2, 3, 7], &mut found).unwrap();
            assert_eq!(found, expected, "{name}");
        }
        assert!(Operation::new("a+b").is_err());
    }
}
