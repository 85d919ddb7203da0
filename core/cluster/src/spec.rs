//! The tasks of a cluster, and their addresses.

use crate::error::ClusterError;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    net::{SocketAddr, ToSocketAddrs},
};
use tenon_framework::device::DeviceName;
use tenon_proto::ClusterDef;

/// The addresses of the tasks of a cluster, by job and number.
///
/// ```
/// use tenon_cluster::ClusterSpec;
///
/// let spec = ClusterSpec::parse(r#"{"ps": ["localhost:2222"], "worker": {"1": "localhost:2223"}}"#)?;
/// assert_eq!(spec.address("worker", 1)?, "localhost:2223");
/// assert!(spec.address("worker", 0).is_err());
/// # Ok::<(), tenon_cluster::ClusterError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterSpec {
    /// The tasks of each job, with their addresses as `host:port`.
    pub jobs: BTreeMap<String, BTreeMap<u32, String>>,
}

impl ClusterSpec {
    /// Reads a JSON object with the tasks of each job: a list of addresses, or an object with
    /// addresses by number. If an object has such an object under `cluster`, as `TF_CONFIG` does, that one is
    /// read.
    ///
    /// # Errors
    /// Text that is not such an object; an address that is not `host:port`.
    pub fn parse(text: &str) -> Result<ClusterSpec, ClusterError> {
        let wrong = |found: String| ClusterError::Spec { found };
        let value: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let jobs = match value.get("cluster") {
            Some(cluster @ Value::Object(_)) => cluster,
            _ => &value,
        };
        let Value::Object(jobs) = jobs else { return Err(wrong(kind(jobs).to_owned())) };
        let mut spec = ClusterSpec::default();
        for (job, tasks) in jobs {
            spec.jobs.insert(job.clone(), read_tasks(job, tasks)?);
        }
        if spec.jobs.values().all(BTreeMap::is_empty) {
            return Err(wrong("no tasks".to_owned()));
        }
        Ok(spec)
    }

    /// The tasks of a message.
    ///
    /// # Errors
    /// A negative number of a task; an address that is not `host:port`.
    pub fn from_def(cluster: &ClusterDef) -> Result<ClusterSpec, ClusterError> {
        let mut spec = ClusterSpec::default();
        for job in &cluster.job {
            let tasks = spec.jobs.entry(job.name.clone()).or_default();
            for (number, address) in &job.tasks {
                let wrong = |found: String| ClusterError::Spec {
                    found: format!("job '{}' with {found}", job.name),
                };
                let task = u32::try_from(*number).map_err(|_| wrong(format!("task {number}")))?;
                if !is_address(address) {
                    return Err(wrong(format!("address '{address}'")));
                }
                tasks.insert(task, address.clone());
            }
        }
        Ok(spec)
    }

    /// The addresses of all tasks, by their names, such as `/job:ps/replica:0/task:0`.
    pub(crate) fn by_name(&self) -> BTreeMap<String, String> {
        let named = |(job, tasks): (&String, &BTreeMap<u32, String>)| {
            let of_job = |(&task, address): (&u32, &String)| {
                (DeviceName::of_task(job, task).to_string(), address.clone())
            };
            tasks.iter().map(of_job).collect::<Vec<_>>()
        };
        self.jobs.iter().flat_map(named).collect()
    }

    /// The address of a task.
    ///
    /// # Errors
    /// The cluster does not have the task.
    pub fn address(&self, job: &str, task: u32) -> Result<&str, ClusterError> {
        let tasks = self.jobs.get(job);
        let address = tasks.and_then(|tasks| tasks.get(&task)).map(String::as_str);
        address.ok_or_else(|| ClusterError::NoTask {
            job: job.to_owned(),
            task,
            there: self.to_string(),
        })
    }

    /// The address of a task, as the network layer knows it.
    ///
    /// # Errors
    /// The cluster does not have the task; the name of its host is unknown.
    pub fn socket_address(&self, job: &str, task: u32) -> Result<SocketAddr, ClusterError> {
        let address = self.address(job, task)?;
        let unknown = |why: String| ClusterError::Host { address: address.to_owned(), why };
        let found = address.to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
        // Of a host with addresses of both kinds, other tasks reach the older kind everywhere.
        let mut found: Vec<SocketAddr> = found.collect();
        found.sort_by_key(SocketAddr::is_ipv6);
        found.first().copied().ok_or_else(|| unknown("it has no address".to_owned()))
    }
}

