//! `Transpose`, and `ConjugateTranspose` of real numbers.
//!
//! Where the innermost dimension stays innermost, runs are copied ([`super::strided`]). Otherwise,
//! unless the planes to transpose are narrow, tiles go through shared memory, so that both sides
//! are read and written in runs.

use super::{
    NUMBERS, REAL, check_vector,
    strided::{Box, Reader},
    words::{ByWord, Divide, Divisor, MAX_DIMS, SIZES, check_rank, element_bytes, word_bytes},
};
use crate::{
    compile::{Entry, Source, Variant},
    launch::{Grid, Launch, Operand, device_for},
    source,
};
use tenon_sdk::{
    KernelError,
    geometry::{TransposeKind, TransposePlan},
    prelude::*,
    reg::Numerics,
};

static SOURCE: Source = source!("transpose.cu");

pub(super) fn variants() -> Vec<Variant> {
    vec![Variant::new(&SOURCE)]
}

/// Threads of a block: as in the source.
const THREADS: u32 = 256;

/// Planes with a side of fewer elements leave most of a tile empty.
const NARROW: i64 = 8;

/// `Tiles` in the source.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Tiles {
    across: Divisor<u32>,
    down: Divisor<u32>,
    columns: u32,
    rows: u32,
    rank: u32,
    extents: [Divisor<u32>; MAX_DIMS],
    from: [i64; MAX_DIMS],
    to: [i64; MAX_DIMS],
    column_step: i64,
    row_step: i64,
}

type Call = (u64, u64, Tiles);

/// Kernels that transpose.
pub(super) struct Turner {
    tiles: ByWord<Call, { SIZES.len() }>,
    /// Entries for elements of 1 and 2 bytes.
    blocks: [Entry<Call>; 2],
    /// Entries for elements of 2, 4 and 8 bytes.
    packs: [Entry<Call>; 3],
    reader: Reader,
}

/// What a thread transposes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// An element.
    Element,
    /// A square of elements whose rows are words of 4 bytes.
    Word,
    /// A square of elements whose rows are packs of 16 bytes.
    Pack,
}

impl Unit {
    /// Elements in a row of a unit, for elements of `size` bytes.
    fn lanes(self, size: u64) -> i64 {
        match self {
            Unit::Element => 1,
            Unit::Word => (4 / size) as i64,
            Unit::Pack => (16 / size) as i64,
        }
    }

    /// Number of units along a side of a tile: as in the source.
    fn side(self) -> u64 {
        match self {
            Unit::Element | Unit::Word => 32,
            Unit::Pack => 16,
        }
    }
}

/// A transposition that swaps two dimensions, and may permute others: element (column, row) of a
/// plane is `column * column_step + row` of the input and `row * row_step + column` of the output.
#[derive(Debug, PartialEq, Eq)]
struct Planes {
    columns: i64,
    rows: i64,
    column_step: i64,
    row_step: i64,
    /// The other dimensions, outermost first: extent, step of the input, step of the output.
    others: Vec<(i64, i64, i64)>,
}

impl Planes {
    /// The planes of merged dimensions of the output and their strides in the input. `None` where
    /// the innermost dimension stays.
    fn new(extents: &[i64], strides: &[i64]) -> Option<Planes> {
        let (last, row) = (extents.len().checked_sub(1)?, strides.iter().position(|it| *it == 1)?);
        if row == last {
            return None;
        }
        let mut steps = vec![1; extents.len()];
        (0..last).rev().for_each(|d| steps[d] = steps[d + 1] * extents[d + 1]);
        let others = (0..last).filter(|d| *d != row).map(|d| (extents[d], strides[d], steps[d]));
        Some(Planes {
            columns: extents[last],
            rows: extents[row],
            column_step: strides[last],
            row_step: steps[row],
            others: others.collect(),
        })
    }

