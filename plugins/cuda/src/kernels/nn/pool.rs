//! `MaxPool`, `MaxPoolV2` and `AvgPool`.

use super::sizes::{Axis, Items, OutputSizes, Strides, packed_lanes, small};
use crate::{
    compile::{Entry, Source, Variant},
    kernels::dtype::name_of,
    launch::{Grid, Launch, Operand, device_for},
    source,
};
use tenon_sdk::{
    DType, KernelError,
    geometry::{DataFormat, Pool2dGeometry, Pool2dParams, PoolAttributes},
    prelude::*,
    reg::Numerics,
};

static SOURCE: Source = source!("pool.cu");

/// How a window is reduced, as `pool.cu` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// To its greatest element.
    Greatest,
    /// To the mean of its elements.
    Mean,
}

impl Fold {
    /// The geometry of a pooling with this reduction.
    ///
    /// # Errors
    /// The geometry's error, as in TensorFlow.
    pub fn geometry(self, params: &Pool2dParams<'_>) -> Result<Pool2dGeometry, KernelError> {
        Ok(match self {
            Fold::Greatest => Pool2dGeometry::max(params)?,
            Fold::Mean => Pool2dGeometry::average(params)?,
        })
    }
}

pub(super) fn variants() -> Vec<Variant> {
    let floats = ["f16", "bf16", "f32", "f64"];
    let integers = ["i8", "i16", "i32", "i64", "u8", "u16"];
    let greatest = floats.iter().chain(&integers).map(|ty| (ty, Fold::Greatest));
    let all = greatest.chain(floats.iter().map(|ty| (ty, Fold::Mean)));
    all.flat_map(|(ty, fold)| {
        [DataFormat::Nhwc, DataFormat::Nchw].map(|format| variant(ty, fold, format))
    })
    .collect()
}

fn variant(ty: &str, fold: Fold, format: DataFormat) -> Variant {
    Variant::new(&SOURCE)
        .define("T", ty)
        .define("FOLD", format!("{fold:?}"))
        .define("CHANNELS_FIRST", u8::from(format == DataFormat::Nchw))
}

/// `Pooling` in `pool.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    rows: Axis,
    columns: Axis,
    pub items: Items,
    depth: u32,
    unused: u32,
    pub x: Strides,
    y: Strides,
}

impl Sizes {
    /// Sizes of a geometry that has outputs, in packs of `lanes` channels.
    pub fn new(g: &Pool2dGeometry, lanes: i64) -> Result<Sizes, KernelError> {
        let output = OutputSizes {
            format: g.format,
            images: g.batch,
            rows: g.height.output,
            columns: g.width.output,
            channels: g.out_channels,
        };
        Ok(Sizes {
            rows: Axis::new(&g.height)?,
            columns: Axis::new(&g.width)?,
            items: output.items(lanes, 1)?,
            depth: small("channels of a window", g.depth_window)?,
            unused: 0,
            x: Strides::new(g.format, g.height.input, g.width.input, g.in_channels),
            y: output.strides(),
        })
    }
}

/// Number of channels of an item.
fn lanes(g: &Pool2dGeometry, y: &Operand, x: &Operand) -> i64 {
    match g.format {
        DataFormat::Nhwc if g.depth_window == 1 => packed_lanes(g.out_channels, &[y, x]),
        _ => 1,
    }
}

type Pooling = Entry<(u64, u64, Sizes)>;

/// The pooling of a node.
pub(super) struct Pool {
    pub attributes: PoolAttributes,
    pub fold: Fold,
    single: Pooling,
    packed: Option<Pooling>,
}

impl Pool {
    /// Compiles the pooling.
    ///
    /// # Errors
    /// `UNAVAILABLE` without a compiler; the compiler's error.
    pub fn new(c: &CreateContext<'_>, fold: Fold) -> Result<Pool, KernelError> {
        let attributes = PoolAttributes::new(c)?;
        let variant = variant(name_of(c.attr("T")?)?, fold, attributes.format());
        let module = device_for(c)?.modules().get(&variant)?;
        // SAFETY: entries take two addresses and `Pooling`, whose layout is that of `Sizes`.
        let entry = |name| unsafe { module.entry(name) };
        let packed = match attributes.format() {
            DataFormat::Nhwc => Some(entry("pool_packed")?),
            DataFormat::Nchw => None,
        };
        Ok(Pool { attributes, fold, single: entry("pool")?, packed })
    }

