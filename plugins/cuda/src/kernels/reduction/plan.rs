//! The layout of a reduction on a GPU: a pure function of shape, element size and multiprocessors.
//!
//! The last bits of results depend on it; it depends neither on timing nor on other work.

use crate::kernels::strided::{Strided, Walk};
use tenon_sdk::{
    KernelError,
    geometry::{ArgGeometry, ReducePlan},
};

/// Threads of a block of `reduce.cu`.
pub(super) const THREADS: u64 = 256;
/// Longest row for one warp.
const WARP_ROW: u64 = 1024;
/// Number of packs that a thread loads at once.
const UNROLL: u64 = 4;

/// A merged dimension: its extent and its stride.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dim {
    extent: u64,
    /// In elements.
    stride: i64,
}

/// Merged dimensions of the input, none of size 1, alternately kept and reduced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kernels) struct Shape {
    dims: Vec<Dim>,
    first_reduced: bool,
    /// Elements of the output.
    pub outputs: u64,
    /// Elements that are reduced to each of them.
    pub reduced: u64,
}

impl Shape {
    /// The shape of a plan.
    pub fn of(plan: &ReducePlan) -> Shape {
        Shape::new(plan.extents(), plan.is_reduced(0), plan.output_len(), plan.reduced_len())
    }

    /// The shape of a search along an axis.
    pub fn of_search(g: &ArgGeometry) -> Shape {
        let [outer, len, inner] = [g.outer as i64, g.len as i64, g.inner as i64];
        let all = [(outer, false), (len, true), (inner, false)];
        let some: Vec<_> = all.into_iter().filter(|&(extent, _)| extent != 1).collect();
        // With an axis of size 1, the one or two kept dimensions merge.
        if len == 1 {
            return Shape::new(&[outer * inner], false, g.outer * g.inner, 1);
        }
        let extents: Vec<i64> = some.iter().map(|&(extent, _)| extent).collect();
        Shape::new(&extents, some[0].1, g.outer * g.inner, g.len)
    }

    fn new(extents: &[i64], first_reduced: bool, outputs: usize, reduced: usize) -> Shape {
        let (outputs, reduced) = (outputs as u64, reduced as u64);
        let mut stride = 1i64;
        let mut dims: Vec<Dim> = Vec::with_capacity(extents.len());
        for &extent in extents.iter().rev() {
            dims.push(Dim { extent: extent.unsigned_abs(), stride });
            stride = stride.saturating_mul(extent);
        }
        dims.reverse();
        Shape { dims, first_reduced, outputs, reduced }
    }

    fn elements(&self) -> u64 {
        self.outputs.saturating_mul(self.reduced)
    }

    /// The extents (outer, reduced, inner), where the shape has that form.
    fn middle(&self) -> Option<[u64; 3]> {
        let size = |i: usize| self.dims[i].extent;
        match (self.dims.len(), self.first_reduced) {
            _ if self.reduced == 0 => Some([self.outputs, 0, 1]),
            (0, _) => Some([1, 1, 1]),
            (1, false) => Some([1, 1, size(0)]),
            (1, true) => Some([1, size(0), 1]),
            (2, false) => Some([size(0), size(1), 1]),
            (2, true) => Some([1, size(0), size(1)]),
            (3, false) => Some([size(0), size(1), size(2)]),
            _ => None,
        }
    }

    /// The kept or the reduced dimensions.
    fn select(&self, reduced: bool) -> Walk<1> {
        let is_reduced = |i: usize| self.first_reduced == i.is_multiple_of(2);
        let all = self.dims.iter().enumerate().filter(|&(i, _)| is_reduced(i) == reduced);
        Walk::new(all.map(|(_, dim)| (dim.extent as i64, [dim.stride])))
    }
}

/// Steps that are divided among blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Split {
    /// Number of parts.
    pub parts: u32,
    /// Steps of each part but the last.
    pub chunk: u64,
}

/// Splits `steps` for each of `blocks` so that the GPU is full, provided that each part has at
/// least `least` steps.
fn split(blocks: u64, steps: u64, least: u64, multiprocessors: u32) -> Split {
    let wanted = (4 * u64::from(multiprocessors)).div_ceil(blocks.max(1));
    let parts = wanted.min(steps / least.max(1)).clamp(1, 1 << 16);
    let chunk = steps.div_ceil(parts).next_multiple_of(least.max(1));
    Split { parts: steps.div_ceil(chunk).max(1) as u32, chunk }
}

