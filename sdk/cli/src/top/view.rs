//! The view of a process: what two sets of figures say, drawn.

use crate::output::{count, plain, short_device, time};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Modifier, Style},
    text::Line,
    widgets::{Block, Cell, Paragraph, Row, Table},
};
use tenon_runtime::metrics::{KernelMetrics, MemoryMetrics, Metrics, percentile_ns};

/// What kernels are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Time within the interval.
    Time,
    /// Calls within the interval.
    Calls,
    /// Name of the op.
    Op,
}

impl Order {
    /// The next one.
    pub fn next(self) -> Order {
        match self {
            Order::Time => Order::Calls,
            Order::Calls => Order::Op,
            Order::Op => Order::Time,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Order::Time => "time",
            Order::Calls => "calls",
            Order::Op => "op",
        }
    }
}

/// A kernel within an interval.
pub struct KernelRow {
    kernel: KernelMetrics,
    calls_per_second: f64,
    /// Seconds of it in a second.
    share: f64,
}

/// What is shown.
pub struct View {
    /// The newest figures.
    pub now: Metrics,
    /// Steps in a second, within the interval.
    pub steps_per_second: f64,
    /// Times that half, nine tenths and 99 hundredths of the steps within the interval did not exceed.
    latency: Option<[u64; 3]>,
    /// Whether the interval is all the time since the runtime started.
    since_start: bool,
    kernels: Vec<KernelRow>,
    /// What kernels are sorted by.
    pub order: Order,
    /// Whether the figures are paused.
    pub paused: bool,
}

impl View {
    /// What `now` says beside the figures of `interval` seconds before, or since the runtime started. Counters that went
    /// back are another runtime's, and count from nothing.
    pub fn new(before: Option<&Metrics>, now: Metrics, interval: f64, order: Order) -> View {
        let seconds =
            if before.is_some() { interval.max(1e-9) } else { now.uptime_seconds.max(1e-9) };
        let earlier = |kernel: &KernelMetrics| {
            let mut all = before.iter().flat_map(|before| &before.kernels);
            all.find(|other| {
                (&other.op, &other.device, &other.plugin, &other.label)
                    == (&kernel.op, &kernel.device, &kernel.plugin, &kernel.label)
            })
        };
        let row = |kernel: &KernelMetrics| {
            let (calls, time) = earlier(kernel)
                .filter(|earlier| earlier.calls <= kernel.calls)
                .map_or((0, 0.0), |earlier| (earlier.calls, earlier.seconds));
            KernelRow {
                kernel: kernel.clone(),
                calls_per_second: (kernel.calls - calls) as f64 / seconds,
                share: (kernel.seconds - time).max(0.0) / seconds,
            }
        };
        let mut kernels: Vec<KernelRow> = now.kernels.iter().map(row).collect();
        kernels.sort_by(|a, b| match order {
            Order::Time => b.share.total_cmp(&a.share),
            Order::Calls => b.calls_per_second.total_cmp(&a.calls_per_second),
            Order::Op => a.kernel.op.cmp(&b.kernel.op),
        });
        let done = before.map_or(0, |before| before.steps.done).min(now.steps.done);
        let steps_per_second = (now.steps.done - done) as f64 / seconds;
        let earlier = before.map_or(&[][..], |before| &before.latency[..]);
        let of = |share| percentile_ns(&now.latency, earlier, share);
        let latency = of(0.5).zip(of(0.9)).zip(of(0.99)).map(|((p50, p90), p99)| [p50, p90, p99]);
        let (since_start, paused) = (before.is_none(), false);
        View { now, steps_per_second, latency, since_start, kernels, order, paused }
    }

    /// The lines about the process.
    pub fn summary(&self) -> Vec<String> {
        let Metrics { pid, uptime_seconds, steps, pool, .. } = &self.now;
        let since = if self.since_start { " since the start" } else { "" };
        let mut lines = vec![
            format!(
                "process {pid}, up {uptime_seconds:.0} s    steps: {:.1}/s{since}, {} running, {} done, {} failed",
                self.steps_per_second, steps.running, steps.done, steps.failed
            ),
            format!(
                "{}, {} waiting",
                count(pool.threads as usize, "thread"),
                count(pool.queued as usize, "job")
            ),
        ];
        if let Some([p50, p90, p99]) = self.latency.map(|all| all.map(|ns| time(ns as f64))) {
            lines.push(format!("a step{since}: p50 {p50}, p90 {p90}, p99 {p99}"));
        }
        lines
    }

