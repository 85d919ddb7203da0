//! Several devices in one session, and several streams of one device. One test runs at a time (`session::turn`).

mod costs;
mod devices;
mod streams;
