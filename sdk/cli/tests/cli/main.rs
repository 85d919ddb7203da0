//! The command, as a user runs it.

mod about;
mod bench;
mod bench_ways;
mod check;
mod demo;
mod dev;
mod explain;
mod goldens;
mod help;
mod inspect;
mod install;
mod isolate;
mod list;
mod page;
mod quantize;
mod ranges;
mod run;
mod support;
mod terminal;
mod top;
mod trust;
mod tune;
