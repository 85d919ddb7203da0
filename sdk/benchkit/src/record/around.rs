//! Other work of a machine.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Other work of the machine while samples were taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Around {
    /// Processors that other processes kept busy, on the mean.
    pub others: f64,
    /// Share of their time for which threads of this process were ready to run and had no processor.
    pub waited: f64,
    /// Share of the time of all processors that the hypervisor gave to other machines.
    pub stolen: f64,
}

impl Around {
    /// By which factor calls may take longer for it, on this many threads of a machine with this many processors. A thread
    /// that waits takes longer by what it waited. What others take of memory and of the clock is assumed to be a fair share,
    /// among as many processors as fill a machine's memory: a quarter of them, and at least those that the threads have.
    pub fn slows(&self, threads: u32, cores: u32) -> f64 {
        let full = f64::from(threads).max(f64::from(cores) / 4.0).max(1.0);
        let had = (1.0 - self.waited) * (1.0 - self.stolen);
        (1.0 + self.others / full) / had.max(0.01)
    }

    /// Of `count` processes and one more.
    pub fn with(self, count: usize, other: Around) -> Around {
        let mean = |all: f64, one: f64| all + (one - all) / (count as f64 + 1.0);
        Around {
            others: mean(self.others, other.others),
            waited: mean(self.waited, other.waited),
            stolen: mean(self.stolen, other.stolen),
        }
    }
}

impl fmt::Display for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "other processes used {:.1} processors", self.others)?;
        for (share, what) in
            [(self.waited, "its threads waited for one"), (self.stolen, "the hypervisor took them")]
        {
            if share >= 0.01 {
                write!(f, ", {what} for {:.0} % of the time", 100.0 * share)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_do_explains_so_much_and_no_more() {
        let quiet = Around::default();
        assert_eq!(quiet.slows(1, 2), 1.0);
        let one = Around { others: 1.0, ..quiet };
        assert_eq!((one.slows(1, 2), one.slows(2, 2), one.slows(1, 16)), (2.0, 1.5, 1.25));
        let waits = Around { waited: 0.5, ..quiet };
        assert_eq!(waits.slows(2, 2), 2.0);
        let stolen = Around { stolen: 0.2, waited: 0.5, ..quiet };
        assert!((stolen.slows(1, 2) - 2.5).abs() < 1e-9);
        assert!(Around { waited: 1.0, ..quiet }.slows(1, 2).is_finite());
    }

    #[test]
    fn processes_count_alike() {
        let of = |others: f64| Around { others, ..Around::default() };
        assert_eq!(of(1.0).with(1, of(2.0)).with(2, of(3.0)), of(2.0));
    }

    #[test]
    fn it_is_said_in_words() {
        let busy = Around { others: 1.42, waited: 0.12, stolen: 0.0 };
        let expected =
            "other processes used 1.4 processors, its threads waited for one for 12 % of the time";
        assert_eq!(busy.to_string(), expected);
    }
}
