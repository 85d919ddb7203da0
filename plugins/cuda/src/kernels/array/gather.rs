//! `Gather`, `GatherV2`, `GatherNd`.
//!
//! Indices are on the device, and nothing waits for them. An index outside its dimension is not
//! refused: it yields zeros, as in TensorFlow's kernels for GPUs, and reads nothing. A call is
//! refused where the shapes alone show that every index is outside.

use super::{
    JOINED, SLICED,
    words::{
        BySize, ByWord, Divisor, Index, MAX_DIMS, SIZES, check_rank, element_bytes, is_short,
        word_bytes,
    },
};
use crate::{
    Cuda,
    compile::{Source, Variant},
    launch::{Grid, Launch, Operand, device_for},
    source,
};
use tenon_sdk::{
    KernelError,
    geometry::{GatherPlan, GeometryError, SlicePlan, element_count},
    prelude::*,
    reg::Numerics,
};

static SOURCE: Source = source!("gather.cu");

pub(super) fn variants() -> Vec<Variant> {
    let of = |geometry| [variant::<u32>(geometry), variant::<u64>(geometry)];
    [of(SLICES), of(VECTORS)].concat()
}

/// Names of the geometries in the source.
const SLICES: &str = "Slices";
const VECTORS: &str = "Vectors";

fn variant<I: Index>(geometry: &str) -> Variant {
    Variant::new(&SOURCE).define("Index", I::NAME).define("GEOMETRY", geometry)
}

/// `Slices` in the source.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Slices<I> {
    inner: Divisor<I>,
    picked: Divisor<I>,
    outer: Divisor<I>,
    size: I,
}

impl<I: Index> Slices<I> {
    fn new(plan: &GatherPlan, inner: u64) -> Self {
        Slices {
            inner: I::divisor(inner),
            picked: I::divisor(plan.count as u64),
            outer: I::divisor(plan.outer as u64),
            size: I::of(plan.size as u64),
        }
    }
}

/// `Vectors` in the source.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Vectors<I> {
    inner: Divisor<I>,
    depth: u32,
    bounds: [i64; MAX_DIMS],
    strides: [i64; MAX_DIMS],
}

impl<I: Index> Vectors<I> {
    /// Geometry for the indexed dimensions: at most [`MAX_DIMS`].
    fn new(indexed: &[i64], inner: u64) -> Self {
        let mut vectors = Vectors {
            inner: I::divisor(inner),
            depth: indexed.len() as u32,
            bounds: [0; MAX_DIMS],
            strides: [0; MAX_DIMS],
        };
        let mut stride = 1i64;
        for (d, &size) in indexed.iter().enumerate().rev() {
            (vectors.bounds[d], vectors.strides[d]) = (size, stride);
            stride = stride.wrapping_mul(size);
        }
        vectors
    }
}

type Entries<I, G> = ByWord<(u64, u64, u64, u32, I, G), { SIZES.len() }>;

fn entries<I: Index, G: Copy>(device: &Cuda, geometry: &str) -> Result<Entries<I, G>, KernelError> {
    let module = device.modules().get(&variant::<I>(geometry))?;
    // SAFETY: the entry takes three addresses, the size of an index, a count, and the geometry that
    // the variant was compiled for: each caller names the type that it passes.
    unsafe { ByWord::new(&module, "gather") }
}

/// The kernels of a geometry, for 32-bit and for 64-bit numbers of words.
struct Picker<S, L> {
    entries: BySize<Entries<u32, S>, Entries<u64, L>>,
    geometry: &'static str,
}

/// Operands of a call, which picks runs of `inner` elements.
struct Call {
    y: Operand,
    x: Operand,
    indices: Operand,
    inner: u64,
}

impl Call {
    fn new(c: &ComputeContext<'_>, output: &[i64], inner: usize) -> Result<Call, KernelError> {
        let launch = Launch::new(c)?;
        let (x, indices) = (launch.input(0)?, launch.input(1)?);
        Ok(Call { y: launch.output(0, output)?, x, indices, inner: inner as u64 })
    }
}

impl<S: Copy, L: Copy> Picker<S, L> {
    fn new(c: &CreateContext<'_>, geometry: &'static str) -> Result<Self, KernelError> {
        let short = entries(device_for(c)?, geometry)?;
        Ok(Picker { entries: BySize::new(short), geometry })
    }

