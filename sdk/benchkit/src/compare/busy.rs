//! Differences that a busy machine explains.

use crate::record::{Comparison, Record};

/// A record that is compared, and where it was taken.
pub struct Side<'a> {
    /// The record.
    pub record: &'a Record,
    /// Processors of the machine.
    pub cores: u32,
}

impl Side<'_> {
    /// By which factor it may have taken longer for what else was done.
    fn slows(&self) -> f64 {
        let around = self.record.kernel.around.unwrap_or_default();
        around.slows(self.record.threads, self.cores)
    }
}

/// What explains a difference between the slow side and the fast one, where the kernel did not change: that the
/// machine did more besides, or, if that was not counted, that the slow side's fastest samples are as fast.
pub fn explained(comparison: &Comparison, slow: &Side<'_>, fast: &Side<'_>) -> Option<String> {
    let slowdown = comparison.speedup.ln().abs();
    match slow.record.kernel.around {
        Some(around) => {
            let factor = slow.slows() / fast.slows();
            (slowdown <= factor.ln()).then(|| format!("{around} meanwhile"))
        }
        None => {
            let [slow, fast] = [slow, fast].map(|side| side.record.kernel.summary.p5);
            let as_fast = (slow / fast).ln() <= comparison.threshold.ln_1p();
            as_fast.then(|| "its fastest samples are as fast as those of the other run".to_owned())
        }
    }
}
