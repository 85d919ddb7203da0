//! Datasets of the elements of another in random order.
//!
//! A buffer has elements of up to a few walks over the input, each in a *slice* of consecutive numbers.
//! An element is chosen from the first slice by the next word of a generator, and the slice's first
//! element takes its place. The order is TensorFlow's for the same seeds.

use super::{
    Cardinality, Context, Dataset, Element, Elements, Input, Next, Shared,
    make::{Build, Make, dataset_in, number, truth, unexpected},
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};
use tenon_philox::{Philox, Words};
use tenon_sdk::{growth, prelude::*};

/// How many walks over the input have elements in the buffer, as in TensorFlow.
const WALKS: usize = 3;
/// A size of the buffer that means all elements of the input.
const ALL: i64 = -2;

/// Gives the seeds of one walk after the other.
pub enum Seeds {
    /// The same ones.
    Same([u64; 2]),
    /// Two words each.
    Next(Mutex<Words>),
}

/// The words of a generator that has these seeds and nothing else.
fn words([seed, seed2]: [u64; 2]) -> Words {
    Words::new(Philox::keyed(seed, [0, seed2]))
}

impl Seeds {
    /// Those of two seeds, which are random where both are 0.
    fn new(seed: i64, seed2: i64, differ: bool) -> Seeds {
        let generator = Philox::seeded(seed, seed2);
        if differ {
            return Seeds::Next(Mutex::new(Words::new(generator)));
        }
        let (key, [_, high]) = generator.parts();
        Seeds::Same([key, high])
    }

    fn next(&self) -> [u64; 2] {
        match self {
            Seeds::Same(seeds) => *seeds,
            Seeds::Next(words) => {
                let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
                [words.next_word().into(), words.next_word().into()]
            }
        }
    }
}

/// Seeds that datasets share.
struct SharedSeeds(Arc<Seeds>);

impl ResourceValue for SharedSeeds {
    const NAME: &'static str = "tenon_data.Seeds";
}

/// What a dummy handle leads to.
struct NoSeeds;

impl ResourceValue for NoSeeds {
    const NAME: &'static str = "tenon_data.NoSeeds";
}

/// Deletes nothing: what it is for goes with its last handle.
#[derive(Clone)]
pub struct Deleter;

impl VariantValue for Deleter {
    const NAME: &'static str = "tenon_data.Deleter";
}

/// Elements in random order.
#[derive(Clone)]
struct Shuffle {
    input: Shared,
    /// Number of elements in the buffer; `None` for all.
    room: Option<usize>,
    seeds: Arc<Seeds>,
    /// Number of walks over the input; `None` for no limit.
    count: Option<u64>,
}

struct MakeShuffle {
    /// The inputs, by their names.
    seed: Option<usize>,
    count: Option<usize>,
    generator: Option<usize>,
    differ: bool,
}

impl Build for MakeShuffle {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let named = |name| c.input_named(name).ok().map(|range| range.start);
        let has_attr = c.attrs().has("reshuffle_each_iteration");
        let differ = !has_attr || c.attr("reshuffle_each_iteration")?;
        let (seed, count, generator) = (named("seed"), named("count"), named("seed_generator"));
        Ok(MakeShuffle { seed, count, generator, differ })
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        let size = number(c, 1, "buffer_size")?;
        let room = match (size, usize::try_from(size)) {
            (ALL, _) => None,
            (_, Ok(room)) if room > 0 => Some(room),
            _ => return Err(unexpected("buffer_size", "at least 1, or -2 for all elements", size)),
        };
        let mut count = Some(1);
        if let Some(at) = self.count {
            let found = number(c, at, "count")?;
            if found == 0 || found < -1 {
                return Err(unexpected("count", "at least 1, or -1 for no limit", found));
            }
            count = u64::try_from(found).ok();
        }
        let input = Arc::clone(&dataset_in(c, 0)?.dataset);
        Ok(Arc::new(Shuffle { input, room, seeds: self.seeds(c)?, count }))
    }
}

impl MakeShuffle {
    fn seeds(&self, c: &ComputeContext<'_>) -> Result<Arc<Seeds>, KernelError> {
        let shared = self.generator.map(|at| c.state().input_resource::<SharedSeeds>(at));
        match (shared, self.seed) {
            (Some(Ok(shared)), _) => Ok(Arc::clone(&shared.0)),
            (_, Some(at)) => {
                let (seed, seed2) = (number(c, at, "seed")?, number(c, at + 1, "seed2")?);
                Ok(Arc::new(Seeds::new(seed, seed2, self.differ)))
            }
            (Some(Err(error)), None) => Err(error),
            (None, None) => Err(KernelError::internal("a shuffle has no seeds")),
        }
    }
}

impl Dataset for Shuffle {
    fn elements(&self) -> Box<dyn Elements> {
        let words = words(self.seeds.next());
        let (buffer, slices) = (Vec::new(), VecDeque::new());
        let how = self.clone();
        Box::new(Shuffled {
            how,
            words,
            buffer,
            slices,
            current: None,
            walks: 0,
            held: 0,
            is_any: false,
        })
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().repeated(self.count)
    }

