//! A product of matrices as a launch of `gemm.cu`.

use super::{
    epilogue::Arguments,
    tiles::{Division, FINISHERS, Tile, divide, tiles},
};
use crate::{
    compile::{Entry, Source, Variant},
    device::Cuda,
    kernels::dtype::name_of,
    launch::{Grid, Launch, Operand, device_for},
    source,
};
use tenon_sdk::{
    DType, KernelError,
    geometry::{BatchMatMulGeometry, MatMulGeometry},
    prelude::*,
};

static SOURCE: Source = source!("gemm.cu");

/// Element types of products.
pub(super) const TYPES: &[DType] =
    &[DType::FLOAT, DType::DOUBLE, DType::HALF, DType::BFLOAT16, DType::INT32, DType::INT64];

/// Every variant of a type, with the same epilogue.
pub(super) fn variants(dtype: DType, epilogue: &str) -> Vec<Variant> {
    let flags = [[false, false], [false, true], [true, false], [true, true]];
    let all = flags.iter().flat_map(|transposed| {
        tiles(dtype).map(|tile| variant(dtype, *transposed, epilogue, &tile))
    });
    all.flatten().collect()
}

fn variant(
    dtype: DType,
    [a, b]: [bool; 2],
    epilogue: &str,
    tile: &Tile,
) -> Result<Variant, KernelError> {
    let variant = Variant::new(&SOURCE)
        .define("T", name_of(dtype)?)
        .define("A_TRANSPOSED", u32::from(a))
        .define("B_TRANSPOSED", u32::from(b));
    let variant = tile.define(variant);
    Ok(if epilogue.is_empty() { variant } else { variant.define("EPILOGUE", epilogue) })
}

/// Dimensions of batches in `gemm.cuh`.
const MAX_BATCH_DIMS: usize = 8;

/// How matrices of both factors pair up for those of the product: `Batches` in `gemm.cuh`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
struct Batches {
    rank: u32,
    extents: [u32; MAX_BATCH_DIMS],
    a: [u32; MAX_BATCH_DIMS],
    b: [u32; MAX_BATCH_DIMS],
}

impl Batches {
    const NONE: Batches = Batches {
        rank: 0,
        extents: [1; MAX_BATCH_DIMS],
        a: [0; MAX_BATCH_DIMS],
        b: [0; MAX_BATCH_DIMS],
    };
}

/// The parameters of `gemm` and `gemm_finish`: `Gemm` in `gemm.cuh`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Parameters {
    a: u64,
    b: u64,
    c: u64,
    partial: u64,
    m: u32,
    n: u32,
    k: u32,
    parts: u32,
    part_terms: u32,
    whole: u32,
    matrices: u32,
    batches: Batches,
    arguments: Arguments,
}

/// Sizes of a product, checked: each is below 2^31.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Product {
    m: u32,
    n: u32,
    k: u32,
    matrices: u32,
    batches: Batches,
}

fn small(what: &str, size: usize) -> Result<u32, KernelError> {
    match u32::try_from(size) {
        Ok(size) if size < 1 << 31 => Ok(size),
        _ => Err(KernelError::unimplemented(format!(
            "a product of matrices with {size} {what}: CUDA takes fewer than 2^31"
        ))),
    }
}

impl Product {
    /// Sizes of a product of two matrices.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for sizes of 2^31 and more.
    pub fn new(g: &MatMulGeometry) -> Result<Product, KernelError> {
        Ok(Product {
            m: small("rows", g.m)?,
            n: small("columns", g.n)?,
            k: small("terms", g.k)?,
            matrices: 1,
            batches: Batches::NONE,
        })
    }

    /// Sizes of products that broadcast. A single right matrix multiplies all rows of the left
    /// matrices as one product.
    ///
    /// # Errors
    /// As [`Product::new`]; `UNIMPLEMENTED` for more than [`MAX_BATCH_DIMS`] dimensions that do not
    /// merge.
    pub fn batched(g: &BatchMatMulGeometry, transposed_a: bool) -> Result<Product, KernelError> {
        let (extents, a, b) = (g.batch.extents(), g.batch.strides(0), g.batch.strides(1));
        let mut product = Product::new(&g.matrix)?;
        if let ([_], [1], [0]) = (extents, a, b)
            && !transposed_a
            && let Some(m) = g.batch.len().checked_mul(g.matrix.m)
            && let Ok(m) = small("rows", m)
        {
            return Ok(Product { m, ..product });
        }
        if extents.len() > MAX_BATCH_DIMS {
            return Err(KernelError::unimplemented(format!(
                "batches of {} dimensions that broadcast by turns: CUDA takes up to {MAX_BATCH_DIMS}",
                extents.len()
            )));
        }
        product.matrices = small("matrices", g.batch.len())?;
        product.batches.rank = extents.len() as u32;
        for (at, ((extent, a), b)) in extents.iter().zip(a).zip(b).rev().enumerate() {
            let size = |size: i64| small("matrices", usize::try_from(size).unwrap_or(usize::MAX));
            product.batches.extents[at] = size(*extent)?;
            product.batches.a[at] = size(*a)?;
            product.batches.b[at] = size(*b)?;
        }
        Ok(product)
    }
}

/// The kernels of a node's products.
pub(super) struct Gemm {
    dtype: DType,
    transposed: [bool; 2],
    tiles: [Tile; 2],
    kernels: [Kernels; 2],
}

struct Kernels {
    gemm: Entry<(Parameters,)>,
    finish: Entry<(Parameters,)>,
}

