//! The rendezvous of the steps over one state.

use super::{Key, LocalRendezvous, Parcel, Receiver, Rendezvous};
use crate::error::StepError;
use arc_swap::ArcSwapOption;
use std::sync::Arc;

/// A rendezvous of the state's own, or for one step the one that it is given.
#[derive(Default)]
pub(crate) struct StepRendezvous {
    own: LocalRendezvous,
    given: ArcSwapOption<Arc<dyn Rendezvous>>,
}

impl StepRendezvous {
    /// Has the next step meet elsewhere. Only between steps.
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

    /// What was given is its owner's to reset.
    fn reset(&self) {
        self.given.store(None);
        self.own.reset();
    }
}
