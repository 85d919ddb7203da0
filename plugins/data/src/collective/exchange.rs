//! A call between its start and its end.
//!
//! # States
//! *joining* until the host says the place of the call; then the steps of a schedule, one after the other: a send is done at
//! once, a receive *waits* until its tensor has come; *ended* once the call is completed.
//!
//! What comes (the place, a tensor, cancellation) is noted under the lock. Whoever notes it goes on with the steps, unless
//! somebody does already, who then sees what was noted. Nothing of the host is called under the lock.

use super::{Common, Members, Operation, Plan, Transfer};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenon_sdk::{growth, prelude::*};

struct State<T> {
    /// `None` before the join returned, and once the call is completed.
    call: Option<(AsyncCall, Arc<Collective>)>,
    members: Option<Members>,
    /// The value of the call, until the plan takes it.
    value: Vec<T>,
    plan: Option<Plan<T>>,
    /// The number of transfers that are done.
    done: usize,
    /// Whether a receive is under way, and what came.
    waits: bool,
    arrived: Option<Kept>,
    error: Option<KernelError>,
    /// Whether a thread goes on with the steps.
    is_driven: bool,
}

/// A call.
pub(super) struct Exchange<T, O> {
    operation: Arc<O>,
    dims: Vec<i64>,
    state: Mutex<State<T>>,
}

/// What is to be done next, outside the lock.
enum Next {
    Nothing,
    Send { to: u32, number: u64, tensor: Kept },
    Receive { from: u32, number: u64 },
    End(Result<(), KernelError>),
}

/// How many transfers of the list lead to, or come from, the same member before this one: both sides count alike.
fn number_of(transfers: &[Transfer], at: usize) -> u64 {
    let peer = |transfer: &Transfer| match transfer {
        Transfer::Send { to, .. } => (true, *to),
        Transfer::Receive { from, .. } => (false, *from),
    };
    let own = peer(&transfers[at]);
    transfers[..at].iter().filter(|it| peer(it) == own).count() as u64
}

impl<T: Element, O: Operation<T>> Exchange<T, O> {
    /// Joins the operation; the call goes on when all have joined.
    pub fn begin(common: &Common, operation: &Arc<O>, mut call: AsyncCall) {
        let begun = Exchange::join(common, operation, &mut call);
        match begun {
            Ok((exchange, collective)) => {
                exchange.note(|state| state.call = Some((call, Arc::new(collective))));
            }
            Err(error) => call.finish(Err(error)),
        }
    }

