//! Memory, threads and descriptors that calls and states leave behind.

use super::{
    choice::{self, Chosen},
    effort::Effort,
    plain::{described, said},
    site::Site,
    verdicts::Verdicts,
};
use crate::{
    check::{case::CheckCase, clause::Clause, heap},
    harness::Form,
    node::{Node, Refusal, Stage},
};
use std::time::{Duration, Instant};
use tenon_framework::device::base::DeviceBase;
use tenon_runtime::host::{
    call::StepEnv,
    instance::{KernelInstance, PreparedCall},
    memory::{HostMemory, MemoryStats},
};

/// Windows in which growth is measured; what grows in the first ones may be caches.
const WINDOWS: usize = 10;
const FIRST_COUNTED: usize = 4;
/// Calls in a window, where they are quick enough.
const CALLS: usize = 400;
/// Calls before the first window.
const WARM_UP: usize = 16;
/// About how long all windows of one way usually take.
const TIME: Duration = Duration::from_millis(120);
/// Growth of a window that is not a leak: bytes a call.
const NOISE: u64 = 2;

/// What a call leaves to other threads, as the frees of a stream, these give back soon: so long they are waited for.
const SETTLE: Duration = Duration::from_millis(20);

/// One way of using a kernel.
struct Way<'a> {
    what: &'static str,
    time: Duration,
    run: &'a mut dyn FnMut() -> Result<(), Refusal>,
}

/// Judges the clause.
pub(super) fn examine(
    site: &Site<'_>,
    cases: &[CheckCase],
    effort: Effort,
    verdicts: &mut Verdicts<'_>,
) {
    let clause = Clause::Leak;
    let Some((chosen, first)) = choice::smallest(site, cases) else {
        return verdicts.skip(clause, "the kernel takes none of the cases");
    };
    drop(first);
    verdicts.set_case(&chosen.case.name);
    verdicts.begin(clause);
    let result = both_ways(site, &chosen, effort.of(TIME));
    let described = described(&chosen.case, &chosen.inputs);
    verdicts.conclude(clause, result.map_err(|problem| format!("{problem}; {described}")));
}

fn both_ways(site: &Site<'_>, chosen: &Chosen, time: Duration) -> Result<(), String> {
    let node = site.node(&chosen.case, &chosen.inputs, Form::Shapes);
    let node = node.map_err(|refusal| said(&refusal))?;
    calls(site, chosen, &node, time)?;
    states(site, chosen, &node, time)
}

/// Many calls of one state.
fn calls(site: &Site<'_>, chosen: &Chosen, node: &Node, time: Duration) -> Result<(), String> {
    let failed =
        |refusal: Refusal| format!("a call that was accepted is not any more: {}", said(&refusal));
    let instance = site.instance(node, Form::Shapes).map_err(failed)?;
    let before = Held::now(site);
    match site.is_stateful() {
        // Resources go with their environment: one for each call.
        true => {
            let mut run = || one_call(&instance, chosen, &site.env());
            grows(Way { what: "call", time, run: &mut run })?;
        }
        false => {
            let env = site.env();
            let mut call = PreparedCall::new(&instance, &chosen.inputs, &env)
                .map_err(|error| failed(Refusal::at(Stage::Compute)(error)))?;
            let mut run = || call.run().map_err(Refusal::at(Stage::Compute));
            grows(Way { what: "call", time, run: &mut run })?;
        }
    }
    before.check(site, "calls")
}

/// Many calls that the kernel refuses, of an attribute or input that is wrong: what it has by then, it gives back too.
pub(super) fn refused(
    site: &Site<'_>,
    run: &mut dyn FnMut() -> Result<(), Refusal>,
    effort: Effort,
) -> Result<(), String> {
    let before = Held::now(site);
    grows(Way { what: "call that is refused", time: effort.of(TIME), run })?;
    before.check(site, "calls that are refused")
}

fn one_call(instance: &KernelInstance, chosen: &Chosen, env: &StepEnv) -> Result<(), Refusal> {
    let mut call =
        PreparedCall::new(instance, &chosen.inputs, env).map_err(Refusal::at(Stage::Compute))?;
    call.run().map_err(Refusal::at(Stage::Compute))
}

/// Many states, each called once.
fn states(site: &Site<'_>, chosen: &Chosen, node: &Node, time: Duration) -> Result<(), String> {
    let before = Held::now(site);
    let mut run = || {
        let instance = site.instance(node, Form::Shapes)?;
        one_call(&instance, chosen, &site.env())
    };
    grows(Way { what: "state that is made, called and destroyed", time, run: &mut run })?;
    before.check(site, "states were made and destroyed")
}

