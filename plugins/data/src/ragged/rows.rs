//! `RaggedFillEmptyRows`. Its gradient has the kernel of that of `SparseFillEmptyRows`.

use crate::sparse::{Filled, MOVED, Values};
use tenon_sdk::{geometry::GeometryError, prelude::*};

fn fill(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    for (input, what) in [(0, "value_rowids"), (1, "values")] {
        if c.dims(input).len() != 1 {
            let found = c.dims(input).len();
            return Err(GeometryError::Rank { what, expected: 1, found }.into());
        }
    }
    if c.dims(0) != c.dims(1) {
        let (what, expected, found) = ("the number of values", c.dims(0)[0], c.dims(1)[0]);
        return Err(GeometryError::SizeMismatch { what, expected, found }.into());
    }
    let rows = c.integer(2, "nrows")?;
    if rows < 0 {
        return Err(GeometryError::TooSmall { what: "nrows", least: 0, found: rows }.into());
    }
    if !c.dims(3).is_empty() {
        let (what, expected, found) = ("default_value", 0, c.dims(3).len());
        return Err(GeometryError::Rank { what, expected, found }.into());
    }
    let rowids = c.input::<i64>(0)?.data;
    let filled = Filled::new(rows, rowids.len(), |value| rowids[value])?;
    let Filled { starts, map, from } = &filled;
    let total = [from.len() as i64];
    let ids = c.output::<i64>(0, &total)?.data;
    let empty = c.output::<bool>(2, &[rows])?.data;
    for (row, empty) in empty.iter_mut().enumerate() {
        ids[starts[row]..starts[row + 1]].fill(row as i64);
        *empty = from[starts[row]].is_none();
    }
    let source = |from: &Option<usize>| from.map_or((1, 0), |value| (0, value));
    Values::new(c, [1, 3])?.write(c, 1, &total, from.iter().map(source))?;
    c.output::<i64>(3, &[map.len() as i64])?.data.copy_from_slice(map);
    Ok(())
}

register_kernel!("RaggedFillEmptyRows" on "CPU": fn fill, types = ("T", MOVED),
    host_memory = &["nrows"]);
