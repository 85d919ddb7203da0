//! Failures that a device is ordered to have, and its loss: see the module's list of knobs.

use super::{
    Stop, devices_of, expect,
    lane::{Block, Event, Lane, compare, copy, pattern},
    wrong,
};
use crate::check::{clause::Clause, examine::Verdicts};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tenon_framework::{
    Code, DType, KernelError, Shape, Tensor,
    abi::MemoryKind,
    device::base::{DeviceBase, LocalDevice},
    registry::{Registry, RegistryEvent},
};
use tenon_runtime::{
    Runtime, RuntimeOptions,
    host::{Settings, devices::PluginDevice},
};

const FAIL_ALLOCATION: &str = "fail_alloc_after_bytes";
const FAIL_COMMAND: &str = "fail_command_after";
const LOSE: &str = "lose_after_commands";

/// Bytes after which allocations fail, and commands after which one fails or the device is lost.
const BYTES: usize = 1 << 16;
const COMMANDS: usize = 6;
/// Commands that are tried until the fault occurs: the host may make some itself.
const TRIES: usize = 4 * COMMANDS;
/// How long pending notifications and events may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Examines one device that was ordered to fail.
type Look = fn(&Arc<PluginDevice>) -> Result<(), Stop>;

/// Judges failures of allocations and of commands.
pub(super) fn faults(runtime: &Runtime, device_type: &str, verdicts: &mut Verdicts<'_>) {
    let ways: [(&str, usize, Look); 2] =
        [(FAIL_ALLOCATION, BYTES, allocation_fails), (FAIL_COMMAND, COMMANDS, command_fails)];
    let mut looked_at = 0;
    for (knob, value, look) in ways {
        let result = with_knob(runtime, device_type, knob, value, |runtime| {
            devices_of(runtime, device_type).iter().try_for_each(look)
        });
        match result {
            Ok(()) => looked_at += 1,
            Err(Stop::Skip(_)) => {}
            Err(Stop::Wrong(problem)) => {
                let problem = format!("with knob {knob} at {value}: {problem}");
                return verdicts.fail(Clause::Faults, problem);
            }
        }
    }
    if looked_at == 0 {
        let reason = format!("the plugin declares no knob {FAIL_ALLOCATION} or {FAIL_COMMAND}");
        return verdicts.skip(Clause::Faults, &reason);
    }
    verdicts.pass(Clause::Faults);
}

/// Judges the loss of a device.
pub(super) fn loss(runtime: &Runtime, device_type: &str, verdicts: &mut Verdicts<'_>) {
    let result = with_knob(runtime, device_type, LOSE, COMMANDS, |runtime| {
        devices_of(runtime, device_type).iter().try_for_each(|device| is_lost(runtime, device))
    });
    match result {
        Ok(()) => verdicts.pass(Clause::Loss),
        Err(Stop::Skip(reason)) => verdicts.skip(Clause::Loss, &reason),
        Err(Stop::Wrong(problem)) => {
            verdicts.fail(Clause::Loss, format!("with knob {LOSE} at {COMMANDS}: {problem}"));
        }
    }
}

/// Runs `look` on a separate runtime over the same plugin with one knob set.
fn with_knob(
    runtime: &Runtime,
    device_type: &str,
    knob: &str,
    value: usize,
    look: impl FnOnce(&Runtime) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let registry = runtime.registry();
    let (file, scope) = origin(&registry, device_type)?;
    let name = format!("{scope}.{knob}");
    if registry.knobs().get(&name).is_none() {
        return Err(Stop::Skip(format!("the plugin declares no knob {knob}")));
    }
    let mut with: Vec<(String, String)> = runtime
        .plugins()
        .knobs()
        .iter()
        .filter(|setting| setting.def.scope == scope)
        .map(|setting| (setting.def.full_name(), setting.value.to_string()))
        .collect();
    with.retain(|(other, _)| *other != name);
    with.push((name, value.to_string()));
    other_runtime(&file, with).and_then(|other| look(&other))
}

/// File and scope of the plugin that registers a device type.
fn origin(registry: &Registry, device_type: &str) -> Result<(std::path::PathBuf, String), Stop> {
    let def = registry.device_type(device_type);
    let info = def.and_then(|def| registry.plugin(def.plugin));
    let file = info.and_then(|info| Some((info.path.clone()?, info.scope())));
    file.ok_or_else(|| Stop::Skip("the device type is linked into the host".to_owned()))
}

