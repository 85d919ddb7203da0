//! Plugins in processes of their own: whatever they do, the host goes on, steps are neither lost nor mixed up, and
//! nothing is left behind.

#![cfg(target_os = "linux")]

mod bools;
mod faults;
mod life;
mod memory;
mod quarantine;
mod races;
mod restart;
mod support;
