//! Simulated clusters: master, workers, gRPC and HTTP/2 as they are, over a network and a time of the simulation.
//!
//! A seed decides what a client runs, how long everything takes on its way, and which faults happen when: tasks that are
//! killed, lose their power or stop, ways that are cut in one direction or both, connections that break, slow readers,
//! requests that overtake each other or come twice. For each seed:
//! - a step ends by its deadline, and without one soon after a task is lost;
//! - a fetched value is right, and an update is made once, or at most once if its step failed;
//! - an error has a code that says what to do, and names a task that a fault touched;
//! - after the faults, a new session works;
//! - at the end no task holds a session, a graph or a step.
//!
//! # Time
//! The time is [virtual](crate::clock): it passes only while all threads sleep. The same seed gives the same faults; which of
//! two threads is first is up to the system, so that one seed may show several orders.
//!
//! | file | content |
//! |---|---|
//! | `network.rs`, `pipe.rs` | tasks that are up, and the bytes between them |
//! | `unruly.rs` | requests that arrive late or twice |
//! | `task.rs` | a server in the network |
//! | `faults.rs` | what happens when |
//! | `world.rs` | the cluster, and its faults while they happen |
//! | `client.rs`, `script.rs` | calls of a client; what it runs, and what it checks |
//! | `random.rs` | numbers that follow from a seed |

mod client;
mod faults;
mod network;
mod pipe;
mod random;
mod script;
mod task;
mod unruly;
mod world;

use crate::clock::virtual_time::{Installed, Passed};
use random::Random;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_proto::GraphDef;
use tenon_runtime::Worker;
use tokio::runtime::Builder;
use world::World;

/// The tasks of the simulated cluster. The client's sessions are on [`MASTER`].
pub const TASKS: [(&str, u32); 3] = [("ps", 0), ("worker", 0), ("worker", 1)];
/// The place of the master among them.
pub const MASTER: usize = 1;
/// How long threads may compute before something happens.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most that a simulation takes of its own time.
const MOST: Duration = Duration::from_secs(3600);

/// Makes the worker of a task, with devices of its name.
type MakeWorker = Box<dyn Fn(&str, u32) -> Worker + Send + Sync>;

/// What a simulation is made of.
struct Making {
    worker: MakeWorker,
    graph: GraphDef,
}

/// What happened in a simulation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Steps that gave their values.
    pub done: usize,
    /// Steps that failed.
    pub failed: usize,
    /// Faults.
    pub faults: usize,
    /// The time that passed.
    pub time: Duration,
}

/// Plays simulations.
pub struct Simulation {
    making: Arc<Making>,
}

impl Simulation {
    /// Simulations of tasks with workers from `worker`, whose client runs this graph. It has these nodes:
    /// - `x`: a placeholder of floats;
    /// - `set`, `add` and `value`: they assign `x` to a variable at the ps, add it, and read it;
    /// - `y`: `(x - x * x)` squared, by way of all tasks;
    /// - `waits`: takes an element of a queue at the ps which stays empty, and gives it to worker 1.
    pub fn new(
        worker: impl Fn(&str, u32) -> Worker + Send + Sync + 'static,
        graph: GraphDef,
    ) -> Simulation {
        Simulation { making: Arc::new(Making { worker: Box::new(worker), graph }) }
    }

    /// Plays the simulation of a seed. There may be one at a time in a process.
    ///
    /// # Errors
    /// What went against the list above.
    ///
    /// # Panics
    /// Threads cannot be started.
    pub fn play(&self, seed: u64) -> Result<Figures, String> {
        let installed = Installed::new();
        let time = Arc::clone(&installed.0);
        let threads = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("tenon-simulated")
            .enable_all()
            .build()
            .expect("threads can be started");
        let entered = threads.enter();
        let world = World::start(&time, &self.making, Random::new(seed))?;
        let played = threads.spawn(script::play(Arc::clone(&world)));
        let begin = Instant::now();
        let stopped = loop {
            match time.pass(PATIENCE) {
                _ if played.is_finished() => break None,
                Passed::Fired if time.elapsed() < MOST => {}
                Passed::Fired => break Some("the client's script does not end".to_owned()),
                Passed::Idle => break Some("nothing happens any more".to_owned()),
                Passed::Busy => {
                    let spent = begin.elapsed();
                    break Some(format!("threads compute without end, after {spent:?}"));
                }
            }
        };
        let outcome = match stopped {
            Some(why) => Err(why),
            None => threads.block_on(played).unwrap_or_else(|error| Err(error.to_string())),
        };
        let outcome = outcome.map_err(|why| format!("{why}\n{}", world.story()));
        world.stop();
        // What still waits ends by its own limits.
        while time.pass(PATIENCE) == Passed::Fired {}
        drop(entered);
        drop(installed);
        threads.shutdown_timeout(Duration::from_secs(5));
        outcome
    }
}