    fn batch_size(&self) -> Option<usize> {
        self.input.batch_size()
    }
}

/// The numbers of the elements of one walk that are in the buffer.
struct Slice {
    start: usize,
    end: usize,
}

struct Shuffled {
    how: Shuffle,
    words: Words,
    /// Element `n` is at place `n`, modulo the buffer's size.
    buffer: Vec<Option<Element>>,
    slices: VecDeque<Slice>,
    current: Option<Input>,
    /// Number of walks that began.
    walks: u64,
    /// Number of elements in the buffer.
    held: usize,
    /// Whether any walk has given an element.
    is_any: bool,
}

impl Elements for Shuffled {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            self.fill(context).await?;
            if self.held == 0 {
                return Ok(None);
            }
            while self.slices.front().is_some_and(|slice| slice.start == slice.end) {
                self.slices.pop_front();
                self.words = words(self.how.seeds.next());
                self.shrink();
            }
            let word = self.words.next_word() as usize;
            let Some(slice) = self.slices.front_mut() else {
                return Err(KernelError::internal("a buffer of elements without a slice"));
            };
            let size = self.buffer.len();
            let chosen = (slice.start + word % (slice.end - slice.start)) % size;
            let first = slice.start % size;
            slice.start += 1;
            self.buffer.swap(chosen, first);
            self.held -= 1;
            Ok(self.buffer[first].take())
        })
    }
}

impl Shuffled {
    /// Drops the places before the first slice, in a buffer that has room for any number.
    fn shrink(&mut self) {
        let (None, Some(first)) = (self.how.room, self.slices.front()) else { return };
        let taken = first.start;
        self.buffer.drain(..taken.min(self.buffer.len()));
        for slice in &mut self.slices {
            slice.start -= taken;
            slice.end -= taken;
        }
    }

    fn has_room(&self) -> bool {
        let is_last = self.how.count.is_some_and(|count| self.walks >= count);
        if self.current.is_none() && is_last || self.slices.len() > WALKS && self.held > 0 {
            return false;
        }
        self.how.room.is_none_or(|room| self.held < room)
    }

    async fn fill(&mut self, context: &Context) -> Result<(), KernelError> {
        while self.has_room() {
            context.check()?;
            if self.current.is_none() {
                let start = self.slices.back().map_or(0, |slice| slice.end);
                self.slices.push_back(Slice { start, end: start });
                self.current = Some(Input::of(&self.how.input));
                self.walks += 1;
            }
            let Some(current) = &mut self.current else { continue };
            if let Some(element) = current.next(context).await? {
                self.add(element)?;
                continue;
            }
            self.current = None;
            if !self.is_any && self.how.count.is_none() {
                // It would go on for ever without an element.
                return Ok(());
            }
        }
        Ok(())
    }

    fn add(&mut self, element: Element) -> Result<(), KernelError> {
        self.is_any = true;
        let Some(slice) = self.slices.back_mut() else {
            return Err(KernelError::internal("an element comes before its slice"));
        };
        let at = match self.how.room {
            Some(room) => slice.end % room,
            None => slice.end % (self.buffer.len() + 1),
        };
        if at < self.buffer.len() {
            self.buffer[at] = Some(element);
        } else {
            growth::push(&mut self.buffer, Some(element))?;
        }
        slice.end += 1;
        self.held += 1;
        Ok(())
    }
}

struct MakeSeeds {
    differ: bool,
}

impl Kernel for MakeSeeds {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MakeSeeds { differ: c.op() == "AnonymousRandomSeedGenerator" })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (seed, seed2) = (number(c, 0, "seed")?, number(c, 1, "seed2")?);
        let differ = self.differ || truth(c, 2, "reshuffle")?;
        let make = || Ok(SharedSeeds(Arc::new(Seeds::new(seed, seed2, differ))));
        c.output_handle(0, &c.state().find_or_create("", "", make)?)?;
        c.set_variant(1, Variant::new(Deleter))
    }
}

fn no_seeds(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.output_handle(0, &c.state().find_or_create("", "", || Ok(NoSeeds))?)
}

/// What is deleted goes with its last handle.
pub fn delete(_: &ComputeContext<'_>) -> Result<(), KernelError> {
    Ok(())
}

register_kernel!("ShuffleDataset" on "CPU": Make<MakeShuffle>);
register_kernel!("ShuffleDatasetV2" on "CPU": Make<MakeShuffle>);
register_kernel!("ShuffleDatasetV3" on "CPU": Make<MakeShuffle>);
register_kernel!("ShuffleAndRepeatDataset" on "CPU": Make<MakeShuffle>);
register_kernel!("ShuffleAndRepeatDatasetV2" on "CPU": Make<MakeShuffle>);
register_kernel!("AnonymousSeedGenerator" on "CPU": MakeSeeds);
register_kernel!("AnonymousRandomSeedGenerator" on "CPU": MakeSeeds);
register_kernel!("DummySeedGenerator" on "CPU": fn no_seeds);
register_kernel!("DeleteSeedGenerator" on "CPU": fn delete);
register_kernel!("DeleteRandomSeedGenerator" on "CPU": fn delete);
