//! Common parts of the resizing ops: attributes, shapes, and a loop over the rows of a result on
//! the host's threads.

use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::{Dims, GeometryError, PixelGrid, byte_size, resized_dims},
};

/// The pixel grid of a node's attributes.
pub fn grid(c: &CreateContext<'_>) -> Result<PixelGrid, KernelError> {
    Ok(PixelGrid::new(c.attr("align_corners")?, c.attr("half_pixel_centers")?)?)
}

/// A way to resize images of `T`, or its gradient.
pub trait Way<T>: 'static {
    /// Computes a result on the grid.
    fn compute(grid: PixelGrid, c: &ComputeContext<'_>) -> Result<(), KernelError>;
}

/// The kernel of a way to resize that needs only the grid.
pub struct Resize<W, T> {
    grid: PixelGrid,
    of: PhantomData<fn() -> (W, T)>,
}

impl<W: Way<T>, T: Number> Kernel for Resize<W, T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Resize { grid: grid(c)?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        W::compute(self.grid, c)
    }
}

/// Checks the shapes of a gradient and of the images that were resized.
pub fn check_grad(grads: &[i64], output: &[i64]) -> Result<(), KernelError> {
    for (what, dims) in [("grads", grads), ("original_image", output)] {
        if dims.len() != 4 {
            return Err(GeometryError::Rank { what, expected: 4, found: dims.len() }.into());
        }
    }
    for (at, what) in [(0, "the batch of grads"), (3, "the channels of grads")] {
        let (expected, found) = (output[at], grads[at]);
        if expected != found {
            return Err(GeometryError::SizeMismatch { what, expected, found }.into());
        }
    }
    byte_size(output, 8)?;
    Ok(())
}

/// The number of rows of a band of the result, which share what is computed of the input's rows.
const BAND: usize = 16;

/// Sizes of the images on both sides.
pub struct Sizes {
    /// Shape of the result.
    pub output: Dims,
    /// Height and width of the input.
    pub from: [usize; 2],
    /// Height and width of the result.
    pub to: [usize; 2],
    /// Number of channels of a pixel.
    pub channels: usize,
}

impl Sizes {
    /// Sizes of input 0, and the result size from input 1.
    pub fn new(c: &ComputeContext<'_>) -> Result<Sizes, KernelError> {
        let (images, size) = (c.dims(0), c.integers(1)?);
        if c.dims(1).len() != 1 {
            let found = c.dims(1).len();
            return Err(GeometryError::Rank { what: "size", expected: 1, found }.into());
        }
        if let Some(&found) = size.iter().find(|&&size| size < 1) {
            return Err(GeometryError::TooSmall { what: "size", least: 1, found }.into());
        }
        let output = resized_dims(images, &size)?;
        byte_size(&output, 8)?;
        let pair = |dims: &[i64]| [dims[1] as usize, dims[2] as usize];
        Ok(Sizes { from: pair(images), to: pair(&output), channels: images[3] as usize, output })
    }

    /// Elements of an input image.
    pub fn image(&self) -> usize {
        self.from[0] * self.from[1] * self.channels
    }

    /// Elements of a row of the input.
    pub fn row(&self) -> usize {
        self.from[1] * self.channels
    }

    /// Computes each row of the result, given its image and its index in it.
    pub fn rows<X: Sync, Y: Send>(
        &self,
        c: &ComputeContext<'_>,
        x: &[X],
        y: &mut [Y],
        cost_ns: f64,
        body: impl Fn(&[X], usize, &mut [Y]) -> Result<(), KernelError> + Sync,
    ) -> Result<(), KernelError> {
        let len = self.to[1] * self.channels;
        if y.is_empty() {
            return Ok(());
        }
        let rows = y.chunks_exact_mut(len);
        c.parallel_items(rows, cost_ns * len as f64, |number, row| {
            let image = &x[number / self.to[0] * self.image()..][..self.image()];
            body(image, number % self.to[0], row)
        })
    }
}

impl Sizes {
    /// Computes bands of rows of the result, given their image, the index of the first row in it,
    /// and room for them.
    pub fn bands<X: Sync, Y: Send>(
        &self,
        c: &ComputeContext<'_>,
        x: &[X],
        y: &mut [Y],
        cost_ns: f64,
        body: impl Fn(&[X], usize, &mut [Y]) -> Result<(), KernelError> + Sync,
    ) -> Result<(), KernelError> {
        let len = self.to[1] * self.channels;
        if y.is_empty() {
            return Ok(());
        }
        let images = y.chunks_exact_mut(self.to[0] * len).enumerate();
        let bands = images.flat_map(|(image, y)| {
            let bands = y.chunks_mut(BAND * len).enumerate();
            bands.map(move |(band, y)| (image, band * BAND, y))
        });
        c.parallel_items(bands, cost_ns * (BAND * len) as f64, |_, (image, first, y)| {
            body(&x[image * self.image()..][..self.image()], first, y)
        })
    }
}

/// Calls a function with the number of channels as a constant, where there are as many as images
/// usually have, so that the loop over a pixel's channels is none.
macro_rules! by_channels {
    ($channels:expr, $function:ident($($argument:expr),*)) => {
        match $channels {
            1 => $function::<_, 1>($($argument),*),
            3 => $function::<_, 3>($($argument),*),
            4 => $function::<_, 4>($($argument),*),
            _ => $function::<_, 0>($($argument),*),
        }
    };
}
pub(crate) use by_channels;

/// A number as the float that TensorFlow converts it to.
pub fn single<T: Number>(x: T) -> f32 {
    x.to_f64() as f32
}

/// For each element type that can be resized.
macro_rules! for_numbers {
    ($op:literal, $kernel:ident) => {
        tenon_sdk::register_kernel!($op on "CPU":
            $kernel<T> for "T" in [
                i8, u8, i16, u16, i32, i64, half::bf16, half::f16, f32, f64,
            ],
            host_memory = &["size"], numerics = $crate::resize::NUMERICS);
    };
}
pub(crate) use for_numbers;

/// Bounds: a pixel is a weighted mean in single precision, with weights that are exact to one part
/// in 2^24 of the image's size.
pub const NUMERICS: tenon_sdk::reg::Numerics =
    tenon_sdk::reg::Numerics::relative(1e-30, 1e-6).accumulation(tenon_sdk::DType::FLOAT);
