//! A distribution of given weights, which may be one part of several.

use super::{Sampler, alias::Alias};
use crate::files::access;
use tenon_files::path_of;
use tenon_philox::Words;
use tenon_sdk::{growth, prelude::*};

/// Weights of classes, raised to a power.
pub struct Fixed {
    weights: Vec<f32>,
    total: f32,
    alias: Alias,
}

/// Collects the weights of one part.
struct Part {
    /// The number of classes of the part.
    range: usize,
    shards: u64,
    shard: u64,
    distortion: f32,
    weights: Vec<f32>,
    total: f32,
    /// The number of the next class.
    class: u64,
}

impl Part {
    fn new(c: &CreateContext<'_>, range: i64) -> Result<Part, KernelError> {
        let (shards, shard): (i64, i64) = (c.attr("num_shards")?, c.attr("shard")?);
        let (shards, shard) = (shards as u64, shard as u64);
        let (distortion, weights) = (c.attr("distortion")?, Vec::new());
        let range = usize::try_from(range).unwrap_or(usize::MAX);
        let mut part = Part { range, shards, shard, distortion, weights, total: 0.0, class: 0 };
        // Classes that are never drawn come first.
        let reserved = u64::try_from(c.attr::<i64>("num_reserved_ids")?).unwrap_or(0);
        let own = match reserved.checked_sub(shard) {
            Some(later) if shard < shards => later.div_ceil(shards),
            _ => 0,
        };
        if own > part.range as u64 {
            return Err(part.mismatch(own));
        }
        part.weights = growth::filled(own as usize, 0.0)?;
        // TensorFlow counts on from the part's own ones.
        part.class = own;
        Ok(part)
    }

    fn mismatch(&self, found: u64) -> KernelError {
        KernelError::invalid_argument(format!(
            "range is {} must be equal to weights size {found}",
            self.range
        ))
    }

    /// Takes the weight of the next class, if the class belongs to the part.
    fn add(
        &mut self,
        weight: impl FnOnce() -> Result<f32, KernelError>,
    ) -> Result<(), KernelError> {
        if self.class % self.shards == self.shard {
            let weight = weight()?.powf(self.distortion);
            self.total += weight;
            growth::push(&mut self.weights, weight)?;
        }
        self.class += 1;
        Ok(())
    }

    fn finish(self) -> Result<Fixed, KernelError> {
        if self.weights.len() != self.range {
            return Err(self.mismatch(self.weights.len() as u64));
        }
        let alias = Alias::new(&self.weights)?;
        Ok(Fixed { weights: self.weights, total: self.total, alias })
    }
}

/// The weight in a line of a vocabulary: what follows the last comma.
fn weight_of(line: &[u8]) -> Result<f32, KernelError> {
    let last = line.rsplit(|&byte| byte == b',').next().unwrap_or(line);
    let weight = str::from_utf8(last).ok().and_then(|text| text.trim().parse().ok());
    weight.ok_or_else(|| {
        KernelError::invalid_argument(format!(
            "Wrong vocabulary format at line: {}: expected a number after the last comma",
            String::from_utf8_lossy(line)
        ))
    })
}

impl Sampler for Fixed {
    fn new(c: &CreateContext<'_>, range: i64) -> Result<Fixed, KernelError> {
        let (file, weights): (&[u8], Vec<f32>) = (c.attr("vocab_file")?, c.attr("unigrams")?);
        let mut part = Part::new(c, range)?;
        match (file.is_empty(), weights.is_empty()) {
            (true, true) => {
                Err(KernelError::invalid_argument("Must provide either vocab_file or unigrams."))
            }
            (false, false) => Err(KernelError::invalid_argument(
                "Must only provide one of vocab_file and unigrams.",
            )),
            (true, false) => {
                weights.iter().try_for_each(|&weight| part.add(|| Ok(weight)))?;
                part.finish()
            }
            (false, true) => {
                let text = access(c)?.contents("vocab_file", &path_of(file))?;
                for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
                    part.add(|| weight_of(line))?;
                }
                part.finish()
            }
        }
    }

    fn drawable(&self, _: i64) -> i64 {
        self.weights.iter().filter(|&&weight| weight != 0.0).count() as i64
    }

    fn draw(&self, words: &mut Words) -> i64 {
        self.alias.draw(words) as i64
    }

    fn probability(&self, class: i64) -> f32 {
        self.weights.get(class as usize).map_or(0.0, |weight| weight / self.total)
    }
}
