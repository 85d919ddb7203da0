//! Shows how a training is getting on.

use super::{Hook, RunArgs, RunContext, timer::rate};
use crate::{Scaffold, TrainError, manager::step_of, read_step, text::shown};
use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};
use tenon_framework::Tensor;
use tenon_runtime::AnySession;

/// How often the line is drawn again on a terminal.
const REDRAW: Duration = Duration::from_millis(100);

/// One line with the step, the loss, steps per second and the time that is left. On a terminal it is drawn again in its
/// place; elsewhere a line is written now and then.
pub struct Progress {
    loss: Option<String>,
    last: Option<i64>,
    interval: Duration,
    is_terminal: bool,
    out: Box<dyn Write + Send>,
    tensor: String,
    begin: Option<(i64, Instant)>,
    drawn: Option<Instant>,
    found: Option<Tensor>,
}

impl Progress {
    /// Shows the progress on the standard error stream, and every 10 seconds if that is not a terminal.
    pub fn new() -> Progress {
        let stream = io::stderr();
        let is_terminal = stream.is_terminal();
        Progress::to(stream, is_terminal)
    }

    /// Shows it on another stream.
    pub fn to(out: impl Write + Send + 'static, is_terminal: bool) -> Progress {
        Progress {
            loss: None,
            last: None,
            interval: Duration::from_secs(10),
            is_terminal,
            out: Box::new(out),
            tensor: String::new(),
            begin: None,
            drawn: None,
            found: None,
        }
    }

    /// Shows this tensor as the loss.
    #[must_use]
    pub fn loss(self, tensor: &str) -> Progress {
        Progress { loss: Some(tensor.to_owned()), ..self }
    }

    /// The step at which the training ends, from which the time that is left follows.
    #[must_use]
    pub fn last_step(self, step: i64) -> Progress {
        Progress { last: Some(step), ..self }
    }

    /// The time between two lines where the stream is not a terminal.
    #[must_use]
    pub fn interval(self, interval: Duration) -> Progress {
        Progress { interval, ..self }
    }

    fn text(&self, step: i64, loss: Option<&Tensor>) -> String {
        let mut text = match self.last {
            Some(last) => format!("step {step}/{last}"),
            None => format!("step {step}"),
        };
        if let Some(loss) = loss {
            text += &format!("  loss {}", shown(loss));
        }
        let since = self.begin.map(|(first, at)| (step.saturating_sub(first), at.elapsed()));
        if let Some(rate) = since.and_then(rate) {
            text += &format!("  {rate:.1} steps/s");
            let left = self.last.map(|last| last.saturating_sub(step).max(0) as f64 / rate);
            if let Some(left) = left.and_then(|left| Duration::try_from_secs_f64(left).ok()) {
                text += &format!("  {} left", clock(left));
            }
        }
        text
    }

    fn draw(&mut self, step: i64) -> io::Result<()> {
        let line = self.text(step, self.found.as_ref());
        if self.is_terminal {
            write!(self.out, "\r\x1b[2K{line}")?;
        } else {
            writeln!(self.out, "{line}")?;
        }
        self.out.flush()
    }
}

impl Default for Progress {
    fn default() -> Progress {
        Progress::new()
    }
}

/// A time as `1:02:03` or `2:03`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

impl Hook for Progress {
    fn begin(&mut self, scaffold: &Scaffold) -> Result<(), TrainError> {
        self.tensor = scaffold.needs_global_step("Progress")?;
        Ok(())
    }

    fn before_run(&mut self, _: &mut RunContext<'_>) -> Result<RunArgs, TrainError> {
        let mut fetches = vec![self.tensor.clone()];
        fetches.extend(self.loss.clone());
        Ok(RunArgs { fetches, ..RunArgs::default() })
    }

    fn after_run(&mut self, _: &mut RunContext<'_>, values: &[Tensor]) -> Result<(), TrainError> {
        let step = step_of(values.first(), &self.tensor)?;
        self.begin.get_or_insert_with(|| (step, Instant::now()));
        self.found = values.get(1).cloned();
        let pause = if self.is_terminal { REDRAW } else { self.interval };
        if self.drawn.is_none_or(|at| at.elapsed() >= pause) {
            self.drawn = Some(Instant::now());
            // A stream that is closed does not end the training.
            let _ = self.draw(step);
        }
        Ok(())
    }

    /// What was fetched in the last step may be from before its update.
    fn end(&mut self, session: &dyn AnySession) -> Result<(), TrainError> {
        if self.begin.is_some() {
            let step = read_step(session, &self.tensor)?;
            let _ = self.draw(step);
            if self.is_terminal {
                let _ = writeln!(self.out);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_as_on_a_clock() {
        assert_eq!(clock(Duration::from_secs(7)), "0:07");
        assert_eq!(clock(Duration::from_secs(62)), "1:02");
        assert_eq!(clock(Duration::from_secs(3723)), "1:02:03");
    }

    #[test]
    fn the_line_has_what_is_known() {
        let mut progress = Progress::to(io::sink(), false);
        assert_eq!(progress.text(3, None), "step 3");
        progress = progress.last_step(10);
        let loss = Tensor::scalar(0.5f32).unwrap();
        assert_eq!(progress.text(3, Some(&loss)), "step 3/10  loss 0.5");
        progress.begin = Instant::now().checked_sub(Duration::from_secs(2)).map(|at| (1, at));
        let text = progress.text(5, Some(&loss));
        assert!(text.starts_with("step 5/10  loss 0.5  2.0 steps/s  0:02 left"), "{text}");
    }
}
