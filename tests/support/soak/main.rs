//! A soak: eight threads run steps with deadlines and cancellation, replace a plugin and refresh their sessions, and
//! end the processes of an isolated plugin, for the given time. `.ci/soak` runs it.
//!
//! Every result is compared. At the end the level of memory, descriptors and threads after a warm-up is compared with
//! that at the end: more than 5 % of memory is a failure.

mod level;
mod work;

use level::{Sample, verdict};
use std::{
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

const USAGE: &str = "usage: soak SECONDS (at least 20)";
/// How often the process is looked at.
const PERIOD: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    tenon_runtime::isolate::work();
    let seconds = std::env::args().nth(1).and_then(|text| text.parse::<u64>().ok());
    let Some(seconds) = seconds.filter(|&seconds| seconds >= 20) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
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
            samples.push(Sample::now(begin.elapsed()));
            if samples.len().is_multiple_of(20) {
                println!("{}; {}", samples[samples.len() - 1], site.counts);
            }
        }
        over.store(true, Ordering::Relaxed);
        // A thread that ended before its time has panicked, and said why.
        threads.into_iter().filter_map(|thread| thread.join().err()).count()
    });
    println!("{}", site.counts);
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
