//! What the tests of this crate share: a fake device, and a bench that calls kernels.

mod bench;
mod fake;

pub(crate) use bench::{Bench, attr};
pub(crate) use fake::{FAKE, Fake, FakeLog, LOOSE};