    /// A line for each memory.
    pub fn memories(&self) -> Vec<String> {
        let devices = self.now.devices.iter().map(|device| {
            let name = plain(short_device(&device.name));
            match (&device.lost, device.memory) {
                (Some(why), _) => format!("{name:<12} lost: {}", plain(why)),
                (None, Some(memory)) => format!("{name:<12} {}", bytes_of(&memory)),
                (None, None) => format!("{name:<12} in host memory"),
            }
        });
        let host = format!("{:<12} {}", "host", bytes_of(&self.now.host_memory));
        std::iter::once(host).chain(devices).collect()
    }

    /// A line for each plugin.
    pub fn plugins(&self) -> Vec<String> {
        let plugin = |plugin: &tenon_runtime::metrics::PluginMetrics| {
            let head = format!("{:<16} {:<8}", plain(&plugin.name), plain(&plugin.version));
            match &plugin.isolation {
                None => head.trim_end().to_owned(),
                Some(of) => {
                    let state = match (&of.quarantined, of.pid) {
                        (Some(_), _) => "in quarantine".to_owned(),
                        (None, Some(pid)) => format!("process {pid}"),
                        (None, None) => "no process".to_owned(),
                    };
                    format!("{head} {state}, {} calls, {} faults", of.calls, of.faults)
                }
            }
        };
        self.now.plugins.iter().map(plugin).collect()
    }

    /// The cells of each kernel: op, label, plugin, device, calls a second, share, mean time of a call.
    pub fn kernel_cells(&self) -> Vec<[String; 7]> {
        let cells = |row: &KernelRow| {
            let mean = row.share / row.calls_per_second.max(f64::MIN_POSITIVE);
            let mean = if row.calls_per_second > 0.0 { time(mean * 1e9) } else { String::new() };
            [
                plain(&row.kernel.op).into_owned(),
                plain(&row.kernel.label).into_owned(),
                plain(&row.kernel.plugin).into_owned(),
                plain(&row.kernel.device).into_owned(),
                format!("{:.0}", row.calls_per_second),
                format!("{:.1} %", 100.0 * row.share),
                mean,
            ]
        };
        self.kernels.iter().map(cells).collect()
    }
}

