//! Calibration: from the values of tensors to the ranges that 8 bits are to hold.

use super::{QuantizeError, entropy, histogram::Histogram, scales::Range};
use tenon_framework::{DType, Tensor};

/// How a range follows from values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// From the least to the greatest value.
    MinMax,
    /// So many percent of the values, as many of the others below as above: 99.99.
    Percentile(f64),
    /// The values that are cut off and the steps between the others together lose least, by relative entropy.
    Entropy,
}

impl Method {
    /// How often the data is gone through: histograms need to know the least and the greatest value first.
    pub fn passes(self) -> usize {
        if self == Method::MinMax { 1 } else { 2 }
    }

    /// # Errors
    /// A percentile that is none.
    pub fn check(self) -> Result<(), QuantizeError> {
        match self {
            Method::Percentile(found) if !(found > 50.0 && found <= 100.0) => {
                Err(QuantizeError::Percentile { found })
            }
            _ => Ok(()),
        }
    }
}

/// What was seen of one tensor.
#[derive(Debug, Clone)]
pub struct Observer {
    name: String,
    method: Method,
    range: Option<Range>,
    histogram: Option<Histogram>,
}

impl Observer {
    /// Of a tensor that is called so in errors.
    pub fn new(name: String, method: Method) -> Observer {
        Observer { name, method, range: None, histogram: None }
    }

    /// Takes the tensor's value in a sample, in pass 0 or 1.
    ///
    /// # Errors
    /// It is no float tensor on the host, or not finite.
    pub fn take(
        &mut self,
        pass: usize,
        value: &Tensor,
        sample: usize,
    ) -> Result<(), QuantizeError> {
        let values = value
            .as_slice::<f32>()
            .map_err(|_| QuantizeError::Type { tensor: self.name.clone(), found: value.dtype() })?;
        if let Some(found) = values.iter().copied().find(|value| !value.is_finite()) {
            return Err(QuantizeError::NotFinite { tensor: self.name.clone(), found, sample });
        }
        if pass == 0 {
            self.widen(values)
        } else {
            self.count(values)
        }
        Ok(())
    }

    fn widen(&mut self, values: &[f32]) {
        let Some(&first) = values.first() else { return };
        let mut range = self.range.unwrap_or(Range { min: first, max: first });
        for &value in values {
            range = Range { min: range.min.min(value), max: range.max.max(value) };
        }
        self.range = Some(range);
    }

    fn count(&mut self, values: &[f32]) {
        let Some(Range { min, max }) = self.range else { return };
        if self.method == Method::Entropy {
            let most = min.abs().max(max.abs());
            let histogram = self.histogram.get_or_insert_with(|| Histogram::new(0.0, most));
            values.iter().for_each(|value| histogram.take(value.abs()));
        } else {
            let histogram = self.histogram.get_or_insert_with(|| Histogram::new(min, max));
            values.iter().for_each(|value| histogram.take(*value));
        }
    }

    /// The range.
    ///
    /// # Errors
    /// Nothing was seen.
    pub fn range(&self) -> Result<Range, QuantizeError> {
        let none = || QuantizeError::NotObserved { tensor: self.name.clone() };
        let seen = self.range.ok_or_else(none)?;
        let Some(histogram) = &self.histogram else { return Ok(seen) };
        let [low, high] = match self.method {
            Method::MinMax => return Ok(seen),
            Method::Percentile(percent) => {
                let total: u64 = histogram.counts.iter().sum();
                histogram.between(total as f64 * (100.0 - percent) / 200.0)
            }
            Method::Entropy => {
                let signed = seen.min < 0.0 && seen.max > 0.0;
                let most = entropy::threshold(histogram, signed);
                [-most, most]
            }
        };
        let (low, high) = (low as f32, high as f32);
        Ok(Range { min: seen.min.max(low.min(seen.max)), max: seen.max.min(high.max(seen.min)) })
    }
}

/// What a tensor in 8 bits, or one that follows from such, loses against the float one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Noise {
    /// The sum of squares of the float tensor.
    pub signal: f64,
    /// The sum of squares of the differences.
    pub noise: f64,
    /// The greatest difference.
    pub worst: f64,
    /// Values compared.
    pub count: u64,
}

impl Noise {
    /// Compares tensors of one shape. Where the found one is in 8 bits, `affine` says what it stands for.
    ///
    /// # Errors
    /// Of other types, or of different shapes.
    pub fn take(
        &mut self,
        name: &str,
        float: &Tensor,
        found: &Tensor,
        affine: Option<tenon_geometry::fixed_point::Affine>,
    ) -> Result<(), QuantizeError> {
        let wrong = |tensor: &Tensor| QuantizeError::Type {
            tensor: name.to_owned(),
            found: tensor.dtype(),
        };
        let expected = float.as_slice::<f32>().map_err(|_| wrong(float))?;
        if float.shape() != found.shape() {
            return Err(wrong(found));
        }
        match affine {
            Some(affine) if found.dtype() == DType::QUINT8 => {
                let bytes = found.as_bytes().map_err(|_| wrong(found))?;
                self.add(expected, bytes.iter().map(|&byte| affine.real(byte.into())));
            }
            _ => {
                let values = found.as_slice::<f32>().map_err(|_| wrong(found))?;
                self.add(expected, values.iter().copied());
            }
        }
        Ok(())
    }

    fn add(&mut self, expected: &[f32], found: impl Iterator<Item = f32>) {
        for (&expected, found) in expected.iter().zip(found) {
            let (expected, found) = (f64::from(expected), f64::from(found));
            self.count += 1;
            // The same infinity, or NaN in both places, is no loss, and has no size that another could be compared with.
            if expected == found || (expected.is_nan() && found.is_nan()) {
                self.signal += if expected.is_finite() { expected * expected } else { 0.0 };
                continue;
            }
            let difference = match (expected - found).abs() {
                difference if difference.is_nan() => f64::INFINITY,
                difference => difference,
            };
            self.signal += if expected.is_finite() { expected * expected } else { 0.0 };
            self.noise += difference * difference;
            self.worst = self.worst.max(difference);
        }
    }

    /// Signal over noise in decibels; infinite where nothing differs, minus infinity where a number became NaN or infinite,
    /// or the other way round.
    pub fn decibels(&self) -> f64 {
        10.0 * (self.signal / self.noise).log10()
    }

    /// The root of noise over signal: by how much of itself a value is off. 0 where nothing differs, infinite where a
    /// number became NaN or infinite, or the other way round.
    pub fn relative(&self) -> f64 {
        if self.noise == 0.0 { 0.0 } else { (self.noise / self.signal).sqrt() }
    }
}
