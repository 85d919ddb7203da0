//! A call between its start and its end.
//!
//! # States
//! *joining* until the host says the place of the call; then the steps of a schedule, one after the other: a send is done at
//! once, a receive *waits* until its tensor has come; *ended* once the call is completed.
//!
//! Receives are requested ahead, [`WINDOW`] at most, so that a piece is on its way while the one before is merged.
//!
//! What comes (the place, a tensor, cancellation) is noted under the lock. Whoever notes it goes on with the steps, unless
//! somebody does already, who then sees what was noted. Of the host's services only those for memory are called under the lock.

use super::{Common, Keyed, Members, Operation, Transfer, running::Running};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenon_sdk::prelude::*;

struct State<T> {
    /// `None` before the join returned, and once the call is completed.
    call: Option<(AsyncCall, Arc<Collective>)>,
    members: Option<Members>,
    /// The value of the call.
    value: Option<Kept>,
    running: Option<Running<T>>,
    error: Option<KernelError>,
    /// Whether a thread goes on with the steps.
    is_driven: bool,
}

/// A call.
pub(super) struct Exchange<T, O> {
    operation: Arc<O>,
    dims: Vec<i64>,
    /// The place that the graph gives the member.
    rank: Option<i32>,
    state: Mutex<State<T>>,
}

/// What is to be done next, outside the lock.
enum Next {
    Nothing,
    Send { to: u32, number: u64, tensor: Kept },
    Receive { from: u32, number: u64, at: usize },
    End(Result<(), KernelError>),
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
        let (dims, value) = operation.value(&context)?;
        let Keyed { keys: [group_size, group_key, instance_key], rank, timeout } =
            common.read(&context)?;
        let state = State {
            call: None,
            members: None,
            value,
            running: None,
            error: None,
            is_driven: false,
        };
        let exchange = Arc::new(Exchange {
            operation: Arc::clone(operation),
            dims: dims.clone(),
            rank,
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
            timeout,
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

    /// Checks that the member has the place that the graph gives it, if that matters.
    fn check_place(&self, members: Members) -> Result<(), KernelError> {
        let place = members.place;
        let given = self.rank.map(|rank| usize::try_from(rank).unwrap_or(usize::MAX));
        match given.filter(|rank| O::BY_PLACE && *rank != place) {
            None => Ok(()),
            Some(rank) => Err(KernelError::unimplemented(format!(
                "the communicator has rank {rank}, and its device is number {place} of the group: expected ranks in the \
                 order of the devices, by job, task and number"
            ))),
        }
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
                Next::Receive { from, number, at } => {
                    drop(state);
                    let own = Arc::clone(self);
                    collective.recv(from, number, move |tensor| match tensor {
                        Ok(tensor) => own.note(|state| {
                            // One that comes after the end is not needed.
                            if let Some(running) = &mut state.running {
                                running.arrived(at, tensor);
                            }
                        }),
                        Err(error) => own.fail(error),
                    });
                }
                Next::End(result) => {
                    let (call, running) = (state.call.take(), state.running.take());
                    state.is_driven = false;
                    drop(state);
                    if let Some((call, _)) = call {
                        complete(call, &collective, result, running);
                    }
                    return;
                }
            }
        }
    }

    /// The next thing to do, after what needs no service of the host is done.
    fn next(&self, state: &mut State<T>) -> Result<Next, KernelError> {
        let State { call: Some((call, _)), members, value, running, error, .. } = state else {
            return Ok(Next::Nothing);
        };
        if let Some(error) = error.clone() {
            return Err(error);
        }
        let Some(members) = *members else { return Ok(Next::Nothing) };
        let running = match running {
            Some(running) => running,
            None => {
                self.check_place(members)?;
                let plan = self.operation.plan(members, &self.dims)?;
                running.insert(Running::begin(plan, value.take(), call)?)
            }
        };
        running.merge(call)?;
        if let Some((at, from, number)) = running.next_receive() {
            return Ok(Next::Receive { from, number, at });
        }
        match running.current() {
            None => Ok(Next::End(Ok(()))),
            Some(Transfer::Receive { .. }) => Ok(Next::Nothing),
            Some(Transfer::Send { .. }) => {
                let (to, number, tensor) = running.send(call)?;
                Ok(Next::Send { to, number, tensor })
            }
        }
    }
}

/// Completes a call, and ends the operation for the others if it failed.
fn complete<T: Element>(
    mut call: AsyncCall,
    collective: &Collective,
    result: Result<(), KernelError>,
    running: Option<Running<T>>,
) {
    let result = result.and_then(|()| match running {
        Some(running) => running.end(&mut call),
        None => Err(KernelError::internal("a collective ended without a result")),
    });
    if let Err(error) = &result {
        collective.abort(error);
    }
    call.finish(result);
}
