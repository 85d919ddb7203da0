//! The graph and the images, which are in the executable. Their source and licence: `assets/demo/SOURCE.md`.

use crate::error::CliError;
use std::path::PathBuf;
use tenon_runtime::{
    framework::{DType, Tensor, tensor::TensorError},
    proto::{GraphDef, decode_graph_def},
};
use tenon_testkit::npy::{self, NpyError};

/// Pixels are from 0 to this.
pub const PIXEL_MAX: f32 = 16.0;

/// The classifier, the images it has not seen, and what TensorFlow says of them.
pub struct Digits {
    /// Feed `images`, fetches `logits` and `classes`.
    pub graph: GraphDef,
    /// `[n, 8, 8, 1]`, from 0 to 1.
    pub images: Tensor,
    /// Images of the training, `[n, 8, 8, 1]`, on which quantisation is calibrated.
    pub calibration: Tensor,
    /// What each image shows.
    pub labels: Vec<u8>,
    /// TensorFlow's, `[n, 10]`.
    pub logits: Vec<f32>,
    /// TensorFlow's.
    pub classes: Vec<i64>,
}

macro_rules! asset {
    ($name:literal) => {
        include_bytes!(concat!("../../assets/demo/", $name))
    };
}

fn array(name: &str, bytes: &[u8], dtype: DType) -> Result<Tensor, CliError> {
    Ok(npy::parse(bytes, name, Some(dtype))?)
}

fn unreadable(name: &str) -> impl Fn(TensorError) -> CliError {
    let file = name.to_owned();
    move |source| CliError::Array(NpyError::Tensor { file: file.clone(), source })
}

impl Digits {
    /// Reads the assets.
    ///
    /// # Errors
    /// One of them is not what it should be.
    pub fn load() -> Result<Digits, CliError> {
        let graph = decode_graph_def(asset!("digits.pb"))
            .map_err(|source| CliError::Graph { file: PathBuf::from("digits.pb"), source })?;
        let name = "calibration_images.npy";
        let calibration = array(name, asset!("calibration_images.npy"), DType::FLOAT)?;
        let name = "heldout_images.npy";
        let pixels = array(name, asset!("heldout_images.npy"), DType::UINT8)?;
        let values: Vec<f32> = pixels
            .as_slice::<u8>()
            .map_err(unreadable(name))?
            .iter()
            .map(|&pixel| f32::from(pixel) / PIXEL_MAX)
            .collect();
        let dims = [pixels.shape().dims(), &[1]].concat();
        let images = Tensor::from_slice(&dims, &values).map_err(unreadable(name))?;
        let name = "heldout_labels.npy";
        let labels = array(name, asset!("heldout_labels.npy"), DType::UINT8)?;
        let labels = labels.as_slice().map_err(unreadable(name))?.to_vec();
        let name = "tensorflow_logits.npy";
        let logits = array(name, asset!("tensorflow_logits.npy"), DType::FLOAT)?;
        let logits = logits.as_slice().map_err(unreadable(name))?.to_vec();
        let name = "tensorflow_classes.npy";
        let classes = array(name, asset!("tensorflow_classes.npy"), DType::INT64)?;
        let classes = classes.as_slice().map_err(unreadable(name))?.to_vec();
        Ok(Digits { graph, images, calibration, labels, logits, classes })
    }

    /// The images and labels of the training: pixels from 0 to 16, `[n, 8, 8]`, and `[n]`.
    ///
    /// # Errors
    /// One of the assets is not what it should be.
    pub fn training() -> Result<(Vec<u8>, Vec<u8>), CliError> {
        let read = |name: &str, bytes: &[u8]| {
            let values = array(name, bytes, DType::UINT8)?;
            Ok::<_, CliError>(values.as_slice::<u8>().map_err(unreadable(name))?.to_vec())
        };
        let images = read("training_images.npy", asset!("training_images.npy"))?;
        Ok((images, read("training_labels.npy", asset!("training_labels.npy"))?))
    }

    /// Number of images.
    pub fn count(&self) -> usize {
        self.labels.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_assets_belong_together() {
        let digits = Digits::load().unwrap();
        let n = digits.count();
        assert_eq!(digits.images.shape().dims(), [n as i64, 8, 8, 1]);
        assert_eq!((digits.logits.len(), digits.classes.len()), (10 * n, n));
        let pixels = digits.images.as_slice::<f32>().unwrap();
        assert!(pixels.iter().all(|pixel| (0.0..=1.0).contains(pixel)) && pixels.contains(&1.0));
        let right = digits.labels.iter().zip(&digits.classes);
        let right = right.filter(|(label, class)| i64::from(**label) == **class).count();
        assert_eq!((n, right), (500, 488));
        assert_eq!(digits.calibration.shape().dims(), [128, 8, 8, 1]);
        let (images, labels) = Digits::training().unwrap();
        assert_eq!((images.len(), labels.len()), (1297 * 64, 1297));
        let first = images[..128 * 64].iter().map(|&pixel| f32::from(pixel) / PIXEL_MAX);
        assert!(first.eq(digits.calibration.as_slice::<f32>().unwrap().iter().copied()));
    }
}
