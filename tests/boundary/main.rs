//! The boundary between host and plugins: how libraries are opened, loaded, trusted and refused, and each clause of
//! what a call and a device give, through both doors.
//!
//! Plugins here have their knobs at the defaults: the knobs of a loaded library are the process's. Tests that set those
//! of the zoo are in `sessions`, where one test runs at a time.

mod authors;
mod c_api;
mod client_api;
mod client_header;
mod growth;
mod loading;
mod opening;
mod trust;
mod zoo_calls;
mod zoo_device;