    fn compute(
        &self,
        c: &ComputeContext<'_>,
        params: &Pool2dParams<'_>,
    ) -> Result<(), KernelError> {
        let g = self.geometry(params)?;
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, &g.output_dims())?);
        if y.elements == 0 {
            return Ok(());
        }
        self.enqueue(&launch, &g, x, y)
    }

    /// The geometry of a call.
    ///
    /// # Errors
    /// The geometry's error, as in TensorFlow.
    pub fn geometry(&self, params: &Pool2dParams<'_>) -> Result<Pool2dGeometry, KernelError> {
        self.fold.geometry(params)
    }

    /// Enqueues the pooling, for an output that has elements.
    ///
    /// # Errors
    /// Sizes that the kernel does not support; the driver's error.
    pub fn enqueue(
        &self,
        launch: &Launch<'_>,
        g: &Pool2dGeometry,
        x: Operand,
        y: Operand,
    ) -> Result<(), KernelError> {
        let lanes = lanes(g, &y, &x);
        let sizes = Sizes::new(g, lanes)?;
        let entry = self.packed.as_ref().filter(|_| lanes > 1).unwrap_or(&self.single);
        let grid = Grid::stride(sizes.items.count(), launch.facts());
        // SAFETY: the geometry is that of these shapes, so reads stay within the input, and writes
        // within the output.
        unsafe { launch.run(entry, grid, (y.address, x.address, sizes)) }
    }
}

struct MaxPool(Pool);

impl Kernel for MaxPool {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Pool::new(c, Fold::Greatest).map(MaxPool)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        self.0.compute(c, &self.0.attributes.params(c.dims(0)))
    }
}

struct MaxPoolV2(Pool);

impl Kernel for MaxPoolV2 {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Pool::new(c, Fold::Greatest).map(MaxPoolV2)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (ksize, strides) = (c.integers(1)?, c.integers(2)?);
        let params = self.0.attributes.params(c.dims(0));
        self.0.compute(c, &Pool2dParams { ksize: &ksize, strides: &strides, ..params })
    }
}

struct AvgPool(Pool);

impl Kernel for AvgPool {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Pool::new(c, Fold::Mean).map(AvgPool)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        self.0.compute(c, &self.0.attributes.params(c.dims(0)))
    }
}

/// Element types of poolings by the greatest element.
const ORDERED: &[DType] = &[
    DType::INT8,
    DType::INT16,
    DType::INT32,
    DType::INT64,
    DType::UINT8,
    DType::UINT16,
    DType::HALF,
    DType::BFLOAT16,
    DType::FLOAT,
    DType::DOUBLE,
];

register_kernel!("MaxPool" on "CUDA": MaxPool, types = ("T", ORDERED), numerics = Numerics::EXACT);
register_kernel!("MaxPoolV2" on "CUDA": MaxPoolV2, types = ("T", ORDERED),
    host_memory = &["ksize", "strides"], numerics = Numerics::EXACT);
register_kernel!("AvgPool" on "CUDA": AvgPool, types = ("T", &[DType::FLOAT]),
    numerics = Numerics::relative(1e-37, 2e-6).accumulation(DType::FLOAT));
register_kernel!("AvgPool" on "CUDA": AvgPool, types = ("T", &[DType::DOUBLE]),
    numerics = Numerics::relative(1e-300, 4e-15).accumulation(DType::DOUBLE));
register_kernel!("AvgPool" on "CUDA": AvgPool, types = ("T", &[DType::HALF]),
    numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT));
register_kernel!("AvgPool" on "CUDA": AvgPool, types = ("T", &[DType::BFLOAT16]),
    numerics = Numerics::relative(1e-37, 1.6e-2).accumulation(DType::FLOAT));
