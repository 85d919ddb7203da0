//! Collective operations: kernels of several devices that exchange their values.
//!
//! The host finds the members and carries tensors between them, in this process or between tasks. Who sends what to whom
//! is in `schedule`, the arithmetic of reductions in `merge`; `exchange` takes the steps of a schedule, on the buffer of
//! `running`, and holds no thread while it waits.
//!
//! # Order of sums
//! Members are ordered by their devices, so that a reduction adds in the same order in every run, and all members get the
//! same bits. Which order that is depends on the number of bytes and of members, as the algorithm does; with the knob
//! `data.collective_order = places` it is that of the members from first to last, whatever their number and size.

mod communicator;
mod exchange;
mod merge;
mod running;
mod schedule;

use communicator::{Communicator, limit, number};
use exchange::Exchange;
use merge::{Merge, Merged};
use schedule::{Algorithm, Members, Transfer};
use std::{marker::PhantomData, ops::Range, sync::Arc, time::Duration};
use tenon_sdk::prelude::*;

register_knob!(
    "collective_order": STRING = "auto",
    "Order of the sums of collective reductions: auto is fixed for a group and a size, by which the algorithm is chosen; \
     places is that of the members."
);

/// Bytes up to which a reduction goes by halves: more messages of fewer bytes would cost more than the bytes do.
const SMALL: usize = 64 << 10;

/// The algorithm of a reduction.
fn algorithm(order: &str, bytes: usize) -> Result<Algorithm, KernelError> {
    match order {
        "auto" if bytes <= SMALL => Ok(Algorithm::Halving),
        "auto" => Ok(Algorithm::Ring),
        "places" => Ok(Algorithm::Ordered),
        other => Err(KernelError::invalid_argument(format!(
            "knob data.collective_order is '{other}': expected auto or places"
        ))),
    }
}

/// Where an operation has its keys.
enum Keys {
    /// In attributes: size, group, instance.
    Attributes([i64; 3]),
    /// In inputs, from this one on.
    Inputs(usize),
    /// In the resource of this input.
    Communicator(usize),
}

/// What a call says of its operation.
struct Keyed {
    /// Size, group and instance.
    keys: [i32; 3],
    /// The place of the member, if the graph gives it.
    rank: Option<i32>,
    timeout: Option<Duration>,
}

impl Keys {
    fn new(c: &CreateContext<'_>, first: usize) -> Result<Keys, KernelError> {
        if !c.attrs().has("communication_hint") {
            return Ok(Keys::Communicator(first));
        }
        if !c.attrs().has("group_size") {
            return Ok(Keys::Inputs(first));
        }
        let [size, group, instance] =
            ["group_size", "group_key", "instance_key"].map(|name| c.attr::<i64>(name));
        Ok(Keys::Attributes([size?, group?, instance?]))
    }

    fn read(&self, c: &ComputeContext<'_>) -> Result<Keyed, KernelError> {
        let names = ["group_size", "group_key", "instance_key"];
        let mut keys = [0; 3];
        for (at, (to, name)) in keys.iter_mut().zip(names).enumerate() {
            let value = match self {
                Keys::Attributes(values) => values[at],
                Keys::Inputs(first) => c.integer(first + at, name)?,
                Keys::Communicator(input) => return Keys::of_communicator(c, *input),
            };
            *to = number(value, name)?;
        }
        Ok(Keyed { keys, rank: None, timeout: None })
    }

    /// The next operation of a communicator, whose groups are not divided further: the input after it is empty.
    fn of_communicator(c: &ComputeContext<'_>, input: usize) -> Result<Keyed, KernelError> {
        let assigned = c.dims(input + 1);
        if !assigned.contains(&0) {
            return Err(KernelError::unimplemented(format!(
                "group_assignment of shape {assigned:?}: expected an empty one, for the group of the communicator"
            )));
        }
        let communicator = c.state().input_resource::<Communicator>(input)?;
        let Communicator { size, group, rank, timeout, .. } = *communicator;
        Ok(Keyed { keys: [size, group, communicator.next()], rank: Some(rank), timeout })
    }
}

/// What a node says of its operation.
struct Common {
    keys: Keys,
    timeout: Option<Duration>,
}

impl Common {
    /// `first` is the input with the size of the group, where inputs have it.
    fn new(c: &CreateContext<'_>, first: usize) -> Result<Common, KernelError> {
        let timeout = limit(c.attr("timeout_seconds")?);
        Ok(Common { keys: Keys::new(c, first)?, timeout })
    }

