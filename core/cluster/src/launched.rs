//! The place of a task, as launchers say it in the environment: TensorFlow's `TF_CONFIG`, SLURM, torchrun.
//!
//! SLURM and torchrun number the processes; of these numbers the first ones are the tasks of job `ps`, if there are such, and
//! the others those of job `worker`, as TensorFlow's `SlurmClusterResolver` does it.

use crate::{error::ClusterError, spec::ClusterSpec};
use serde_json::Value;
use std::collections::BTreeMap;

/// What started a process, and says its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    /// `TF_CONFIG`: the cluster with the task's place in it, as Kubernetes operators and TensorFlow's own scripts write it.
    TfConfig,
    /// The variables of a step of SLURM (`srun`).
    Slurm,
    /// The variables of PyTorch's `torchrun`.
    Torchrun,
}

/// What the environment does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    /// How many of the numbered processes are tasks of job `ps`.
    pub ps: u32,
    /// The port of the first task of each machine; the others have the next ones. 8888 for SLURM, and the port after
    /// `MASTER_PORT` for torchrun, unless it is given.
    pub port: Option<u16>,
    /// The machines of torchrun's processes, in the order of their ranks. Needed if there are several.
    pub hosts: Vec<String>,
}

/// The place of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launched {
    /// All tasks.
    pub cluster: ClusterSpec,
    /// The job of this one.
    pub job: String,
    /// The number of this one.
    pub task: u32,
}

/// The port of the first task of each machine under SLURM, as in `SlurmClusterResolver`.
const SLURM_PORT: u16 = 8888;
/// The most tasks of a cluster.
const MOST: usize = 1 << 16;

type Get<'g> = &'g dyn Fn(&str) -> Option<String>;

