//! Functions of the graph's library, with which datasets make elements.
//!
//! A call is a step of its own, which outlives the step that made the dataset. When the context of a call ends, the
//! call ends for the dataset at once; calls that still run are cancelled when the last dataset with the function is
//! gone.

use super::{
    Context, Element,
    context::Heard,
    element::whole,
    task::{Receiver, Sender, channel},
};
use crate::queue::Component;
use std::{
    future::Future,
    ops::Range,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{self, Poll},
};
use tenon_sdk::{growth, prelude::*};

/// A function of the graph's library with its captured arguments.
#[derive(Clone)]
pub struct Captured(Arc<Inner>);

struct Inner {
    function: Function,
    /// The last arguments of each call.
    arguments: Vec<Arc<Kept>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.function.cancel();
    }
}

type Results = Result<Element, KernelError>;

impl Captured {
    /// The function that attribute `attr` names, with these inputs as its last arguments.
    ///
    /// # Errors
    /// As [`ComputeContext::function`] and [`ComputeContext::keep`].
    pub fn of(
        c: &ComputeContext<'_>,
        attr: &str,
        arguments: Range<usize>,
    ) -> Result<Captured, KernelError> {
        let function = c.function(attr)?;
        let arguments = growth::try_collected(arguments.map(|at| c.keep(at).map(Arc::new)))?;
        Ok(Captured(Arc::new(Inner { function, arguments })))
    }

    /// Calls the function on this thread, as far as it goes without waiting.
    ///
    /// # Errors
    /// Those of the function; `CANCELLED` when the context ends.
    pub async fn call(&self, context: &Context, element: Element) -> Results {
        self.start(context, element, Schedule::Inline).await
    }

    /// Calls the function on another thread.
    pub fn begin(&self, context: &Context, element: Element) -> Running {
        self.start(context, element, Schedule::Pool)
    }

    /// Calls the function on another thread, and waits for nothing: what it returns is dropped, an error too.
    pub fn leave(&self, element: Element) {
        let Ok(arguments) = self.arguments(&element) else { return };
        let kept = self.clone();
        // The function is cancelled when nobody has it, so that the call keeps it.
        self.0.function.call(&arguments, Schedule::Pool, move |_| drop(kept));
    }

    fn start(&self, context: &Context, element: Element, schedule: Schedule) -> Running {
        let (sender, receiver) = channel();
        let end = Arc::new(Mutex::new(Some(sender)));
        match self.arguments(&element) {
            Err(error) => give(&end, Err(error)),
            Ok(arguments) => {
                let done = Arc::clone(&end);
                let done = move |results: Result<Vec<Kept>, KernelError>| {
                    give(&done, results.and_then(whole));
                };
                self.0.function.call(&arguments, schedule, done);
            }
        }
        let heard = (!receiver.is_ready()).then(|| {
            let context = context.clone();
            context.clone().on_end(move || {
                if let Err(error) = context.check() {
                    give(&end, Err(error));
                }
            })
        });
        Running { receiver, _heard: heard }
    }

    fn arguments(&self, element: &[Component]) -> Result<Vec<Arc<Kept>>, KernelError> {
        let own = element.iter().map(Component::kept);
        growth::try_collected(own.chain(self.0.arguments.iter().map(|kept| Ok(Arc::clone(kept)))))
    }
}

/// Gives a call its end, unless it has one.
fn give(end: &Mutex<Option<Sender<Results>>>, results: Results) {
    let sender = end.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(sender) = sender {
        sender.send(results);
    }
}

/// A call of a function that has begun.
pub struct Running {
    receiver: Receiver<Results>,
    /// Until the call has ended.
    _heard: Option<Heard>,
}

impl Future for Running {
    type Output = Results;

    fn poll(mut self: Pin<&mut Self>, polled: &mut task::Context<'_>) -> Poll<Results> {
        let lost = || Err(KernelError::internal("a call of a function ended without a result"));
        Pin::new(&mut self.receiver).poll(polled).map(|results| results.unwrap_or_else(lost))
    }
}
