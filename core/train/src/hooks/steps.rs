//! Hooks that follow the number of steps.

use super::{Every, Hook, RunArgs, RunContext, Timer, timer::rate};
use crate::{Scaffold, TrainError, manager::step_of, read_step};
use std::time::Duration;
use tenon_framework::Tensor;
use tenon_runtime::AnySession;

/// Ends the training at a step.
///
/// A value that is fetched beside an update may be from before or after it. The hook therefore reads the number of steps
/// again where the end is near.
#[derive(Debug, Clone)]
pub struct StopAtStep {
    /// Steps from the one at which the first session begins.
    more: Option<i64>,
    last: i64,
    tensor: String,
}

impl StopAtStep {
    /// Ends when the number of steps is this, in all sessions together.
    pub fn last(step: i64) -> StopAtStep {
        StopAtStep { more: None, last: step, tensor: String::new() }
    }

    /// Ends after this many steps from now on.
    pub fn after(steps: i64) -> StopAtStep {
        StopAtStep { more: Some(steps), last: i64::MAX, tensor: String::new() }
    }
}

impl Hook for StopAtStep {
    fn begin(&mut self, scaffold: &Scaffold) -> Result<(), TrainError> {
        self.tensor = scaffold.needs_global_step("StopAtStep")?;
        Ok(())
    }

    fn after_create_session(&mut self, run: &mut RunContext<'_>) -> Result<(), TrainError> {
        let step = read_step(run.session(), &self.tensor)?;
        if let Some(more) = self.more.take() {
            self.last = step.saturating_add(more);
        }
        if step >= self.last {
            run.request_stop();
        }
        Ok(())
    }

    fn before_run(&mut self, _: &mut RunContext<'_>) -> Result<RunArgs, TrainError> {
        Ok(RunArgs::fetch(std::slice::from_ref(&self.tensor)))
    }

    fn after_run(&mut self, run: &mut RunContext<'_>, values: &[Tensor]) -> Result<(), TrainError> {
        let step = step_of(values.first(), &self.tensor)?;
        if step.saturating_add(1) >= self.last
            && read_step(run.session(), &self.tensor)? >= self.last
        {
            run.request_stop();
        }
        Ok(())
    }
}

/// Measures steps per second, and reports them: to the log, or to a function that gets the rate and the step.
pub struct StepCounter {
    timer: Timer,
    tensor: String,
    report: Box<dyn FnMut(f64, i64) + Send>,
}

impl StepCounter {
    /// Reports to the log.
    pub fn new(every: Every) -> StepCounter {
        StepCounter::with(every, |rate, step| {
            tracing::info!("step {step}: {rate:.2} steps per second");
        })
    }

    /// Reports to a function.
    pub fn with(every: Every, report: impl FnMut(f64, i64) + Send + 'static) -> StepCounter {
        StepCounter { timer: Timer::new(every), tensor: String::new(), report: Box::new(report) }
    }
}

impl Hook for StepCounter {
    fn begin(&mut self, scaffold: &Scaffold) -> Result<(), TrainError> {
        self.tensor = scaffold.needs_global_step("StepCounter")?;
        Ok(())
    }

    fn before_run(&mut self, _: &mut RunContext<'_>) -> Result<RunArgs, TrainError> {
        Ok(RunArgs::fetch(std::slice::from_ref(&self.tensor)))
    }

    fn after_run(&mut self, _: &mut RunContext<'_>, values: &[Tensor]) -> Result<(), TrainError> {
        let step = step_of(values.first(), &self.tensor)?;
        if self.timer.is_due(step)
            && let Some(rate) = self.timer.mark(step).and_then(rate)
        {
            (self.report)(rate, step);
        }
        Ok(())
    }
}

/// Waits before each step until other workers have brought the number of steps to this one.
#[derive(Debug, Clone)]
pub struct GlobalStepWaiter {
    step: i64,
    poll: Duration,
    is_reached: bool,
    tensor: String,
}

impl GlobalStepWaiter {
    /// Waits for this step.
    pub fn new(step: i64) -> GlobalStepWaiter {
        let poll = Duration::from_millis(500);
        GlobalStepWaiter { step, poll, is_reached: step <= 0, tensor: String::new() }
    }

    /// Looks at the number of steps after each time of this length; 500 ms by default.
    #[must_use]
    pub fn poll(self, poll: Duration) -> GlobalStepWaiter {
        GlobalStepWaiter { poll, ..self }
    }
}

impl Hook for GlobalStepWaiter {
    fn begin(&mut self, scaffold: &Scaffold) -> Result<(), TrainError> {
        self.tensor = scaffold.needs_global_step("GlobalStepWaiter")?;
        Ok(())
    }

    fn before_run(&mut self, run: &mut RunContext<'_>) -> Result<RunArgs, TrainError> {
        while !self.is_reached {
            let found = read_step(run.session(), &self.tensor)?;
            self.is_reached = found >= self.step;
            if !self.is_reached && run.coordinator().wait_for_stop(Some(self.poll)) {
                break;
            }
        }
        Ok(RunArgs::default())
    }
}

/// The number of steps after a step whose fetched value may be from before its update.
pub(super) fn step_after(
    session: &dyn AnySession,
    tensor: &str,
    timer: &Timer,
    fetched: i64,
) -> Result<Option<i64>, TrainError> {
    if !timer.is_due(fetched.saturating_add(1)) {
        return Ok(None);
    }
    let step = read_step(session, tensor)?;
    Ok(timer.is_due(step).then_some(step))
}