    /// What a call says of its operation; the node's limit is more than that of its communicator.
    fn read(&self, c: &ComputeContext<'_>) -> Result<Keyed, KernelError> {
        let keyed = self.keys.read(c)?;
        Ok(Keyed { timeout: self.timeout.or(keyed.timeout), ..keyed })
    }
}

/// What a kernel of an operation differs in.
trait Operation<T: Element>: Sized + Send + Sync + 'static {
    const KIND: CollectiveKind;
    /// The input with the size of the group, where inputs have it.
    const FIRST_KEY: usize = 1;
    /// Whether what a member gets depends on its place, so that the graph may not give it another one.
    const BY_PLACE: bool = false;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError>;

    /// The dimensions that all members agree on, and the value of this one; none for one that has none.
    fn value(&self, c: &ComputeContext<'_>) -> Result<(Vec<i64>, Option<Kept>), KernelError> {
        Ok((c.input::<T>(0)?.dims.to_vec(), Some(c.keep(0)?)))
    }

    /// Whether this member has the value of a broadcast.
    fn is_source(&self) -> bool {
        false
    }

    /// What this member does with values of these dimensions.
    fn plan(&self, members: Members, dims: &[i64]) -> Result<Plan<T>, KernelError>;
}

/// Merges received values, the second ones, with those in the buffer.
type Combine<T> = Box<dyn Fn(&mut [T], &[T]) + Send>;
/// What becomes of merged values.
type Finish<T> = Box<dyn Fn(&mut [T]) + Send>;

/// Where the buffer of an exchange has the value of this member at first.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Begin {
    /// Nowhere: it comes from another member.
    Nowhere,
    /// In a range.
    At(Range<usize>),
    /// In all of it, but each range only from the first transfer of it on: until then it is that of the input.
    Lazily,
}

/// What a member does once it knows its place.
struct Plan<T> {
    /// Elements of the buffer.
    count: usize,
    begin: Begin,
    transfers: Vec<Transfer>,
    merge: Option<Combine<T>>,
    finish: Option<Finish<T>>,
    /// The part of the buffer that is the output; if it is all of it, the buffer is the output's.
    output: Range<usize>,
    dims: Vec<i64>,
}

impl<T> Plan<T> {
    /// One whose output is all of the buffer.
    fn whole(count: usize, begin: Begin, transfers: Vec<Transfer>, dims: &[i64]) -> Plan<T> {
        let (output, dims) = (0..count, dims.to_vec());
        Plan { count, begin, transfers, merge: None, finish: None, output, dims }
    }
}

/// The kernel of an operation.
struct Collectively<T, O> {
    common: Common,
    operation: Arc<O>,
    elements: PhantomData<fn() -> T>,
}

impl<T: Element, O: Operation<T>> Kernel for Collectively<T, O> {
    const MODE: Mode = Mode::Async;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let operation = Arc::new(O::new(c)?);
        Ok(Collectively { common: Common::new(c, O::FIRST_KEY)?, operation, elements: PhantomData })
    }

    fn compute(&self, _: &ComputeContext<'_>) -> Result<(), KernelError> {
        Err(KernelError::internal("a call that waits is started, not computed"))
    }

    fn start(&self, call: AsyncCall) {
        Exchange::begin(&self.common, &self.operation, call);
    }
}

/// The number of elements of dimensions.
fn count(dims: &[i64]) -> Result<usize, KernelError> {
    let product = dims
        .iter()
        .try_fold(1usize, |product, &dim| product.checked_mul(usize::try_from(dim).ok()?));
    product.ok_or_else(|| {
        KernelError::invalid_argument(format!(
            "{dims:?}: expected dimensions of a tensor in memory"
        ))
    })
}

/// Attributes of reductions.
struct Reduction {
    merge: Merge,
    divides: bool,
    order: String,
}

impl Reduction {
    fn new(c: &CreateContext<'_>) -> Result<Reduction, KernelError> {
        let order = c.knobs().text("collective_order")?;
        if c.attrs().has("reduction") {
            let merge = Merge::parse(c.attr::<&str>("reduction")?)?;
            return Ok(Reduction { merge, divides: false, order });
        }
        let merge = Merge::parse(c.attr::<&str>("merge_op")?)?;
        let divides = match c.attr::<&str>("final_op")? {
            "Id" => false,
            "Div" => true,
            other => {
                let message = format!("final_op '{other}': expected Id or Div");
                return Err(KernelError::invalid_argument(message));
            }
        };
        Ok(Reduction { merge, divides, order })
    }

