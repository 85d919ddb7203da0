//! `AudioSpectrogram`.

use crate::plans::{Complex, Plans, cost_ns, for_rows, forward_plan};
use realfft::RealToComplex;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::GeometryError,
    growth,
    reg::Numerics,
    register_kernel,
};

/// The strength of each frequency in windows of samples, which begin `stride` apart.
struct Spectrogram {
    window: usize,
    stride: usize,
    squared: bool,
    plans: Plans<dyn RealToComplex<f64>>,
}

impl Spectrogram {
    /// The transform's length: the next power of two.
    fn length(&self) -> Result<usize, KernelError> {
        let too_large = || GeometryError::TooLarge { dims: vec![self.window as i64] };
        let length = self.window.checked_next_power_of_two().filter(|&length| length < 1 << 40);
        length.ok_or_else(|| too_large().into())
    }

    /// The weights of a window: a period of a raised cosine.
    fn weights(&self) -> Result<Vec<f64>, KernelError> {
        let angle = std::f64::consts::TAU / self.window as f64;
        growth::collected((0..self.window).map(|at| 0.5 - 0.5 * (angle * at as f64).cos()))
    }
}

impl Kernel for Spectrogram {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let least = |what: &'static str, least: i64| match c.attr::<i64>(what)? {
            found if found < least => {
                Err(KernelError::from(GeometryError::TooSmall { what, least, found }))
            }
            size => Ok(size as usize),
        };
        let (window, stride) = (least("window_size", 2)?, least("stride", 1)?);
        Ok(Spectrogram {
            window,
            stride,
            squared: c.attr("magnitude_squared")?,
            plans: Plans::new(),
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<f32>(0)?;
        let &[samples, channels] = x.dims else {
            let (what, expected, found) = ("input", 2, x.dims.len());
            return Err(GeometryError::Rank { what, expected, found }.into());
        };
        let (samples, step) = (samples as usize, channels as usize);
        let length = self.length()?;
        let frames = samples.checked_sub(self.window).map_or(0, |rest| 1 + rest / self.stride);
        let bins = length / 2 + 1;
        let y = c.output::<f32>(0, &[channels, frames as i64, bins as i64])?.data;
        if y.is_empty() {
            return Ok(());
        }
        let plan = self.plans.get(length, || forward_plan(length))?;
        let (weights, watch) = (self.weights()?, c.watch());
        for_rows(c, y, bins, 2.0 * cost_ns(length), |first, block| {
            let mut row = growth::filled(length, 0.0)?;
            let mut found = growth::filled(bins, Complex::default())?;
            let mut scratch = growth::filled(plan.get_scratch_len(), Complex::default())?;
            for (at, y) in block.chunks_exact_mut(bins).enumerate() {
                watch.check()?;
                let (channel, frame) = ((first + at) / frames, (first + at) % frames);
                let from = x.data[frame * self.stride * step + channel..].iter().step_by(step);
                let (taken, rest) = row.split_at_mut(self.window);
                let weighted = taken.iter_mut().zip(from).zip(&weights);
                weighted.for_each(|((row, &x), weight)| *row = f64::from(x) * weight);
                rest.fill(0.0);
                plan.process_with_scratch(&mut row, &mut found, &mut scratch)
                    .map_err(|error| KernelError::internal(error.to_string()))?;
                for (y, found) in y.iter_mut().zip(&found) {
                    let square = found.norm_sqr() as f32;
                    *y = if self.squared { square } else { square.sqrt() };
                }
            }
            Ok(())
        })
    }
}

register_kernel!("AudioSpectrogram" on "CPU": Spectrogram, numerics = Numerics::relative(1e-5, 1e-5));
