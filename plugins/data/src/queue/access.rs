//! The kernels that use queues.

use super::{
    Few, Queue,
    state::{Close, Form, Put, State, Take},
};
use crate::{
    attempts::{Answer, Async, Begins, Begun, PUT, TAKE},
    place::input,
};
use std::sync::Arc;
use tenon_sdk::prelude::*;

/// Refuses a time limit, which TensorFlow has not either.
pub fn check_timeout(c: &CreateContext<'_>) -> Result<(), KernelError> {
    match c.attr::<i64>("timeout_ms")? {
        -1 => Ok(()),
        found => Err(KernelError::invalid_argument(format!(
            "timeout_ms: expected -1, no limit, found {found}"
        ))),
    }
}

struct Enqueue<const MANY: bool>;

impl<const MANY: bool> Enqueue<MANY> {
    /// The number of rows, which all components have.
    fn rows(queue: &Queue, tensors: &[Arc<Kept>]) -> Result<usize, KernelError> {
        let mut rows = None;
        for (at, tensor) in tensors.iter().enumerate() {
            let found = tensor.dims();
            let &[count, ..] = found else {
                return Err(KernelError::invalid_argument(format!(
                    "components: expected rows of component {at} of {}, found a scalar",
                    queue.label()
                )));
            };
            if *rows.get_or_insert(count) != count {
                return Err(KernelError::invalid_argument(format!(
                    "components: expected as many rows of each component of {}, found {:?} of component {at} after {:?}",
                    queue.label(),
                    found,
                    tensors[0].dims()
                )));
            }
        }
        Ok(rows.unwrap_or(0) as usize)
    }
}

impl<const MANY: bool> Begins for Enqueue<MANY> {
    type State = State;
    type Attempt = Put;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        check_timeout(c)?;
        Ok(Enqueue)
    }

    fn begin(&self, c: &ComputeContext<'_>) -> Answer<State, Put> {
        let (queue, range) = (input::<Queue>(c)?, c.input_range(1));
        let tensors: Result<Few<_>, _> = range.map(|at| c.keep(at).map(Arc::new)).collect();
        let tensors = tensors?;
        queue.kind.check_types(tensors.iter().map(|tensor| tensor.dtype()), queue.label())?;
        let rows = if MANY { Some(Self::rows(&queue, &tensors)?) } else { None };
        for (at, tensor) in tensors.iter().enumerate() {
            let dims = tensor.dims().get(usize::from(MANY)..).unwrap_or_default();
            queue.kind.check_shape(at, dims, queue.label())?;
        }
        if rows == Some(0) {
            return Ok(None);
        }
        let attempts = Arc::clone(&queue.attempts);
        let attempt = Put { queue, tensors, rows, added: 0 };
        Ok(Some(Begun { attempts, list: PUT, attempt }))
    }
}

register_kernel!("QueueEnqueue" on "CPU": Async<Enqueue<false>>);
register_kernel!("QueueEnqueueV2" on "CPU": Async<Enqueue<false>>);
register_kernel!("QueueEnqueueMany" on "CPU": Async<Enqueue<true>>);
register_kernel!("QueueEnqueueManyV2" on "CPU": Async<Enqueue<true>>);

struct Dequeue {
    types: Vec<DType>,
    form: Form,
}

impl Begins for Dequeue {
    type State = State;
    type Attempt = Take;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        check_timeout(c)?;
        let form = match c.op() {
            "QueueDequeueMany" | "QueueDequeueManyV2" => Form::Batch,
            "QueueDequeueUpTo" | "QueueDequeueUpToV2" => Form::UpTo,
            _ => Form::One,
        };
        Ok(Dequeue { types: c.attr("component_types")?, form })
    }

    fn begin(&self, c: &ComputeContext<'_>) -> Answer<State, Take> {
        let (queue, form) = (input::<Queue>(c)?, self.form);
        let mut wanted = 1;
        if form != Form::One {
            wanted = c.integer(1, "n")?;
        }
        let wanted = usize::try_from(wanted).map_err(|_| {
            let label = queue.label();
            KernelError::invalid_argument(format!(
                "n: expected the number of elements to take from {label}, found {wanted}"
            ))
        })?;
        queue.kind.check_types(self.types.iter().copied(), queue.label())?;
        if form != Form::One {
            queue.kind.check_batches(queue.label())?;
        }
        let attempts = Arc::clone(&queue.attempts);
        let attempt = Take { queue, form, wanted, taken: Few::new() };
        if wanted == 0 {
            return attempt.output(c).map(|()| None);
        }
        Ok(Some(Begun { attempts, list: TAKE, attempt }))
    }
}

register_kernel!("QueueDequeue" on "CPU": Async<Dequeue>);
register_kernel!("QueueDequeueV2" on "CPU": Async<Dequeue>);
register_kernel!("QueueDequeueMany" on "CPU": Async<Dequeue>);
register_kernel!("QueueDequeueManyV2" on "CPU": Async<Dequeue>);
register_kernel!("QueueDequeueUpTo" on "CPU": Async<Dequeue>);
register_kernel!("QueueDequeueUpToV2" on "CPU": Async<Dequeue>);

struct CloseQueue {
    cancel: bool,
}

impl Begins for CloseQueue {
    type State = State;
    type Attempt = Close;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(CloseQueue { cancel: c.attr("cancel_pending_enqueues")? })
    }

    fn begin(&self, c: &ComputeContext<'_>) -> Answer<State, Close> {
        let queue = input::<Queue>(c)?;
        let label = queue.label().to_owned();
        if self.cancel {
            let message =
                format!("{label} was closed, and what waited to be added to it cancelled");
            let error = || KernelError::new(Code::CANCELLED, message.clone());
            queue.attempts.fail_all(PUT, State::close, error);
            return Ok(None);
        }
        let attempts = Arc::clone(&queue.attempts);
        Ok(Some(Begun { attempts, list: PUT, attempt: Close { label } }))
    }
}

register_kernel!("QueueClose" on "CPU": Async<CloseQueue>);
register_kernel!("QueueCloseV2" on "CPU": Async<CloseQueue>);

fn is_closed(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let is_closed = input::<Queue>(c)?.attempts.read(State::is_closed);
    c.output::<bool>(0, &[])?.data[0] = is_closed;
    Ok(())
}

register_kernel!("QueueIsClosed" on "CPU": fn is_closed);
register_kernel!("QueueIsClosedV2" on "CPU": fn is_closed);

fn size(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let size = input::<Queue>(c)?.attempts.read(State::len);
    c.output::<i32>(0, &[])?.data[0] = size as i32;
    Ok(())
}

register_kernel!("QueueSize" on "CPU": fn size);
register_kernel!("QueueSizeV2" on "CPU": fn size);
