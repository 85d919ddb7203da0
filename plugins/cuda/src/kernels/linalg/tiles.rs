//! The tile that a block of threads computes.
//!
//! A tile is a set of parameters; the choice depends only on these, on the product and on the GPU.

use crate::{compile::Variant, launch::THREADS};
use tenon_sdk::DType;

/// How the threads of a block share its tile of sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tile {
    /// Rows and columns of the tile.
    pub size: [u32; 2],
    /// Threads of a block.
    pub threads: u32,
    /// Rows and columns of a thread's sums, where sums are multiplied and added one by one.
    sums: [u32; 2],
    /// Number of terms in shared memory at once, where sums are multiplied and added one by one.
    depth: u32,
    /// How tensor cores compute it, if they do.
    tensor_cores: Option<TensorCores>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TensorCores {
    /// The oldest architecture whose tensor cores support the type: 800 is sm_80.
    since: u32,
    /// Rows and columns of a warp's sums.
    warp: [u32; 2],
    /// Tiles of terms in shared memory.
    stages: u32,
}

/// Divisor of the terms of a part: a multiple of the terms that any tile has in shared memory at
/// once.
pub(super) const STEP: u32 = 32;

/// Fewest terms of a part: adding the parts costs as much as some dozens of terms.
const LEAST_PART: u32 = 256;

/// A large tile, which reads the least, and a small one, which makes more blocks.
pub(super) fn tiles(dtype: DType) -> [Tile; 2] {
    let registers = |size, sums: [u32; 2], depth| {
        let [rows, columns]: [u32; 2] = size;
        let threads = rows / sums[0] * (columns / sums[1]);
        Tile { size, threads, sums, depth, tensor_cores: None }
    };
    let cores = |since, tile, warp, stages| Tile {
        tensor_cores: Some(TensorCores { since, warp, stages }),
        ..tile
    };
    let half = |since| {
        [
            cores(since, registers([128, 128], [8, 8], 16), [64, 32], 3),
            cores(since, registers([64, 64], [4, 8], 16), [32, 32], 4),
        ]
    };
    match dtype {
        DType::HALF => half(750),
        DType::BFLOAT16 => half(800),
        DType::DOUBLE | DType::INT64 => {
            [registers([64, 64], [4, 4], 16), registers([32, 64], [2, 4], 16)]
        }
        _ => [registers([128, 128], [8, 8], 8), registers([64, 64], [4, 4], 16)],
    }
}

impl Tile {
    /// Adds the defines of the tile.
    pub fn define(&self, variant: Variant) -> Variant {
        let [rows, columns] = self.size;
        let variant = variant
            .define("BM", rows)
            .define("BN", columns)
            .define("THREADS", self.threads)
            .define("TM", self.sums[0])
            .define("TN", self.sums[1])
            .define("DEPTH", self.depth);
        match self.tensor_cores {
            None => variant,
            Some(TensorCores { since, warp: [rows, columns], stages }) => variant
                .define("TENSOR_CORES", since)
                .define("WM", rows)
                .define("WN", columns)
                .define("STAGES", stages),
        }
    }

    /// Number of elements in a row of the output that are written at once.
    pub fn written(&self, dtype: DType) -> u64 {
        match (self.tensor_cores, dtype) {
            // Tensor cores write pairs; packs of registers are 16 bytes of the type of the sums.
            (Some(_), _) => 4,
            (None, DType::DOUBLE | DType::INT64) => 2,
            (None, _) => 4,
        }
    }

    fn blocks(&self, [m, n]: [u64; 2], matrices: u64) -> u64 {
        m.div_ceil(self.size[0].into())
            .saturating_mul(n.div_ceil(self.size[1].into()))
            .saturating_mul(matrices)
    }
}

/// How a product is divided among blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Division {
    /// Index of the tile.
    pub tile: usize,
    /// Number of blocks, over all parts.
    pub blocks: u64,
    /// Number of parts of the terms.
    pub parts: u32,
    /// Number of terms of a part.
    pub part_terms: u32,
}

/// The division of products of `m x n` sums of `k` terms among multiprocessors: the large tile if
/// it gives each multiprocessor a block, else the small one, with the terms in parts if the small
/// one does not either.
pub(super) fn divide(
    tiles: &[Tile; 2],
    [m, n, k]: [u32; 3],
    matrices: u32,
    multiprocessors: u32,
) -> Division {
    let sums = [m, n].map(u64::from);
    let blocks = |tile: usize| tiles[tile].blocks(sums, matrices.into());
    let full = u64::from(multiprocessors);
    let tile = usize::from(blocks(0) < full);
    let tiles = blocks(tile);
    let whole = k.next_multiple_of(STEP).max(STEP);
    let most = u64::from(k / LEAST_PART).max(1);
    let wanted = (2 * full).checked_div(tiles).map_or(1, |each| each.clamp(1, most) as u32);
    let part_terms = k.div_ceil(wanted).next_multiple_of(STEP).clamp(STEP, whole);
    let parts = k.div_ceil(part_terms).max(1);
    Division { tile, blocks: tiles.saturating_mul(parts.into()), parts, part_terms }
}

/// Threads of a block that adds parts.
pub(super) const FINISHERS: u32 = THREADS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_products_get_large_tiles_and_deep_ones_are_divided() {
        let tiles = tiles(DType::FLOAT);
        let large = divide(&tiles, [4096, 4096, 4096], 1, 132);
        assert_eq!((large.tile, large.blocks, large.parts), (0, 1024, 1));
        let small = divide(&tiles, [256, 256, 64], 1, 132);
        assert_eq!((small.tile, small.blocks, small.parts), (1, 16, 1));
        let deep = divide(&tiles, [64, 64, 8192], 1, 132);
        assert_eq!((deep.tile, deep.parts, deep.part_terms), (1, 32, 256));
        assert_eq!(deep.blocks, 32);
        let many = divide(&tiles, [64, 64, 8192], 1000, 132);
        assert_eq!((many.parts, many.blocks), (1, 1000));
    }

    #[test]
    fn parts_hold_all_terms_and_none_is_empty() {
        for dtype in [DType::FLOAT, DType::DOUBLE, DType::HALF] {
            for k in (0..3000).chain([100_000, (1 << 31) - 1]) {
                let d = divide(&tiles(dtype), [3, 5, k], 2, 80);
                let all = u64::from(d.parts) * u64::from(d.part_terms);
                assert!(all >= k.into() && d.part_terms.is_multiple_of(STEP), "{k}: {d:?}");
                assert!(d.parts == 1 || u64::from(k) > all - u64::from(d.part_terms), "{k}: {d:?}");
            }
        }
        assert_eq!(divide(&tiles(DType::FLOAT), [0, 5, 7], 1, 80).blocks, 0);
    }
}
