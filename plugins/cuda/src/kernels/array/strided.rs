//! An output that is a strided box of an input, element by element: slices, reversals, repetitions,
//! transpositions.

use super::words::{
    BySize, ByWord, Index, SIZES, Strided, Walk, behind, element_bytes, is_short, word_bytes,
};
use crate::{
    compile::{Source, Variant},
    launch::{Grid, Launch, Operand, device_for},
    source,
};
use tenon_sdk::{KernelError, author::CreateContext};

static SOURCE: Source = source!("strided.cu");

pub(super) fn variants() -> Vec<Variant> {
    vec![variant::<u32>(), variant::<u64>()]
}

fn variant<I: Index>() -> Variant {
    Variant::new(&SOURCE).define("Index", I::NAME)
}

/// Bytes that `packs` writes at a time.
const PACK: u64 = 16;

/// Parameters of an entry: addresses, number of words, box, step.
type Call<I> = (u64, u64, I, Strided<I, 1>, i64);

struct Entries<I> {
    words: ByWord<Call<I>, { SIZES.len() }>,
    packs: ByWord<Call<I>, { SIZES.len() - 1 }>,
}

impl<I: Index> Entries<I> {
    fn new(device: &crate::Cuda) -> Result<Self, KernelError> {
        let module = device.modules().get(&variant::<I>())?;
        // SAFETY: both entries take addresses, a count, a box and a step.
        Ok(unsafe {
            Entries { words: ByWord::new(&module, "words")?, packs: ByWord::new(&module, "packs")? }
        })
    }
}

/// The kernels that read boxes.
pub(super) struct Reader(BySize<Entries<u32>, Entries<u64>>);

/// The elements to read, from element `base` of the input.
#[derive(Debug, Clone)]
pub(super) struct Box {
    /// Extents of the output, with the strides of the input.
    pub(super) walk: Walk<1>,
    /// Index of the first element that is read.
    pub(super) base: i64,
}

impl Box {
    /// A box with these extents and strides, outermost first.
    pub(super) fn new(extents: &[i64], strides: &[i64], base: i64) -> Box {
        let dims = extents.iter().zip(strides).map(|(&extent, &stride)| (extent, [stride]));
        Box { walk: Walk::new(dims), base }
    }

    /// Bytes of the words in which the box can be moved.
    fn word_bytes(&self, size: u64, y: &Operand, x: &Operand) -> u64 {
        let (extent, [step]) = self.walk.inner();
        if step != 1 {
            return size;
        }
        let dims = self.walk.dims();
        let outer = dims[..dims.len().saturating_sub(1)].iter().map(|(_, [step])| *step);
        word_bytes(size, outer.chain([extent, self.base]), &[x, y])
    }
}

impl Reader {
    pub(super) fn new(c: &CreateContext<'_>) -> Result<Reader, KernelError> {
        Ok(Reader(BySize::new(Entries::new(device_for(c)?)?)))
    }

    /// Writes all of `y`, which has as many elements as the box. Both operands have elements of the
    /// same size.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for more dimensions than kernels take; as [`Launch::run`].
    ///
    /// # Safety
    /// - The box is within `x`.
    pub(super) unsafe fn read(
        &self,
        launch: &Launch<'_>,
        (y, x): (&Operand, &Operand),
        wanted: &Box,
    ) -> Result<(), KernelError> {
        if y.elements == 0 {
            return Ok(());
        }
        let size = element_bytes(y)?;
        let part = (PACK / size) as i64;
        let rest = y.elements as i64 % part;
        if let [(extent, [1])] = wanted.walk.dims()
            && rest != 0
            && *extent > part
        {
            // One run: all of it but the end is moved in wide words.
            let bulk = extent - rest;
            let run = |from: i64, len: i64| Box::new(&[len], &[1], wanted.base + from);
            // SAFETY: both calls read parts of the box and write parts of y.
            return unsafe {
                self.words(launch, (y, x), &run(0, bulk), size)?;
                self.words(launch, (&behind(y, bulk as u64, size), x), &run(bulk, rest), size)
            };
        }
        // SAFETY: the caller guarantees that the box stays within `x`, and that `y` has as many
        // elements.
        unsafe { self.words(launch, (y, x), wanted, size) }
    }

    /// # Safety
    /// - The caller upholds what [`Reader::read`] requires.
    unsafe fn words(
        &self,
        launch: &Launch<'_>,
        operands: (&Operand, &Operand),
        wanted: &Box,
        size: u64,
    ) -> Result<(), KernelError> {
        let (y, x) = operands;
        let bytes = wanted.word_bytes(size, y, x);
        let walk = wanted.walk.in_words((bytes / size) as i64);
        let addresses = (y.address, x.address.wrapping_add_signed(wanted.base * size as i64));
        if is_short(y.elements.max(x.elements) * size / bytes) {
            // SAFETY: the caller guarantees that the box stays within `x`, and that `y` has as many
            // elements; the words are of this box.
            unsafe { run(launch, self.0.short(), addresses, &walk, bytes) }
        } else {
            let long = self.0.long(|| Entries::new(launch.device()))?;
            // SAFETY: as above.
            unsafe { run(launch, long, addresses, &walk, bytes) }
        }
    }
}

/// # Safety
/// - The addresses are those of an output, and of an input that contains the box of words.
unsafe fn run<I: Index>(
    launch: &Launch<'_>,
    entries: &Entries<I>,
    (y, x): (u64, u64),
    walk: &Walk<1>,
    bytes: u64,
) -> Result<(), KernelError> {
    let words: u64 = walk.dims().iter().map(|(extent, _)| *extent as u64).product();
    let (lanes, (extent, [step])) = (PACK / bytes, walk.inner());
    let packs = lanes > 1 && (extent as u64).is_multiple_of(lanes) && y.is_multiple_of(PACK);
    let (entry, count, strided) = if packs {
        (entries.packs.of(bytes), words / lanes, walk.in_packs(lanes as i64).strided::<I>()?)
    } else {
        (entries.words.of(bytes), words, walk.strided::<I>()?)
    };
    let grid = Grid::stride(count, launch.facts());
    // SAFETY: the caller guarantees that these are an output and an input that holds the box;
    // counts and box are of the same words.
    unsafe { launch.run(entry, grid, (y, x, I::of(count), strided, step)) }
}
