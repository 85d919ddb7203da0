//! Iterators over the one dataset that a function makes, when the iterator is asked for the first time.
//!
//! # States
//! *new* → *begun*, by the first call; further calls wait → *ended*: the iterator is made, or every call fails.

use super::Iterator;
use crate::{
    attempts::{Attempt, Attempts, Order, Progress, TAKE},
    dataset::{Captured, Context, Spec, caught, only_dataset, spawn},
    place::{Maker, Place},
};
use std::sync::{Arc, Weak};
use tenon_sdk::prelude::*;

/// How far an iterator is made.
pub enum Making {
    New,
    Begun,
    Ended(Result<(), KernelError>),
}

/// The making of an iterator, and the calls that wait for it.
pub type Once = Arc<Attempts<Making>>;

/// One that is not made.
pub fn once(place: &Place) -> Once {
    let label = place.label::<Iterator>();
    Arc::new(Attempts::new(label, Making::New, [Order::Any, Order::Any]))
}

struct OneShot {
    maker: Arc<Maker<Iterator>>,
    spec: Spec,
}

/// Waits until an iterator is made.
struct Wait {
    maker: Arc<Maker<Iterator>>,
    iterator: Arc<Iterator>,
}

impl Attempt<Making> for Wait {
    fn run(&mut self, state: &mut Making) -> Progress {
        match state {
            Making::Ended(result) => Progress::Done(result.clone()),
            _ => Progress::Stuck,
        }
    }

    fn finish(&mut self, call: &mut AsyncCall) -> Result<(), KernelError> {
        self.maker.output(&call.context(), &self.iterator)
    }
}

impl Kernel for OneShot {
    const MODE: Mode = Mode::Async;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(OneShot { maker: Arc::new(Maker::new(c)?), spec: Spec::new(c)? })
    }

    fn compute(&self, _: &ComputeContext<'_>) -> Result<(), KernelError> {
        Err(KernelError::internal("a call that makes an iterator is started, not computed"))
    }

    fn start(&self, mut call: AsyncCall) {
        match self.begin(&call.context()) {
            Ok((iterator, factory)) => {
                let wait = Wait { maker: Arc::clone(&self.maker), iterator: Arc::clone(&iterator) };
                iterator.once.start(TAKE, call, Box::new(wait));
                let is_first = iterator.once.update(|state| match state {
                    Making::New => {
                        *state = Making::Begun;
                        true
                    }
                    _ => false,
                });
                if is_first {
                    let (once, context) = (Arc::clone(&iterator.once), iterator.making.clone());
                    spawn(make(Arc::downgrade(&iterator), once, context, factory));
                }
            }
            Err(error) => call.finish(Err(error)),
        }
    }
}

impl OneShot {
    fn begin(&self, c: &ComputeContext<'_>) -> Result<(Arc<Iterator>, Captured), KernelError> {
        let factory = Captured::of(c, "dataset_factory", 0..0)?;
        let iterator = self.maker.get(c, |place| Ok(Iterator::new(place, self.spec.clone())))?;
        self.spec.check(&iterator.spec, &iterator.label())?;
        Ok((iterator, factory))
    }
}

/// Makes the dataset. The iterator is not kept: when it is gone, its context ends the call.
async fn make(iterator: Weak<Iterator>, once: Once, context: Context, factory: Captured) {
    let result = caught("making a dataset", async {
        let results = factory.call(&context, Vec::new()).await?;
        let dataset = only_dataset(&results, "dataset_factory")?;
        iterator.upgrade().map_or(Ok(()), |iterator| iterator.begin(&dataset))
    });
    let result = result.await;
    once.update(|state| *state = Making::Ended(result));
}

register_kernel!("OneShotIterator" on "CPU": OneShot);