/// `Columns` in `reduce.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Columns {
    /// Elements of a row.
    pub inner: u64,
    /// Rows.
    pub reduced: u64,
    /// Rows of a part.
    pub chunk: u64,
    /// Number of such matrices.
    pub outer: u32,
    /// Number of parts.
    pub parts: u32,
    /// Number of blocks side by side.
    pub tiles: u32,
    /// Number of a block's threads side by side.
    pub width: u32,
}

/// `Parts` in `reduce.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    /// Elements of the output.
    pub outputs: u64,
    /// Elements that are reduced to each of them.
    pub reduced: u64,
    /// Elements of a part.
    pub chunk: u64,
    /// Number of parts.
    pub parts: u32,
    /// Padding, so that every byte of an argument is initialised.
    pub unused: u32,
}

/// Kept and reduced dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dims {
    /// For fewer than 2^31 elements.
    Narrow(Strided<u32, 1>, Strided<u32, 1>),
    /// For more elements.
    Wide(Strided<u64, 1>, Strided<u64, 1>),
}

impl Dims {
    fn new(shape: &Shape) -> Result<Dims, KernelError> {
        let (kept, reduced) = (shape.select(false), shape.select(true));
        Ok(if shape.elements() < 1 << 31 {
            Dims::Narrow(kept.strided()?, reduced.strided()?)
        } else {
            Dims::Wide(kept.strided()?, reduced.strided()?)
        })
    }
}

/// Which entry points of `reduce.cu` perform the reduction, with which parameters.
#[allow(clippy::large_enum_variant, reason = "one at a time, on the stack of a call")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// This number of lanes for each row.
    Lanes(u32),
    /// Blocks for each row.
    Blocks(Split),
    /// Tiles of columns; whether in packs.
    Columns(Columns, bool),
    /// Strided dimensions; whether a block rather than a thread computes each result.
    Strided(Parts, Dims, bool),
}

impl Layout {
    /// The layout for elements of `size` bytes, whose address is a multiple of 16 bytes where
    /// `aligned`.
    pub fn new(
        shape: &Shape,
        size: u64,
        aligned: bool,
        multiprocessors: u32,
    ) -> Result<Layout, KernelError> {
        let lanes = 16 / size;
        match shape.middle() {
            Some([outer, reduced, 1]) => Ok(Layout::rows(outer, reduced, lanes, multiprocessors)),
            Some([outer, reduced, inner]) => {
                let packed = aligned && inner.is_multiple_of(lanes);
                let packs = inner / if packed { lanes } else { 1 };
                let columns = Layout::columns([outer, reduced, inner], packs, multiprocessors);
                match columns {
                    Some(columns) => Ok(Layout::Columns(columns, packed)),
                    None => Layout::strided(shape, multiprocessors),
                }
            }
            None => Layout::strided(shape, multiprocessors),
        }
    }

    fn rows(outer: u64, reduced: u64, lanes: u64, multiprocessors: u32) -> Layout {
        if reduced <= WARP_ROW {
            // Two packs for each lane; a single lane processes the elements in order.
            let lanes = match reduced {
                0..=8 => 1,
                _ => reduced.div_ceil(2 * lanes).next_power_of_two().min(32),
            };
            return Layout::Lanes(lanes as u32);
        }
        Layout::Blocks(split(outer, reduced, THREADS * UNROLL * lanes, multiprocessors))
    }

    /// `None` where most threads of a block would be idle.
    fn columns(
        [outer, reduced, inner]: [u64; 3],
        packs: u64,
        multiprocessors: u32,
    ) -> Option<Columns> {
        // The threads of a warp side by side read 512 bytes; more only where rows are few.
        let mut width = packs.next_power_of_two().min(32);
        while width < THREADS && width < packs && THREADS / width > reduced {
            width *= 2;
        }
        let height = THREADS / width;
        if height > 2 * reduced {
            return None;
        }
        let tiles = packs.div_ceil(width);
        let blocks = outer.saturating_mul(tiles);
        let Split { parts, chunk } = split(blocks, reduced, height * UNROLL, multiprocessors);
        let fits = blocks.saturating_mul(parts.into()) < 1 << 31;
        fits.then_some(Columns {
            inner,
            reduced,
            chunk,
            outer: outer as u32,
            parts,
            tiles: tiles as u32,
            width: width as u32,
        })
    }

