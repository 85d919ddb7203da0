//! `tenon top --cluster`: what the tasks of a cluster do, and who waits for whom.

use super::client::{client_address, get};
use crate::{
    error::CliError,
    output::{plain, print, print_json},
    table::Table,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};
use tenon_cluster::ClusterSpec;

/// A task that others wait for at least this part of the time, and twice as long as for the median task, is a straggler.
const SLOW_SHARE: f64 = 0.1;

/// One look at a task.
#[derive(Debug, Clone, Default, PartialEq)]
struct Look {
    /// Why there are no figures.
    failed: Option<String>,
    uptime: f64,
    done: f64,
    running: f64,
    sessions: f64,
    /// By the task that sends: bytes, tensors, waiting, waited seconds.
    links: BTreeMap<String, [f64; 4]>,
    /// The bytes by the task that sends and what carried them.
    ways: BTreeMap<String, BTreeMap<String, f64>>,
}

/// The name of the figures by what carried the bytes.
const WAYS: &str = "tenon_link_way_bytes_total";

/// The names of a link's figures.
const LINK: [&str; 4] = [
    "tenon_link_bytes_total",
    "tenon_link_tensors_total",
    "tenon_link_waiting",
    "tenon_link_wait_seconds_total",
];

/// The addresses of the figures in a specification: those under `monitor`, else those of the cluster itself.
///
/// # Errors
/// The text is not a specification.
pub fn addresses(text: &str) -> Result<ClusterSpec, CliError> {
    let value: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    match value.get("monitor") {
        Some(monitor) => Ok(ClusterSpec::parse(&monitor.to_string())?),
        None => Ok(ClusterSpec::parse(text)?),
    }
}

/// Shows the tasks once or again and again.
///
/// # Errors
/// Standard output cannot be written.
pub fn top(
    spec: &ClusterSpec,
    once: bool,
    as_json: bool,
    interval: Duration,
) -> Result<(), CliError> {
    let (mut before, mut looked) = (None, Instant::now());
    loop {
        let now = look(spec);
        let seconds = looked.elapsed().as_secs_f64();
        looked = Instant::now();
        match as_json {
            true if once => return print_json(&as_value(&now)),
            true => print(&format!("{}\n", as_value(&now)))?,
            false => print(&text(before.as_ref(), &now, seconds))?,
        }
        if once {
            return Ok(());
        }
        before = Some(now);
        thread::sleep(interval);
    }
}

type Looks = BTreeMap<String, Look>;

fn look(spec: &ClusterSpec) -> Looks {
    let tasks = spec
        .jobs
        .iter()
        .flat_map(|(job, tasks)| tasks.iter().map(move |(task, at)| (format!("{job}/{task}"), at)));
    // All at once: a task that does not answer must not delay the others.
    let asked: Vec<_> = tasks
        .map(|(name, at)| {
            let at = at.clone();
            (name, thread::spawn(move || look_at(&at)))
        })
        .collect();
    let answered =
        asked.into_iter().map(|(name, thread)| (name, thread.join().unwrap_or_default()));
    answered.collect()
}

fn look_at(at: &str) -> Look {
    let read = || -> Result<Look, String> {
        let address = client_address(at)?;
        let text = get(address, "/metrics.json").map_err(|error| error.to_string())?;
        let value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        Ok(read_look(&value))
    };
    read().unwrap_or_else(|why| Look { failed: Some(why), ..Look::default() })
}

fn read_look(value: &Value) -> Look {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let figures = &value["figures"];
    let mut links: BTreeMap<String, [f64; 4]> = BTreeMap::new();
    for (at, name) in LINK.iter().enumerate() {
        for sample in figures[name].as_array().into_iter().flatten() {
            let from = sample["labels"]["from"].as_str().unwrap_or_default().to_owned();
            links.entry(from).or_default()[at] = number(&sample["value"]);
        }
    }
    let mut ways: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    for sample in figures[WAYS].as_array().into_iter().flatten() {
        let label = |name: &str| sample["labels"][name].as_str().unwrap_or_default().to_owned();
        let of_task = ways.entry(label("from")).or_default();
        of_task.insert(label("way"), number(&sample["value"]));
    }
    // A part of a step is no step of the runtime: a server counts both.
    let served = figures["tenon_served_total"].as_array();
    let served = served.map(|all| all.iter().map(|sample| number(&sample["value"])).sum::<f64>());
    Look {
        failed: None,
        uptime: number(&value["uptime_seconds"]),
        done: served.unwrap_or_else(|| number(&value["steps"]["done"])),
        running: number(&value["steps"]["running"]),
        sessions: number(&figures["tenon_sessions"][0]["value"]),
        links,
        ways,
    }
}

