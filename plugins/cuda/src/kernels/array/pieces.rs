//! Tensors that are joined to one, or that one is cut into: rows of the whole hold a piece of each part.

use super::words::{ByWord, Divisor, Index, SIZES, element_bytes, is_short, word_bytes};
use crate::{
    compile::{Source, Variant},
    launch::{Grid, Launch, Operand, device_for},
    source,
};
use tenon_sdk::{KernelError, author::CreateContext};

static SOURCE: Source = source!("pieces.cu");

pub(super) fn variants() -> Vec<Variant> {
    vec![Direction::Join.variant(), Direction::Cut.variant()]
}

/// Which of the two is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// The whole.
    Join,
    /// The parts.
    Cut,
}

impl Direction {
    fn variant(self) -> Variant {
        match self {
            Direction::Join => Variant::new(&SOURCE),
            Direction::Cut => Variant::new(&SOURCE).define("CUTS", 1),
        }
    }

    fn stem(self) -> &'static str {
        match self {
            Direction::Join => "join",
            Direction::Cut => "cut",
        }
    }
}

/// Parts of a launch, as in the source: few with short numbers, else many with long ones.
const FEW: usize = 8;
const MANY: usize = 64;

/// `Part` of the source.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct Piece<I> {
    address: u64,
    start: u64,
    count: I,
    piece: Divisor<I>,
}

type Call<I, const PARTS: usize> = (u64, u64, [Piece<I>; PARTS]);

/// The kernels of a direction.
pub(super) struct Pieces {
    few: ByWord<Call<u32, FEW>, { SIZES.len() }>,
    many: ByWord<Call<u64, MANY>, { SIZES.len() }>,
}

/// A part: where its piece begins in a row of the whole, and how long that is, in elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) operand: Operand,
    pub(super) start: u64,
    pub(super) piece: u64,
}

impl Part {
    fn in_words<I: Index>(&self, elements: u64) -> Piece<I> {
        Piece {
            address: self.operand.address,
            start: self.start / elements,
            count: I::of(self.operand.elements / elements),
            piece: I::divisor(self.piece / elements),
        }
    }
}

impl Pieces {
    pub(super) fn new(c: &CreateContext<'_>, direction: Direction) -> Result<Self, KernelError> {
        let module = device_for(c)?.modules().get(&direction.variant())?;
        let stem = direction.stem();
        // SAFETY: both take an address, words of a row, and the parts.
        Ok(unsafe {
            Pieces {
                few: ByWord::new(&module, stem)?,
                many: ByWord::new(&module, &format!("{stem}_many"))?,
            }
        })
    }

    /// Moves every part from or to the whole, whose rows have so many elements.
    ///
    /// # Errors
    /// As [`Launch::run`].
    ///
    /// # Safety
    /// Each part is whole pieces, as many as the whole has rows, and its pieces lie within the rows.
    pub(super) unsafe fn run(
        &self,
        launch: &Launch<'_>,
        whole: &Operand,
        row: u64,
        parts: &[Part],
    ) -> Result<(), KernelError> {
        let parts: Vec<Part> = parts.iter().filter(|it| it.operand.elements > 0).copied().collect();
        let size = element_bytes(whole)?;
        let places = parts.iter().flat_map(|part| [part.start as i64, part.piece as i64]);
        let operands: Vec<&Operand> = parts.iter().map(|it| &it.operand).chain([whole]).collect();
        let bytes = word_bytes(size, places.chain([row as i64]), &operands);
        let few = parts.len() <= FEW && is_short(whole.elements * size / bytes);
        for parts in parts.chunks(MANY) {
            let grid = grid(launch, parts, bytes / size);
            let (address, row) = (whole.address, row * size / bytes);
            // SAFETY: the caller knows that each part is whole pieces, as many as the whole has rows, and within the
            // rows; there is a grid row for each part.
            unsafe {
                if few {
                    launch.run(
                        self.few.of(bytes),
                        grid,
                        (address, row, list(parts, bytes / size)),
                    )?;
                } else {
                    launch.run(
                        self.many.of(bytes),
                        grid,
                        (address, row, list(parts, bytes / size)),
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// Blocks for the longest of the parts, for each.
fn grid(launch: &Launch<'_>, parts: &[Part], elements: u64) -> Grid {
    let longest = parts.iter().map(|part| part.operand.elements / elements).max().unwrap_or(0);
    let mut grid = Grid::stride(longest, launch.facts());
    grid.blocks[1] = parts.len() as u32;
    grid
}

/// The parts, and nothing behind them.
fn list<I: Index, const PARTS: usize>(parts: &[Part], elements: u64) -> [Piece<I>; PARTS] {
    let mut list = [Piece::default(); PARTS];
    list.iter_mut().zip(parts).for_each(|(piece, part)| *piece = part.in_words(elements));
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_lays_parts_out_as_the_device_does() {
        assert_eq!((size_of::<Piece<u32>>(), size_of::<Piece<u64>>()), (32, 48));
        assert!(size_of::<Call<u64, MANY>>() <= 4096);
    }
}
