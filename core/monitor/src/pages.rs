//! What the server answers under each path.

use crate::prometheus;
use serde_json::json;
use tenon_runtime::metrics::Metrics;

/// Status, type and text of an answer.
pub(crate) type Page = (&'static str, &'static str, String);

/// A sample of a figure: its labels, and the value.
pub type Sample = (Vec<(&'static str, String)>, f64);

/// A figure that a program adds to those of its runtime.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name, as Prometheus has it.
    pub name: &'static str,
    /// `counter` or `gauge`.
    pub kind: &'static str,
    /// What it is, in a sentence.
    pub help: &'static str,
    /// Its values.
    pub samples: Vec<Sample>,
}

/// What a program adds to the pages.
pub struct Extras {
    /// Whether the program takes requests; else why not.
    pub ready: Box<dyn Fn() -> Result<(), String> + Send>,
    /// Further figures.
    pub figures: Box<dyn Fn() -> Vec<Figure> + Send>,
}

impl Default for Extras {
    fn default() -> Extras {
        Extras { ready: Box::new(|| Ok(())), figures: Box::new(Vec::new) }
    }
}

fn plain(status: &'static str, text: &str) -> Page {
    (status, "text/plain", format!("{text}\n"))
}

fn unavailable(why: &str) -> Page {
    plain("503 Service Unavailable", why)
}

/// The page of a path; `metrics` is `None` once the runtime is gone.
pub(crate) fn page(path: &str, metrics: &impl Fn() -> Option<Metrics>, extras: &Extras) -> Page {
    let Some(metrics) = metrics() else { return unavailable("the runtime is gone") };
    match path {
        "/metrics" => {
            let text = prometheus::text(&metrics, &(extras.figures)());
            ("200 OK", "text/plain; version=0.0.4", text)
        }
        "/metrics.json" => ("200 OK", "application/json", json_text(&metrics, &(extras.figures)())),
        "/healthz" => {
            health(&metrics).map_or_else(|why| unavailable(&why), |()| plain("200 OK", "ok"))
        }
        "/readyz" => {
            let ready = health(&metrics).and_then(|()| (extras.ready)());
            ready.map_or_else(|why| unavailable(&why), |()| plain("200 OK", "ready"))
        }
        _ => plain("404 Not Found", "expected /metrics, /metrics.json, /healthz or /readyz"),
    }
}

/// Whether the process can work: a lost device does not come back in it.
fn health(metrics: &Metrics) -> Result<(), String> {
    let lost =
        metrics.devices.iter().find_map(|device| Some((&device.name, device.lost.as_ref()?)));
    lost.map_or(Ok(()), |(name, why)| Err(format!("device {name} is lost: {why}")))
}

fn json_text(metrics: &Metrics, figures: &[Figure]) -> String {
    let mut value = json!(metrics);
    let sample = |(labels, value): &Sample| {
        let labels: serde_json::Map<_, _> =
            labels.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        json!({ "labels": labels, "value": value })
    };
    let figures: serde_json::Map<_, _> = figures
        .iter()
        .map(|figure| (figure.name.to_owned(), figure.samples.iter().map(sample).collect()))
        .collect();
    value["figures"] = figures.into();
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_runtime::{Runtime, RuntimeOptions};

    fn metrics() -> Metrics {
        let options = RuntimeOptions::with_plugins(Vec::<String>::new());
        Runtime::new(options).unwrap().0.metrics()
    }

    #[test]
    fn a_probe_says_why_a_program_is_not_ready() {
        let (now, extras) = (metrics(), Extras::default());
        let ask = |path: &str, extras: &Extras| page(path, &|| Some(now.clone()), extras);
        assert_eq!(ask("/healthz", &extras).0, "200 OK");
        assert_eq!(ask("/readyz", &extras).0, "200 OK");
        let stopping =
            Extras { ready: Box::new(|| Err("it stops".to_owned())), ..Extras::default() };
        assert_eq!(ask("/healthz", &stopping).0, "200 OK");
        let (status, _, text) = ask("/readyz", &stopping);
        assert_eq!((status, text.as_str()), ("503 Service Unavailable", "it stops\n"));
        let mut lost = metrics();
        lost.devices.push(tenon_runtime::metrics::DeviceMetrics {
            name: "ACCEL:0".to_owned(),
            lost: Some("a fault".to_owned()),
            memory: None,
        });
        for path in ["/healthz", "/readyz"] {
            let (status, _, text) = page(path, &|| Some(lost.clone()), &extras);
            assert_eq!(status, "503 Service Unavailable");
            assert_eq!(text, "device ACCEL:0 is lost: a fault\n");
            assert_eq!(page(path, &|| None, &extras).0, "503 Service Unavailable");
        }
    }

    #[test]
    fn figures_of_a_program_are_in_both_forms() {
        let figure = || Figure {
            name: "tenon_link_bytes_total",
            kind: "counter",
            help: "Bytes.",
            samples: vec![(vec![("from", "ps/0".to_owned())], 12.0)],
        };
        let extras = Extras { figures: Box::new(move || vec![figure()]), ..Extras::default() };
        let now = metrics();
        let (_, _, text) = page("/metrics", &|| Some(now.clone()), &extras);
        let line =
            "# TYPE tenon_link_bytes_total counter\ntenon_link_bytes_total{from=\"ps/0\"} 12\n";
        assert!(text.contains(line), "{text}");
        let (_, _, text) = page("/metrics.json", &|| Some(now.clone()), &extras);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["figures"]["tenon_link_bytes_total"][0]["labels"]["from"], "ps/0");
        assert!(
            serde_json::from_str::<Metrics>(&text).is_ok(),
            "those of the runtime are read as before"
        );
    }
}
