//! Hooks that look at values, or give some.

use super::{Every, Hook, RunArgs, RunContext, Timer};
use crate::{TrainError, text::shown};
use tenon_framework::{
    DType, Tensor,
    element::{Complex, bf16, f16},
};
use tenon_runtime::AnySession;

/// Writes values to the log, or to a function that gets the line.
pub struct LoggingTensor {
    tensors: Vec<String>,
    timer: Timer,
    is_at_end: bool,
    steps: i64,
    write: Box<dyn FnMut(&str) + Send>,
}

impl LoggingTensor {
    /// Writes these tensors to the log.
    pub fn new(tensors: &[&str], every: Every) -> LoggingTensor {
        LoggingTensor::with(tensors, every, |line| tracing::info!("{line}"))
    }

    /// Writes these tensors to a function.
    pub fn with(
        tensors: &[&str],
        every: Every,
        write: impl FnMut(&str) + Send + 'static,
    ) -> LoggingTensor {
        LoggingTensor {
            tensors: tensors.iter().map(|name| (*name).to_owned()).collect(),
            timer: Timer::new(every),
            is_at_end: false,
            steps: 0,
            write: Box::new(write),
        }
    }

    /// Writes them once more at the end. They must not need any feeds then.
    #[must_use]
    pub fn at_end(self) -> LoggingTensor {
        LoggingTensor { is_at_end: true, ..self }
    }

    fn write(&mut self, values: &[Tensor]) {
        let pairs = self.tensors.iter().zip(values);
        let pairs: Vec<String> =
            pairs.map(|(name, value)| format!("{name} = {}", shown(value))).collect();
        (self.write)(&pairs.join(", "));
    }
}

impl Hook for LoggingTensor {
    fn before_run(&mut self, _: &mut RunContext<'_>) -> Result<RunArgs, TrainError> {
        let is_due = self.timer.is_due(self.steps);
        Ok(if is_due { RunArgs::fetch(&self.tensors) } else { RunArgs::default() })
    }

    fn after_run(&mut self, _: &mut RunContext<'_>, values: &[Tensor]) -> Result<(), TrainError> {
        if !values.is_empty() {
            self.write(values);
            self.timer.mark(self.steps);
        }
        self.steps = self.steps.saturating_add(1);
        Ok(())
    }

    fn end(&mut self, session: &dyn AnySession) -> Result<(), TrainError> {
        if self.is_at_end {
            let names: Vec<&str> = self.tensors.iter().map(String::as_str).collect();
            let values = session.run_step(&[], &names, &[], None)?;
            self.write(&values);
        }
        Ok(())
    }
}

/// Fails, or ends the training, when a value is not finite.
#[derive(Debug, Clone)]
pub struct NanTensor {
    tensors: Vec<String>,
    fails: bool,
}

impl NanTensor {
    /// Looks at these tensors, in this order, after every step. The step fails where one is not finite.
    pub fn new(tensors: &[&str]) -> NanTensor {
        NanTensor { tensors: tensors.iter().map(|name| (*name).to_owned()).collect(), fails: true }
    }

    /// Ends the training with a warning instead.
    #[must_use]
    pub fn stops(self) -> NanTensor {
        NanTensor { fails: false, ..self }
    }
}

impl Hook for NanTensor {
    fn before_run(&mut self, _: &mut RunContext<'_>) -> Result<RunArgs, TrainError> {
        Ok(RunArgs::fetch(&self.tensors))
    }

    fn after_run(&mut self, run: &mut RunContext<'_>, values: &[Tensor]) -> Result<(), TrainError> {
        let mut found = self.tensors.iter().zip(values).map(|(name, value)| (name, wrong(value)));
        let Some((tensor, Some((element, value)))) = found.find(|(_, wrong)| wrong.is_some())
        else {
            return Ok(());
        };
        let error = TrainError::NotFinite { tensor: tensor.clone(), element, value };
        if self.fails {
            return Err(error);
        }
        tracing::warn!("the training ends: {error}");
        run.request_stop();
        Ok(())
    }
}

/// The first element that is not finite: its number and its text.
fn wrong(value: &Tensor) -> Option<(usize, String)> {
    fn first<T: tenon_framework::element::Element + Copy>(
        value: &Tensor,
        to_f64: impl Fn(T) -> f64,
    ) -> Option<(usize, String)> {
        let mut elements = value.as_slice::<T>().ok()?.iter().map(|x| to_f64(*x)).enumerate();
        elements.find(|(_, x)| !x.is_finite()).map(|(at, x)| (at, x.to_string()))
    }
    match value.dtype() {
        DType::FLOAT => first(value, |x: f32| f64::from(x)),
        DType::DOUBLE => first(value, |x: f64| x),
        DType::HALF => first(value, |x: f16| f64::from(x.to_f32())),
        DType::BFLOAT16 => first(value, |x: bf16| f64::from(x.to_f32())),
        DType::COMPLEX64 => first(value, |x: Complex<f32>| f64::from(x.re + x.im)),
        DType::COMPLEX128 => first(value, |x: Complex<f64>| x.re + x.im),
        _ => None,
    }
}

/// What a step is fed: names of tensors and values.
type Feeds = Vec<(String, Tensor)>;

/// Feeds every step from a function, such as the batches of a data set. `OUT_OF_RANGE` of the function ends the training.
pub struct Feed {
    next: Box<dyn FnMut() -> Result<Feeds, TrainError> + Send>,
}

impl Feed {
    /// Feeds what this function gives.
    pub fn new(
        next: impl FnMut() -> Result<Vec<(String, Tensor)>, TrainError> + Send + 'static,
    ) -> Feed {
        Feed { next: Box::new(next) }
    }
}

impl Hook for Feed {
    fn before_run(&mut self, _: &mut RunContext<'_>) -> Result<RunArgs, TrainError> {
        Ok(RunArgs { feeds: (self.next)()?, ..RunArgs::default() })
    }
}
