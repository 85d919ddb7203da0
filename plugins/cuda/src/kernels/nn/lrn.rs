//! `LRN`: local response normalisation.

use super::sizes::{packed_lanes, small};
use crate::{
    compile::{Entry, Source, Variant},
    kernels::{
        divisor::{Divide, Divisor},
        dtype::name_of,
    },
    launch::{Grid, Launch, device_for},
    source,
};
use tenon_sdk::{
    DType, KernelError,
    geometry::{response_channels, response_radius},
    prelude::*,
    reg::Numerics,
};

static SOURCE: Source = source!("lrn.cu");

pub(super) fn variants() -> Vec<Variant> {
    ["f16", "f32"].iter().map(|ty| variant(ty)).collect()
}

fn variant(ty: &str) -> Variant {
    Variant::new(&SOURCE).define("T", ty)
}

/// `Response` in `lrn.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Response {
    of_pixel: Divisor<u64>,
    items: u64,
    channels: u32,
    radius: u32,
    bias: f32,
    alpha: f32,
    beta: f32,
    unused: u32,
}

type Normalise = Entry<(u64, u64, Response)>;

struct Lrn {
    radius: u32,
    bias: f32,
    alpha: f32,
    beta: f32,
    single: Normalise,
    packed: Normalise,
}

impl Kernel for Lrn {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let radius = response_radius(c.attr("depth_radius")?)?;
        let module = device_for(c)?.modules().get(&variant(name_of(c.attr("T")?)?))?;
        // SAFETY: entries take two addresses and a `Response`, whose layout a test compares.
        let entry = |name| unsafe { module.entry(name) };
        Ok(Lrn {
            radius,
            bias: c.attr("bias")?,
            alpha: c.attr("alpha")?,
            beta: c.attr("beta")?,
            single: entry("lrn")?,
            packed: entry("lrn_packed")?,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let channels = response_channels(c.dims(0))?;
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, c.dims(0))?);
        if y.elements == 0 {
            return Ok(());
        }
        let lanes = packed_lanes(channels, &[&y, &x]);
        let channels_each = small("channels", channels)?;
        let response = Response {
            of_pixel: u64::divisor((channels / lanes) as u64),
            items: y.elements / lanes as u64,
            channels: channels_each,
            radius: self.radius.min(channels_each),
            bias: self.bias,
            alpha: self.alpha,
            beta: self.beta,
            unused: 0,
        };
        let entry = if lanes > 1 { &self.packed } else { &self.single };
        let grid = Grid::stride(response.items, launch.facts());
        // SAFETY: input and output have the same shape, `items` times the lanes of the entry, in
        // whole pixels; a channel's neighbours belong to its pixel.
        unsafe { launch.run(entry, grid, (y.address, x.address, response)) }
    }
}

register_kernel!("LRN" on "CUDA": Lrn, types = ("T", &[DType::FLOAT]),
    numerics = Numerics::relative(1e-37, 2e-6).accumulation(DType::FLOAT));
register_kernel!("LRN" on "CUDA": Lrn, types = ("T", &[DType::HALF]),
    numerics = Numerics::relative(6e-8, 1e-3).accumulation(DType::FLOAT));

#[cfg(test)]
mod tests {
    #[test]
    fn the_layout_is_that_of_the_source() {
        assert_eq!(size_of::<super::Response>(), 56);
    }
}