/// Runs one way repeatedly, and returns by how much the heap grows each time.
fn grows(way: Way<'_>) -> Result<(), String> {
    let Way { what, time, run } = way;
    let failed = |refusal: Refusal| format!("a {what} is refused in the end: {}", said(&refusal));
    let begin = Instant::now();
    for _ in 0..WARM_UP {
        run().map_err(failed)?;
    }
    let one = begin.elapsed() / WARM_UP as u32;
    let fit = time.as_nanos() / (one.as_nanos().max(1) * WINDOWS as u128);
    let calls = usize::try_from(fit).unwrap_or(CALLS).clamp(WARM_UP, CALLS);
    let Some(suspected) = growth(calls, run).map_err(failed)? else { return Ok(()) };
    // Few calls in a window leave room for what other threads keep for themselves: more of them decide.
    let Some(bytes) = growth((4 * calls).min(CALLS), run).map_err(failed)? else { return Ok(()) };
    let bytes = bytes.min(suspected);
    Err(format!("the heap grows by {bytes:.0} bytes with each {what}"))
}

/// Bytes by which the heap grows with each call, where it does in every window of this many.
fn growth(
    calls: usize,
    run: &mut dyn FnMut() -> Result<(), Refusal>,
) -> Result<Option<f64>, Refusal> {
    let mut growth = Vec::with_capacity(WINDOWS);
    for _ in 0..WINDOWS {
        let Some(before) = heap::bytes_in_use() else { return Ok(None) };
        for _ in 0..calls {
            run()?;
        }
        let after = settled(before + NOISE * calls as u64).unwrap_or(before);
        growth.push(after.saturating_sub(before));
    }
    // What leaks grows in every window, what is cached does not.
    let counted = &mut growth[FIRST_COUNTED..];
    counted.sort_unstable();
    let (least, median) = (counted[0], counted[counted.len() / 2]);
    let leaks = least > NOISE * calls as u64;
    Ok(leaks.then(|| median as f64 / calls as f64))
}

/// Bytes in use, once they are at most this, or after a while.
fn settled(most: u64) -> Option<u64> {
    let end = Instant::now() + SETTLE;
    loop {
        let bytes = heap::bytes_in_use()?;
        if bytes <= most || Instant::now() > end {
            return Some(bytes);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What the process holds.
struct Held {
    host: MemoryStats,
    device: Option<MemoryStats>,
    threads: usize,
    descriptors: usize,
}

/// Entries of a folder of the system's; 0 if there is no such folder.
fn entries(folder: &str) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

impl Held {
    fn now(site: &Site<'_>) -> Held {
        let device = site.device();
        Held {
            host: HostMemory::shared().stats(),
            device: device.memory_stats(device.info().ordinary_memory()),
            threads: entries("/proc/self/task"),
            descriptors: entries("/proc/self/fd"),
        }
    }

    /// Compares with what the process holds now.
    fn check(&self, site: &Site<'_>, what: &str) -> Result<(), String> {
        // Threads that end take a moment to go, and so may a device's work.
        let end = Instant::now() + Duration::from_secs(2);
        loop {
            let result = self.compare(&Held::now(site), what);
            if result.is_ok() || Instant::now() > end {
                return result;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn compare(&self, now: &Held, what: &str) -> Result<(), String> {
        let buffers = |stats: &MemoryStats| (stats.live_bytes, stats.live_count);
        let pairs =
            [(Some(&self.host), Some(&now.host)), (self.device.as_ref(), now.device.as_ref())];
        for (memory, (before, now)) in ["host", "device"].iter().zip(pairs) {
            let (Some(before), Some(now)) = (before, now) else { continue };
            if buffers(now) != buffers(before) {
                return Err(format!(
                    "{memory} memory after {what}: expected {} bytes in {} buffers, found {} in {}",
                    before.live_bytes, before.live_count, now.live_bytes, now.live_count
                ));
            }
        }
        // A pool keeps a few threads for calls that block, and a library may open a file once.
        const FEW: usize = 8;
        if now.threads > self.threads + FEW {
            return Err(format!("{} threads before, {} after {what}", self.threads, now.threads));
        }
        if now.descriptors > self.descriptors + FEW {
            let (before, now) = (self.descriptors, now.descriptors);
            return Err(format!("{before} open descriptors before, {now} after {what}"));
        }
        Ok(())
    }
}
