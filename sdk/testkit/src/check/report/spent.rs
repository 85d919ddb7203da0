//! Where the time of a check went.

use crate::check::Clause;
use std::{collections::BTreeMap, fmt, time::Duration};

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    /// Making cases, and whatever a worker does before its first step.
    Generate,
    /// Computing what is expected.
    Oracle,
    /// Looking at a promise.
    Clause(Clause),
    /// Making failures smaller.
    Shrink,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Activity::Generate => "generate",
            Activity::Oracle => "oracle",
            Activity::Clause(clause) => clause.name(),
            Activity::Shrink => "shrink",
        })
    }
}

/// Time by what it was spent on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spent(BTreeMap<Activity, Duration>);

impl Spent {
    /// Adds time.
    pub fn add(&mut self, activity: Activity, time: Duration) {
        *self.0.entry(activity).or_default() += time;
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Spent) {
        other.iter().for_each(|(activity, time)| self.add(activity, time));
    }

    /// What was spent on one thing.
    pub fn of(&self, activity: Activity) -> Duration {
        self.0.get(&activity).copied().unwrap_or_default()
    }

    /// Everything, in the order of [`Activity`].
    pub fn iter(&self) -> impl Iterator<Item = (Activity, Duration)> {
        self.0.iter().map(|(activity, time)| (*activity, *time))
    }

    /// All of it.
    pub fn total(&self) -> Duration {
        self.0.values().sum()
    }

    /// The first few things that took longest.
    pub fn longest(&self, count: usize) -> Vec<(Activity, Duration)> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        all.truncate(count);
        all
    }
}