    /// The largest unit that divides the sides of the planes, the steps and the addresses.
    fn unit(&self, size: u64, operands: [&Operand; 2]) -> Unit {
        let steps = [self.columns, self.rows, self.column_step, self.row_step].into_iter();
        let others = self.others.iter().flat_map(|(_, from, to)| [*from, *to]);
        match (size, word_bytes(size, steps.chain(others), &operands)) {
            (2 | 4 | 8, 16) => Unit::Pack,
            (1 | 2, 4..) => Unit::Word,
            _ => Unit::Element,
        }
    }

    /// The parameter for squares of `lanes` elements, `side` of them along each side of a tile,
    /// with the number of tiles; `None` for too many.
    fn tiles(&self, lanes: i64, side: u64) -> Result<Option<(u64, Tiles)>, KernelError> {
        let (columns, rows) = (self.columns / lanes, self.rows / lanes);
        let (across, down) = (columns as u64, rows as u64);
        let [across, down] = [across, down].map(|squares| squares.div_ceil(side));
        let planes: u64 = self.others.iter().map(|(extent, ..)| *extent as u64).product();
        let count = across.saturating_mul(down).saturating_mul(planes);
        if count > i32::MAX as u64 || columns.max(rows) > i64::from(i32::MAX) {
            return Ok(None);
        }
        let mut tiles = Tiles {
            across: u32::divisor(across),
            down: u32::divisor(down),
            columns: columns as u32,
            rows: rows as u32,
            rank: check_rank(self.others.len())?,
            extents: [u32::divisor(1); MAX_DIMS],
            from: [0; MAX_DIMS],
            to: [0; MAX_DIMS],
            column_step: self.column_step / lanes,
            row_step: self.row_step / lanes,
        };
        for (d, (extent, from, to)) in self.others.iter().rev().enumerate() {
            tiles.extents[d] = u32::divisor(*extent as u64);
            (tiles.from[d], tiles.to[d]) = (from / lanes, to / lanes);
        }
        Ok(Some((count, tiles)))
    }
}

impl Turner {
    pub(super) fn new(c: &CreateContext<'_>) -> Result<Turner, KernelError> {
        let module = device_for(c)?.modules().get(&Variant::new(&SOURCE))?;
        // SAFETY: each entry takes two addresses and `Tiles`.
        unsafe {
            Ok(Turner {
                tiles: ByWord::new(&module, "tiles")?,
                blocks: [module.entry("blocks_1")?, module.entry("blocks_2")?],
                packs: [
                    module.entry("packs_2")?,
                    module.entry("packs_4")?,
                    module.entry("packs_8")?,
                ],
                reader: Reader::new(c)?,
            })
        }
    }

    /// The entry for elements of `size` bytes.
    fn entry(&self, unit: Unit, size: u64) -> &Entry<Call> {
        let place = size.trailing_zeros() as usize;
        match unit {
            Unit::Element => self.tiles.of(size),
            Unit::Word => &self.blocks[place],
            Unit::Pack => &self.packs[place - 1],
        }
    }

    /// Transposes the input, which has the plan's elements.
    ///
    /// # Errors
    /// As [`Launch::run`]; `UNIMPLEMENTED` for too many dimensions.
    pub(super) fn turn(
        &self,
        launch: &Launch<'_>,
        (y, x): (&Operand, &Operand),
        plan: &TransposePlan,
    ) -> Result<(), KernelError> {
        if plan.is_empty() {
            return Ok(());
        }
        let size = element_bytes(x)?;
        let planes = Planes::new(plan.extents(), plan.strides())
            .filter(|planes| planes.columns.min(planes.rows) > NARROW);
        if let Some(planes) = planes {
            let unit = planes.unit(size, [y, x]);
            if let Some((count, tiles)) = planes.tiles(unit.lanes(size), unit.side())? {
                let grid = Grid::block_each(count, THREADS)?;
                let arguments = (y.address, x.address, tiles);
                // SAFETY: the planes are all of x, and all of y.
                return unsafe { launch.run(self.entry(unit, size), grid, arguments) };
            }
        }
        let all = Box::new(plan.extents(), plan.strides(), 0);
        // SAFETY: the plan is one of x.
        unsafe { self.reader.read(launch, (y, x), &all) }
    }
}