fn other_runtime(file: &std::path::Path, set: Vec<(String, String)>) -> Result<Runtime, Stop> {
    let options = RuntimeOptions {
        threads: Some(1),
        settings: Settings { set, ..Settings::default() },
        ..RuntimeOptions::with_plugins([file])
    };
    let (runtime, report) = expect("a runtime with the knob set", Runtime::new(options))?;
    expect("loading the plugin again", report.into_result())?;
    Ok(runtime)
}

fn kind_of(device: &PluginDevice) -> MemoryKind {
    device.info().ordinary_memory()
}

/// An error is of this code and has words.
fn is_error(what: &str, expected: Code, error: &KernelError) -> Result<(), Stop> {
    if error.code != expected {
        let (code, message) = (error.code, &error.message);
        return wrong(format!("{what}: expected {expected}, found {code}: {message}"));
    }
    match error.message.trim() {
        "" => wrong(format!("{what}: {expected} comes without words")),
        _ => Ok(()),
    }
}

/// Allocations fail in the end, and what there is goes on.
fn allocation_fails(device: &Arc<PluginDevice>) -> Result<(), Stop> {
    let name = device.full_name();
    let memory = device.ordinary_memory();
    let first = Block::device(device, kind_of(device), 1000)?;
    let mut held = Vec::new();
    let error = loop {
        let shape = expect("a shape", Shape::new(&[BYTES as i64 / 8]))?;
        match Tensor::allocate(&memory, DType::UINT8, shape) {
            Ok(tensor) if held.len() < 64 => held.push(tensor),
            Ok(_) => return wrong(format!("{name}: no allocation fails")),
            Err(error) => break KernelError::from(error),
        }
    };
    is_error(&format!("{name}: the allocation that fails"), Code::RESOURCE_EXHAUSTED, &error)?;
    if let Some(reason) = device.lost() {
        return wrong(format!("{name} is lost after an allocation failed: {reason}"));
    }
    passes_through(device, &first)
}

/// A copy to a block and back is right.
fn passes_through(device: &PluginDevice, block: &Block) -> Result<(), Stop> {
    let bytes = block.bytes();
    let (from, to) = (Block::host(&pattern(bytes, 5))?, Block::host(&vec![0; bytes])?);
    let what = format!("{}: a copy after a failure", device.full_name());
    expect(&what, copy((&from, 0), (block, 0), bytes))?;
    expect(&what, copy((block, 0), (&to, 0), bytes))?;
    compare(&what, &pattern(bytes, 5), &to.read()?)
}

/// What a notification said, once it has come.
fn notification(lane: &Lane, what: &str) -> Result<Code, Stop> {
    let told = Arc::new((AtomicU32::new(0), AtomicI64::new(0)));
    let by_device = Arc::clone(&told);
    let asked = lane.on_done(move |code| {
        by_device.1.store(i64::from(code.0), Ordering::SeqCst);
        by_device.0.fetch_add(1, Ordering::SeqCst);
    });
    if let Err(error) = asked {
        // Refused, nothing is owed.
        return Ok(error.code);
    }
    let end = Instant::now() + PATIENCE;
    while told.0.load(Ordering::SeqCst) == 0 {
        if Instant::now() > end {
            return wrong(format!("{what}: a notification did not come within {PATIENCE:?}"));
        }
        thread::sleep(Duration::from_micros(200));
    }
    Ok(Code(told.1.load(Ordering::SeqCst) as _))
}