impl Launcher {
    /// The launcher whose variables are there: that of `TF_CONFIG` before torchrun, and that before SLURM, under which the
    /// others may run.
    pub fn found(get: Get<'_>) -> Option<Launcher> {
        let of = [
            ("TF_CONFIG", Launcher::TfConfig),
            ("TORCHELASTIC_RUN_ID", Launcher::Torchrun),
            ("SLURM_PROCID", Launcher::Slurm),
            ("MASTER_ADDR", Launcher::Torchrun),
        ];
        of.into_iter().find(|(name, _)| get(name).is_some()).map(|(_, launcher)| launcher)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Launcher::TfConfig => "TF_CONFIG",
            Launcher::Slurm => "SLURM",
            Launcher::Torchrun => "torchrun",
        }
    }

    /// The place of this process, from its environment.
    ///
    /// # Errors
    /// A variable is missing or has another form; the variables contradict each other or the wishes.
    pub fn read(self, wishes: &Wishes, get: Get<'_>) -> Result<Launched, ClusterError> {
        match self {
            Launcher::TfConfig => tf_config(&self.text("TF_CONFIG", get)?),
            Launcher::Slurm => self.slurm(wishes, get),
            Launcher::Torchrun => self.torchrun(wishes, get),
        }
    }

    fn wrong(self, reason: impl Into<String>) -> ClusterError {
        ClusterError::Launcher { launcher: self.name(), reason: reason.into() }
    }

    fn text(self, name: &str, get: Get<'_>) -> Result<String, ClusterError> {
        get(name)
            .ok_or_else(|| self.wrong(format!("{name} is not set: was the process started by it?")))
    }

    fn number(self, name: &str, get: Get<'_>) -> Result<usize, ClusterError> {
        let text = self.text(name, get)?;
        let number = text.trim().parse().ok().filter(|&number| number <= MOST);
        number.ok_or_else(|| {
            self.wrong(format!("{name} is '{text}', expected a number up to {MOST}"))
        })
    }

    fn slurm(self, wishes: &Wishes, get: Get<'_>) -> Result<Launched, ClusterError> {
        let either = |step: &str, job: &str| self.text(step, get).or_else(|_| self.text(job, get));
        let hosts = hosts(&either("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST")?)
            .map_err(|why| self.wrong(why))?;
        let counts = either("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE")?;
        let counts = counts_by_node(&counts).map_err(|why| self.wrong(why))?;
        if counts.len() != hosts.len() {
            let (counts, hosts) = (counts.len(), hosts.len());
            return Err(
                self.wrong(format!("tasks are given for {counts} machines, and there are {hosts}"))
            );
        }
        let first = wishes.port.unwrap_or(SLURM_PORT);
        let mut addresses = Vec::new();
        for (host, count) in hosts.iter().zip(counts) {
            for number in 0..count {
                addresses.push(self.address(host, first, number)?);
            }
        }
        self.place(addresses, self.number("SLURM_PROCID", get)?, wishes.ps)
    }

    fn torchrun(self, wishes: &Wishes, get: Get<'_>) -> Result<Launched, ClusterError> {
        let (world, rank) = (self.number("WORLD_SIZE", get)?, self.number("RANK", get)?);
        let local = self.number("LOCAL_WORLD_SIZE", get)?;
        let (hosts, first) = (&wishes.hosts, wishes.port);
        let first = match first {
            Some(port) => port,
            None => {
                let port = u16::try_from(self.number("MASTER_PORT", get)?).unwrap_or(u16::MAX);
                port.checked_add(1).ok_or_else(|| self.wrong("MASTER_PORT has no port after it"))?
            }
        };
        let hosts = match hosts.as_slice() {
            [] if world == local => vec![self.text("MASTER_ADDR", get)?],
            [] => {
                return Err(self.wrong(format!(
                    "it started {local} of {world} processes on this machine, and says only the address of the first \
                     machine: name all of them, in the order of their ranks (--hosts A,B)"
                )));
            }
            hosts => hosts.to_vec(),
        };
        if local == 0 || local.checked_mul(hosts.len()) != Some(world) {
            let count = hosts.len();
            return Err(self.wrong(format!(
                "{world} processes, {local} of them on this machine, do not fit {count} machines with as many each"
            )));
        }
        let places = hosts.iter().flat_map(|host| (0..local).map(move |number| (host, number)));
        let addresses = places.map(|(host, number)| self.address(host, first, number));
        self.place(addresses.collect::<Result<_, _>>()?, rank, wishes.ps)
    }

    fn address(self, host: &str, first: u16, number: usize) -> Result<String, ClusterError> {
        let port = u16::try_from(number).ok().and_then(|number| first.checked_add(number));
        let port = port.ok_or_else(|| {
            self.wrong(format!("no port is left from {first} on for task {number} of {host}"))
        })?;
        Ok(format!("{host}:{port}"))
    }

    /// The place of a process among those with these addresses.
    fn place(self, addresses: Vec<String>, rank: usize, ps: u32) -> Result<Launched, ClusterError> {
        let (count, ps) = (addresses.len(), usize::try_from(ps).unwrap_or(usize::MAX));
        if rank >= count || ps >= count {
            return Err(self.wrong(format!(
                "process {rank} of {count}, of which {ps} are parameter servers: expected a smaller number and at least \
                 one worker"
            )));
        }
        let tasks = |addresses: &[String]| -> BTreeMap<u32, String> {
            (0..).zip(addresses.iter().cloned()).collect()
        };
        let (servers, workers) = addresses.split_at(ps);
        let mut cluster = ClusterSpec::default();
        if ps > 0 {
            cluster.jobs.insert("ps".to_owned(), tasks(servers));
        }
        cluster.jobs.insert("worker".to_owned(), tasks(workers));
        let (job, task) = if rank < ps { ("ps", rank) } else { ("worker", rank - ps) };
        Ok(Launched { cluster, job: job.to_owned(), task: u32::try_from(task).unwrap_or(u32::MAX) })
    }
}

fn tf_config(text: &str) -> Result<Launched, ClusterError> {
    let wrong = |reason: &str| Launcher::TfConfig.wrong(reason);
    let cluster = ClusterSpec::parse(text)?;
    let value: Value = serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
    let task = value.get("task").ok_or_else(|| wrong("it has no `task`"))?;
    let job =
        task.get("type").and_then(Value::as_str).ok_or_else(|| wrong("`task` has no `type`"))?;
    let index = task.get("index").and_then(|index| match index {
        Value::String(text) => text.parse().ok(),
        other => u32::try_from(other.as_u64()?).ok(),
    });
    let task = index.ok_or_else(|| wrong("`task` has no `index` that is a number"))?;
    cluster.address(job, task)?;
    Ok(Launched { cluster, job: job.to_owned(), task })
}

