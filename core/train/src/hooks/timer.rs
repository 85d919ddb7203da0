//! When a hook acts.

use std::time::{Duration, Instant};

/// How often a hook acts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Every {
    /// After this many steps; 0 is 1.
    Steps(i64),
    /// After this time.
    Time(Duration),
}

/// Says at which steps a hook acts: at the first one that it sees, and then as often as it should.
#[derive(Debug, Clone)]
pub struct Timer {
    every: Every,
    last: Option<(i64, Instant)>,
}

impl Timer {
    /// A timer that has seen no step.
    pub fn new(every: Every) -> Timer {
        Timer { every, last: None }
    }

    /// Whether the hook acts at this step.
    pub fn is_due(&self, step: i64) -> bool {
        let Some((last, at)) = self.last else { return true };
        match self.every {
            _ if step == last => false,
            // After a loss, the steps since the last checkpoint are run again.
            _ if step < last => true,
            Every::Steps(steps) => step.saturating_sub(last) >= steps.max(1),
            Every::Time(time) => at.elapsed() >= time,
        }
    }

    /// Notes that the hook acted at this step. Returns the steps and the time since it did so before.
    pub fn mark(&mut self, step: i64) -> Option<(i64, Duration)> {
        let now = Instant::now();
        let (last, at) = self.last.replace((step, now))?;
        Some((step.saturating_sub(last), now.duration_since(at)))
    }
}

/// Steps per second; `None` where the steps or the time are none.
pub(super) fn rate((steps, time): (i64, Duration)) -> Option<f64> {
    (steps > 0 && !time.is_zero()).then(|| steps as f64 / time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_from_the_last_one() {
        let mut timer = Timer::new(Every::Steps(10));
        assert!(timer.is_due(3));
        assert_eq!(timer.mark(3), None);
        assert!(!timer.is_due(3) && !timer.is_due(12) && timer.is_due(13));
        assert_eq!(timer.mark(13).map(|(steps, _)| steps), Some(10));
        assert!(timer.is_due(2), "a step that runs again");
    }

    #[test]
    fn time_is_counted_from_the_last_step() {
        let mut timer = Timer::new(Every::Time(Duration::from_secs(3600)));
        assert!(timer.is_due(1));
        timer.mark(1);
        assert!(!timer.is_due(1000));
        let mut timer = Timer::new(Every::Time(Duration::ZERO));
        timer.mark(1);
        assert!(timer.is_due(2) && !timer.is_due(1));
    }

    #[test]
    fn a_rate_needs_steps_and_time() {
        assert_eq!(rate((10, Duration::from_secs(2))), Some(5.0));
        assert_eq!(rate((0, Duration::from_secs(2))), None);
        assert_eq!(rate((10, Duration::ZERO)), None);
    }
}
