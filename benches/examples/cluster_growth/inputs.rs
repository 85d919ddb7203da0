//! The measured costs that the model adds up, and rows with which it is compared.

use super::collective;
use serde_json::{Value, json};
use std::{fs, path::Path};
use tenon_benches::Failure;

/// Steps, transfers and sums of two tasks. Of each row the shortest sample counts, since others used the machine.
const CLUSTER: &str = "2026-11-28-cluster.jsonl";
/// What the parts of a step cost their master and their workers, in processor time.
const FANOUT: &str = "2026-11-28-cluster-fanout.jsonl";
/// Training steps on one thread.
const TRAINING: &str = "2026-11-27-training-3.jsonl";
const CONVOLUTIONS: &str = "2026-11-27-training-4.jsonl";
/// The part of the shortest sum that was the question to the leader of the group, which was asked for each sum when the record
/// was made; the rest are its two exchanges. The record has their sum alone.
const JOIN: f64 = 0.5;

/// A row of a record.
struct Row<'r> {
    record: &'r str,
    bench: &'r str,
    peer: &'r str,
    version: &'r str,
}

impl Row<'_> {
    /// Its shortest sample, in seconds.
    fn seconds(&self) -> Result<f64, Failure> {
        let fits = |value: &Value| {
            value["bench"] == self.bench
                && value["peer"] == self.peer
                && value["version"] == self.version
        };
        let found = lines(self.record)?.into_iter().find(fits);
        let least = found.and_then(|value| value["min_ns"].as_f64()).map(|least| least / 1e9);
        let Row { record, bench, peer, version } = self;
        least.ok_or_else(|| format!("{record} has no row {bench} of {peer} {version}").into())
    }
}

fn lines(record: &str) -> Result<Vec<Value>, Failure> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("records").join(record);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    Ok(lines?)
}

/// A step over TCP, in the run whose builds were stopped.
fn over_tcp(bench: &str) -> Result<f64, Failure> {
    Row { record: CLUSTER, bench, peer: "tenon-tcp", version: "before" }.seconds()
}

/// A sum of two tasks through shared memory, in the run in which nothing else was measured.
fn sum(bytes: u64) -> Result<f64, Failure> {
    let bench = format!("cluster/reduce/{bytes}");
    let row = Row { record: CLUSTER, bench: &bench, peer: "tenon-shm", version: "tree-alone" };
    row.seconds()
}

/// The costs, in seconds and in bytes per second.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// A step of one task as its client sees it, without nodes.
    pub call: f64,
    /// What a part at another task adds that gives back a scalar: its call, and the transfer.
    pub part: f64,
    /// What each further small tensor adds.
    pub tensor: f64,
    /// Bytes that cross a link.
    pub rate: f64,
    /// The question to the leader of a group, in the record.
    pub join: f64,
    /// An exchange of a sum, without its bytes.
    pub exchange: f64,
    /// Bytes that are merged, and written to where they are needed.
    pub merge: f64,
    /// Processor time of a master for a part of a step, and of a worker.
    pub master_cpu: f64,
    pub worker_cpu: f64,
    /// Bytes of tensors through shared memory, for the comparison.
    shared_rate: f64,
}

const MIB: u64 = 1 << 20;

impl Inputs {
    pub fn read() -> Result<Inputs, Failure> {
        let call = over_tcp("cluster/noop")?;
        let scalar = over_tcp("cluster/transfer/4")?;
        let (ten, hundred) = (over_tcp("cluster/tensors/10")?, over_tcp("cluster/tensors/100")?);
        let most = 64 * MIB;
        let rate = most as f64 / (over_tcp(&format!("cluster/transfer/{most}"))? - scalar);
        let shared = |bytes: u64| {
            let bench = format!("cluster/transfer/{bytes}");
            let row = Row { record: CLUSTER, bench: &bench, peer: "tenon-shm", version: "before" };
            row.seconds()
        };
        let shared_rate = most as f64 / (shared(most)? - shared(4)?);
        let (least, large) = (sum(4)?, 32 * MIB);
        // Each of two members merges a half.
        let merging = sum(large)? - least - large as f64 / shared_rate;
        Ok(Inputs {
            call,
            part: scalar - call,
            tensor: (hundred - ten) / 90.0,
            rate,
            join: least * JOIN,
            exchange: least * (1.0 - JOIN) / 2.0,
            merge: large as f64 / 2.0 / merging,
            master_cpu: of_part("master")?,
            worker_cpu: of_part("worker")?,
            shared_rate,
        })
    }