/// The hosts of a list such as `node[1-3,07],gpu2`, as SLURM writes it.
fn hosts(list: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for part in split_outside_brackets(list)? {
        let Some((before, rest)) = part.split_once('[') else {
            found.push(part.to_owned());
            continue;
        };
        let (ranges, after) = rest.split_once(']').ok_or_else(|| format!("'{part}' has no ']'"))?;
        for range in ranges.split(',') {
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            let number = |text: &str| {
                text.parse::<usize>().map_err(|_| format!("'{range}' is not a range of numbers"))
            };
            let (from, to) = (number(low)?, number(high)?);
            if to < from || to - from >= MOST {
                return Err(format!("'{range}' is not a range of up to {MOST} machines"));
            }
            let width = low.len();
            found.extend((from..=to).map(|number| format!("{before}{number:0width$}{after}")));
        }
    }
    match found.iter().any(String::is_empty) || found.len() > MOST {
        true => Err(format!("'{list}' is not a list of machines")),
        false => Ok(found),
    }
}

fn split_outside_brackets(list: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0i32, 0);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        if !(0..=1).contains(&depth) {
            return Err(format!("'{list}' has brackets that do not match"));
        }
    }
    parts.push(&list[begin..]);
    match depth {
        0 => Ok(parts),
        _ => Err(format!("'{list}' has brackets that do not match")),
    }
}