/// The first error of a stream stays, reaches streams that wait for it by an event, and reaches no others.
fn command_fails(device: &Arc<PluginDevice>) -> Result<(), Stop> {
    let name = device.full_name();
    if !device.info().streams {
        return copy_fails(device);
    }
    let block = Block::device(device, kind_of(device), 256)?;
    let other_block = Block::device(device, kind_of(device), 256)?;
    let host = Block::host(&pattern(256, 1))?;
    // Destroyed after the lanes that wait for it.
    let event = expect("an event", Event::new(device))?;
    let other = expect("a stream", Lane::new(device))?;
    let lane = expect("a stream", Lane::new(device))?;
    let mut failed = None;
    for _ in 0..TRIES {
        let enqueued = lane.copy((&host, 0), (&block, 0), 256);
        if let Err(error) = enqueued.and_then(|()| lane.synchronize()) {
            failed = Some(error);
            break;
        }
    }
    let Some(error) = failed else { return wrong(format!("{name}: no command fails")) };
    if error.message.trim().is_empty() {
        return wrong(format!("{name}: the command fails with {} and no words", error.code));
    }
    let again = lane.synchronize();
    if again.as_ref().map_err(|error| error.code) != Err(error.code) {
        let code = error.code;
        return wrong(format!("{name}: a stream's first error is {code}, then it says {again:?}"));
    }
    let told = notification(&lane, name)?;
    if told != error.code {
        let code = error.code;
        return wrong(format!("{name}: a stream that failed with {code} notifies with {told}"));
    }
    // What waits for a failed stream may not compute with its results.
    let waits = lane.record(&event).and_then(|()| other.wait(&event));
    let waits = waits.and_then(|()| other.synchronize());
    if waits.is_ok() {
        return wrong(format!(
            "{name}: a stream that waits for a failed one goes on without error"
        ));
    }
    drop((lane, other));
    let fresh = expect("a stream after a failure", Lane::new(device))?;
    expect("a copy after a failure", fresh.copy((&host, 0), (&other_block, 0), 256))?;
    expect("a stream after a failure", fresh.synchronize())?;
    passes_through(device, &other_block)
}

/// On a device without streams a copy fails when it is made.
fn copy_fails(device: &Arc<PluginDevice>) -> Result<(), Stop> {
    let name = device.full_name();
    let block = Block::device(device, kind_of(device), 256)?;
    let host = Block::host(&pattern(256, 1))?;
    let failed = (0..TRIES).find_map(|_| copy((&host, 0), (&block, 0), 256).err());
    match failed {
        None => wrong(format!("{name}: no command fails")),
        Some(error) if error.message.trim().is_empty() => {
            wrong(format!("{name}: the command fails with {} and no words", error.code))
        }
        Some(_) => passes_through(device, &block),
    }
}

/// A lost device reports it once to subscribers, and from then on returns the same error everywhere.
fn is_lost(runtime: &Runtime, device: &Arc<PluginDevice>) -> Result<(), Stop> {
    let name = device.full_name().to_owned();
    let told = Arc::new(AtomicU32::new(0));
    let (count, own) = (Arc::clone(&told), device.name().clone());
    let _subscription = runtime.plugins().subscribe(move |event| {
        if matches!(event, RegistryEvent::DeviceLost { device, .. } if *device == own) {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let block = Block::device(device, kind_of(device), 256)?;
    let host = Block::host(&pattern(256, 1))?;
    let event = Event::new(device).ok();
    let lane = Lane::new(device).ok();
    let run = || match &lane {
        Some(lane) => {
            lane.copy((&host, 0), (&block, 0), 256)?;
            lane.synchronize()
        }
        None => copy((&host, 0), (&block, 0), 256),
    };
    let Some(error) = (0..TRIES).find_map(|_| run().err()) else {
        return wrong(format!("{name}: it is not lost"));
    };
    is_error(&format!("{name}: what loses it"), Code::UNAVAILABLE, &error)?;
    if device.lost().is_none() {
        return wrong(format!(
            "{name}: it answers UNAVAILABLE, and has not told the host that it is lost"
        ));
    }
    if let (Some(lane), Some(event)) = (&lane, &event) {
        let code = notification(lane, &name)?;
        if code != Code::UNAVAILABLE {
            return wrong(format!(
                "{name}: lost, a notification says {code}, expected UNAVAILABLE"
            ));
        }
        says_unavailable(&name, "recording an event", lane.record(event))?;
        says_unavailable(&name, "asking an event", event.query())?;
        says_unavailable(&name, "waiting for a stream", lane.synchronize())?;
        says_unavailable(&name, "making a stream", device.create_stream())?;
    }
    let shape = expect("a shape", Shape::new(&[64]))?;
    let allocated = Tensor::allocate(&device.ordinary_memory(), DType::UINT8, shape);
    says_unavailable(&name, "allocating", allocated.map_err(KernelError::from))?;
    says_unavailable(&name, "a copy", copy((&host, 0), (&block, 0), 256))?;
    match told.load(Ordering::SeqCst) {
        1 => Ok(()),
        count => wrong(format!("{name}: subscribers are told of its loss {count} times")),
    }
}

fn says_unavailable<T>(name: &str, what: &str, result: Result<T, KernelError>) -> Result<(), Stop> {
    match result {
        Ok(_) => wrong(format!("{name}: lost, {what} succeeds, expected UNAVAILABLE")),
        Err(error) => is_error(&format!("{name}: lost, {what}"), Code::UNAVAILABLE, &error),
    }
}
