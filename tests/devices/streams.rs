//! Several streams of a device in one step: what is ordered stays ordered whatever the device does between
//! streams, what is independent runs side by side, buffers stay until their readers are done, and a device
//! that fails in the midst fails the step.
//!
//! ACCEL helps: its memory is NaN until it is written, it runs streams in a random order (`reorder_seed`), and
//! it holds back kernels of a name (`hold`), and their streams with them. Of several runtimes over one library
//! the last one to set its knobs decides, so that a small one turns a knob while a step of another runs.

mod faults;
mod order;
mod random;
mod support;
mod threads;
mod variables;
