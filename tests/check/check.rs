//! `tenon check` over plugins that are known to be wrong, and over some that are right: each wrong one is found
//! and named, of the right ones nothing is said.

mod again;
mod exceptions;
mod loading;
mod right;
mod support;
mod wrong;
