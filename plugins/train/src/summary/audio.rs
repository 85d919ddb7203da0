//! `AudioSummary`, `AudioSummaryV2`: clips as WAV files with samples of 16 bits.

use super::message::{Message, give, scalar, text};
use tenon_sdk::{growth, prelude::*};

/// Clips of a batch: each has frames of a sample for each channel.
struct Clips<'a> {
    samples: &'a [f32],
    count: usize,
    frames: usize,
    channels: usize,
}

impl<'a> Clips<'a> {
    fn new(tensor: View<'a, f32>) -> Result<Clips<'a>, KernelError> {
        let (count, frames, channels) = match *tensor.dims {
            [count, frames] => (count, frames, 1),
            [count, frames, channels] => (count, frames, channels),
            _ => {
                return Err(KernelError::invalid_argument(format!(
                    "Tensor must be 3-D or 2-D, found shape {:?}",
                    tensor.dims
                )));
            }
        };
        let (count, frames, channels) = (count as usize, frames as usize, channels as usize);
        Ok(Clips { samples: tensor.data, count, frames, channels })
    }

    /// A clip as a file: tensorflow/core/lib/wav/wav_io.cc.
    fn file(&self, clip: usize, rate: f32) -> Result<Vec<u8>, KernelError> {
        let refused = |what: &str, found: usize| {
            KernelError::invalid_argument(format!("a clip has {what}, found {found}"))
        };
        // A frame has two bytes for each channel, and the file says its size in 16 bits.
        let channels =
            u16::try_from(self.channels).ok().filter(|channels| (1..=32767).contains(channels));
        let channels =
            channels.ok_or_else(|| refused("from 1 to 32767 channels", self.channels))?;
        let len = self.frames.checked_mul(self.channels);
        let bytes = len.and_then(|len| u32::try_from(len * 2).ok()).filter(|&bytes| bytes > 0);
        let bytes = bytes
            .and_then(|bytes| Some((bytes, bytes.checked_add(36)?)))
            .ok_or_else(|| refused("samples of at most 4 GiB, and at least one", self.frames))?;
        let (rate, frame) = ((rate.round_ties_even() as u32).max(1), 2 * channels);
        let mut file = Vec::new();
        growth::reserve(&mut file, bytes.1 as usize + 8)?;
        file.extend(b"RIFF");
        file.extend(bytes.1.to_le_bytes());
        file.extend(b"WAVEfmt ");
        file.extend(16u32.to_le_bytes());
        file.extend(1u16.to_le_bytes());
        file.extend(channels.to_le_bytes());
        file.extend(rate.to_le_bytes());
        file.extend(rate.saturating_mul(u32::from(frame)).to_le_bytes());
        file.extend(frame.to_le_bytes());
        file.extend(16u16.to_le_bytes());
        file.extend(b"data");
        file.extend(bytes.0.to_le_bytes());
        let len = bytes.0 as usize / 2;
        for sample in &self.samples[clip * len..(clip + 1) * len] {
            let level = (sample * 32768.0).round().clamp(-32768.0, 32767.0);
            file.extend((level as i16).to_le_bytes());
        }
        Ok(file)
    }
}

/// A summary with at most `most` clips of a batch.
///
/// # Errors
/// `INVALID_ARGUMENT` for a rate that is not positive, and for clips that a file cannot have; `RESOURCE_EXHAUSTED` without
/// memory.
pub fn clips(
    tag: &[u8],
    tensor: View<'_, f32>,
    rate: f32,
    most: i64,
) -> Result<Message, KernelError> {
    if !(rate > 0.0 && rate <= u32::MAX as f32) {
        return Err(KernelError::invalid_argument(format!(
            "sample_rate must be > 0: expected at most 4294967295, found {rate}"
        )));
    }
    let (tag, clips) = (String::from_utf8_lossy(tag), Clips::new(tensor)?);
    let mut summary = Message::default();
    for clip in 0..clips.count.min(usize::try_from(most).unwrap_or(usize::MAX)) {
        let mut audio = Message::default();
        audio.float(1, rate)?;
        audio.number(2, clips.channels as u64)?;
        audio.number(3, clips.frames as u64)?;
        audio.bytes(4, &clips.file(clip, rate)?)?;
        audio.text(5, b"audio/wav")?;
        let mut entry = Message::default();
        let name = if most > 1 { format!("{tag}/audio/{clip}") } else { format!("{tag}/audio") };
        entry.text(1, name.as_bytes())?;
        entry.message(6, &audio)?;
        summary.message(1, &entry)?;
    }
    Ok(summary)
}

struct Fixed {
    rate: f32,
    most: i64,
}

impl Kernel for Fixed {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Fixed { rate: c.attr("sample_rate")?, most: c.attr("max_outputs")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        give(c, &clips(text(c, 0, "Tag")?, c.input(1)?, self.rate, self.most)?)
    }
}

struct Given {
    most: i64,
}

impl Kernel for Given {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Given { most: c.attr("max_outputs")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let rate = scalar(c, 2, "sample_rate")?;
        give(c, &clips(text(c, 0, "Tag")?, c.input(1)?, rate, self.most)?)
    }
}

register_kernel!("AudioSummary" on "CPU": Fixed, numerics = Numerics::EXACT);
register_kernel!("AudioSummaryV2" on "CPU": Given, numerics = Numerics::EXACT);
