//! Sound: WAV files, spectrograms, and cepstra. The kernels are plugins/fft/src/audio.

use crate::shape::{input_of_rank, scalar_output};
use tenon_author::{Dim, ShapeContext, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::GeometryError;

register_op!(
    "DecodeWav",
    inputs = &["contents: string"],
    outputs = &["audio: float", "sample_rate: int32"],
    attrs = &["desired_channels: int = -1", "desired_samples: int = -1"],
    shape = decode_wav,
    summary = "The samples of a WAV file, between -1 and 1, and how many there are in a second.",
);

register_op!(
    "EncodeWav",
    inputs = &["audio: float", "sample_rate: int32"],
    outputs = &["contents: string"],
    cases = &["tone; audio: [5, 2]; sample_rate: [] values(8000)"],
    shape = encode_wav,
    summary = "A WAV file of 16-bit samples.",
);

register_op!(
    "AudioSpectrogram",
    inputs = &["input: float"],
    outputs = &["spectrogram: float"],
    attrs = &["window_size: int", "stride: int", "magnitude_squared: bool = false"],
    shape = spectrogram,
    summary = "The strength of each frequency in windows of samples.",
);

register_op!(
    "Mfcc",
    inputs = &["spectrogram: float", "sample_rate: int32"],
    outputs = &["output: float"],
    attrs = &[
        "upper_frequency_limit: float = 4000.0",
        "lower_frequency_limit: float = 20.0",
        "filterbank_channel_count: int = 40",
        "dct_coefficient_count: int = 13"
    ],
    cases = &["frames; spectrogram: [1, 3, 65] uniform(0, 4); sample_rate: [] values(16000)"],
    shape = mfcc,
    summary = "The cepstrum of spectra: what is left of them for the recognition of speech.",
);

/// A size that an attribute gives; -1 is unknown before the file is read.
fn wanted(c: &ShapeContext<'_>, what: &'static str) -> Result<Dim, KernelError> {
    match c.attr::<i64>(what)? {
        found if found < -1 => Err(GeometryError::TooSmall { what, least: -1, found }.into()),
        size => Ok(c.make_dim((size >= 0).then_some(size))),
    }
}

fn decode_wav(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "contents", 0)?;
    let (channels, samples) = (wanted(c, "desired_channels")?, wanted(c, "desired_samples")?);
    c.set_output(0, c.make_shape(&[samples, channels]))?;
    c.set_output(1, c.scalar())
}

fn encode_wav(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "audio", 2)?;
    input_of_rank(c, 1, "sample_rate", 0)?;
    scalar_output(c)
}

fn spectrogram(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank(c, 0, "input", 2)?;
    let (window, stride) = (c.attr::<i64>("window_size")?, c.attr::<i64>("stride")?);
    for (what, least, found) in [("window_size", 2, window), ("stride", 1, stride)] {
        if found < least {
            return Err(GeometryError::TooSmall { what, least, found }.into());
        }
    }
    let length = (window as u64).checked_next_power_of_two().filter(|&length| length < 1 << 40);
    let length = length.ok_or(GeometryError::TooLarge { dims: vec![window] })? as i64;
    let frames = c.value(c.dim(input, 0));
    let frames = frames.map(|size| if size < window { 0 } else { 1 + (size - window) / stride });
    let bins = c.make_dim(Some(length / 2 + 1));
    c.set_output(0, c.make_shape(&[c.dim(input, 1), c.make_dim(frames), bins]))
}

fn mfcc(c: &ShapeContext<'_>) -> ShapeResult {
    let spectra = input_of_rank(c, 0, "spectrogram", 3)?;
    input_of_rank(c, 1, "sample_rate", 0)?;
    let count = c.make_dim(Some(c.attr::<i64>("dct_coefficient_count")?));
    c.set_output(0, c.make_shape(&[c.dim(spectra, 0), c.dim(spectra, 1), count]))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::attr::AttrValue;

    #[test]
    fn windows_begin_a_stride_apart() {
        let attrs = [("window_size", AttrValue::Int(10)), ("stride", AttrValue::Int(3))];
        let cases: [(&[&str], &str); 3] =
            [(&["[20,c]"], "[c,4,9]"), (&["[9,2]"], "[2,0,9]"), (&["[n,2]"], "[2,?,9]")];
        check("AudioSpectrogram", &attrs, &cases);
        check("Mfcc", &[], &[(&["[c,n,65]", "[]"], "[c,n,13]")]);
        let attrs = [("desired_channels", AttrValue::Int(2))];
        check("DecodeWav", &attrs, &[(&["[]"], "[?,2]; []")]);
    }
}
