//! The batches of a training: a function of the step, so that a run that is resumed sees what it would have seen.

use crate::{
    demo::assets::{Digits, PIXEL_MAX},
    error::CliError,
};
use tenon_runtime::framework::{Tensor, tensor::TensorError};

/// Images of a batch.
pub const BATCH: usize = 64;
/// Rows and columns of an image.
const SIDE: usize = 8;

/// The images that train.
pub struct Images {
    pixels: Vec<u8>,
    labels: Vec<u8>,
}

impl Images {
    /// Reads the assets.
    ///
    /// # Errors
    /// One of them is not what it should be.
    pub fn load() -> Result<Images, CliError> {
        let (pixels, labels) = Digits::training()?;
        Ok(Images { pixels, labels })
    }

    /// Number of images.
    pub fn count(&self) -> usize {
        self.labels.len()
    }

    /// The images (float `[64, 8, 8, 1]`, from 0 to 1) and labels (int32 `[64]`) of a step: drawn at random, each moved by
    /// up to one pixel in both directions, with zeros where nothing was.
    ///
    /// # Errors
    /// Out of memory.
    pub fn batch(&self, step: u64) -> Result<(Tensor, Tensor), TensorError> {
        let mut random = fastrand::Rng::with_seed(step.wrapping_add(1).wrapping_mul(SEED));
        let mut images = vec![0f32; BATCH * SIDE * SIDE];
        let mut labels = Vec::with_capacity(BATCH);
        for image in images.chunks_exact_mut(SIDE * SIDE) {
            let at = random.usize(..self.count());
            labels.push(i32::from(self.labels[at]));
            let (down, right) = (random.usize(..3), random.usize(..3));
            self.moved(at, down, right, image);
        }
        let dims = [BATCH as i64, SIDE as i64, SIDE as i64, 1];
        Ok((Tensor::from_slice(&dims, &images)?, Tensor::from_slice(&[BATCH as i64], &labels)?))
    }

    /// An image, moved by one pixel less than `down` and `right`.
    fn moved(&self, at: usize, down: usize, right: usize, image: &mut [f32]) {
        let pixels = &self.pixels[at * SIDE * SIDE..][..SIDE * SIDE];
        for (row, column) in (0..SIDE).flat_map(|row| (0..SIDE).map(move |column| (row, column))) {
            let (to_row, to_column) =
                ((row + down).wrapping_sub(1), (column + right).wrapping_sub(1));
            if to_row < SIDE && to_column < SIDE {
                image[to_row * SIDE + to_column] =
                    f32::from(pixels[row * SIDE + column]) / PIXEL_MAX;
            }
        }
    }
}

/// Spreads the numbers of steps over the seeds: 2^64 divided by the golden ratio.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_depends_on_the_step_alone() {
        let images = Images::load().unwrap();
        let [first, again, other] = [0, 0, 1].map(|step| images.batch(step).unwrap());
        let values = |tensor: &Tensor| tensor.as_slice::<f32>().unwrap().to_vec();
        assert_eq!(values(&first.0), values(&again.0));
        assert_ne!(values(&first.0), values(&other.0));
        assert_eq!(first.1.shape().dims(), [64]);
        assert!(first.1.as_slice::<i32>().unwrap().iter().all(|label| (0..10).contains(label)));
    }

    #[test]
    fn images_are_moved_by_a_pixel_at_most() {
        let mut pixels = vec![0; 64];
        pixels[0] = 16;
        pixels[63] = 8;
        let images = Images { pixels, labels: vec![0] };
        let moved = |down, right| {
            let mut image = vec![0f32; 64];
            images.moved(0, down, right, &mut image);
            image
                .iter()
                .enumerate()
                .filter(|pixel| *pixel.1 > 0.0)
                .map(|(at, x)| (at, *x))
                .collect::<Vec<_>>()
        };
        assert_eq!(moved(1, 1), [(0, 1.0), (63, 0.5)]);
        assert_eq!(moved(2, 1), [(8, 1.0)]);
        assert_eq!(moved(1, 0), [(62, 0.5)]);
    }
}
