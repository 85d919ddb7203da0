//! The order of what is enqueued: on one stream, across streams by events, on many streams at once.

use super::{
    Stop, expect,
    lane::{Block, Event, Lane, compare, pattern},
    wrong,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tenon_framework::{
    Code,
    abi::MemoryKind,
    device::base::{DeviceBase, LocalDevice},
};
use tenon_runtime::host::devices::PluginDevice;

/// Times that a block is written and read in turn.
const ROUNDS: usize = 48;
/// Bytes of a block: small ones overtake large ones.
const SIZES: [usize; 3] = [64, 300_000, 4096];
/// How long pending notifications and events may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The kind of memory that streams copy in.
fn kind_of(device: &PluginDevice) -> Result<MemoryKind, Stop> {
    let info = device.info();
    if !info.streams {
        return Err(Stop::Skip("the device has no streams".to_owned()));
    }
    let own = info.memories.iter().map(|memory| memory.kind).find(|&kind| kind != MemoryKind::HOST);
    own.ok_or_else(|| Stop::Skip("the device has no memory of its own to copy in".to_owned()))
}

/// What goes through a device's block in one round.
struct Round {
    bytes: usize,
    number: u64,
    from: Block,
    to: Block,
}

fn rounds(count: usize, first: u64) -> Result<Vec<Round>, Stop> {
    (0..count)
        .map(|at| {
            let (bytes, number) = (SIZES[at % SIZES.len()], first + at as u64);
            let from = Block::host(&pattern(bytes, number))?;
            Ok(Round { bytes, number, from, to: Block::host(&vec![0; bytes])? })
        })
        .collect()
}

fn check(what: &str, rounds: &[Round]) -> Result<(), Stop> {
    for (at, round) in rounds.iter().enumerate() {
        let expected = pattern(round.bytes, round.number);
        compare(&format!("{what}, copy {at}"), &expected, &round.to.read()?)?;
    }
    Ok(())
}

const LARGEST: usize = 300_000;

/// Judges the order of one stream: each copy out of a block finds what the copy before it brought.
pub(super) fn one_stream(device: &Arc<PluginDevice>) -> Result<(), Stop> {
    let kind = kind_of(device)?;
    let block = Block::device(device, kind, LARGEST)?;
    let lane = expect("a stream", Lane::new(device))?;
    let rounds = rounds(ROUNDS, 1)?;
    for round in &rounds {
        expect("enqueueing a copy", lane.copy((&round.from, 0), (&block, 0), round.bytes))?;
        expect("enqueueing a copy", lane.copy((&block, 0), (&round.to, 0), round.bytes))?;
    }
    notified(&lane)?;
    expect("waiting for a stream", lane.synchronize())?;
    check("one stream, each copy from the host before the next one back", &rounds)?;
    // Idle, it goes on.
    lane.release();
    notified(&lane)?;
    expect("waiting for an idle stream", lane.synchronize())
}

/// A notification comes once, says OK, and not before what was enqueued before it.
fn notified(lane: &Lane) -> Result<(), Stop> {
    let told = Arc::new((AtomicU32::new(0), AtomicI64::new(-1)));
    let by_device = Arc::clone(&told);
    let asked = lane.on_done(move |code| {
        by_device.1.store(i64::from(code.0), Ordering::SeqCst);
        by_device.0.fetch_add(1, Ordering::SeqCst);
    });
    expect("asking for a notification", asked)?;
    expect("waiting for a stream", lane.synchronize())?;
    let end = Instant::now() + PATIENCE;
    while told.0.load(Ordering::SeqCst) == 0 {
        if Instant::now() > end {
            return wrong(format!("a notification did not come within {PATIENCE:?} of the stream"));
        }
        thread::sleep(Duration::from_micros(200));
    }
    match told.1.load(Ordering::SeqCst) {
        code if code == i64::from(Code::OK.0) => Ok(()),
        code => wrong(format!("a notification of a stream without errors says code {code}")),
    }
}

/// Judges events: two streams write and read one block in turn, and only events say whose turn it is.
pub(super) fn events(device: &Arc<PluginDevice>) -> Result<(), Stop> {
    let kind = kind_of(device)?;
    let never = expect("an event", Event::new(device))?;
    if !expect("asking an event that was never recorded", never.query())? {
        return wrong("an event that was never recorded counts as happened, this one does not");
    }
    let block = Block::device(device, kind, LARGEST)?;
    // Destroyed after the streams that wait for them.
    let (written, read) =
        (expect("an event", Event::new(device))?, expect("an event", Event::new(device))?);
    let (writer, reader) =
        (expect("a stream", Lane::new(device))?, expect("a stream", Lane::new(device))?);
    expect("waiting for an event that was never recorded", writer.wait(&never))?;
    let rounds = rounds(ROUNDS, 1000)?;
    for round in &rounds {
        expect("enqueueing a copy", writer.copy((&round.from, 0), (&block, 0), round.bytes))?;
        // The same two events each time: who waits goes by the latest recording so far.
        expect("recording an event", writer.record(&written))?;
        expect("waiting for an event", reader.wait(&written))?;
        expect("enqueueing a copy", reader.copy((&block, 0), (&round.to, 0), round.bytes))?;
        expect("recording an event", reader.record(&read))?;
        expect("waiting for an event", writer.wait(&read))?;
    }
    expect("waiting for a stream", reader.synchronize())?;
    expect("waiting for a stream", writer.synchronize())?;
    for (what, event) in [("writer", &written), ("reader", &read)] {
        if !expect("asking an event", event.query())? {
            return wrong(format!("the event of the {what} has not happened, its stream is idle"));
        }
    }
    check("two streams in turn, by events", &rounds)
}

/// Judges many streams at once, from many threads.
pub(super) fn many_streams(device: &Arc<PluginDevice>) -> Result<(), Stop> {
    const THREADS: u64 = 4;
    let kind = kind_of(device)?;
    let streams = (device.info().stream_count as usize * 2).clamp(8, 64);
    let work = |thread: u64| -> Result<(), Stop> {
        let lanes: Vec<(Block, Vec<Round>, Lane)> = (0..streams as u64)
            .map(|lane| {
                let block = Block::device(device, kind, LARGEST)?;
                let rounds = rounds(6, (thread << 32) + (lane << 16))?;
                Ok((block, rounds, expect("one of many streams", Lane::new(device))?))
            })
            .collect::<Result<_, Stop>>()?;
        for at in 0..6 {
            for (block, rounds, lane) in &lanes {
                let round = &rounds[at];
                expect("enqueueing a copy", lane.copy((&round.from, 0), (block, 0), round.bytes))?;
                expect("enqueueing a copy", lane.copy((block, 0), (&round.to, 0), round.bytes))?;
            }
        }
        for (_, _, lane) in &lanes {
            expect("waiting for one of many streams", lane.synchronize())?;
        }
        lanes.iter().try_for_each(|(_, rounds, _)| check("one of many streams", rounds))
    };
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..THREADS).map(|at| scope.spawn(move || work(at))).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| wrong("a thread that used streams panicked"))
        })
    })?;
    expect("waiting for the device", device.synchronize())
}
