//! `DecodeWav` and `EncodeWav`: RIFF WAVE files of 16-bit linear samples.
//!
//! Source: IBM and Microsoft, "Multimedia programming interface and data specifications 1.0" (1991).

use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{GeometryError, element_count},
    growth,
    reg::Numerics,
    register_kernel,
};

/// Levels above zero that a sample has.
const LEVELS: f32 = 32768.0;
/// Bytes before the samples of a file that `EncodeWav` makes.
const HEADER: usize = 44;
/// Bytes of a sample.
const BYTES: usize = 2;

fn refused(
    what: &str,
    expected: impl std::fmt::Display,
    found: impl std::fmt::Display,
) -> KernelError {
    KernelError::invalid_argument(format!(
        "contents: expected a WAV file with {what} {expected}, found {found}"
    ))
}

/// The bytes of a file that are not read yet.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize, what: &str) -> Result<&'a [u8], KernelError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(|| {
            refused(what, format_args!("of {count} bytes"), format_args!("{}", self.0.len()))
        })?;
        self.0 = rest;
        Ok(taken)
    }

    fn word(&mut self, what: &str) -> Result<u16, KernelError> {
        self.take(2, what).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn long(&mut self, what: &str) -> Result<u32, KernelError> {
        let bytes = self.take(4, what)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn tag(&mut self, expected: &str) -> Result<(), KernelError> {
        match self.take(4, "a tag")? {
            found if found == expected.as_bytes() => Ok(()),
            found => Err(refused("the tag", expected, String::from_utf8_lossy(found))),
        }
    }
}

/// A file of samples.
#[derive(Debug, PartialEq)]
struct Wav<'a> {
    channels: usize,
    rate: i32,
    /// Whole samples of all channels.
    data: &'a [u8],
}