struct Transpose(Turner);

impl Kernel for Transpose {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Transpose(Turner::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        check_vector(c, 1, "perm")?;
        let plan = TransposePlan::new(c.dims(0), &c.integers(1)?)?;
        if let TransposeKind::Copy { .. } = plan.kind() {
            return c.share(0, 0, plan.output_dims());
        }
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, plan.output_dims())?);
        self.0.turn(&launch, (&y, &x), &plan)
    }
}

register_kernel!("Transpose" on "CUDA": Transpose, types = ("T", NUMBERS), host_memory = &["perm"],
    numerics = Numerics::EXACT);
register_kernel!("ConjugateTranspose" on "CUDA": Transpose, types = ("T", REAL),
    host_memory = &["perm"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::DType;

    fn planes(dims: &[i64], perm: &[i64]) -> Option<Planes> {
        let plan = TransposePlan::new(dims, perm).unwrap();
        Planes::new(plan.extents(), plan.strides())
    }

    #[test]
    fn planes_are_those_of_the_innermost_dimensions() {
        assert_eq!(planes(&[2, 3, 5], &[1, 0, 2]), None);
        let matrix = Planes { columns: 2, rows: 3, column_step: 3, row_step: 2, others: vec![] };
        assert_eq!(planes(&[2, 3], &[1, 0]), Some(matrix));
        let turned =
            Planes { columns: 3, rows: 5, column_step: 5, row_step: 21, others: vec![(7, 15, 3)] };
        assert_eq!(planes(&[7, 3, 5], &[2, 0, 1]), planes(&[21, 5], &[1, 0]));
        assert_eq!(planes(&[7, 3, 5], &[0, 2, 1]).unwrap().others, [(7, 15, 15)]);
        assert_eq!(planes(&[3, 7, 5], &[2, 1, 0]).unwrap().others, [(7, 5, 3)]);
        let (columns, rows) = (turned.columns, turned.rows);
        assert_eq!(turned.tiles(1, 32).unwrap().map(|(count, _)| count), Some(7));
        assert_eq!((columns, rows), (3, 5));
    }

    #[test]
    fn units_are_as_wide_as_everything_allows() {
        let at = |address, dtype| Operand { address, elements: 64, dtype };
        let unit = |dims: &[i64], size, address| {
            let planes = planes(dims, &[1, 0]).unwrap();
            planes.unit(size, [&at(0x1000, DType::FLOAT), &at(address, DType::FLOAT)])
        };
        assert_eq!(unit(&[16, 32], 4, 0x2000), Unit::Pack);
        assert_eq!(unit(&[16, 32], 4, 0x2008), Unit::Element);
        assert_eq!(unit(&[16, 30], 4, 0x2000), Unit::Element);
        assert_eq!(unit(&[16, 32], 2, 0x2000), Unit::Pack);
        assert_eq!(unit(&[16, 36], 2, 0x2000), Unit::Word);
        assert_eq!(unit(&[16, 31], 2, 0x2000), Unit::Element);
        assert_eq!(unit(&[16, 32], 1, 0x2000), Unit::Word);
        assert_eq!(unit(&[15, 31], 16, 0x2000), Unit::Element);
        let (count, tiles) = planes(&[100, 68], &[1, 0]).unwrap().tiles(4, 16).unwrap().unwrap();
        assert_eq!((count, tiles.columns, tiles.rows), (4, 25, 17));
    }

    #[test]
    fn the_host_lays_tiles_out_as_the_device_does() {
        assert_eq!(size_of::<Tiles>(), 24 + 12 + 96 + 4 + 128 + 16);
    }
}
