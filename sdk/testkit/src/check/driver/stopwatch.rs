//! Where the time of a unit goes.

use crate::check::{
    Clause,
    protocol::Message,
    report::{Activity, Spent},
};
use std::time::Instant;

/// Adds up what a worker does between its messages.
#[derive(Debug)]
pub(super) struct Stopwatch {
    since: Instant,
    on: Activity,
    spent: Spent,
}

impl Stopwatch {
    /// Starts with the worker's own part: cases are generated before the first step begins.
    pub fn start() -> Stopwatch {
        Stopwatch { since: Instant::now(), on: Activity::Generate, spent: Spent::default() }
    }

    /// What was done up to this message is over; another thing may begin with it.
    pub fn hear(&mut self, message: &Message) {
        self.lap();
        if let Message::Begin { clause, oracle, .. } = message {
            self.on = match (oracle, clause) {
                (true, _) => Activity::Oracle,
                (false, Some(clause)) => Activity::Clause(*clause),
                (false, None) => Activity::Clause(Clause::Values),
            };
        }
    }

    /// What was spent in all.
    pub fn stop(mut self) -> Spent {
        self.lap();
        self.spent
    }

    fn lap(&mut self) {
        let now = Instant::now();
        self.spent.add(self.on, now - self.since);
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{thread::sleep, time::Duration};

    #[test]
    fn time_belongs_to_what_was_begun_last() {
        let begin = |clause, oracle| Message::Begin {
            step: 0,
            name: String::new(),
            clause,
            oracle,
            unpromised: false,
        };
        let pause = Duration::from_millis(2);
        let mut watch = Stopwatch::start();
        watch.hear(&begin(None, false));
        sleep(pause);
        watch.hear(&begin(Some(Clause::Leak), true));
        watch.hear(&Message::Done);
        sleep(2 * pause);
        let spent = watch.stop();
        let of = |activity| spent.of(activity);
        assert!(of(Activity::Clause(Clause::Values)) >= pause);
        assert!(of(Activity::Oracle) >= 2 * pause);
        assert_eq!(of(Activity::Clause(Clause::Leak)), Duration::ZERO);
        assert_eq!(spent.total(), spent.iter().map(|(_, time)| time).sum::<Duration>());
    }
}
