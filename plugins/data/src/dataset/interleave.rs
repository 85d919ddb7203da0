//! Datasets that take turns between the datasets that a function makes of elements.
//!
//! There is a cycle of open datasets. Each gives a block of elements, then it is the next one's turn; one
//! that is at its end is replaced by the dataset of the next element of the input. A flat map is a cycle of
//! one with blocks that do not end. In the parallel forms, threads make the elements of open datasets before
//! their turns, which come in the same order.

use super::{
    Captured, Context, Dataset, Element, Elements, Input, Next, Shared,
    make::{Build, Make, count_or, dataset_in, number, only_dataset, unexpected},
    parallel::{any_order, calls, processors},
    prefetch::{CHOSEN, ahead},
};
use std::sync::Arc;
use tenon_sdk::{growth, prelude::*};

#[derive(Clone)]
struct Interleave {
    input: Shared,
    function: Captured,
    /// How many datasets are open.
    cycle: usize,
    /// How many elements each gives in its turn.
    block: usize,
    /// How many of the open datasets have a thread.
    threads: usize,
    /// How many elements a thread makes before they are asked for.
    room: usize,
}

struct MakeInterleave {
    is_flat: bool,
    /// All open datasets have a thread.
    is_all_ahead: bool,
    /// The inputs, by their names.
    calls: Option<usize>,
    room: Option<usize>,
}

impl Build for MakeInterleave {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        any_order(c)?;
        let named = |name| c.input_named(name).ok().map(|range| range.start);
        Ok(MakeInterleave {
            is_flat: c.op() == "FlatMapDataset",
            is_all_ahead: c.op() == "LegacyParallelInterleaveDatasetV2",
            calls: named("num_parallel_calls"),
            room: named("buffer_output_elements"),
        })
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        let input = Arc::clone(&dataset_in(c, 0)?.dataset);
        let arguments = c.input_range(1);
        let (mut cycle, mut block) = (1, usize::MAX);
        if !self.is_flat {
            cycle = match number(c, arguments.end, "cycle_length")? {
                -1 => processors(),
                found => positive("cycle_length", found)?,
            };
            block = positive("block_length", number(c, arguments.end + 1, "block_length")?)?;
        }
        let (threads, room) = self.work_ahead(c, arguments.end, cycle)?;
        let function = Captured::of(c, "f", arguments)?;
        Ok(Arc::new(Interleave { input, function, cycle, block, threads, room }))
    }
}

impl MakeInterleave {
    /// How many datasets have threads, and how many elements each makes ahead. `at` is the input with the length of the
    /// cycle.
    fn work_ahead(
        &self,
        c: &ComputeContext<'_>,
        at: usize,
        cycle: usize,
    ) -> Result<(usize, usize), KernelError> {
        let room = self.room.map(|at| count_or(c, at, "buffer_output_elements", CHOSEN));
        let room = room.transpose()?.unwrap_or(CHOSEN);
        let Some(calls_at) = self.calls else {
            return Ok((if self.is_all_ahead { cycle } else { 0 }, room));
        };
        let (wanted, threads) = (number(c, calls_at, "num_parallel_calls")?, calls(c, calls_at)?);
        let is_more = usize::try_from(wanted).is_ok_and(|wanted| wanted > cycle);
        if is_more && number(c, at, "cycle_length")? > 0 {
            let expected = format!("at most the length of the cycle, {cycle}, or -1 for any");
            return Err(unexpected("num_parallel_calls", &expected, wanted));
        }
        Ok((threads.min(cycle), room))
    }
}

fn positive(name: &str, found: i64) -> Result<usize, KernelError> {
    usize::try_from(found)
        .ok()
        .filter(|&number| number > 0)
        .ok_or_else(|| unexpected(name, "at least 1", found))
}

impl Dataset for Interleave {
    fn elements(&self) -> Box<dyn Elements> {
        Box::new(Turns {
            how: self.clone(),
            input: Some(Input::of(&self.input)),
            open: Vec::new(),
            turn: 0,
            given: 0,
        })
    }
}

/// An open dataset.
struct Open {
    elements: Input,
    context: Context,
    has_thread: bool,
}

struct Turns {
    how: Interleave,
    /// `None` after the end.
    input: Option<Input>,
    /// The cycle, as far as it was reached.
    open: Vec<Option<Open>>,
    /// Whose turn it is.
    turn: usize,
    /// How many elements it gave in this turn.
    given: usize,
}

impl Elements for Turns {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            loop {
                context.check()?;
                if self.open.len() == self.turn {
                    growth::push(&mut self.open, None)?;
                }
                if let Some(open) = &mut self.open[self.turn] {
                    if let Some(element) = open.elements.next(&open.context).await? {
                        self.given += 1;
                        if self.given == self.how.block {
                            self.pass();
                        }
                        return Ok(Some(element));
                    }
                    self.open[self.turn] = None;
                    self.pass();
                } else if self.input.is_some() {
                    self.open_next(context).await?;
                } else if self.open.iter().all(Option::is_none) {
                    return Ok(None);
                } else {
                    self.pass();
                }
            }
        })
    }
}

impl Turns {
    /// It is the next one's turn.
    fn pass(&mut self) {
        self.given = 0;
        self.turn = (self.turn + 1) % self.how.cycle;
        if self.input.is_none() && self.turn >= self.open.len() {
            self.turn = 0;
        }
    }

    /// Opens the dataset of the input's next element, in the place whose turn it is.
    async fn open_next(&mut self, context: &Context) -> Result<(), KernelError> {
        let Some(input) = &mut self.input else { return Ok(()) };
        let Some(element) = input.next(context).await? else {
            self.input = None;
            return Ok(());
        };
        let result: Element = self.how.function.call(context, element).await?;
        let dataset = only_dataset(&result, "f")?;
        let context = context.inner(dataset.depth)?;
        let threads = self.open.iter().flatten().filter(|open| open.has_thread).count();
        let has_thread = threads < self.how.threads;
        let elements = match has_thread {
            true => Input(Some(ahead(&dataset.dataset, self.how.room, &context)?)),
            false => Input::of(&dataset.dataset),
        };
        self.open[self.turn] = Some(Open { elements, context, has_thread });
        Ok(())
    }
}

register_kernel!("FlatMapDataset" on "CPU": Make<MakeInterleave>);
register_kernel!("InterleaveDataset" on "CPU": Make<MakeInterleave>);
register_kernel!("LegacyParallelInterleaveDatasetV2" on "CPU": Make<MakeInterleave>);
register_kernel!("ParallelInterleaveDatasetV2" on "CPU": Make<MakeInterleave>);
register_kernel!("ParallelInterleaveDatasetV3" on "CPU": Make<MakeInterleave>);
register_kernel!("ParallelInterleaveDatasetV4" on "CPU": Make<MakeInterleave>);