/// The tasks of a job.
fn read_tasks(job: &str, tasks: &Value) -> Result<BTreeMap<u32, String>, ClusterError> {
    let wrong = |found: String| ClusterError::Spec { found: format!("job '{job}' with {found}") };
    let address = |value: &Value| match value {
        Value::String(text) if is_address(text) => Ok(text.clone()),
        Value::String(text) => Err(wrong(format!("address '{text}'"))),
        other => Err(wrong(format!("{} as an address", kind(other)))),
    };
    match tasks {
        Value::Array(list) => {
            (0..).zip(list).map(|(task, value)| Ok((task, address(value)?))).collect()
        }
        Value::Object(tasks) => {
            let read = |(number, value): (&String, &Value)| {
                let task = number.parse().map_err(|_| wrong(format!("task '{number}'")))?;
                Ok((task, address(value)?))
            };
            tasks.iter().map(read).collect()
        }
        other => Err(wrong(kind(other).to_owned())),
    }
}

/// Whether a text is `host:port`.
fn is_address(text: &str) -> bool {
    let parts = text.rsplit_once(':');
    parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

impl std::fmt::Display for ClusterSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tasks = self.jobs.iter().flat_map(|(job, tasks)| {
            tasks.iter().map(move |(task, address)| format!("{job}/{task} at {address}"))
        });
        f.write_str(&tasks.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_proto::JobDef;

    #[test]
    fn specifications_are_read() {
        let lists = ClusterSpec::parse(r#"{"ps":["a:1"],"worker":["b:2","c:3"]}"#).unwrap();
        assert_eq!(lists.address("worker", 1).unwrap(), "c:3");
        let config =
            r#"{"cluster":{"worker":{"0":"b:2","7":"c:3"}},"task":{"type":"worker","index":7}}"#;
        let numbered = ClusterSpec::parse(config).unwrap();
        assert_eq!(numbered.address("worker", 7).unwrap(), "c:3");
        assert_eq!(numbered.to_string(), "worker/0 at b:2, worker/7 at c:3");
    }

    #[test]
    fn messages_are_read() {
        let job = |name: &str, number, address: &str| JobDef {
            name: name.to_owned(),
            tasks: BTreeMap::from([(number, address.to_owned())]),
        };
        let read = |job: Vec<JobDef>| ClusterSpec::from_def(&ClusterDef { job });
        let spec = read(vec![job("ps", 0, "a:1"), job("worker", 3, "b:2")]).unwrap();
        assert_eq!(spec, ClusterSpec::parse(r#"{"ps":["a:1"],"worker":{"3":"b:2"}}"#).unwrap());
        for (number, address, what) in [(-1, "a:1", "task -1"), (0, "a", "address 'a'")] {
            let error = read(vec![job("ps", number, address)]).unwrap_err().to_string();
            assert!(error.contains("job 'ps'") && error.contains(what), "{error}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let said = [
            ("", "EOF"),
            ("[]", "a list"),
            ("{}", "no tasks"),
            (r#"{"worker":[]}"#, "no tasks"),
            (r#"{"worker":3}"#, "job 'worker' with a number"),
            (r#"{"worker":["b"]}"#, "address 'b'"),
            (r#"{"worker":["b:70000"]}"#, "address 'b:70000'"),
            (r#"{"worker":[1]}"#, "a number as an address"),
            (r#"{"worker":{"x":"b:2"}}"#, "task 'x'"),
        ];
        for (text, what) in said {
            let error = ClusterSpec::parse(text).unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
        let spec = ClusterSpec::parse(r#"{"worker":["b:2"]}"#).unwrap();
        let error = spec.address("ps", 0).unwrap_err().to_string();
        assert!(error.contains("ps/0") && error.contains("worker/0 at b:2"), "{error}");
    }
}
