//! `Mfcc`: the cosine transform of the logarithms of a spectrum's strength in bands of equal width to the ear.
//!
//! Source: S. Davis and P. Mermelstein, "Comparison of parametric representations for monosyllabic word recognition"
//! (1980), with the triangular bands of the HTK toolkit, which leave out the constant part.

use crate::plans::for_rows;
use std::f64::consts::PI;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::GeometryError,
    growth,
    reg::Numerics,
    register_kernel,
};

/// The least strength of a band, whose logarithm is finite.
const FLOOR: f64 = 1e-12;
/// Approximate nanoseconds of a frequency or of a cosine.
const COST_NS: f64 = 2.0;

/// The pitch of a frequency in Hz.
fn mel(frequency: f64) -> f64 {
    1127.0 * (frequency / 700.0).ln_1p()
}

/// A band's part of a frequency; the rest belongs to the band after it.
#[derive(Debug, Clone, Copy)]
struct Share {
    /// None is the slope before the first band.
    band: Option<usize>,
    weight: f64,
}

/// The attributes.
struct Mfcc {
    low: f64,
    high: f64,
    bands: usize,
    coefficients: usize,
}

/// The frequencies that bands have: which is the first, and the shares of each.
struct Bands {
    first: usize,
    shares: Vec<Share>,
}

impl Mfcc {
    fn bands(&self, bins: usize, rate: f64) -> Result<Bands, KernelError> {
        let (low, high) = (mel(self.low), mel(self.high));
        let width = (high - low) / (self.bands + 1) as f64;
        let centre = |band: usize| low + width * (band + 1) as f64;
        let step = 0.5 * rate / (bins - 1) as f64;
        let first = (1.5 + self.low / step) as usize;
        let last = (self.high / step) as usize;
        if last >= bins {
            return Err(KernelError::invalid_argument(format!(
                "upper_frequency_limit: expected less than {}, half of sample_rate, found {}",
                0.5 * rate,
                self.high
            )));
        }
        let mut next = 0;
        let share = |bin: usize| {
            let pitch = mel(bin as f64 * step);
            while next < self.bands && centre(next) < pitch {
                next += 1;
            }
            let band = next.checked_sub(1);
            let start = band.map_or(low, centre);
            Share { band, weight: (centre(next) - pitch) / (centre(next) - start) }
        };
        Ok(Bands { first, shares: growth::collected((first..=last).map(share))? })
    }

    /// The cosines of each coefficient, of one after the other.
    fn cosines(&self) -> Result<Vec<f64>, KernelError> {
        let count = self.bands;
        let (scale, angle) = ((2.0 / count as f64).sqrt(), PI / count as f64);
        let cosine = |at: usize| {
            let (coefficient, band) = (at / count, at % count);
            scale * (coefficient as f64 * angle * (band as f64 + 0.5)).cos()
        };
        growth::collected((0..self.coefficients * count).map(cosine))
    }
}

impl Bands {
    /// The logarithms of the strength of each band of a spectrum of squares.
    fn logs(&self, spectrum: &[f32], logs: &mut [f64]) {
        logs.fill(0.0);
        for (share, &square) in self.shares.iter().zip(&spectrum[self.first.min(spectrum.len())..])
        {
            let strength = f64::from(square).sqrt();
            let own = strength * share.weight;
            if let Some(band) = share.band {
                logs[band] += own;
            }
            if let Some(next) = logs.get_mut(share.band.map_or(0, |band| band + 1)) {
                *next += strength - own;
            }
        }
        logs.iter_mut().for_each(|log| *log = log.max(FLOOR).ln());
    }
}

impl Kernel for Mfcc {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let count = |what: &'static str| match c.attr::<i64>(what)? {
            found if found < 1 => {
                Err(KernelError::from(GeometryError::TooSmall { what, least: 1, found }))
            }
            count => Ok(count as usize),
        };
        let (bands, coefficients) =
            (count("filterbank_channel_count")?, count("dct_coefficient_count")?);
        let limit = |name: &str| c.attr::<f32>(name).map(f64::from);
        let (low, high) = (limit("lower_frequency_limit")?, limit("upper_frequency_limit")?);
        if coefficients > bands {
            return Err(KernelError::invalid_argument(format!(
                "dct_coefficient_count: expected at most {bands}, as filterbank_channel_count is, found {coefficients}"
            )));
        }
        if bands > 1 << 20 {
            return Err(GeometryError::TooLarge { dims: vec![bands as i64] }.into());
        }
        if !(low >= 0.0 && high > low && high.is_finite()) {
            return Err(KernelError::invalid_argument(format!(
                "lower_frequency_limit and upper_frequency_limit: expected at least 0 and more than that, found {low} and {high}"
            )));
        }
        Ok(Mfcc { low, high, bands, coefficients })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<f32>(0)?;
        let &[channels, frames, bins] = x.dims else {
            let (what, expected, found) = ("spectrogram", 3, x.dims.len());
            return Err(GeometryError::Rank { what, expected, found }.into());
        };
        let rate = c.integer(1, "sample_rate")?;
        for (what, least, found) in
            [("sample_rate", 1, rate), ("the number of frequencies", 2, bins)]
        {
            if found < least {
                return Err(GeometryError::TooSmall { what, least, found }.into());
            }
        }
        let bins = bins as usize;
        let (bands, cosines) = (self.bands(bins, rate as f64)?, self.cosines()?);
        let y = c.output::<f32>(0, &[channels, frames, self.coefficients as i64])?.data;
        let cost = COST_NS * (bins + cosines.len()) as f64;
        for_rows(c, y, self.coefficients, cost, |first, block| {
            let mut logs = growth::filled(self.bands, 0.0)?;
            for (at, y) in block.chunks_exact_mut(self.coefficients).enumerate() {
                bands.logs(&x.data[(first + at) * bins..][..bins], &mut logs);
                for (y, cosines) in y.iter_mut().zip(cosines.chunks_exact(self.bands)) {
                    *y = cosines.iter().zip(&logs).map(|(cosine, log)| cosine * log).sum::<f64>()
                        as f32;
                }
            }
            Ok(())
        })
    }
}

register_kernel!("Mfcc" on "CPU": Mfcc, host_memory = &["sample_rate"],
    numerics = Numerics::relative(1e-5, 1e-5));
