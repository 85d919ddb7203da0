//! The tasks that a session uses, and their devices.

use super::{super::Answered, Place, links::Link, links::together};
use crate::{clock, keys::in_task, methods, refusal::Refusal};
use std::{collections::BTreeMap, time::Duration};
use tenon_framework::{Code, device::DeviceName, registry::Registry, text::cut};
use tenon_graph::DeviceEntry;
use tenon_proto::{ConfigProto, DeviceAttributes, GetStatusRequest, convert::device_from_proto};
use tenon_runtime::CancelToken;

/// How long a task may take to say which devices it has.
const STATUS: Duration = Duration::from_secs(5);
/// How long a task that is absent is left alone before it is asked again.
const AGAIN: Duration = Duration::from_millis(200);

/// The other tasks that these filters allow; no filters allow all.
pub(super) fn others(place: &Place, filters: &[String]) -> Answered<Vec<String>> {
    let read = |filter: &String| {
        DeviceName::parse(filter).map_err(|error| {
            Refusal::invalid(format!("config: device_filters: '{}': {error}", cut(filter)))
        })
    };
    let filters = filters.iter().map(read).collect::<Answered<Vec<_>>>()?;
    let is_allowed = |task: &str| {
        let Ok(name) = DeviceName::parse(task) else { return false };
        // A filter of devices allows the task that has them.
        let task =
            |filter: &DeviceName| DeviceName { device_type: None, id: None, ..filter.clone() };
        filters.is_empty() || filters.iter().any(|filter| task(filter).matches(&name))
    };
    let own = &*place.task;
    let others = place.peers.tasks().filter(|task| **task != *own && is_allowed(task));
    Ok(others.cloned().collect())
}

/// The devices of tasks, which may take some time to start.
///
/// # Errors
/// `UNAVAILABLE` with the names of those that are absent after that time.
pub(super) fn devices(
    place: &Place,
    tasks: Vec<String>,
    cancel: &CancelToken,
) -> Answered<BTreeMap<String, Vec<DeviceAttributes>>> {
    let (mut found, mut absent) = (BTreeMap::new(), tasks);
    let end = clock::now() + place.absent;
    loop {
        let asked = absent.iter().map(|task| Link::other(&place.peers, task.clone()));
        let calls = asked.map(|link| (link, GetStatusRequest {})).collect();
        let limit = STATUS.min(end.saturating_duration_since(clock::now())).max(AGAIN);
        let answers = together::<methods::GetStatus>(calls, limit);
        let mut why = Vec::new();
        absent.clear();
        for (task, answer) in answers {
            match answer {
                Ok(status) => {
                    let devices = named(status.device_attributes, &task);
                    found.insert(task, devices);
                }
                Err(refusal) => match refusal.code {
                    Code::UNAVAILABLE | Code::DEADLINE_EXCEEDED => {
                        why.push(format!("{task} ({})", refusal.message));
                        absent.push(task);
                    }
                    _ => return Err(super::from(&task)(refusal)),
                },
            }
        }
        if absent.is_empty() {
            return Ok(found);
        }
        if cancel.is_cancelled() {
            return Err(Refusal::new(Code::CANCELLED, "the session was given up by its client"));
        }
        if clock::now() + AGAIN >= end {
            let (absent, waited) = (why.join(", "), place.absent);
            return Err(Refusal::new(
                Code::UNAVAILABLE,
                format!(
                    "tasks of the cluster are absent after {waited:?}: {absent}; start them, or leave them out by \
                     ConfigProto.device_filters"
                ),
            ));
        }
        clock::pause(AGAIN);
    }
}

/// The devices of a task under its name in the session's cluster, which may not be the one that it was started with.
pub(super) fn named(devices: Vec<DeviceAttributes>, task: &str) -> Vec<DeviceAttributes> {
    let named = |device: DeviceAttributes| DeviceAttributes {
        name: format!("{task}{}", in_task(&device.name)),
        ..device
    };
    devices.into_iter().map(named).collect()
}

/// A device of another task, as placement sees it.
pub(super) fn entry(registry: &Registry, device: &DeviceAttributes) -> Answered<DeviceEntry> {
    let summary = device_from_proto(device).map_err(|error| {
        Refusal::new(Code::INTERNAL, format!("device '{}': {error}", cut(&device.name)))
    })?;
    let known = registry.device_type(&summary.device_type);
    Ok(DeviceEntry {
        name: summary.name,
        incarnation: summary.incarnation,
        priority: known.map_or(0, |it| it.priority),
        is_local: false,
        host_memory: summary.device_type == "CPU",
        device_type: summary.device_type,
    })
}

/// The job and the number of a task.
pub(super) fn job_and_number(task: &str) -> Answered<(String, i32)> {
    let name = DeviceName::parse(task)
        .map_err(|error| Refusal::new(Code::INTERNAL, format!("task '{task}': {error}")))?;
    let number = i32::try_from(name.task.unwrap_or(0)).unwrap_or(i32::MAX);
    Ok((name.job.unwrap_or_default(), number))
}

/// The options of a session that its workers have a use for.
pub(super) fn for_workers(config: &ConfigProto) -> ConfigProto {
    ConfigProto {
        graph_options: config.graph_options.clone(),
        experimental: config.experimental.clone(),
        rpc_options: config.rpc_options.clone(),
        operation_timeout_in_ms: config.operation_timeout_in_ms,
        ..ConfigProto::default()
    }
}