    fn join(
        common: &Common,
        operation: &Arc<O>,
        call: &mut AsyncCall,
    ) -> Result<(Arc<Exchange<T, O>>, Collective), KernelError> {
        let context = call.context();
        let [group_size, group_key, instance_key] = common.keys.read(&context)?;
        let (dims, view) = operation.value(&context)?;
        let value = view.map_or(Ok(Vec::new()), |view| growth::copied(view.data))?;
        let state = State {
            call: None,
            members: None,
            value,
            plan: None,
            done: 0,
            waits: false,
            arrived: None,
            error: None,
            is_driven: false,
        };
        let exchange = Arc::new(Exchange {
            operation: Arc::clone(operation),
            dims: dims.clone(),
            state: Mutex::new(state),
        });
        let cancelled = Arc::clone(&exchange);
        call.on_cancel(move || {
            cancelled.fail(KernelError::new(Code::CANCELLED, "the step was cancelled"));
        });
        let spec = CollectiveSpec {
            kind: O::KIND,
            group_key,
            group_size,
            instance_key,
            dtype: T::DTYPE,
            dims: &dims,
            is_source: operation.is_source(),
            timeout: common.timeout,
        };
        let ready = Arc::clone(&exchange);
        let collective = call.context().join_collective(&spec, move |place| match place {
            Ok(CollectivePlace { place, size, source }) => ready.note(|state| {
                let [place, size, source] = [place, size, source].map(|it| it as usize);
                state.members = Some(Members { place, size, source });
            }),
            Err(error) => ready.fail(error),
        })?;
        Ok((exchange, collective))
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(self: &Arc<Self>, error: KernelError) {
        self.note(|state| {
            state.error.get_or_insert(error);
        });
    }

    /// Notes what came, and goes on.
    fn note(self: &Arc<Self>, what: impl FnOnce(&mut State<T>)) {
        let mut state = self.lock();
        what(&mut state);
        if !std::mem::replace(&mut state.is_driven, true) {
            drop(state);
            self.drive();
        }
    }

    /// Takes steps until there is something to wait for, or the call is completed.
    fn drive(self: &Arc<Self>) {
        loop {
            let mut state = self.lock();
            let next = self.next(&mut state).unwrap_or_else(|error| Next::End(Err(error)));
            let collective = state.call.as_ref().map(|(_, collective)| Arc::clone(collective));
            let Some(collective) = collective.filter(|_| !matches!(next, Next::Nothing)) else {
                state.is_driven = false;
                return;
            };
            match next {
                Next::Nothing => {}
                Next::Send { to, number, tensor } => {
                    drop(state);
                    if let Err(error) = collective.send(to, number, &tensor) {
                        self.lock().error.get_or_insert(error);
                    }
                }
                Next::Receive { from, number } => {
                    drop(state);
                    let own = Arc::clone(self);
                    collective.recv(from, number, move |tensor| match tensor {
                        Ok(tensor) => own.note(|state| state.arrived = Some(tensor)),
                        Err(error) => own.fail(error),
                    });
                }
                Next::End(result) => {
                    let (call, plan) = (state.call.take(), state.plan.take());
                    state.is_driven = false;
                    drop(state);
                    if let Some((call, _)) = call {
                        complete(call, &collective, result, plan);
                    }
                    return;
                }
            }
        }
    }

    /// The next thing to do, after what needs no service of the host is done.
    fn next(&self, state: &mut State<T>) -> Result<Next, KernelError> {
        if state.call.is_none() {
            return Ok(Next::Nothing);
        }
        if let Some(error) = state.error.clone() {
            return Err(error);
        }
        let Some(members) = state.members else { return Ok(Next::Nothing) };
        if state.plan.is_none() {
            let value = std::mem::take(&mut state.value);
            state.plan = Some(self.operation.plan(members, &self.dims, value)?);
        }
        let State { plan: Some(plan), done, waits, arrived, .. } = state else {
            return Ok(Next::Nothing);
        };
        if *waits {
            let Some(tensor) = arrived.take() else { return Ok(Next::Nothing) };
            plan.take(*done, &tensor)?;
            (*waits, *done) = (false, *done + 1);
        }
        let Some(transfer) = plan.transfers.get(*done) else { return Ok(Next::End(Ok(()))) };
        let number = number_of(&plan.transfers, *done);
        match transfer {
            Transfer::Send { to, range } => {
                let elements = &plan.buffer[range.clone()];
                let tensor = Kept::new(&[elements.len() as i64], elements)?;
                *done += 1;
                Ok(Next::Send { to: *to as u32, number, tensor })
            }
            Transfer::Receive { from, .. } => {
                *waits = true;
                Ok(Next::Receive { from: *from as u32, number })
            }
        }
    }
}

impl<T: Element> Plan<T> {
    /// Takes the tensor of a receive.
    fn take(&mut self, at: usize, tensor: &Kept) -> Result<(), KernelError> {
        let Some(Transfer::Receive { from, range, merges }) = self.transfers.get(at) else {
            return Err(KernelError::internal("a tensor came for a transfer that sends"));
        };
        let view = tensor.view::<T>()?;
        let own = &mut self.buffer[range.clone()];
        if view.data.len() != own.len() {
            return Err(KernelError::internal(format!(
                "member {from} of a collective sent {} elements: expected {}; give all tasks one version and one \
                 data.collective_order",
                view.data.len(),
                own.len()
            )));
        }
        match self.merge.as_ref().filter(|_| *merges) {
            Some(merge) => merge(own, view.data),
            None => own.copy_from_slice(view.data),
        }
        Ok(())
    }
}

/// Completes a call, and ends the operation for the others if it failed.
fn complete<T: Element>(
    mut call: AsyncCall,
    collective: &Collective,
    result: Result<(), KernelError>,
    plan: Option<Plan<T>>,
) {
    let result = result.and_then(|()| match plan {
        Some(plan) => write(&call.context(), plan),
        None => Err(KernelError::internal("a collective ended without a result")),
    });
    if let Err(error) = &result {
        collective.abort(error);
    }
    call.finish(result);
}

/// Writes the result of a call.
fn write<T: Element>(c: &ComputeContext<'_>, mut plan: Plan<T>) -> Result<(), KernelError> {
    let result = &mut plan.buffer[plan.output.clone()];
    if let Some(finish) = &plan.finish {
        finish(result);
    }
    let output = c.output::<T>(0, &plan.dims)?;
    output.data.copy_from_slice(result);
    Ok(())
}
