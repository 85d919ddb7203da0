//! The limits of a machine, as records have them.

use serde::{Deserialize, Serialize};

/// Limits of the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Roofline {
    /// Threads that reached them.
    pub threads: u32,
    /// Arithmetic.
    pub peaks: Vec<Peak>,
    /// Memory, from the smallest level to main memory.
    pub levels: Vec<Level>,
}

/// Arithmetic that one instruction set reaches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// Element type of the products, such as `float`.
    pub dtype: String,
    /// Instruction set, such as `avx512f`.
    pub isa: String,
    /// Operations per nanosecond (GFLOP/s); a multiplication and its addition are two.
    pub rate: f64,
}

/// Bandwidth of a level of memory. Bytes are those that the program asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// `L1`, `L2`, `L3`, `memory`.
    pub name: String,
    /// Working sets up to this many bytes, per thread, are in it; `None` for memory.
    pub bytes: Option<u64>,
    /// Bytes per nanosecond (GB/s) of reading alone.
    pub read: f64,
    /// Of writing alone.
    pub write: f64,
    /// Of as many reads as writes.
    pub copy: f64,
    /// Of two reads and a write.
    pub triad: f64,
}
