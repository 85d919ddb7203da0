//! Writes summaries.

use super::{Every, Hook, RunArgs, RunContext, Timer};
use crate::{EventWriter, Scaffold, TrainError, manager::step_of};
use tenon_framework::Tensor;
use tenon_runtime::AnySession;

/// Where summaries go, such as an event file. A function of the encoded `Summary` and the step is one.
pub trait SummarySink: Send {
    /// Adds an encoded `Summary`.
    ///
    /// # Errors
    /// It cannot be written.
    fn add_summary(&mut self, summary: &[u8], step: i64) -> Result<(), TrainError>;

    /// Makes what was added visible to readers.
    ///
    /// # Errors
    /// It cannot be written.
    fn flush(&mut self) -> Result<(), TrainError> {
        Ok(())
    }
}

impl<F: FnMut(&[u8], i64) -> Result<(), TrainError> + Send> SummarySink for F {
    fn add_summary(&mut self, summary: &[u8], step: i64) -> Result<(), TrainError> {
        self(summary, step)
    }
}

impl SummarySink for EventWriter {
    fn add_summary(&mut self, summary: &[u8], step: i64) -> Result<(), TrainError> {
        EventWriter::add_summary(self, summary, step)
    }

    fn flush(&mut self) -> Result<(), TrainError> {
        EventWriter::flush(self)
    }
}

/// Fetches summaries (`ScalarSummary`, `MergeSummary`) and writes them.
pub struct Summary {
    summary: String,
    sink: Box<dyn SummarySink>,
    timer: Timer,
    tensor: String,
    next: i64,
}

impl Summary {
    /// Writes the summaries of this tensor of strings.
    pub fn new(summary: &str, every: Every, sink: impl SummarySink + 'static) -> Summary {
        let timer = Timer::new(every);
        let sink = Box::new(sink);
        Summary { summary: summary.to_owned(), sink, timer, tensor: String::new(), next: 0 }
    }
}

impl Hook for Summary {
    fn begin(&mut self, scaffold: &Scaffold) -> Result<(), TrainError> {
        self.tensor = scaffold.needs_global_step("Summary")?;
        Ok(())
    }

    fn before_run(&mut self, _: &mut RunContext<'_>) -> Result<RunArgs, TrainError> {
        let mut fetches = vec![self.tensor.clone()];
        if self.timer.is_due(self.next) {
            fetches.push(self.summary.clone());
        }
        Ok(RunArgs { fetches, ..RunArgs::default() })
    }

    fn after_run(&mut self, _: &mut RunContext<'_>, values: &[Tensor]) -> Result<(), TrainError> {
        let step = step_of(values.first(), &self.tensor)?;
        self.next = step.saturating_add(1);
        if let Some(summaries) = values.get(1) {
            for summary in summaries.as_strings()? {
                self.sink.add_summary(summary, step)?;
            }
            self.timer.mark(step);
        }
        Ok(())
    }

    fn end(&mut self, _: &dyn AnySession) -> Result<(), TrainError> {
        self.sink.flush()
    }
}
