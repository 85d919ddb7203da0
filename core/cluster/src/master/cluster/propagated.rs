//! Clusters that clients name for one session, in `ConfigProto.cluster_def`: TensorFlow's propagation of a ClusterSpec.
//!
//! The session knows the tasks by the names of that cluster alone, this one too, whatever they were started as: the workers
//! get the cluster with the session, and their devices have its names there. A server is found in it by the address that its
//! client used, or else by its own one.

use super::{super::Answered, Place};
use crate::{health::Health, refusal::Refusal, spec::ClusterSpec, transport::Transport};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tenon_framework::{device::DeviceName, text::cut};
use tenon_proto::{ClusterDef, ConfigProto};

fn wrong(what: &str) -> Refusal {
    Refusal::invalid(format!("config: cluster_def: {what}"))
}

impl Place {
    /// The place in the cluster that a session's configuration names, whose client used this target; the server's own place if
    /// it names none.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cluster with a job of two entries, with two tasks of one address, or without this task.
    pub fn in_session(&self, config: &ConfigProto, target: &str) -> Answered<Place> {
        let Some(cluster) = &config.cluster_def else { return Ok(self.clone()) };
        let names = names_of(cluster)?;
        let own = self.peers.address(&self.task);
        let task = own_task(&names, target, own.as_deref())?;
        let peers = self.peers.with(names);
        let (cluster, health) = (Some(Arc::new(cluster.clone())), Health::new(peers.clone()));
        Ok(Place { task, cluster, peers, health, ..self.clone() })
    }
}

/// The addresses of the tasks, by their names.
fn names_of(cluster: &ClusterDef) -> Answered<BTreeMap<String, String>> {
    let mut jobs = BTreeSet::new();
    for job in &cluster.job {
        let name = DeviceName::of_task(&job.name, 0);
        let shown = cut(&job.name);
        if DeviceName::parse(&name.to_string()).ok() != Some(name) {
            return Err(wrong(&format!(
                "'{shown}' is not the name of a job: expected letters, digits and _"
            )));
        }
        if !jobs.insert(&job.name) {
            return Err(wrong(&format!("job '{shown}' is there twice: give its tasks in one")));
        }
    }
    let spec = ClusterSpec::from_def(cluster).map_err(|error| wrong(&error.to_string()))?;
    let names = spec.by_name();
    let mut tasks: BTreeMap<&String, &String> = BTreeMap::new();
    for (task, address) in &names {
        if let Some(other) = tasks.insert(address, task) {
            return Err(wrong(&format!(
                "{other} and {task} have the same address {address}: a server is one task of a session"
            )));
        }
    }
    Ok(names)
}

/// The name of this server's task.
fn own_task(
    names: &BTreeMap<String, String>,
    target: &str,
    own: Option<&str>,
) -> Answered<Arc<str>> {
    let schemes = ["grpc://", "grpcs://"];
    let target = schemes.iter().find_map(|scheme| target.strip_prefix(scheme)).unwrap_or(target);
    let at = |wanted: &str| names.iter().find(|(_, address)| *address == wanted);
    let found = at(target).or_else(|| at(own?));
    let (task, _) = found.ok_or_else(|| {
        let there: Vec<String> =
            names.iter().map(|(task, address)| format!("{task} at {address}")).collect();
        let own =
            own.map(|own| format!(", and not at {own}, the server's own")).unwrap_or_default();
        wrong(&format!(
            "it does not include this server: expected a task at {}{own}; found {}",
            cut(target),
            cut(&there.join(", "))
        ))
    })?;
    Ok(task.as_str().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_framework::Code;
    use tenon_proto::JobDef;

    fn job(name: &str, tasks: &[(i32, &str)]) -> JobDef {
        let tasks = tasks.iter().map(|&(task, address)| (task, address.to_owned())).collect();
        JobDef { name: name.to_owned(), tasks }
    }

    #[test]
    fn a_server_is_found_by_its_address() {
        let jobs = vec![job("a", &[(3, "h:1")]), job("b", &[(0, "h:2")])];
        let names = names_of(&ClusterDef { job: jobs }).unwrap();
        for (target, own) in [("grpc://h:1", None), ("h:1", Some("h:2")), ("h:9", Some("h:1"))] {
            let task = own_task(&names, target, own).unwrap();
            assert_eq!(&*task, "/job:a/replica:0/task:3", "{target}");
        }
        let refusal = own_task(&names, "grpcs://h:9", Some("h:8")).unwrap_err();
        assert_eq!(refusal.code, Code::INVALID_ARGUMENT);
        let said = ["does not include this server", "h:9", "h:8", "/job:b/replica:0/task:0 at h:2"];
        assert!(said.iter().all(|it| refusal.message.contains(it)), "{}", refusal.message);
    }

    #[test]
    fn clusters_that_make_no_sense_are_refused() {
        let cases = [
            (vec![job("a", &[(0, "h:1")]), job("b", &[(0, "h:1")])], "have the same address h:1"),
            (vec![job("a", &[(0, "h:1")]), job("a", &[(1, "h:2")])], "job 'a' is there twice"),
            (vec![job("a/b", &[(0, "h:1")])], "'a/b' is not the name of a job"),
            (vec![job("a", &[(-1, "h:1")])], "task -1"),
            (vec![job("a", &[(0, "h")])], "address 'h'"),
        ];
        for (job, what) in cases {
            let refusal = names_of(&ClusterDef { job }).unwrap_err();
            assert_eq!(refusal.code, Code::INVALID_ARGUMENT);
            assert!(refusal.message.contains(what), "{}", refusal.message);
        }
    }
}