    fn strided(shape: &Shape, multiprocessors: u32) -> Result<Layout, KernelError> {
        let Shape { outputs, reduced, .. } = *shape;
        // Neighbouring threads read neighbouring elements, whether reduced or kept.
        let innermost_reduced = shape.first_reduced != shape.dims.len().is_multiple_of(2);
        let blocks = innermost_reduced && reduced >= 64;
        let Split { parts, chunk } = if blocks {
            split(outputs, reduced, THREADS * UNROLL, multiprocessors)
        } else {
            split(outputs.div_ceil(THREADS), reduced, 16, multiprocessors)
        };
        let parts = Parts { outputs, reduced, chunk, parts, unused: 0 };
        Ok(Layout::Strided(parts, Dims::new(shape)?, blocks))
    }

    /// Number of parts of each result.
    pub fn parts(&self) -> u32 {
        match self {
            Layout::Lanes(_) => 1,
            Layout::Blocks(split) => split.parts,
            Layout::Columns(columns, _) => columns.parts,
            Layout::Strided(parts, ..) => parts.parts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(dims: &[i64], axes: &[i64], size: u64) -> Layout {
        let shape = Shape::of(&ReducePlan::new(dims, axes, false).unwrap());
        Layout::new(&shape, size, true, 100).unwrap()
    }

    #[test]
    fn the_layout_fits_the_shape() {
        assert_eq!(layout(&[5, 3], &[1], 4), Layout::Lanes(1));
        assert_eq!(layout(&[5, 100], &[1], 4), Layout::Lanes(16));
        assert_eq!(layout(&[5, 1000], &[1], 2), Layout::Lanes(32));
        assert_eq!(layout(&[3, 0], &[1], 4), Layout::Lanes(1));
        let one = Split { parts: 1, chunk: 8192 };
        assert_eq!(layout(&[1000, 5000], &[1], 4), Layout::Blocks(one));
        let Layout::Blocks(many) = layout(&[1 << 24], &[0], 4) else { panic!() };
        // The 400 parts, each rounded up to whole steps of a block.
        assert_eq!((many.parts, many.chunk), (373, 45056));
        let Layout::Columns(columns, true) = layout(&[1 << 16, 64], &[0], 4) else { panic!() };
        assert_eq!((columns.tiles, columns.width, columns.outer), (1, 16, 1));
        assert!(columns.parts > 100);
        assert!(matches!(layout(&[4, 300, 3], &[1], 4), Layout::Columns(_, false)));
        assert!(matches!(layout(&[1000, 3, 3], &[1], 4), Layout::Strided(_, _, false)));
        assert!(matches!(layout(&[8, 16, 300], &[0, 2], 4), Layout::Strided(_, _, true)));
        assert!(matches!(layout(&[8, 16, 300, 5], &[0, 2], 4), Layout::Strided(_, _, false)));
    }

    #[test]
    fn parts_cover_all_steps_and_none_is_empty() {
        for blocks in [1, 3, 64, 1000] {
            for steps in [1, 100, 4096, 4097, 1 << 20, (1 << 20) + 1] {
                for least in [16, 4096] {
                    let Split { parts, chunk } = split(blocks, steps, least, 132);
                    assert!(u64::from(parts) * chunk >= steps);
                    assert!(u64::from(parts - 1) * chunk < steps, "{blocks} {steps} {least}");
                }
            }
        }
    }

    #[test]
    fn searches_have_the_shapes_of_reductions() {
        let shape = |dims: &[i64], axis| Shape::of_search(&ArgGeometry::new(dims, axis).unwrap());
        for (dims, axis) in
            [(&[4i64, 5, 6][..], 1), (&[4, 5], 1), (&[4, 5], 0), (&[7], 0), (&[3, 1, 2], 1)]
        {
            let plan = ReducePlan::new(dims, &[axis], false).unwrap();
            assert_eq!(shape(dims, axis), Shape::of(&plan), "{dims:?} {axis}");
        }
    }

    #[test]
    fn the_layouts_are_those_of_the_source() {
        assert_eq!((size_of::<Columns>(), size_of::<Parts>()), (40, 32));
    }
}
