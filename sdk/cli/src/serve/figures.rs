//! The figures of a server, beside those of its runtime.

use tenon_cluster::{LinkFigures, ServerWatch, WayFigures};
use tenon_monitor::{Extras, Figure};

/// What `/readyz` and the pages of figures say of a server.
pub fn extras(job: &str, task: u32, watch: ServerWatch) -> Extras {
    let place = format!("{job}/{task}");
    let figures = watch.clone();
    Extras {
        ready: Box::new(move || watch.ready()),
        figures: Box::new(move || all(&place, &figures)),
    }
}

/// A task's name as in `tenon cluster`: `ps/0` for `/job:ps/replica:0/task:0`.
fn short(task: &str) -> String {
    let part = |name: &str| {
        let found = task.split('/').find_map(|part| part.strip_prefix(name));
        found.unwrap_or_default().to_owned()
    };
    format!("{}/{}", part("job:"), part("task:"))
}

fn all(place: &str, watch: &ServerWatch) -> Vec<Figure> {
    let links = watch.links();
    let of = |value: fn(&LinkFigures) -> f64| {
        let sample = |link: &LinkFigures| {
            (vec![("from", short(&link.from)), ("to", place.to_owned())], value(link))
        };
        links.iter().map(sample).collect()
    };
    let by_way = |link: &LinkFigures| {
        let (from, to) = (short(&link.from), place.to_owned());
        let sample = move |it: &WayFigures| {
            let way = ("way", it.way.to_owned());
            (vec![("from", from.clone()), ("to", to.clone()), way], it.bytes as f64)
        };
        link.ways.iter().map(sample).collect::<Vec<_>>()
    };
    let one = |value| vec![(vec![("task", place.to_owned())], value)];
    let (steps, parts) = watch.served();
    let served = |kind: &str, count: u64| {
        (vec![("task", place.to_owned()), ("kind", kind.to_owned())], count as f64)
    };
    let figure = |name, kind, help, samples| Figure { name, kind, help, samples };
    vec![
        figure("tenon_task_info", "gauge", "The task of this process in its cluster.", one(1.0)),
        figure(
            "tenon_served_total",
            "counter",
            "Steps of clients that ended, and parts of steps for other tasks.",
            vec![served("step", steps), served("part", parts)],
        ),
        figure("tenon_sessions", "gauge", "Open sessions.", one(watch.sessions() as f64)),
        figure(
            "tenon_link_tensors_total",
            "counter",
            "Tensors that came from a task.",
            of(|it| it.tensors as f64),
        ),
        figure("tenon_link_bytes_total", "counter", "Their bytes.", of(|it| it.bytes as f64)),
        figure(
            "tenon_link_way_bytes_total",
            "counter",
            "The same by what carried them: grpc, tcp or shm.",
            links.iter().flat_map(by_way).collect(),
        ),
        figure(
            "tenon_link_waiting",
            "gauge",
            "Tensors that are awaited from a task.",
            of(|it| it.waiting as f64),
        ),
        figure(
            "tenon_link_wait_seconds_total",
            "counter",
            "Time for which tensors of a task were awaited, summed over all of them.",
            of(|it| it.waited.as_secs_f64()),
        ),
    ]
}