impl Gemm {
    /// Compiles the kernels, with the epilogue.
    ///
    /// # Errors
    /// `UNAVAILABLE` without a compiler; the compiler's error.
    pub fn new(
        c: &CreateContext<'_>,
        dtype: DType,
        transposed: [bool; 2],
        epilogue: &str,
    ) -> Result<Gemm, KernelError> {
        Gemm::on(device_for(c)?, dtype, transposed, epilogue)
    }

    /// Compiles the kernels for a device, for a call that discovers that it needs them.
    ///
    /// # Errors
    /// As [`Gemm::new`].
    pub fn on(
        device: &Cuda,
        dtype: DType,
        transposed: [bool; 2],
        epilogue: &str,
    ) -> Result<Gemm, KernelError> {
        let tiles = tiles(dtype);
        let load = |tile: &Tile| {
            let variant = variant(dtype, transposed, epilogue, tile)?;
            let module = device.modules().get(&variant)?;
            // SAFETY: both entries take one `Gemm`, of which `Parameters` is the layout.
            unsafe {
                Ok::<_, KernelError>(Kernels {
                    gemm: module.entry("gemm")?,
                    finish: module.entry("gemm_finish")?,
                })
            }
        };
        let kernels = [load(&tiles[0])?, load(&tiles[1])?];
        Ok(Gemm { dtype, transposed, tiles, kernels })
    }

    /// Enqueues `c = a b`, and the epilogue.
    ///
    /// # Errors
    /// Out of memory for partial sums; too many blocks; the driver's error.
    pub fn run(
        &self,
        launch: &Launch<'_>,
        product: &Product,
        [a, b, c]: [Operand; 3],
        arguments: Arguments,
    ) -> Result<(), KernelError> {
        let &Product { m, n, k, matrices, batches } = product;
        let multiprocessors = launch.facts().multiprocessors;
        let division = divide(&self.tiles, [m, n, k], matrices, multiprocessors);
        let Division { tile, blocks, parts, part_terms } = division;
        let partial = if parts > 1 { self.room(launch, c.elements, parts)? } else { 0 };
        let parameters = Parameters {
            a: a.address,
            b: b.address,
            c: c.address,
            partial,
            m,
            n,
            k,
            parts,
            part_terms,
            whole: self.whole(&self.tiles[tile], product, [a, b, c]),
            matrices,
            batches,
            arguments,
        };
        let kernels = &self.kernels[tile];
        let grid = Grid::block_each(blocks, self.tiles[tile].threads)?;
        // SAFETY: the geometry was checked, so the operands are dense matrices of the sizes in the
        // parameters; the memory for partial sums has room for those of each part.
        unsafe { launch.run(&kernels.gemm, grid, (parameters,))? };
        if parts == 1 {
            return Ok(());
        }
        let grid = Grid { threads: [FINISHERS, 1, 1], ..Grid::stride(c.elements, launch.facts()) };
        // SAFETY: as above.
        unsafe { launch.run(&kernels.finish, grid, (parameters,)) }
    }

    /// Memory for partial sums.
    fn room(&self, launch: &Launch<'_>, sums: u64, parts: u32) -> Result<u64, KernelError> {
        let size = if matches!(self.dtype, DType::DOUBLE | DType::INT64) { 8 } else { 4 };
        let bytes = sums.checked_mul(parts.into()).and_then(|sums| sums.checked_mul(size));
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(|| {
            KernelError::new(tenon_sdk::Code::RESOURCE_EXHAUSTED, "the sums of parts: too many")
        })?;
        launch.scratch(bytes)
    }

    /// Flags for the operands whose rows are whole packs: of 16 bytes, or for C, of as much as is
    /// written at once.
    fn whole(&self, tile: &Tile, product: &Product, [a, b, c]: [Operand; 3]) -> u32 {
        let [a_line, b_line] = [
            if self.transposed[0] { product.m } else { product.k },
            if self.transposed[1] { product.k } else { product.n },
        ];
        let size = self.dtype.size().unwrap_or(1) as u64;
        let is_whole = |operand: Operand, line: u32, pack: u64| {
            u64::from(line).is_multiple_of(pack) && operand.is_aligned(pack * size)
        };
        let pack = 16 / size;
        u32::from(is_whole(a, a_line, pack))
            | u32::from(is_whole(b, b_line, pack)) << 1
            | u32::from(is_whole(c, product.n, tile.written(self.dtype))) << 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_lie_as_in_cuda_c() {
        assert_eq!(std::mem::offset_of!(Parameters, batches), 60);
        assert_eq!(std::mem::offset_of!(Parameters, arguments), 160);
        assert_eq!(size_of::<Parameters>(), 264);
    }

    #[test]
    fn rows_of_batches_that_meet_one_matrix_are_those_of_one() {
        let product = |x: &[i64], y: &[i64], transposed| {
            let g = BatchMatMulGeometry::new(x, y, transposed, false).unwrap();
            Product::batched(&g, transposed).unwrap()
        };
        let one = product(&[5, 2, 4, 3], &[3, 7], false);
        assert_eq!((one.m, one.n, one.k, one.matrices), (40, 7, 3, 1));
        let turned = product(&[5, 2, 3, 4], &[3, 7], true);
        assert_eq!((turned.m, turned.matrices, turned.batches.rank), (4, 10, 1));
        assert_eq!((turned.batches.a[0], turned.batches.b[0]), (1, 0));
        let both = product(&[5, 1, 4, 3], &[2, 3, 7], false);
        assert_eq!((both.matrices, both.batches.rank), (10, 2));
        assert_eq!(both.batches.extents[..2], [2, 5]);
        assert_eq!(
            (both.batches.a[..2].to_vec(), both.batches.b[..2].to_vec()),
            (vec![0, 1], vec![1, 0])
        );
    }
}