impl<'a> Wav<'a> {
    /// Reads a file.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for other files than those of 16-bit linear samples, and damaged ones.
    fn read(contents: &'a [u8]) -> Result<Wav<'a>, KernelError> {
        let mut bytes = Bytes(contents);
        bytes.tag("RIFF")?;
        bytes.long("its size")?;
        bytes.tag("WAVE")?;
        bytes.tag("fmt ")?;
        let format_size = bytes.long("the size of its format")?;
        if ![16, 18].contains(&format_size) {
            return Err(refused("a format of", "16 or 18 bytes", format_size));
        }
        let format = bytes.word("its coding")?;
        if format != 1 {
            return Err(refused("coding", "1, which is linear", format));
        }
        let channels = bytes.word("channels")?;
        if channels == 0 {
            return Err(refused("at least", "1 channel", 0));
        }
        let rate = bytes.long("its rate")?;
        let per_second = bytes.long("its bytes per second")?;
        let per_sample = bytes.word("its bytes per sample")?;
        let bits = bytes.word("its bits per sample")?;
        let expected = (u32::from(bits) * u32::from(channels)).div_ceil(8);
        if u32::from(per_sample) != expected {
            return Err(refused("bytes per sample", expected, per_sample));
        }
        let expected = expected.wrapping_mul(rate);
        if per_second != expected {
            return Err(refused("bytes per second", expected, per_second));
        }
        if bits != 16 {
            return Err(refused("bits per sample", 16, bits));
        }
        bytes.take(format_size as usize - 16, "the rest of its format")?;
        let rate = i32::try_from(rate).map_err(|_| refused("a rate below", i32::MAX, rate))?;
        let data = Wav::data(bytes, usize::from(per_sample))?;
        Ok(Wav { channels: channels.into(), rate, data })
    }

    /// The samples, which are the one chunk of that name.
    fn data(mut bytes: Bytes<'a>, each: usize) -> Result<&'a [u8], KernelError> {
        let mut found = None;
        while !bytes.0.is_empty() {
            let tag = bytes.take(4, "the name of a chunk")?;
            let size = bytes.long("the size of a chunk")? as usize;
            if tag != b"data" {
                // What is after the samples need not be whole.
                bytes.0 = &bytes.0[size.min(bytes.0.len())..];
                continue;
            }
            let data = bytes.take(size / each * each, "samples")?;
            if found.replace(data).is_some() {
                return Err(refused("data in", "one chunk", "two"));
            }
        }
        found.ok_or_else(|| refused("a chunk of", "data", "none"))
    }

    fn samples(&self) -> usize {
        self.data.len() / BYTES / self.channels
    }

    /// A sample, between -1 and 1.
    fn sample(&self, number: usize, channel: usize) -> f32 {
        let at = (number * self.channels + channel) * BYTES;
        f32::from(i16::from_le_bytes([self.data[at], self.data[at + 1]])) / LEVELS
    }
}

/// Decodes a file: so many samples of so many channels as asked for, and all there are for -1.
struct Decode {
    channels: i64,
    samples: i64,
}

/// A size that an attribute asks for; -1 is that of the file.
fn wanted(what: &'static str, asked: i64, own: usize) -> Result<i64, KernelError> {
    match asked {
        -1 => Ok(own as i64),
        found if found < 0 => Err(GeometryError::TooSmall { what, least: -1, found }.into()),
        asked => Ok(asked),
    }
}

impl Kernel for Decode {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Decode { channels: c.attr("desired_channels")?, samples: c.attr("desired_samples")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (&[contents], []) = (&c.strings(0)?[..], c.dims(0)) else {
            let (what, expected, found) = ("contents", 0, c.dims(0).len());
            return Err(GeometryError::Rank { what, expected, found }.into());
        };
        let wav = Wav::read(contents)?;
        let channels = wanted("desired_channels", self.channels, wav.channels)?;
        let samples = wanted("desired_samples", self.samples, wav.samples())?;
        element_count(&[samples, channels])?;
        let audio = c.output::<f32>(0, &[samples, channels])?.data;
        for (number, row) in audio.chunks_exact_mut((channels as usize).max(1)).enumerate() {
            for (channel, y) in row.iter_mut().enumerate() {
                // The last channel stands for those that the file has not.
                let source = channel.min(wav.channels - 1);
                *y = if number < wav.samples() { wav.sample(number, source) } else { 0.0 };
            }
        }
        c.output::<i32>(1, &[])?.data[0] = wav.rate;
        Ok(())
    }
}

/// The level of a sample, rounded, and cut off beyond -1 and 1.
fn level(sample: f32) -> i16 {
    (sample * LEVELS).round().clamp(-LEVELS, LEVELS - 1.0) as i16
}

fn encode(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let audio = c.input::<f32>(0)?;
    let &[samples, channels] = audio.dims else {
        let (what, expected, found) = ("audio", 2, audio.dims.len());
        return Err(GeometryError::Rank { what, expected, found }.into());
    };
    let rate = c.integer(1, "sample_rate")?;
    let too_many = || GeometryError::TooLarge { dims: vec![samples, channels] };
    for (what, found) in [("sample_rate", rate), ("the number of channels", channels)] {
        if found < 1 {
            return Err(GeometryError::TooSmall { what, least: 1, found }.into());
        }
    }
    let each = u16::try_from(channels * BYTES as i64).map_err(|_| too_many())?;
    let size = audio.data.len().checked_mul(BYTES).and_then(|size| u32::try_from(size).ok());
    let size = size.filter(|size| *size <= u32::MAX - HEADER as u32).ok_or_else(too_many)?;
    let mut file: Vec<u8> = growth::with_room(HEADER + size as usize)?;
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&(size + HEADER as u32 - 8).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt ");
    file.extend_from_slice(&16u32.to_le_bytes());
    file.extend_from_slice(&1u16.to_le_bytes());
    file.extend_from_slice(&(channels as u16).to_le_bytes());
    file.extend_from_slice(&(rate as u32).to_le_bytes());
    file.extend_from_slice(&(rate as u32).wrapping_mul(each.into()).to_le_bytes());
    file.extend_from_slice(&each.to_le_bytes());
    file.extend_from_slice(&(8 * BYTES as u16).to_le_bytes());
    file.extend_from_slice(b"data");
    file.extend_from_slice(&size.to_le_bytes());
    audio.data.iter().for_each(|&sample| file.extend_from_slice(&level(sample).to_le_bytes()));
    c.set_strings(0, &[], std::iter::once(file))
}

register_kernel!("DecodeWav" on "CPU": Decode, numerics = Numerics::EXACT);
register_kernel!("EncodeWav" on "CPU": fn encode, host_memory = &["sample_rate"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_rounded_and_cut_off() {
        let cases =
            [(0.0, 0), (1.0, 32767), (-1.0, -32768), (9.0, 32767), (0.5, 16384), (1.5 / LEVELS, 2)];
        for (sample, expected) in cases {
            assert_eq!(level(sample), expected, "{sample}");
        }
        assert_eq!(level(f32::NAN), 0);
    }

    #[test]
    fn no_bytes_of_a_file_panic() {
        let mut file = b"RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\x04\0\0\0\x01\0\xff\x7f".to_vec();
        let whole = Wav::read(&file).unwrap();
        assert_eq!((whole.channels, whole.rate, whole.samples()), (1, 8000, 2));
        assert_eq!(whole.sample(1, 0), 32767.0 / LEVELS);
        for end in 0..file.len() {
            assert!(Wav::read(&file[..end]).is_err(), "{end}");
        }
        for at in 0..file.len() {
            for bit in 0..8 {
                file[at] ^= 1 << bit;
                let _ = Wav::read(&file);
                file[at] ^= 1 << bit;
            }
        }
    }
}
