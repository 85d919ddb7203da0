//! Graphs, feeds and names that are wrong: an error says what, where, expected and found, and the session
//! goes on as if nothing had been asked.

mod feeds;
mod found;
mod graphs;
mod indices;
mod named;
mod quantised;
