//! Ops that reduce many elements to few: reductions, scans, segments, histograms, ranking.

mod axes;
mod bincount;
mod counting;
mod isotonic;
mod neighbours;
mod picked;
mod ranking;
mod scan;
mod segment;

pub(crate) use axes::reduce;
