//! `tenon top`: what a running process does.

mod client;
mod tasks;
mod view;

use crate::{
    args::Global,
    error::CliError,
    output::{print, print_json},
    serve::json_of,
    table::Table,
};
use clap::Args;
use client::{address, get, metrics};
use ratatui::{
    DefaultTerminal,
    crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers},
};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};
use view::{Order, View, draw};

/// What `tenon top --help` says.
pub const ABOUT: &str = "\
Show what a running process does: plugins, devices, memory, kernels by time, queue lengths, steps per second.

The process has to tell its figures: runtime.monitor=PORT has it listen on this machine alone, over HTTP, with
/metrics in Prometheus's text format and /metrics.json. Steps are counted, and timed by samples: p50, p90 and
p99 are what half, nine tenths and 99 of 100 steps did not exceed. Times of kernels are estimated from the costs that
the executor samples.

With --cluster it shows the tasks of a cluster: steps and bytes per second, which task waits for which, and stragglers, which
others wait for much longer than for most.";

/// An example.
pub const EXAMPLE: &str = "\
Example:
  tenon top 9100 --once";

/// Options of `tenon top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Where the process tells its figures: a port, or a loopback address with one
    #[arg(value_name = "PORT", value_parser = address, required_unless_present = "cluster")]
    address: Option<SocketAddr>,
    /// Show the tasks of a cluster instead: JSON with the addresses of their figures, as `tenon cluster up` prints it, or a
    /// file of it
    #[arg(long, value_name = "FILE|JSON", conflicts_with_all = ["address", "prometheus"])]
    cluster: Option<String>,
    /// Print the figures once, as tables, with means since the start; with --json as the process tells them
    #[arg(long)]
    once: bool,
    /// Print the figures once, in Prometheus's text format
    #[arg(long, conflicts_with = "once")]
    prometheus: bool,
    /// Seconds between two looks
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    interval: f64,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.05..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected seconds, from 0.05 to 3600".to_owned()),
    }
}

/// Shows what a process does.
///
/// # Errors
/// No process serves figures at the address; the terminal cannot be used.
pub fn top(global: &Global, args: &TopArgs) -> Result<(), CliError> {
    if let Some(cluster) = &args.cluster {
        let spec = tasks::addresses(&json_of(cluster)?)?;
        return tasks::top(&spec, args.once, global.json, Duration::from_secs_f64(args.interval));
    }
    // The command line has one of them.
    let Some(address) = args.address else { return Ok(()) };
    if args.prometheus {
        return print(&get(address, "/metrics")?);
    }
    if global.json {
        return json(args, address);
    }
    let first = metrics(address)?;
    if args.once {
        return print(&text(&View::new(None, first, 0.0, Order::Time)));
    }
    let failed = |source| CliError::File { file: "terminal".into(), done: "used", source };
    // It puts the terminal back should the program panic, too.
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let shown = show(&mut terminal, args, address, first);
    ratatui::restore();
    shown
}

/// One value, or one a line for as long as the process lives.
fn json(args: &TopArgs, address: SocketAddr) -> Result<(), CliError> {
    loop {
        let text = get(address, "/metrics.json")?;
        let value = serde_json::from_str(&text).unwrap_or(serde_json::Value::Null);
        if args.once {
            return print_json(&value);
        }
        print(&format!("{value}\n"))?;
        std::thread::sleep(Duration::from_secs_f64(args.interval));
    }
}

/// The view as plain tables.
fn text(view: &View) -> String {
    let mut text = String::new();
    let parts = [view.summary(), view.memories(), view.plugins()];
    for part in parts {
        part.iter().for_each(|line| text.push_str(&format!("{line}\n")));
        text.push('\n');
    }
    let mut table = Table::new(["op", "label", "plugin", "device", ">calls/s", ">time", ">a call"]);
    view.kernel_cells().into_iter().for_each(|cells| table.row(cells));
    text.push_str(&table.render(0));
    text
}

fn show(
    terminal: &mut DefaultTerminal,
    args: &TopArgs,
    address: SocketAddr,
    first: tenon_runtime::metrics::Metrics,
) -> Result<(), CliError> {
    let failed = |source| CliError::File { file: "terminal".into(), done: "used", source };
    let interval = Duration::from_secs_f64(args.interval);
    let (mut order, mut paused) = (Order::Time, false);
    let mut before = None;
    let mut now = first;
    let mut looked = Instant::now();
    let mut between = 0.0;
    loop {
        let mut view = View::new(before.as_ref(), now.clone(), between, order);
        view.paused = paused;
        terminal.draw(|frame| draw(frame, &view)).map_err(failed)?;
        let left = interval.saturating_sub(looked.elapsed());
        if event::poll(left.max(Duration::from_millis(1))).map_err(failed)? {
            match event::read().map_err(failed)? {
                Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                        return Ok(());
                    }
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    KeyCode::Char('s') => order = order.next(),
                    KeyCode::Char('p') => paused = !paused,
                    _ => {}
                },
                _ => {}
            }
        }
        if looked.elapsed() >= interval && !paused {
            between = looked.elapsed().as_secs_f64();
            looked = Instant::now();
            before = Some(std::mem::replace(&mut now, metrics(address)?));
        } else if paused {
            looked = Instant::now();
        }
    }
}