fn as_value(looks: &Looks) -> Value {
    let task = |look: &Look| {
        let link = |[bytes, tensors, waiting, waited]: &[f64; 4]| json!({ "bytes": bytes, "tensors": tensors, "waiting": waiting, "waited_seconds": waited });
        let links: BTreeMap<_, _> = look.links.iter().map(|(from, it)| (from, link(it))).collect();
        json!({
            "error": look.failed,
            "uptime_seconds": look.uptime,
            "steps": { "done": look.done, "running": look.running },
            "sessions": look.sessions,
            "from": links,
            "bytes_by_way": look.ways,
        })
    };
    looks
        .iter()
        .map(|(name, look)| (name.clone(), task(look)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The figures of an interval, or since the start of each task.
struct Since<'l> {
    before: Option<&'l Looks>,
    seconds: f64,
}

impl Since<'_> {
    /// The former look at a task, which is not that of a process before it, and the seconds since.
    fn of(&self, name: &str, now: &Look) -> (Look, f64) {
        let before = self.before.and_then(|looks| looks.get(name));
        match before.filter(|it| it.failed.is_none() && it.uptime <= now.uptime) {
            Some(before) => (before.clone(), self.seconds.max(1e-9)),
            None => (Look::default(), now.uptime.max(1e-9)),
        }
    }
}

fn text(before: Option<&Looks>, now: &Looks, seconds: f64) -> String {
    let since = Since { before, seconds };
    let mut tasks = Table::new(["task", ">steps/s", ">running", ">sessions", ">in MiB/s", "state"]);
    let mut links = Table::new(["to", "from", ">MiB/s", ">tensors/s", ">waiting", ">waits", "by"]);
    for (name, look) in now {
        let (then, seconds) = since.of(name, look);
        let rate = |from: &str, at: usize| {
            let earlier = then.links.get(from).map_or(0.0, |it| it[at]);
            (look.links[from][at] - earlier).max(0.0) / seconds
        };
        let mib = |bytes: f64| bytes / f64::from(1 << 20);
        let bytes: f64 = look.links.keys().map(|from| rate(from, 0)).sum();
        let state = look.failed.as_deref().unwrap_or("up");
        tasks.row([
            name.clone(),
            format!("{:.1}", (look.done - then.done).max(0.0) / seconds),
            format!("{:.0}", look.running),
            format!("{:.0}", look.sessions),
            format!("{:.1}", mib(bytes)),
            plain(state).into_owned(),
        ]);
        for (from, [_, _, waiting, _]) in &look.links {
            links.row([
                name.clone(),
                plain(from).into_owned(),
                format!("{:.1}", mib(rate(from, 0))),
                format!("{:.1}", rate(from, 1)),
                format!("{waiting:.0}"),
                format!("{:.0} %", 100.0 * rate(from, 3)),
                by(look.ways.get(from), then.ways.get(from)),
            ]);
        }
    }
    format!("{}\n{}\n{}\n", tasks.render(0), links.render(0), stragglers_line(&since, now))
}

/// What carried the bytes of a link since an earlier look; since the beginning if nothing came since then.
fn by(now: Option<&BTreeMap<String, f64>>, then: Option<&BTreeMap<String, f64>>) -> String {
    let Some(now) = now else { return "-".to_owned() };
    let earlier = |way: &str| then.and_then(|then| then.get(way)).copied().unwrap_or(0.0);
    let moved = |(way, bytes): &(&String, &f64)| **bytes > earlier(way);
    let mut ways: Vec<_> = now.iter().filter(moved).map(|(way, _)| plain(way)).collect();
    if ways.is_empty() {
        ways = now.keys().map(|way| plain(way)).collect();
    }
    ways.join(", ")
}

/// The tasks that others wait for much longer than for most, with the seconds of waiting in each second.
fn stragglers(since: &Since<'_>, now: &Looks) -> Vec<(String, f64)> {
    let mut awaited: BTreeMap<&str, f64> = now.keys().map(|name| (name.as_str(), 0.0)).collect();
    for (name, look) in now {
        let (then, seconds) = since.of(name, look);
        for (from, [_, _, _, waited]) in &look.links {
            let earlier = then.links.get(from).map_or(0.0, |it| it[3]);
            *awaited.entry(from).or_default() += (waited - earlier).max(0.0) / seconds;
        }
    }
    let mut all: Vec<f64> = awaited.values().copied().collect();
    all.sort_by(f64::total_cmp);
    let median = all.get(all.len() / 2).copied().filter(|_| all.len() > 2).unwrap_or(0.0);
    let slow = |share: f64| share >= SLOW_SHARE && share >= 2.0 * median;
    let found = awaited.iter().filter(|(_, share)| slow(**share));
    let mut found: Vec<_> = found.map(|(name, share)| ((*name).to_owned(), *share)).collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    found
}

fn stragglers_line(since: &Since<'_>, now: &Looks) -> String {
    let found = stragglers(since, now);
    let named = found
        .iter()
        .map(|(name, share)| format!("{} (waits of {share:.2} s in a second)", plain(name)));
    match found.is_empty() {
        true => "stragglers: none".to_owned(),
        false => format!("stragglers: {}", named.collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(uptime: f64, done: u64, links: &[(&str, [f64; 4])]) -> Look {
        let sample = |from: &str, value: f64| json!({ "labels": { "from": from }, "value": value });
        let mut figures = json!({ "tenon_sessions": [{ "labels": {}, "value": 2 }] });
        for (at, name) in LINK.iter().enumerate() {
            figures[name] = links.iter().map(|(from, values)| sample(from, values[at])).collect();
        }
        figures[WAYS] = links
            .iter()
            .map(|(from, values)| {
                json!({ "labels": { "from": from, "way": "shm" }, "value": values[0] })
            })
            .collect();
        read_look(&json!({
            "uptime_seconds": uptime, "steps": { "done": done, "running": 1 }, "figures": figures,
        }))
    }

    fn cluster(done: u64, slow: f64) -> Looks {
        let mib = f64::from(1 << 20);
        let from = |waited: f64| [mib * done as f64, done as f64, 1.0, waited];
        let worker =
            task(10.0 + done as f64, done, &[("ps/0", from(0.1)), ("worker/1", from(slow))]);
        let other = task(10.0, done, &[("ps/0", from(0.1))]);
        BTreeMap::from([
            ("ps/0".to_owned(), task(10.0, done, &[])),
            ("worker/0".to_owned(), worker),
            ("worker/1".to_owned(), other),
        ])
    }

    #[test]
    fn rates_are_those_of_the_interval_and_a_straggler_is_named() {
        let (before, now) = (cluster(10, 0.5), cluster(20, 2.5));
        let shown = text(Some(&before), &now, 4.0);
        let row = shown.lines().find(|line| line.starts_with("worker/0 ")).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells, ["worker/0", "2.5", "1", "2", "5.0", "up"]);
        let link =
            shown.lines().find(|line| line.starts_with("worker/0") && line.contains("worker/1"));
        let cells: Vec<&str> = link.unwrap().split_whitespace().collect();
        assert_eq!(cells, ["worker/0", "worker/1", "2.5", "2.5", "1", "50", "%", "shm"]);
        assert!(shown.contains("stragglers: worker/1 (waits of 0.50 s in a second)"), "{shown}");
        let even = text(Some(&before), &cluster(20, 0.5), 4.0);
        assert!(even.contains("stragglers: none"), "{even}");
    }

    #[test]
    fn a_task_that_does_not_answer_is_shown_with_the_reason() {
        let spec =
            addresses(r#"{"cluster":{"ps":["x:1"]},"monitor":{"ps":["127.0.0.1:1"]}}"#).unwrap();
        let looks = look(&spec);
        let shown = text(None, &looks, 1.0);
        assert!(shown.contains("ps/0") && shown.contains("127.0.0.1:1"), "{shown}");
        assert!(as_value(&looks)["ps/0"]["error"].is_string());
    }

    #[test]
    fn a_task_that_was_started_anew_counts_from_nothing() {
        let before = BTreeMap::from([("ps/0".to_owned(), task(100.0, 5000, &[]))]);
        let now = BTreeMap::from([("ps/0".to_owned(), task(2.0, 10, &[]))]);
        let shown = text(Some(&before), &now, 1.0);
        assert!(
            shown.lines().any(|line| line.starts_with("ps/0") && line.contains("5.0")),
            "{shown}"
        );
    }
}
