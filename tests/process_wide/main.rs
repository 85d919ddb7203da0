//! What a process has once, and what a test sets for good: the global receiver of log lines, the limit on host memory.
//! One test runs at a time (`session::turn`).

mod completions;
mod memory_limit;
mod requests;
