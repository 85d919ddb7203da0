//! Calibration: derives the ranges for 8 bits from the values of tensors.

use super::{QuantizeError, entropy, histogram::Histogram, scales::Range};
use tenon_framework::{DType, Tensor};

/// The method for choosing a range from values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// The range from the least to the greatest value.
    MinMax,
    /// The range of this percentage of the values, with equally many left out below and above; such
    /// as 99.99.
    Percentile(f64),
    /// The range with the least loss, as relative entropy, from cutting off values and from the
    /// steps between the others.
    Entropy,
}

impl Method {
    /// The number of passes over the data: histograms need the least and the greatest value first.
    pub fn passes(self) -> usize {
        if self == Method::MinMax { 1 } else { 2 }
    }

    /// Checks the percentile.
    ///
    /// # Errors
    /// The percentile is out of range.
    pub fn check(self) -> Result<(), QuantizeError> {
        match self {
            Method::Percentile(found) if !(found > 50.0 && found <= 100.0) => {
                Err(QuantizeError::Percentile { found })
            }
            _ => Ok(()),
        }
    }
}

/// The observed values of one tensor.
#[derive(Debug, Clone)]
pub struct Observer {
    name: String,
    method: Method,
    range: Option<Range>,
    histogram: Option<Histogram>,
}

impl Observer {
    /// Creates an observer; errors refer to the tensor by this name.
    pub fn new(name: String, method: Method) -> Observer {
        Observer { name, method, range: None, histogram: None }
    }

    /// Adds the tensor's value in a sample, in pass 0 or 1.
    ///
    /// # Errors
    /// The value is not a float tensor on the host, or not finite.
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

    /// The chosen range.
    ///
    /// # Errors
    /// No value was observed.
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

/// The loss of a tensor that is in 8 bits, or computed from such tensors, against the float one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Noise {
    /// The sum of squares of the float tensor.
    pub signal: f64,
    /// The sum of squares of the differences.
    pub noise: f64,
    /// The greatest difference.
    pub worst: f64,
    /// The number of values compared.
    pub count: u64,
}

impl Noise {
    /// Compares two tensors of the same shape. If `found` is in 8 bits, `affine` has its scale and
    /// zero point.
    ///
    /// # Errors
    /// The tensors have other types, or different shapes.
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
            // The same infinity, or NaN in both places, is not a loss, and has no magnitude to
            // compare others with.
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

    /// The signal-to-noise ratio in decibels. It is infinite if nothing differs, and minus infinity
    /// if a finite number became NaN or infinite, or the reverse.
    pub fn decibels(&self) -> f64 {
        10.0 * (self.signal / self.noise).log10()
    }

    /// The square root of noise over signal: the relative error of a value. It is 0 if nothing
    /// differs, and infinite if a finite number became NaN or infinite, or the reverse.
    pub fn relative(&self) -> f64 {
        if self.noise == 0.0 { 0.0 } else { (self.noise / self.signal).sqrt() }
    }
}
