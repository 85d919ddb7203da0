//! `Pad`, with zeros; `PadV2`, with a value on the device; `MirrorPad`.

use super::{
    SLICED,
    words::{
        BySize, ByWord, Divisor, Index, MAX_DIMS, SIZES, check_rank, element_bytes, is_short,
        word_bytes,
    },
};
use crate::{
    Cuda,
    compile::{Source, Variant},
    launch::{Grid, Launch, Operand, device_for},
    source,
};
use tenon_sdk::{
    KernelError,
    geometry::{mirror_offset, mirror_pad_dims, pad_dims, row_major_strides},
    prelude::*,
    reg::Numerics,
};

static SOURCE: Source = source!("pad.cu");

pub(super) fn variants() -> Vec<Variant> {
    vec![padding::<u32>(), padding::<u64>(), mirroring::<u32>(), mirroring::<u64>()]
}

fn padding<I: Index>() -> Variant {
    Variant::new(&SOURCE).define("Index", I::NAME)
}

fn mirroring<I: Index>() -> Variant {
    padding::<I>().define("MIRRORS", 1)
}

/// `Frame` in the source.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Frame<I> {
    rank: u32,
    offset: u32,
    extents: [Divisor<I>; MAX_DIMS],
    before: [I; MAX_DIMS],
    sizes: [I; MAX_DIMS],
    strides: [i64; MAX_DIMS],
}

/// A dimension of a padded tensor, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level {
    before: i64,
    size: i64,
    behind: i64,
    stride: i64,
}

impl Level {
    fn is_padded(&self) -> bool {
        (self.before, self.behind) != (0, 0)
    }

    fn extent(&self) -> i64 {
        self.before + self.size + self.behind
    }
}

/// The dimensions, outermost first. A dimension without padding is merged into the dimension around
/// it: the elements of a padded box become larger; a mirrored dimension is merged only if the outer
/// one has no padding either.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Levels(Vec<Level>);

impl Levels {
    fn new(input: &[i64], paddings: &[i64], mirrors: bool) -> Result<Levels, KernelError> {
        let strides = row_major_strides(input)?;
        let mut levels: Vec<Level> = Vec::with_capacity(input.len());
        for ((&size, pair), &stride) in input.iter().zip(paddings.chunks_exact(2)).zip(&*strides) {
            let level = Level { before: pair[0], size, behind: pair[1], stride };
            match levels.last_mut() {
                Some(outer) if !level.is_padded() && (!mirrors || !outer.is_padded()) => {
                    *outer = Level {
                        before: outer.before * size,
                        size: outer.size * size,
                        behind: outer.behind * size,
                        stride,
                    };
                }
                _ => levels.push(level),
            }
        }
        Ok(Levels(levels))
    }

    /// Bytes of the words in which the tensor can be moved.
    fn word_bytes(&self, size: u64, mirrors: bool, y: &Operand, x: &Operand) -> u64 {
        let Some((inner, outer)) = self.0.split_last() else { return size };
        if mirrors && inner.is_padded() {
            return size;
        }
        let counts = [inner.before, inner.size, inner.behind];
        let strides = outer.iter().map(|level| level.stride);
        word_bytes(size, strides.chain(counts), &[x, y])
    }

    /// The frame for words of `elements` elements.
    fn frame<I: Index>(&self, elements: i64, offset: i64) -> Result<Frame<I>, KernelError> {
        let mut frame = Frame {
            rank: check_rank(self.0.len())?,
            offset: offset as u32,
            extents: [I::divisor(1); MAX_DIMS],
            before: [I::default(); MAX_DIMS],
            sizes: [I::default(); MAX_DIMS],
            strides: [1; MAX_DIMS],
        };
        for (d, level) in self.0.iter().rev().enumerate() {
            // The innermost dimension counts words, which are contiguous; the others count steps of
            // whole words.
            let (unit, step) = if d == 0 { (elements, 1) } else { (1, elements) };
            frame.extents[d] = I::divisor((level.extent() / unit) as u64);
            frame.before[d] = I::of((level.before / unit) as u64);
            frame.sizes[d] = I::of((level.size / unit) as u64);
            frame.strides[d] = level.stride / step;
        }
        Ok(frame)
    }
}

type Padding<I> = ByWord<(u64, u64, u64, u32, I, Frame<I>), { SIZES.len() }>;
type Mirroring<I> = ByWord<(u64, u64, I, Frame<I>), { SIZES.len() }>;

fn paddings_of<I: Index>(device: &Cuda) -> Result<Padding<I>, KernelError> {
    let module = device.modules().get(&padding::<I>())?;
    // SAFETY: the entry takes three addresses, the size of an element, a count and a frame.
    unsafe { ByWord::new(&module, "pad") }
}

fn mirrors_of<I: Index>(device: &Cuda) -> Result<Mirroring<I>, KernelError> {
    let module = device.modules().get(&mirroring::<I>())?;
    // SAFETY: the entry takes two addresses, a count and a frame.
    unsafe { ByWord::new(&module, "mirror") }
}

