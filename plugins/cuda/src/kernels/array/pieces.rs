//! Tensors joined into one, or one tensor split into several: each row of the whole holds a piece
//! of each part.

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

/// Whether the whole or the parts are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Writes the whole.
    Join,
    /// Writes the parts.
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

/// Parts of a launch, as in the source: few with 32-bit numbers, else many with 64-bit ones.
const FEW: usize = 8;
const MANY: usize = 64;

/// `Part` in the source.
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

/// A part: where its piece begins in a row of the whole, and its length, in elements.
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
        // SAFETY: both entries take an address, words of a row, and the parts.
        Ok(unsafe {
            Pieces {
                few: ByWord::new(&module, stem)?,
                many: ByWord::new(&module, &format!("{stem}_many"))?,
            }
        })
    }

    /// Moves every part from or to the whole, whose rows have `row` elements.
    ///
    /// # Errors
    /// As [`Launch::run`].
    ///
    /// # Safety
    /// - Each part consists of whole pieces, as many as the whole has rows.
    /// - The pieces are within the rows.
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
            // SAFETY: the caller guarantees that each part consists of whole pieces, as many as the
            // whole has rows, within the rows; there is a grid row for each part.
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

/// A grid with blocks for the longest part, for each part.
fn grid(launch: &Launch<'_>, parts: &[Part], elements: u64) -> Grid {
    let longest = parts.iter().map(|part| part.operand.elements / elements).max().unwrap_or(0);
    let mut grid = Grid::stride(longest, launch.facts());
    grid.blocks[1] = parts.len() as u32;
    grid
}

/// The parts, followed by zeros.
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