fn bytes_of(memory: &MemoryMetrics) -> String {
    let MemoryMetrics { live_bytes, peak_bytes, cached_bytes, limit_bytes } = memory;
    let mut text = format!(
        "{} in use, peak {}, {} for reuse",
        mib(*live_bytes),
        mib(*peak_bytes),
        mib(*cached_bytes)
    );
    if *limit_bytes > 0 {
        let share = 100.0 * *live_bytes as f64 / *limit_bytes as f64;
        text.push_str(&format!(", {share:.0} % of {}", mib(*limit_bytes)));
    }
    text
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Titles of the kernels' columns.
pub const COLUMNS: [&str; 7] = ["op", "label", "plugin", "device", "calls/s", "time", "a call"];

/// Lines from which on memory and plugins are shown too.
const ALL_PARTS: u16 = 18;

/// Draws the view. In a small terminal memory and plugins are left out.
pub fn draw(frame: &mut Frame<'_>, view: &View) {
    let memories = view.memories();
    let plugins = view.plugins();
    let height = frame.area().height;
    // Two lines of borders around each.
    let part = |lines: usize| match height {
        0..ALL_PARTS => Constraint::Length(0),
        _ => Constraint::Length((lines as u16 + 2).min(height / 4)),
    };
    let rows = [
        Constraint::Length(view.summary().len() as u16 + 2),
        part(memories.len()),
        Constraint::Min(0),
        part(plugins.len()),
        Constraint::Length(1),
    ];
    let [head, memory, kernels, list, keys] = Layout::vertical(rows).areas(frame.area());
    lines(frame, head, " tenon top ", view.summary());
    lines(frame, memory, " memory ", memories);
    draw_kernels(frame, kernels, view);
    lines(frame, list, " plugins ", plugins);
    let state = if view.paused { "paused" } else { "" };
    let text = format!(" q quit   s sort by {}   p pause   {state}", view.order.next().name());
    frame.render_widget(Paragraph::new(text), keys);
}

fn lines(frame: &mut Frame<'_>, area: Rect, title: &'static str, lines: Vec<String>) {
    let lines: Vec<Line<'_>> = lines.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
}

fn draw_kernels(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let right = |text: String| Cell::from(Line::from(text).right_aligned());
    let row = |[op, label, plugin, device, calls, share, mean]: [String; 7]| {
        Row::new([
            Cell::from(op),
            Cell::from(label),
            Cell::from(plugin),
            Cell::from(device),
            right(calls),
            right(share),
            right(mean),
        ])
    };
    let widths = [
        Constraint::Fill(3),
        Constraint::Fill(1),
        Constraint::Fill(2),
        Constraint::Length(6),
        Constraint::Length(9),
        Constraint::Length(8),
        Constraint::Length(10),
    ];
    let [op, label, plugin, device, calls, share, mean] = COLUMNS.map(str::to_owned);
    let head = row([op, label, plugin, device, calls, share, mean])
        .style(Style::default().add_modifier(Modifier::BOLD));
    let title = format!(" kernels by {} ", view.order.name());
    let table = Table::new(view.kernel_cells().into_iter().map(row), widths)
        .header(head)
        .block(Block::bordered().title(title));
    frame.render_widget(table, area);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::{Terminal, backend::TestBackend};
    use tenon_runtime::metrics::{LatencyBucket, PluginMetrics, PoolMetrics, StepMetrics};

    fn kernel(op: &str, calls: u64, seconds: f64) -> KernelMetrics {
        let (device, plugin) = ("CPU".to_owned(), "tenon-cpu".to_owned());
        let (op, label) = (op.to_owned(), String::new());
        KernelMetrics { op, device, plugin, label, nodes: 1, calls, seconds }
    }

    fn metrics(done: u64, kernels: Vec<KernelMetrics>) -> Metrics {
        let host_memory = MemoryMetrics {
            live_bytes: 1 << 20,
            peak_bytes: 3 << 20,
            cached_bytes: 0,
            limit_bytes: 0,
        };
        Metrics {
            pid: 42,
            uptime_seconds: 100.0,
            steps: StepMetrics { running: 1, done, failed: 3 },
            latency: vec![LatencyBucket { up_to_ns: 1500, steps: done }],
            plugins: vec![PluginMetrics {
                name: "tenon\u{1b}[2J-cpu".to_owned(),
                version: "0.1.0".to_owned(),
                file: None,
                isolation: None,
            }],
            devices: Vec::new(),
            host_memory,
            pool: PoolMetrics { threads: 2, queued: 5 },
            kernels,
        }
    }

    fn view(order: Order) -> View {
        let before = metrics(100, vec![kernel("Add", 10, 0.5), kernel("Gone", 900, 9.0)]);
        let now = metrics(300, vec![kernel("Add", 20, 1.5), kernel("Gone", 4, 0.2)]);
        View::new(Some(&before), now, 2.0, order)
    }

    fn screen(width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, &view(Order::Time))).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn figures_are_those_of_the_interval() {
        let view = view(Order::Time);
        assert_eq!(view.steps_per_second, 100.0);
        let cells = view.kernel_cells();
        assert_eq!(
            cells[0],
            ["Add", "", "tenon-cpu", "CPU", "5", "50.0 %", "100 ms"].map(str::to_owned)
        );
        assert_eq!(cells[1][4], "2", "a counter that went back counts from nothing");
        let by_op = super::View::new(
            None,
            metrics(1, vec![kernel("B", 1, 0.1), kernel("A", 2, 0.1)]),
            1.0,
            Order::Op,
        );
        assert_eq!(by_op.kernel_cells()[0][0], "A");
    }

    #[test]
    fn all_parts_are_drawn_and_nothing_that_commands_the_terminal() {
        for (width, height) in [(80, 24), (120, 40)] {
            let screen = screen(width, height);
            for part in [
                "process 42",
                "100.0/s",
                "p99 1.50 µs",
                "5 jobs waiting",
                "host",
                "kernels by time",
                "Add",
                "50.0 %",
                "q quit",
            ] {
                assert!(screen.contains(part), "{width}x{height}: {part}\n{screen}");
            }
            assert!(!screen.contains('\u{1b}'));
        }
    }

    #[test]
    fn a_small_terminal_shows_what_it_can() {
        for (width, height) in [(40, 10), (10, 3), (1, 1)] {
            screen(width, height);
        }
        assert!(screen(40, 10).contains("process 42"));
    }
}