    /// Enqueues the call; `short` and `long` give the geometry for runs of a number of words.
    ///
    /// # Safety
    /// - The geometries are of this kernel's type.
    /// - They describe the call's operands.
    unsafe fn run(
        &self,
        launch: &Launch<'_>,
        call: &Call,
        short: impl Fn(u64) -> S,
        long: impl Fn(u64) -> L,
    ) -> Result<(), KernelError> {
        let Call { y, x, indices, inner } = call;
        if y.elements == 0 {
            return Ok(());
        }
        let (size, width) = (element_bytes(x)?, element_bytes(indices)? as u32);
        let bytes = word_bytes(size, [*inner as i64], &[y, x]);
        let [to, from] = [y, x].map(|operand| operand.elements * size / bytes);
        let inner = inner * size / bytes;
        let grid = Grid::stride(to, launch.facts());
        let addresses = (y.address, x.address, indices.address);
        // SAFETY: the caller guarantees that the geometries are of this kernel's type and of these
        // operands; the addresses are theirs.
        unsafe {
            if is_short(to.max(from)) {
                let entry = self.entries.short().of(bytes);
                let (y, x, indices) = addresses;
                launch.run(entry, grid, (y, x, indices, width, to as u32, short(inner)))
            } else {
                let make = || entries(launch.device(), self.geometry);
                let entry = self.entries.long(make)?.of(bytes);
                let (y, x, indices) = addresses;
                launch.run(entry, grid, (y, x, indices, width, to, long(inner)))
            }
        }
    }
}

type Along = Picker<Slices<u32>, Slices<u64>>;

fn gather(
    c: &ComputeContext<'_>,
    picker: &Along,
    axis: i64,
    batch_dims: i64,
) -> Result<(), KernelError> {
    let plan = GatherPlan::new(c.dims(0), c.dims(1), axis, batch_dims)?;
    if plan.size == 0 && element_count(c.dims(1))? > 0 {
        let params = c.dims(0);
        let message = format!("indices name slices of an empty dimension of params {params:?}");
        return Err(KernelError::invalid_argument(message));
    }
    let call = Call::new(c, &plan.output, plan.inner)?;
    let short = |inner| Slices::new(&plan, inner);
    // SAFETY: the plan is that of the operands.
    unsafe { picker.run(&Launch::new(c)?, &call, short, |inner| Slices::new(&plan, inner)) }
}

struct Gather(Along);

impl Kernel for Gather {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Gather(Picker::new(c, SLICES)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        gather(c, &self.0, 0, 0)
    }
}

struct GatherV2 {
    batch_dims: i64,
    picker: Along,
}

impl Kernel for GatherV2 {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(GatherV2 { batch_dims: c.attr("batch_dims")?, picker: Picker::new(c, SLICES)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let axis = c.integer(2, "axis")?;
        if !c.dims(2).is_empty() {
            let found = c.dims(2).len();
            return Err(GeometryError::Rank { what: "axis", expected: 0, found }.into());
        }
        gather(c, &self.picker, axis, self.batch_dims)
    }
}

struct GatherNd(Picker<Vectors<u32>, Vectors<u64>>);

impl Kernel for GatherNd {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        match c.attr("bad_indices_policy")? {
            "" | "DEFAULT" | "IGNORE" => Ok(GatherNd(Picker::new(c, VECTORS)?)),
            "ERROR" => Err(KernelError::unimplemented(
                "bad_indices_policy: expected DEFAULT or IGNORE on CUDA, found ERROR: indices on a device are not looked at \
                 before they are used; place the node on CPU",
            )),
            found => Err(KernelError::invalid_argument(format!(
                "bad_indices_policy must be one of DEFAULT, ERROR, IGNORE, found {found:?}"
            ))),
        }
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let params = c.dims(0);
        if params.is_empty() {
            return Err(KernelError::invalid_argument(
                "params must be at least a vector, found a scalar",
            ));
        }
        let plan = SlicePlan::new(params, c.dims(1))?;
        if plan.count > 0 && params.contains(&0) {
            let message = format!("indices name slices of empty params of shape {params:?}");
            return Err(KernelError::invalid_argument(message));
        }
        check_rank(plan.depth)?;
        let indexed = &params[..plan.depth];
        let call = Call::new(c, &plan.slices, plan.len)?;
        let short = |inner| Vectors::new(indexed, inner);
        // SAFETY: the plan is that of the operands.
        unsafe { self.0.run(&Launch::new(c)?, &call, short, |inner| Vectors::new(indexed, inner)) }
    }
}

register_kernel!("Gather" on "CUDA": Gather, types = ("Tparams", JOINED), numerics = Numerics::EXACT);
register_kernel!("GatherV2" on "CUDA": GatherV2, types = ("Tparams", JOINED),
    host_memory = &["axis"], numerics = Numerics::EXACT);
register_kernel!("GatherNd" on "CUDA": GatherNd, types = ("Tparams", SLICED),
    numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_lays_geometries_out_as_the_device_does() {
        assert_eq!((size_of::<Slices<u32>>(), size_of::<Slices<u64>>()), (40, 80));
        assert_eq!((size_of::<Vectors<u32>>(), size_of::<Vectors<u64>>()), (144, 160));
    }
}
