//! The rendezvous of the steps over one state.

use super::{Key, LocalRendezvous, Parcel, Receiver, Rendezvous};
use crate::error::StepError;
use arc_swap::ArcSwapOption;
use std::sync::Arc;

/// The state's own rendezvous; for one step, an external one can take its place.
#[derive(Default)]
pub(crate) struct StepRendezvous {
    own: LocalRendezvous,
    given: ArcSwapOption<Arc<dyn Rendezvous>>,
}

impl StepRendezvous {
    /// Sets the external rendezvous for the next step. Only call this between steps.
    pub fn give(&self, rendezvous: Arc<dyn Rendezvous>) {
        self.given.store(Some(Arc::new(rendezvous)));
    }

    fn with<R>(&self, run: impl FnOnce(&dyn Rendezvous) -> R) -> R {
        match self.given.load_full() {
            Some(given) => run(&**given),
            None => run(&self.own),
        }
    }
}

impl Rendezvous for StepRendezvous {
    fn send(&self, key: &Key, parcel: Parcel) -> Result<(), StepError> {
        self.with(|at| at.send(key, parcel))
    }

    fn recv(&self, key: &Key, receiver: Receiver) {
        self.with(|at| at.recv(key, receiver));
    }

    fn abort(&self, error: StepError) {
        self.with(|at| at.abort(error));
    }

    /// The owner of an external rendezvous resets it.
    fn reset(&self) {
        self.given.store(None);
        self.own.reset();
    }
}