/// Paddings of a call: a pair for each dimension.
fn pairs(c: &ComputeContext<'_>) -> Result<Vec<i64>, KernelError> {
    let rank = c.dims(0).len();
    if c.dims(1) != [rank as i64, 2] {
        return Err(KernelError::invalid_argument(format!(
            "paddings must have shape [{rank}, 2] for an input of {rank} dimensions, found {:?}",
            c.dims(1)
        )));
    }
    c.integers(1)
}

/// `Pad` and `PadV2`.
struct Pad(BySize<Padding<u32>, Padding<u64>>);

impl Kernel for Pad {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Pad(BySize::new(paddings_of(device_for(c)?)?)))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let has_value = c.input_count() > 2;
        if has_value && !c.dims(2).is_empty() {
            return Err(KernelError::invalid_argument(format!(
                "constant_values must be a scalar, found shape {:?}",
                c.dims(2)
            )));
        }
        let pairs = pairs(c)?;
        let output = pad_dims(c.dims(0), &pairs)?;
        if pairs.iter().all(|&pad| pad == 0) {
            return c.share(0, 0, &output);
        }
        let launch = Launch::new(c)?;
        let value = if has_value { launch.input(2)?.address } else { 0 };
        let (x, y) = (launch.input(0)?, launch.output(0, &output)?);
        if y.elements == 0 {
            return Ok(());
        }
        let (levels, size) = (Levels::new(c.dims(0), &pairs, false)?, element_bytes(&x)?);
        let bytes = levels.word_bytes(size, false, &y, &x);
        let (words, lanes) = (y.elements * size / bytes, (bytes / size) as i64);
        let grid = Grid::stride(words, launch.facts());
        let (to, from, size) = (y.address, x.address, size as u32);
        // SAFETY: the levels are those of x and of y; a value has the size of an element.
        unsafe {
            if is_short(words) {
                let frame = levels.frame(lanes, 0)?;
                let call = (to, from, value, size, words as u32, frame);
                launch.run(self.0.short().of(bytes), grid, call)
            } else {
                let frame = levels.frame(lanes, 0)?;
                let long = self.0.long(|| paddings_of(launch.device()))?;
                launch.run(long.of(bytes), grid, (to, from, value, size, words, frame))
            }
        }
    }
}

struct MirrorPad {
    offset: i64,
    entries: BySize<Mirroring<u32>, Mirroring<u64>>,
}

impl Kernel for MirrorPad {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let offset = mirror_offset(c.attr("mode")?)?;
        Ok(MirrorPad { offset, entries: BySize::new(mirrors_of(device_for(c)?)?) })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let pairs = pairs(c)?;
        let output = mirror_pad_dims(c.dims(0), &pairs, self.offset)?;
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, &output)?);
        if y.elements == 0 {
            return Ok(());
        }
        let (levels, size) = (Levels::new(c.dims(0), &pairs, true)?, element_bytes(&x)?);
        let bytes = levels.word_bytes(size, true, &y, &x);
        let (words, lanes) = (y.elements * size / bytes, (bytes / size) as i64);
        let grid = Grid::stride(words, launch.facts());
        // SAFETY: the levels are those of x and of y; no dimension is mirrored beyond its size.
        unsafe {
            if is_short(words) {
                let frame = levels.frame(lanes, self.offset)?;
                let call = (y.address, x.address, words as u32, frame);
                launch.run(self.entries.short().of(bytes), grid, call)
            } else {
                let frame = levels.frame(lanes, self.offset)?;
                let long = self.entries.long(|| mirrors_of(launch.device()))?;
                launch.run(long.of(bytes), grid, (y.address, x.address, words, frame))
            }
        }
    }
}

register_kernel!("Pad" on "CUDA": Pad, types = ("T", SLICED), host_memory = &["paddings"],
    numerics = Numerics::EXACT);
register_kernel!("PadV2" on "CUDA": Pad, types = ("T", SLICED), host_memory = &["paddings"],
    numerics = Numerics::EXACT);
register_kernel!("MirrorPad" on "CUDA": MirrorPad, types = ("T", SLICED),
    host_memory = &["paddings"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(input: &[i64], paddings: &[i64], mirrors: bool) -> Vec<[i64; 4]> {
        let levels = Levels::new(input, paddings, mirrors).unwrap();
        levels.0.iter().map(|it| [it.before, it.size, it.behind, it.stride]).collect()
    }

    #[test]
    fn dimensions_that_are_not_padded_are_one_with_those_around_them() {
        let (input, paddings) = ([2, 3, 4, 5], [0, 0, 1, 2, 0, 0, 0, 0]);
        assert_eq!(levels(&input, &paddings, false), [[0, 2, 0, 60], [20, 60, 40, 1]]);
        let mirrored = [[0, 2, 0, 60], [1, 3, 2, 20], [0, 20, 0, 1]];
        assert_eq!(levels(&input, &paddings, true), mirrored);
        assert_eq!(levels(&[2, 3], &[0; 4], true), [[0, 6, 0, 1]]);
    }

    #[test]
    fn the_host_lays_frames_out_as_the_device_does() {
        assert_eq!(size_of::<Frame<u32>>(), 8 + 96 + 64 + 64);
        assert_eq!(size_of::<Frame<u64>>(), 8 + 192 + 128 + 64);
    }
}