    /// The line that says them.
    pub fn line(&self) -> Value {
        let micro = |seconds: f64| (seconds * 1e7).round() / 10.0;
        json!({
            "bench": "cluster_growth/inputs", "from": [CLUSTER, FANOUT, TRAINING, CONVOLUTIONS],
            "call_us": micro(self.call), "part_us": micro(self.part), "tensor_us": micro(self.tensor),
            "link_gb_s": self.rate / 1e9, "join_us": micro(self.join), "exchange_us": micro(self.exchange),
            "merge_gb_s": self.merge / 1e9, "master_cpu_us": micro(self.master_cpu),
            "worker_cpu_us": micro(self.worker_cpu),
        })
    }

    /// The same with shared memory as the link.
    fn shared(&self) -> Inputs {
        Inputs { rate: self.shared_rate, ..self.clone() }
    }

    /// What the model says of rows that are not inputs, beside what was measured.
    pub fn compare(&self) -> Result<Vec<Value>, Failure> {
        let mut lines = Vec::new();
        let mut line = |bench: &str, peer: &str, model: f64, measured: f64| {
            lines.push(json!({
                "bench": "cluster_growth/compare", "row": bench, "peer": peer, "predicted_ms": model * 1e3,
                "measured_ms": measured * 1e3, "ratio": model / measured,
            }));
        };
        for bytes in [MIB, 16 * MIB] {
            let bench = format!("cluster/transfer/{bytes}");
            let model = self.call + self.part + bytes as f64 / self.rate;
            line(&bench, "tenon-tcp", model, over_tcp(&bench)?);
        }
        let ten = self.call + self.part + 9.0 * self.tensor;
        line("cluster/tensors/10", "tenon-tcp", ten, over_tcp("cluster/tensors/10")?);
        let shared = self.shared();
        for bytes in [64 << 10, MIB] {
            let bench = format!("cluster/reduce/{bytes}");
            let ways = [("tenon-shm", "tree-alone", &shared), ("tenon-tcp", "tree", self)];
            for (peer, version, inputs) in ways {
                let row = Row { record: CLUSTER, bench: &bench, peer, version };
                let model = collective::sum(inputs, bytes as f64, 2);
                line(&bench, peer, model, row.seconds()?);
            }
        }
        Ok(lines)
    }
}

/// Processor time of a part, in seconds.
fn of_part(of: &str) -> Result<f64, Failure> {
    let bench = format!("cluster/part/{of}");
    let found = lines(FANOUT)?.into_iter().find(|value| value["bench"] == bench.as_str());
    let cpu = found.and_then(|value| value["cpu_ns"].as_f64()).map(|cpu| cpu / 1e9);
    cpu.ok_or_else(|| format!("{FANOUT} has no row {bench}").into())
}

/// A model that is trained.
#[derive(Debug, Clone)]
pub struct Model {
    pub name: &'static str,
    /// Seconds of a step on one thread, with its updates.
    pub compute: f64,
    /// Bytes of its parameters, as many as of their gradients.
    pub bytes: f64,
    /// The number of its variables.
    pub variables: f64,
}

impl Model {
    pub fn all() -> Result<Vec<Model>, Failure> {
        // Weights and biases of dense layers.
        let dense = |sizes: &[f64]| {
            let layers =
                sizes.iter().zip(&sizes[1..]).map(|(rows, columns)| (rows + 1.0) * columns);
            4.0 * layers.sum::<f64>()
        };
        let step = |record, size: &str| {
            let fits = |it: &Value| {
                it["peer"] == "tenon"
                    && it["size"] == size
                    && it["threads"] == 1
                    && it.get("node").is_none()
            };
            // The last one is the newest version.
            let found = lines(record)?.into_iter().rfind(fits);
            let least = found.and_then(|value| value["min_ns"].as_f64());
            least
                .map(|least| least / 1e9)
                .ok_or_else(|| Failure::from(format!("{record}: no {size}")))
        };
        Ok(vec![
            Model {
                name: "mlp",
                compute: step(TRAINING, "mlp-sgd")?,
                bytes: dense(&[784.0, 512.0, 512.0, 10.0]),
                variables: 6.0,
            },
            Model {
                name: "mlp-big",
                compute: step(TRAINING, "mlp-big")?,
                bytes: dense(&[784.0, 4096.0, 4096.0, 10.0]),
                variables: 6.0,
            },
            Model {
                name: "resnet20-cifar",
                compute: step(CONVOLUTIONS, "resnet20-cifar")?,
                // 19 convolutions of 3 x 3, as many normalisations, and a dense layer: 269,722 weights without the statistics.
                bytes: 4.0 * 269_722.0,
                variables: 59.0,
            },
        ])
    }
}
