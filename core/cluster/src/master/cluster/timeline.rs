//! Records of transfers between tasks for the timeline of a step.

use super::{
    Compiled,
    links::{Link, together},
};
use crate::methods;
use std::time::Duration;
use tenon_proto::{DeviceStepStats, LoggingRequest};

/// How long workers may take to begin or to give their records.
const LIMIT: Duration = Duration::from_secs(5);

/// Records that workers make while a step runs.
pub(super) struct Timeline(Vec<Link>);

impl Timeline {
    /// Makes the workers of a step record the tensors that they receive.
    pub fn begin(compiled: &Compiled) -> Timeline {
        let links: Vec<Link> = compiled.parts.iter().map(|part| part.link.clone()).collect();
        let request = LoggingRequest { enable_rpc_logging: true, ..LoggingRequest::default() };
        let calls = links.iter().map(|link| (link.clone(), request.clone())).collect();
        // A timeline without a task's records is better than none.
        drop(together::<methods::Logging>(calls, LIMIT));
        Timeline(links)
    }

    /// Takes the records of the step.
    pub fn end(self, step_id: i64) -> Vec<DeviceStepStats> {
        let request = LoggingRequest {
            fetch_step_id: vec![step_id],
            disable_rpc_logging: true,
            ..LoggingRequest::default()
        };
        let calls = self.0.into_iter().map(|link| (link, request.clone())).collect();
        let answers = together::<methods::Logging>(calls, LIMIT);
        let steps = answers.into_iter().filter_map(|(_, answer)| answer.ok());
        let stats = steps.flat_map(|answer| answer.step).filter_map(|step| step.step_stats);
        stats.flat_map(|stats| stats.dev_stats).collect()
    }
}
