//! Functions of one number.

mod complex;
mod elementary;
mod functions;
mod rounding;
mod special;
