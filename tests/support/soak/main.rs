//! A soak: eight threads run steps with deadlines and cancellation, replace a plugin and refresh their sessions, and
//! end the processes of an isolated plugin, for the given time. `.ci/soak` runs it.
//!
//! With `serve`, a server is soaked instead ([`serve`]): clients run steps with state, deadlines and queues, close their
//! sessions, leave them open, and are killed, until there were so many steps. `.ci/soak-serve` runs it.
//!
//! Every result is compared. At the end the level of memory, descriptors and threads after a warm-up is compared with
//! that at the end: more than 5 % of memory is a failure, and so are more than 8 descriptors.

mod level;
mod serve;
mod work;

use level::{Sample, verdict};
use std::{
    path::Path,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

const USAGE: &str = "usage: soak SECONDS (at least 20), or soak serve TENON STEPS";
/// How often the process is looked at.
const PERIOD: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    tenon_runtime::isolate::work();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (samples, failed) = match words[..] {
        [serve::CLIENT, address] => {
            serve::client(address);
            return ExitCode::SUCCESS;
        }
        ["serve", tenon, steps] => match steps.parse() {
            Ok(steps) => serve::soak(Path::new(tenon), steps),
            Err(_) => return usage(),
        },
        [seconds] => match seconds.parse() {
            Ok(seconds) if seconds >= 20 => soak(seconds),
            _ => return usage(),
        },
        _ => return usage(),
    };
    if failed > 0 {
        eprintln!("soak: {failed} threads failed");
        return ExitCode::FAILURE;
    }
    match verdict(&samples) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("soak: {text}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

/// Runs steps in this process for so many seconds; what it held, and the number of threads that failed.
fn soak(seconds: u64) -> (Vec<Sample>, usize) {
    let folder = tempfile::tempdir().expect("a folder for builds of a plugin");
    let site = work::Site::new(folder.path());
    let (over, begin) = (AtomicBool::new(false), Instant::now());
    let mut samples: Vec<Sample> = Vec::new();
    let failed = thread::scope(|scope| {
        let threads = work::start(scope, &site, &over);
        while begin.elapsed() < Duration::from_secs(seconds)
            && !threads.iter().any(|thread| thread.is_finished())
        {
            thread::sleep(PERIOD);
            samples.push(Sample::of("self", begin.elapsed()));
            if samples.len().is_multiple_of(20) {
                println!("{}; {}", samples[samples.len() - 1], site.counts);
            }
        }
        over.store(true, Ordering::Relaxed);
        // A thread that ended before its time has panicked, and said why.
        threads.into_iter().filter_map(|thread| thread.join().err()).count()
    });
    println!("{}", site.counts);
    (samples, failed)
}
