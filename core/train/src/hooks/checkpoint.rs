//! Writes checkpoints.

use super::{Every, Hook, RunArgs, RunContext, Timer, steps::step_after};
use crate::{Saver, Scaffold, TrainError, manager::step_of, read_step};
use std::{path::PathBuf, sync::Arc};
use tenon_framework::Tensor;
use tenon_runtime::AnySession;

/// Writes checkpoints: at the beginning, as often as it is told, and at the end.
#[derive(Debug)]
pub struct CheckpointSaver {
    folder: PathBuf,
    name: String,
    timer: Timer,
    saver: Option<Arc<Saver>>,
    tensor: String,
    saved: Option<i64>,
    is_in_background: bool,
}

impl CheckpointSaver {
    /// Writes checkpoints `model.ckpt-STEP` into this folder, with the scaffold's saver.
    pub fn new(folder: impl Into<PathBuf>, every: Every) -> CheckpointSaver {
        CheckpointSaver {
            folder: folder.into(),
            name: "model.ckpt".to_owned(),
            timer: Timer::new(every),
            saver: None,
            tensor: String::new(),
            saved: None,
            is_in_background: false,
        }
    }

    /// Writes the checkpoints between the steps on a thread, while steps go on ([`Saver::save_in_background`]). If such a
    /// save fails, the training ends with its error when the next one begins, or at the end. The first checkpoint of a
    /// session and the last one are written before the training goes on. The saver has to be built for this
    /// ([`SaverOptions::background`](crate::SaverOptions::background)).
    #[must_use]
    pub fn in_background(self) -> CheckpointSaver {
        CheckpointSaver { is_in_background: true, ..self }
    }

    /// Gives the files of checkpoints another name.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> CheckpointSaver {
        CheckpointSaver { name: name.into(), ..self }
    }

    /// Uses another saver than the scaffold's.
    #[must_use]
    pub fn saver(self, saver: Arc<Saver>) -> CheckpointSaver {
        CheckpointSaver { saver: Some(saver), ..self }
    }

    fn save(&mut self, session: &dyn AnySession, step: i64) -> Result<(), TrainError> {
        if let Some(saver) = &self.saver
            && self.saved != Some(step)
        {
            let written = saver.save(session, self.folder.join(&self.name), Some(step))?;
            self.saved = Some(step);
            tracing::info!("wrote checkpoint {}", written.display());
        }
        self.timer.mark(step);
        Ok(())
    }

    fn save_between(&mut self, run: &RunContext<'_>, step: i64) -> Result<(), TrainError> {
        let Some(saver) = self.saver.as_ref().filter(|_| self.is_in_background) else {
            return self.save(run.session(), step);
        };
        if self.saved != Some(step) {
            let prefix = self.folder.join(&self.name);
            let begun = saver.save_in_background(run.shared_session(), prefix, Some(step))?;
            self.saved = Some(step);
            tracing::info!("checkpoint {} is written in the background", begun.display());
        }
        self.timer.mark(step);
        Ok(())
    }
}

impl Hook for CheckpointSaver {
    fn begin(&mut self, scaffold: &Scaffold) -> Result<(), TrainError> {
        self.tensor = scaffold.needs_global_step("CheckpointSaver")?;
        self.saver = self.saver.take().or_else(|| scaffold.saver.clone());
        if self.saver.is_none() {
            let found = "a scaffold without one: build it, or name one by CheckpointSaver::saver";
            return Err(TrainError::argument("CheckpointSaver", "a saver", found));
        }
        Ok(())
    }

    fn after_create_session(&mut self, run: &mut RunContext<'_>) -> Result<(), TrainError> {
        let step = read_step(run.session(), &self.tensor)?;
        let Some(saver) = &self.saver else { return Ok(()) };
        // What was just restored is not written again.
        let here = self.folder.join(format!("{}-{step}", self.name));
        self.saved = (saver.latest(&self.folder)?.as_ref() == Some(&here)).then_some(step);
        self.save(run.session(), step)
    }

    fn before_run(&mut self, _: &mut RunContext<'_>) -> Result<RunArgs, TrainError> {
        Ok(RunArgs::fetch(std::slice::from_ref(&self.tensor)))
    }

    fn after_run(&mut self, run: &mut RunContext<'_>, values: &[Tensor]) -> Result<(), TrainError> {
        let fetched = step_of(values.first(), &self.tensor)?;
        match step_after(run.session(), &self.tensor, &self.timer, fetched)? {
            Some(step) => self.save_between(run, step),
            None => Ok(()),
        }
    }

    fn end(&mut self, session: &dyn AnySession) -> Result<(), TrainError> {
        let step = read_step(session, &self.tensor)?;
        self.save(session, step)?;
        self.saver.as_ref().map_or(Ok(()), |saver| saver.wait())
    }
}
