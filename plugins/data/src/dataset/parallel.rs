//! Datasets of the results of a function, several of which are computed at the same time.
//!
//! When an element is asked for, calls begin until there are as many as allowed, and go on while nobody
//! asks. The results come in the order of the input, or in that of their completion where the op permits it.

use super::{
    BoxFuture, Captured, Cardinality, Context, Dataset, Element, Elements, Input, Next, Shared,
    batch::{Batch, Sizes},
    function::Running,
    make::{Build, Make, dataset_in, number, unexpected},
    map::mapped,
};
use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{self, Poll},
    thread::available_parallelism,
};
use tenon_sdk::prelude::*;

/// The maximum number of calls at the same time.
const MOST_CALLS: usize = 1024;

/// How many calls there are at the same time.
///
/// # Errors
/// `INVALID_ARGUMENT` for a number below 1 that does not mean that the runtime is to choose.
pub fn calls(c: &ComputeContext<'_>, input: usize) -> Result<usize, KernelError> {
    let found = number(c, input, "num_parallel_calls")?;
    match (found, usize::try_from(found)) {
        (-1, _) => Ok(processors()),
        (_, Ok(calls)) if calls > 0 => Ok(calls.min(MOST_CALLS)),
        _ => Err(unexpected("num_parallel_calls", "at least 1, or -1 for any", found)),
    }
}

/// The number of processors that this process may use.
pub fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Whether the op says that elements may come in any order.
///
/// # Errors
/// `INVALID_ARGUMENT` for an attribute that says something else.
pub fn any_order(c: &CreateContext<'_>) -> Result<bool, KernelError> {
    if c.attrs().has("sloppy") {
        return c.attr("sloppy");
    }
    if !c.attrs().has("deterministic") {
        return Ok(false);
    }
    match c.attr::<&str>("deterministic")? {
        "true" | "default" => Ok(false),
        "false" => Ok(true),
        found => Err(KernelError::invalid_argument(format!(
            "deterministic: expected true, false or default, found '{found}'"
        ))),
    }
}

/// Results of a function.
#[derive(Clone)]
struct Parallel {
    input: Shared,
    function: Captured,
    calls: usize,
    how: How,
}

#[derive(Clone, Copy)]
struct How {
    keeps_number: bool,
    is_any_order: bool,
}

impl How {
    fn new(c: &CreateContext<'_>) -> Result<How, KernelError> {
        Ok(How { keeps_number: c.attr("preserve_cardinality")?, is_any_order: any_order(c)? })
    }
}

struct MakeParallel(How);

impl Build for MakeParallel {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        How::new(c).map(MakeParallel)
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        let input = Arc::clone(&dataset_in(c, 0)?.dataset);
        let arguments = c.input_range(1);
        let calls = calls(c, arguments.end)?;
        let function = Captured::of(c, "f", arguments)?;
        Ok(Arc::new(Parallel { input, function, calls, how: self.0 }))
    }
}

/// Batches of results.
struct MakeBatches(How);

impl Build for MakeBatches {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        How::new(c).map(MakeBatches)
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        let input = Arc::clone(&dataset_in(c, 0)?.dataset);
        let arguments = c.input_range(1);
        let at = arguments.end;
        let (sizes, calls) = (Sizes::new(c, at, Some(at + 2))?, calls(c, at + 1)?);
        let function = Captured::of(c, "f", arguments)?;
        let input = Arc::new(Parallel { input, function, calls, how: self.0 });
        Ok(Arc::new(Batch { input, sizes, padding: None, errors_count: true }))
    }
}

impl Dataset for Parallel {
    fn elements(&self) -> Box<dyn Elements> {
        let source = Source::Here(Input::of(&self.input));
        Box::new(Results { parallel: self.clone(), source, begun: VecDeque::new() })
    }

    fn cardinality(&self) -> Cardinality {
        match self.how.keeps_number {
            true => self.input.cardinality(),
            false => Cardinality::Unknown,
        }
    }
}

/// What the input is asked for next, with the input.
type Fetch = BoxFuture<'static, (Input, Result<Option<Element>, KernelError>)>;

/// The input of the calls.
enum Source {
    Here(Input),
    /// It is making an element.
    Busy(Fetch),
    AtEnd,
}

/// A call that has begun, or an error of the input in its place.
enum Begun {
    Call(Running),
    Failed(Option<KernelError>),
}

impl Begun {
    fn poll(&mut self, polled: &mut task::Context<'_>) -> Poll<Result<Element, KernelError>> {
        match self {
            Begun::Call(running) => Pin::new(running).poll(polled),
            Begun::Failed(error) => Poll::Ready(Err(error
                .take()
                .unwrap_or_else(|| KernelError::internal("an error of the input is taken twice")))),
        }
    }
}

struct Results {
    parallel: Parallel,
    source: Source,
    /// In the order of the input.
    begun: VecDeque<Begun>,
}

impl Elements for Results {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            let keeps_number = self.parallel.how.keeps_number;
            let result = poll_fn(|polled| {
                self.begin(context, polled);
                self.take(polled)
            });
            match result.await {
                Some(result) => mapped(result, keeps_number),
                None => Ok(None),
            }
        })
    }
}

impl Results {
    /// Begins calls until there are enough, or the input has to be waited for.
    fn begin(&mut self, context: &Context, polled: &mut task::Context<'_>) {
        while self.begun.len() < self.parallel.calls && !context.is_over() {
            let mut fetch = match std::mem::replace(&mut self.source, Source::AtEnd) {
                Source::AtEnd => return,
                Source::Here(mut input) => {
                    let context = context.clone();
                    Box::pin(async move {
                        let found = input.next(&context).await;
                        (input, found)
                    })
                }
                Source::Busy(fetch) => fetch,
            };
            let Poll::Ready((input, found)) = fetch.as_mut().poll(polled) else {
                self.source = Source::Busy(fetch);
                return;
            };
            let begun = match found {
                Ok(None) => return,
                Ok(Some(element)) => Begun::Call(self.parallel.function.begin(context, element)),
                Err(error) => Begun::Failed(Some(error)),
            };
            self.begun.push_back(begun);
            self.source = Source::Here(input);
        }
    }

    /// The next result; `None` when there will be none.
    fn take(
        &mut self,
        polled: &mut task::Context<'_>,
    ) -> Poll<Option<Result<Element, KernelError>>> {
        let looked = if self.parallel.how.is_any_order { self.begun.len() } else { 1 };
        for (at, begun) in self.begun.iter_mut().enumerate().take(looked) {
            if let Poll::Ready(result) = begun.poll(polled) {
                self.begun.remove(at);
                return Poll::Ready(Some(result));
            }
        }
        match self.source {
            Source::AtEnd if self.begun.is_empty() => Poll::Ready(None),
            _ => Poll::Pending,
        }
    }
}

register_kernel!("ParallelMapDataset" on "CPU": Make<MakeParallel>);
register_kernel!("ParallelMapDatasetV2" on "CPU": Make<MakeParallel>);
register_kernel!("MapAndBatchDataset" on "CPU": Make<MakeBatches>);