    fn plan<T: Merged>(
        &self,
        members: Members,
        dims: &[i64],
        scatters: bool,
    ) -> Result<Plan<T>, KernelError> {
        let count = count(dims)?;
        let algorithm = algorithm(&self.order, count.saturating_mul(size_of::<T>()))?;
        let transfers = match scatters {
            true => members.reduce_scatter(algorithm, count),
            false => members.reduce(algorithm, count),
        };
        // Around a ring, each part is received as often as it is used, in the same pieces.
        let is_lazy = algorithm == Algorithm::Ring && !scatters && members.size > 1;
        let begin = if is_lazy { Begin::Lazily } else { Begin::At(0..count) };
        let (merge, size) = (self.merge, members.size as u32);
        let finish: Finish<T> =
            Box::new(move |result| result.iter_mut().for_each(|it| *it = it.divided(size)));
        Ok(Plan {
            merge: Some(Box::new(move |own, earlier| merge.apply(own, earlier))),
            finish: self.divides.then_some(finish),
            ..Plan::whole(count, begin, transfers, dims)
        })
    }
}

/// Gives each member the values of all, merged.
struct Reduce(Reduction);

impl<T: Merged> Operation<T> for Reduce {
    const KIND: CollectiveKind = CollectiveKind::REDUCE;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Reduction::new(c).map(Reduce)
    }

    fn plan(&self, members: Members, dims: &[i64]) -> Result<Plan<T>, KernelError> {
        self.0.plan(members, dims, false)
    }
}

/// Gives each member its part of the values of all, merged.
struct ReduceScatter(Reduction);

/// The dimensions of a part: the rows are divided among the members.
fn part_of(dims: &[i64], size: usize, what: &str) -> Result<Vec<i64>, KernelError> {
    let wrong = || {
        KernelError::invalid_argument(format!(
            "{what} of {dims:?} over {size} members: expected a first dimension that {size} divides"
        ))
    };
    let rows = *dims.first().ok_or_else(wrong)?;
    let size = size as i64;
    if rows % size != 0 {
        return Err(wrong());
    }
    Ok(std::iter::once(rows / size).chain(dims[1..].iter().copied()).collect())
}

impl<T: Merged> Operation<T> for ReduceScatter {
    const KIND: CollectiveKind = CollectiveKind::REDUCE_SCATTER;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Reduction::new(c).map(ReduceScatter)
    }

    fn plan(&self, members: Members, dims: &[i64]) -> Result<Plan<T>, KernelError> {
        let part = part_of(dims, members.size, "the parts of a reduction")?;
        let output = members.own(count(dims)?);
        Ok(Plan { dims: part, output, ..self.0.plan(members, dims, true)? })
    }
}

/// Gives each member the values of all.
struct Gather;

impl<T: Element> Operation<T> for Gather {
    const KIND: CollectiveKind = CollectiveKind::GATHER;

    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Gather)
    }

    fn plan(&self, members: Members, dims: &[i64]) -> Result<Plan<T>, KernelError> {
        let mut dims = dims.to_vec();
        let too_large = || KernelError::invalid_argument("the gathered values are too large");
        let Some(rows) = dims.first_mut() else {
            let message =
                "a collective gather: expected an input of rank at least 1, found a scalar";
            return Err(KernelError::invalid_argument(message));
        };
        *rows = rows.checked_mul(members.size as i64).ok_or_else(too_large)?;
        let total = count(&dims)?;
        let begin = Begin::At(members.own(total));
        Ok(Plan::whole(total, begin, members.gather(total), &dims))
    }
}

/// Gives the value of one member to all.
struct Broadcast<const SENDS: bool> {
    /// The dimensions that an attribute says.
    noted: Option<Vec<i64>>,
}

