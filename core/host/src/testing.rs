//! Helpers of this crate's tests: fake devices, ops, and a bench that calls kernels.

mod bench;
mod fake;
mod letters;
mod ops;

pub(crate) use bench::{Bench, attr};
pub(crate) use fake::{FAKE, FAKE_LIMIT, Fake, LOOSE};
pub(crate) use ops::FORMS;
