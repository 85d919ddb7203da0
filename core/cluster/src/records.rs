//! Records of the tensors that came from other tasks, for timelines: what the worker's method Logging controls.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};
use tenon_framework::sync::{Mutex, rank};
use tenon_proto::{
    DeviceStepStats, LabeledStepStats, LoggingRequest, LoggingResponse, NodeExecStats, StepStats,
};
use tenon_runtime::rendezvous::EdgeName;

/// Steps whose records are kept, at most; the oldest go first.
const MOST_STEPS: usize = 1000;
/// Records of a step, at most.
const MOST_RECORDS: usize = 100_000;

/// The records of steps.
pub(crate) struct Records {
    is_active: AtomicBool,
    steps: Mutex<BTreeMap<i64, Vec<(String, NodeExecStats)>>>,
}

impl Default for Records {
    fn default() -> Records {
        let steps = Mutex::ranked(rank::LEAF, BTreeMap::new());
        Records { is_active: AtomicBool::new(false), steps }
    }
}

/// Microseconds since the epoch.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

/// A size as timelines of TensorFlow show it.
fn size(bytes: usize) -> String {
    let count = bytes as f64;
    match () {
        () if count >= 0.1 * 1_048_576.0 => format!("[{:.1}MB] ", count / 1_048_576.0),
        () if count >= 0.1 * 1024.0 => format!("[{:.1}KB] ", count / 1024.0),
        () => format!("[{bytes}B] "),
    }
}

impl Records {
    /// When a request is sent that is to be recorded.
    pub fn begin(&self) -> Option<i64> {
        self.is_active.load(Ordering::Relaxed).then(now)
    }

    /// Records a tensor that has come.
    pub fn note(&self, step: i64, edge: &EdgeName, begin: i64, bytes: usize) {
        let took = now().saturating_sub(begin);
        let EdgeName { source, destination, tensor, .. } = edge;
        let stats = NodeExecStats {
            node_name: "RecvTensor".to_owned(),
            timeline_label: format!("{}{tensor} from {source} to {destination}", size(bytes)),
            all_start_micros: begin,
            scheduled_micros: begin,
            op_end_rel_micros: took,
            all_end_rel_micros: took,
            ..NodeExecStats::default()
        };
        let mut steps = self.steps.lock();
        let records = steps.entry(step).or_default();
        if records.len() < MOST_RECORDS {
            records.push((destination.clone(), stats));
        }
        // Numbers of steps are random: any of them may go.
        if steps.len() > MOST_STEPS {
            steps.pop_first();
        }
    }

    /// What the request asks for, in the order of TensorFlow's workers: begin or end to record, take records, forget the rest.
    pub fn control(&self, request: &LoggingRequest) -> LoggingResponse {
        if request.enable_rpc_logging {
            self.is_active.store(true, Ordering::Relaxed);
        }
        if request.disable_rpc_logging {
            self.is_active.store(false, Ordering::Relaxed);
        }
        let mut steps = self.steps.lock();
        let taken = request.fetch_step_id.iter().filter_map(|id| Some((*id, steps.remove(id)?)));
        let step = taken.map(|(step_id, records)| labelled(step_id, records)).collect();
        if request.clear {
            steps.clear();
        }
        LoggingResponse { step }
    }
}

fn labelled(step_id: i64, records: Vec<(String, NodeExecStats)>) -> LabeledStepStats {
    let mut devices: BTreeMap<String, Vec<NodeExecStats>> = BTreeMap::new();
    for (device, stats) in records {
        devices.entry(device).or_default().push(stats);
    }
    let of_device =
        |(device, node_stats)| DeviceStepStats { device, node_stats, ..DeviceStepStats::default() };
    let dev_stats = devices.into_iter().map(of_device).collect();
    LabeledStepStats { step_id, step_stats: Some(StepStats { dev_stats }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge() -> EdgeName {
        let device = |task: u32| format!("/job:w/replica:0/task:{task}/device:CPU:0");
        EdgeName {
            source: device(1),
            incarnation: 1,
            destination: device(0),
            tensor: "edge_5_x".to_owned(),
        }
    }

    #[test]
    fn records_are_taken_once_while_they_are_wanted() {
        let records = Records::default();
        assert_eq!(records.begin(), None);
        let enable = LoggingRequest { enable_rpc_logging: true, ..LoggingRequest::default() };
        assert!(records.control(&enable).step.is_empty());
        let begin = records.begin().unwrap();
        records.note(7, &edge(), begin, 300);
        records.note(8, &edge(), begin, 4);
        let fetch = LoggingRequest { fetch_step_id: vec![7, 9], ..LoggingRequest::default() };
        let taken = records.control(&fetch).step;
        assert_eq!(taken.iter().map(|it| it.step_id).collect::<Vec<_>>(), [7]);
        let device = &taken[0].step_stats.as_ref().unwrap().dev_stats[0];
        assert_eq!(device.device, edge().destination);
        let label = &device.node_stats[0].timeline_label;
        assert!(label.starts_with("[0.3KB] edge_5_x from /job:w/replica:0/task:1"), "{label}");
        assert!(records.control(&fetch).step.is_empty());
        let end = LoggingRequest {
            disable_rpc_logging: true,
            clear: true,
            fetch_step_id: vec![8],
            ..LoggingRequest::default()
        };
        assert_eq!(records.control(&end).step.len(), 1);
        assert_eq!(records.begin(), None);
    }

    #[test]
    fn sizes_are_those_of_timelines() {
        assert_eq!([size(5), size(2048), size(3 << 20)], ["[5B] ", "[2.0KB] ", "[3.0MB] "]);
    }
}