impl<T: Element, const SENDS: bool> Operation<T> for Broadcast<SENDS> {
    const KIND: CollectiveKind = CollectiveKind::BROADCAST;
    const FIRST_KEY: usize = if SENDS { 1 } else { 0 };

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let noted = if c.attrs().has("shape") {
            let shape: PartialShape = c.attr("shape")?;
            let known = shape.dims().filter(|dims| dims.iter().all(|&dim| dim >= 0));
            let known = known.ok_or_else(|| {
                KernelError::invalid_argument(format!("shape {shape}: expected a known shape"))
            })?;
            Some(known.to_vec())
        } else {
            None
        };
        Ok(Broadcast { noted })
    }

    fn value(&self, c: &ComputeContext<'_>) -> Result<(Vec<i64>, Option<Kept>), KernelError> {
        if !SENDS {
            let dims = match &self.noted {
                Some(dims) => dims.clone(),
                None => c.integer_list(3, "shape")?,
            };
            return Ok((dims, None));
        }
        let view = c.input::<T>(0)?;
        if let Some(noted) = self.noted.as_ref().filter(|noted| **noted != view.dims) {
            return Err(KernelError::invalid_argument(format!(
                "a value of {:?} is sent to all: expected {noted:?}, the node's attribute shape",
                view.dims
            )));
        }
        Ok((view.dims.to_vec(), Some(c.keep(0)?)))
    }

    fn is_source(&self) -> bool {
        SENDS
    }

    fn plan(&self, members: Members, dims: &[i64]) -> Result<Plan<T>, KernelError> {
        let total = count(dims)?;
        let begin = if SENDS { Begin::At(0..total) } else { Begin::Nowhere };
        Ok(Plan::whole(total, begin, members.broadcast(total), dims))
    }
}

/// Gives each member a part of the value of each.
struct AllToAll;

impl<T: Element> Operation<T> for AllToAll {
    const KIND: CollectiveKind = CollectiveKind::ALL_TO_ALL;
    const BY_PLACE: bool = true;

    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(AllToAll)
    }

    fn plan(&self, members: Members, dims: &[i64]) -> Result<Plan<T>, KernelError> {
        let size = members.size;
        if dims.first() != Some(&(size as i64)) {
            return Err(KernelError::invalid_argument(format!(
                "an exchange of {dims:?} among {size} members: expected a first dimension of {size}"
            )));
        }
        let total = count(dims)?;
        Ok(Plan::whole(total, Begin::At(0..total), members.exchange(total), dims))
    }
}

type ReduceOf<T> = Collectively<T, Reduce>;
type ReduceScatterOf<T> = Collectively<T, ReduceScatter>;
type GatherOf<T> = Collectively<T, Gather>;
type SendOf<T> = Collectively<T, Broadcast<true>>;
type ReceiveOf<T> = Collectively<T, Broadcast<false>>;
type AllToAllOf<T> = Collectively<T, AllToAll>;

register_kernel!("CollectiveReduce" on "CPU": ReduceOf<T> for "T" in [bf16, f32, f16, f64, i32, i64]);
register_kernel!("CollectiveReduceV2" on "CPU": ReduceOf<T> for "T" in [bf16, f32, f16, f64, i32, i64]);
register_kernel!("CollectiveReduceV3" on "CPU": ReduceOf<T> for "T" in [bf16, f32, f16, f64, i32, i64]);
register_kernel!("CollectiveReduceScatterV2" on "CPU": ReduceScatterOf<T> for "T" in [bf16, f32, f16, f64, i32, i64]);
register_kernel!("CollectiveGather" on "CPU": GatherOf<T> for "T" in [f32, f16, f64, i32, i64]);
register_kernel!("CollectiveGatherV2" on "CPU": GatherOf<T> for "T" in [f32, f16, f64, i32, i64]);
register_kernel!("CollectiveBcastSend" on "CPU": SendOf<T> for "T" in [bool, f32, f16, f64, i32, i64]);
register_kernel!("CollectiveBcastSendV2" on "CPU": SendOf<T> for "T" in [bool, f32, f16, f64, i32, i64]);
register_kernel!("CollectiveBcastRecv" on "CPU": ReceiveOf<T> for "T" in [bool, f32, f16, f64, i32, i64]);
register_kernel!("CollectiveBcastRecvV2" on "CPU": ReceiveOf<T> for "T" in [bool, f32, f16, f64, i32, i64]);
register_kernel!("CollectiveAllToAllV2" on "CPU": AllToAllOf<T> for "T" in [bf16, f32, f16, f64, i32, i64]);
register_kernel!("CollectiveAllToAllV3" on "CPU": AllToAllOf<T> for "T" in [bf16, f32, f16, f64, i32, i64]);