/// The counts of a list such as `2(x3),1`, as SLURM writes it.
fn counts_by_node(list: &str) -> Result<Vec<usize>, String> {
    let wrong = |part: &str| format!("'{part}' is not a number of tasks, such as 2 or 2(x3)");
    let mut counts = Vec::new();
    for part in list.split(',') {
        let (count, times) = match part.split_once("(x") {
            None => (part, Some(1)),
            Some((count, times)) => {
                (count, times.strip_suffix(')').and_then(|times| times.parse().ok()))
            }
        };
        let (count, times) = count.parse::<usize>().ok().zip(times).ok_or_else(|| wrong(part))?;
        if times > MOST || count > MOST {
            return Err(wrong(part));
        }
        counts.extend(std::iter::repeat_n(count, times));
    }
    let sum = counts.iter().try_fold(0usize, |sum, count| sum.checked_add(*count));
    if sum.is_none_or(|sum| sum > MOST) {
        return Err(format!("'{list}' has more than {MOST} tasks"));
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(launcher: Launcher, wishes: &Wishes, set: &[(&str, &str)]) -> Result<Launched, String> {
        let get = |name: &str| {
            set.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned())
        };
        launcher.read(wishes, &get).map_err(|error| error.to_string())
    }

    #[test]
    fn tf_config_says_cluster_and_place() {
        let config = r#"{"cluster":{"ps":["a:1"],"worker":["b:2","c:3"]},"task":{"type":"worker","index":"1"}}"#;
        let found = read(Launcher::TfConfig, &Wishes::default(), &[("TF_CONFIG", config)]).unwrap();
        assert_eq!((found.job.as_str(), found.task), ("worker", 1));
        assert_eq!(found.cluster.address("ps", 0).unwrap(), "a:1");
        for (config, said) in [
            (r#"{"cluster":{"worker":["b:2"]}}"#, "no `task`"),
            (r#"{"cluster":{"worker":["b:2"]},"task":{"type":"worker","index":"x"}}"#, "`index`"),
            (
                r#"{"cluster":{"worker":["b:2"]},"task":{"type":"evaluator","index":0}}"#,
                "evaluator/0",
            ),
        ] {
            let error =
                read(Launcher::TfConfig, &Wishes::default(), &[("TF_CONFIG", config)]).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        let unset = read(Launcher::TfConfig, &Wishes::default(), &[]).unwrap_err();
        assert!(unset.contains("TF_CONFIG is not set"), "{unset}");
    }

    /// The expected clusters are those of TensorFlow 2.21's `SlurmClusterResolver` for the same variables.
    #[test]
    fn slurm_numbers_tasks_as_tensorflow_does() {
        let set = [
            ("SLURM_STEP_NODELIST", "n[01-02],t02n[14,34]"),
            ("SLURM_STEP_TASKS_PER_NODE", "2(x2),1,2"),
            ("SLURM_PROCID", "3"),
        ];
        let found = read(Launcher::Slurm, &Wishes { ps: 1, ..Wishes::default() }, &set).unwrap();
        assert_eq!((found.job.as_str(), found.task), ("worker", 2));
        let listed = "ps/0 at n01:8888, worker/0 at n01:8889, worker/1 at n02:8888, worker/2 at n02:8889, worker/3 at \
                      t02n14:8888, worker/4 at t02n34:8888, worker/5 at t02n34:8889";
        assert_eq!(found.cluster.to_string(), listed);
        for (name, value, said) in [
            ("SLURM_STEP_NODELIST", "n[1-", "brackets"),
            ("SLURM_STEP_NODELIST", "n[3-1],a,b,c", "range"),
            ("SLURM_STEP_NODELIST", "n1", "4 machines, and there are 1"),
            ("SLURM_STEP_TASKS_PER_NODE", "2(x", "number of tasks"),
            ("SLURM_STEP_TASKS_PER_NODE", "65536(x65536)", "more than"),
            ("SLURM_PROCID", "7", "process 7 of 7"),
            ("SLURM_PROCID", "-1", "expected a number"),
        ] {
            let set = set.map(|(it, old)| if it == name { (it, value) } else { (it, old) });
            let error = read(Launcher::Slurm, &Wishes::default(), &set).unwrap_err();
            assert!(error.contains(said), "{value}: {error}");
        }
    }

    #[test]
    fn torchrun_numbers_processes_of_machines_with_as_many_each() {
        let set = [
            ("WORLD_SIZE", "4"),
            ("RANK", "2"),
            ("LOCAL_WORLD_SIZE", "4"),
            ("MASTER_ADDR", "localhost"),
            ("MASTER_PORT", "29500"),
        ];
        let found = read(Launcher::Torchrun, &Wishes { ps: 1, ..Wishes::default() }, &set).unwrap();
        assert_eq!((found.job.as_str(), found.task), ("worker", 1));
        assert_eq!(found.cluster.address("ps", 0).unwrap(), "localhost:29501");
        assert_eq!(found.cluster.address("worker", 2).unwrap(), "localhost:29504");
        let half =
            set.map(|(it, old)| if it == "LOCAL_WORLD_SIZE" { (it, "2") } else { (it, old) });
        let error = read(Launcher::Torchrun, &Wishes::default(), &half).unwrap_err();
        assert!(error.contains("--hosts"), "{error}");
        let hosts = vec!["a".to_owned(), "b".to_owned()];
        let wishes = Wishes { ps: 0, port: Some(7000), hosts };
        let found = read(Launcher::Torchrun, &wishes, &half).unwrap();
        assert_eq!(
            found.cluster.to_string(),
            "worker/0 at a:7000, worker/1 at a:7001, worker/2 at b:7000, worker/3 at b:7001"
        );
        let error = read(Launcher::Torchrun, &wishes, &set).unwrap_err();
        assert!(error.contains("do not fit 2 machines"), "{error}");
    }

    #[test]
    fn the_launcher_is_found_by_its_variables() {
        let found =
            |names: &[&str]| Launcher::found(&|name| names.contains(&name).then(String::new));
        assert_eq!(found(&["SLURM_PROCID", "TF_CONFIG"]), Some(Launcher::TfConfig));
        assert_eq!(found(&["SLURM_PROCID", "TORCHELASTIC_RUN_ID"]), Some(Launcher::Torchrun));
        assert_eq!(found(&["SLURM_PROCID", "MASTER_ADDR"]), Some(Launcher::Slurm));
        assert_eq!(found(&[]), None);
    }
}
