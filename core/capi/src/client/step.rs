//! Steps: feeds, fetches and targets by name.

use crate::{
    client::{
        cancel::Cancel,
        handle::Handle,
        runtime::texts,
        session::Session,
        status::Status,
        tensor::Tensor,
        text::Buffer,
        versioned::{Options, Versioned},
    },
    fail::Failure,
    raw::{Array, Out, Text},
    session::Place,
};
use std::{sync::Arc, time::Duration};
use tenon_cluster::StepStatsSink;
use tenon_framework::{Code, Tensor as Value};
use tenon_proto::RunMetadata;
use tenon_runtime::{NodeReport, RunOptions as Inner};

/// Options of one step. Zeros are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RunOptions {
    /// sizeof(tn_run_options).
    pub size: usize,
    /// The time limit in milliseconds, after which the step fails with TN_DEADLINE_EXCEEDED; 0 for the session's.
    pub timeout_ms: i64,
    /// A token that cancels the step, from any thread; null for none. For sessions in this process.
    pub cancel: Handle<Cancel>,
    /// Where to write a buffer with a RunMetadata message, whose step_stats have the times of the nodes; null for none. The caller
    /// deletes the buffer. For sessions in this process.
    pub stats: Out<'static, Handle<Buffer>>,
}

// SAFETY: `repr(C)`, the size comes first, and zeros are null pointers and numbers.
unsafe impl Versioned for RunOptions {
    const NAME: &'static str = "tn_run_options";
}

/// The options of a step, as they were given.
pub struct Asked {
    /// The time limit, the token and the receiver of times.
    pub run: Inner,
    stats: Option<(Arc<StepStatsSink>, Out<'static, Handle<Buffer>>)>,
}

impl Asked {
    /// Reads options.
    ///
    /// # Errors
    /// A negative limit, a stale token.
    pub fn read(
        options: &Options<'_, RunOptions>,
        limit: Option<Duration>,
    ) -> Result<Asked, Failure> {
        let given = options.read()?;
        let milliseconds = u64::try_from(given.timeout_ms).map_err(|_| {
            Failure::invalid(format!(
                "timeout_ms: expected milliseconds, or 0 for the session's limit, found {}",
                given.timeout_ms
            ))
        })?;
        let own = (milliseconds > 0).then(|| Duration::from_millis(milliseconds));
        given.stats.set(Handle::NULL);
        let stats = (!given.stats.is_null()).then(|| (StepStatsSink::new(), given.stats));
        let run = Inner {
            deadline: own.or(limit),
            cancel: given.cancel.optional()?.map(|cancel| cancel.0.clone()),
            trace: stats.as_ref().map(|(sink, _)| Arc::clone(sink) as _),
        };
        Ok(Asked { run, stats })
    }

    /// Whether there is nothing to heed.
    pub fn is_plain(&self) -> bool {
        self.run.deadline.is_none() && self.run.cancel.is_none() && self.run.trace.is_none()
    }

    /// Writes the times of a step.
    ///
    /// # Errors
    /// The message is too large.
    pub fn tell(&self, nodes: &[NodeReport]) -> Result<(), Failure> {
        if let Some((sink, place)) = &self.stats {
            let step_stats = Some(sink.finish(nodes));
            place.set(Buffer::of_message(&RunMetadata { step_stats, ..RunMetadata::default() })?);
        }
        Ok(())
    }

    /// Fails where options are for sessions in this process alone.
    ///
    /// # Errors
    /// `UNIMPLEMENTED`.
    pub fn check_for_server(&self) -> Result<(), Failure> {
        match self.run.cancel.is_none() && self.stats.is_none() {
            true => Ok(()),
            false => Err(Failure::new(
                Code::UNIMPLEMENTED,
                "tn_run_options.cancel and stats are for sessions in this process: give the step a time limit, or close the \
                 session",
            )),
        }
    }
}

/// Sets all results to null.
pub fn forget(results: &Out<'_, Handle<Tensor>>, count: usize) -> Result<(), Failure> {
    if results.is_null() && count > 0 {
        return Err(Failure::null("the array of results"));
    }
    (0..count).for_each(|at| results.set_at(at, Handle::NULL));
    Ok(())
}

/// Writes values as new tensors. Where one of them has no form in C, none is written.
pub fn write(results: &Out<'_, Handle<Tensor>>, values: Vec<Value>) -> Result<(), Failure> {
    if values.iter().any(|value| !value.is_on_host()) {
        return Err(tenon_framework::tensor::TensorError::NotOnHost.into());
    }
    for (at, value) in values.into_iter().enumerate() {
        results.set_at(at, Tensor::of(value)?);
    }
    Ok(())
}

/// Runs a step by names.
fn run(
    session: &Session,
    asked: &Asked,
    feeds: &[(&str, Value)],
    fetches: &[&str],
    targets: &[&str],
) -> Result<Vec<Value>, Failure> {
    match &session.inner.place {
        Place::Here(here) => {
            let (fetched, metadata) = here.run(feeds, fetches, targets, &asked.run)?;
            asked.tell(&metadata.nodes)?;
            Ok(fetched)
        }
        Place::Server(server) => {
            asked.check_for_server()?;
            Ok(server.run(feeds, fetches, targets, asked.run.deadline)?)
        }
    }
}

api! {
    /// Runs a step: feeds the tensors "feeds" with "values", runs what "fetches" and the nodes "targets" need, and writes the values
    /// of "fetches" as new tensors, which the caller deletes. Names of tensors are such as "x:0", and "x" for "x:0". "options"
    /// may be null. On failure all results are null.
    fn tn_session_run(
        session: Handle<Session>,
        options: Options<'_, RunOptions>,
        feeds: Array<'_, Text<'_>>,
        values: Array<'_, Handle<Tensor>>,
        feed_count: usize,
        fetches: Array<'_, Text<'_>>,
        results: Out<'_, Handle<Tensor>>,
        fetch_count: usize,
        targets: Array<'_, Text<'_>>,
        target_count: usize,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let fetches = texts(fetches, fetch_count, "a fetch")?;
        forget(&results, fetch_count)?;
        let session = session.get()?;
        session.ready()?;
        let asked = Asked::read(&options, session.inner.timeout)?;
        let names = texts(feeds, feed_count, "a feed")?;
        let values = values.objects(feed_count, "the values of the feeds")?;
        let values = values.iter().map(|tensor| tensor.value.clone());
        let feeds: Vec<(&str, Value)> = names.into_iter().zip(values).collect();
        let targets = texts(targets, target_count, "a target")?;
        write(&results, run(&session, &asked, &feeds, &fetches, &targets)?)?;
        Ok(true)
    }
}
