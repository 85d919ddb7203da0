//! The command, as a user runs it.

mod about;
mod bench;
mod bench_ways;
mod check;
mod checkpoint;
mod demo;
mod dev;
mod dist;
mod explain;
mod goldens;
mod help;
mod inspect;
mod install;
mod isolate;
mod list;
mod new;
mod page;
mod quantize;
mod ranges;
mod readme;
mod run;
mod support;
mod terminal;
mod top;
mod trust;
mod tune;
