//! Functions of one number.

mod complex;
mod elementary;
mod functions;
mod integrals;
mod rounding;
mod special;
