//! Memory of a device: zero size, alignment, accounting, exhaustion, reuse.

use super::{
    Stop, expect,
    lane::{Block, Lane, compare, copy, pattern},
    wrong,
};
use std::sync::Arc;
use tenon_framework::{
    Code, DType, Shape, Tensor,
    abi::{MemoryInfo, MemoryKind},
    device::base::{DeviceBase, LocalDevice},
    tensor::Memory,
};
use tenon_runtime::host::{devices::PluginDevice, memory::MemoryStats};

/// Sizes of blocks that live at the same time.
const SIZES: [usize; 10] = [0, 1, 3, 63, 64, 65, 4095, 4096, 4097, 1_000_003];
/// A size that no device has, and that no figure overflows with.
const TOO_MUCH: usize = 1 << 56;
/// Memory is filled up if it is at most this large.
const FILLED: u64 = 1 << 28;

/// Judges the clause.
pub(super) fn examine(device: &Arc<PluginDevice>) -> Result<(), Stop> {
    let own: Vec<&MemoryInfo> =
        device.info().memories.iter().filter(|memory| memory.kind != MemoryKind::HOST).collect();
    if own.is_empty() {
        return Err(Stop::Skip("the device has no memory of its own".to_owned()));
    }
    for memory in own {
        let named = |problem| match problem {
            Stop::Wrong(problem) => {
                Stop::Wrong(format!("memory of kind {}: {problem}", memory.kind.0))
            }
            skip => skip,
        };
        one_kind(device, memory).map_err(named)?;
    }
    Ok(())
}

fn one_kind(device: &Arc<PluginDevice>, info: &MemoryInfo) -> Result<(), Stop> {
    let before = live(device, info.kind);
    several(device, info)?;
    too_much(device, info)?;
    filled(device, info)?;
    again_and_again(device, info)?;
    in_stream_order(device, info)?;
    let after = live(device, info.kind);
    if after != before {
        return wrong(format!(
            "expected {} bytes in {} blocks after all were freed, found {} in {}",
            before.0, before.1, after.0, after.1
        ));
    }
    Ok(())
}

/// Bytes and blocks in use.
fn live(device: &PluginDevice, kind: MemoryKind) -> (u64, u64) {
    let stats: MemoryStats = device.memory_stats(kind).unwrap_or_default();
    (stats.live_bytes, stats.live_count)
}

/// Blocks of many sizes at once are aligned, apart, and hold what is written to them.
fn several(device: &Arc<PluginDevice>, info: &MemoryInfo) -> Result<(), Stop> {
    let blocks: Vec<Block> = SIZES
        .iter()
        .chain(&SIZES)
        .map(|&bytes| Block::device(device, info.kind, bytes))
        .collect::<Result<_, _>>()?;
    let start = |block: &Block| block.tensor.buffer().data().addr();
    for block in &blocks {
        let (address, bytes) = (start(block), block.bytes());
        if !address.is_multiple_of(info.alignment as usize) {
            let alignment = info.alignment;
            return wrong(format!(
                "a block of {bytes} bytes: expected a multiple of {alignment}, found 0x{address:x}"
            ));
        }
    }
    are_apart(&blocks, info.kind)?;
    for (number, block) in blocks.iter().enumerate() {
        let written = Block::host(&pattern(block.bytes(), number as u64))?;
        expect("a copy from the host", copy((&written, 0), (block, 0), block.bytes()))?;
    }
    for (number, block) in blocks.iter().enumerate() {
        let back = Block::host(&vec![0; block.bytes()])?;
        expect("a copy to the host", copy((block, 0), (&back, 0), block.bytes()))?;
        let what = format!("a block of {} bytes among others", block.bytes());
        compare(&what, &pattern(block.bytes(), number as u64), &back.read()?)?;
    }
    Ok(())
}

/// Live blocks have distinct addresses or handles; only the device knows what a handle means.
fn are_apart(blocks: &[Block], kind: MemoryKind) -> Result<(), Stop> {
    let start = |block: &Block| block.tensor.buffer().data().addr();
    let bytes = |block: &Block| if kind.is_host_address() { block.bytes() } else { 0 };
    for (at, a) in blocks.iter().enumerate() {
        for b in &blocks[at + 1..] {
            let is_before = start(a) < start(b) && start(a) + bytes(a) <= start(b);
            let is_behind = start(b) < start(a) && start(b) + bytes(b) <= start(a);
            if !is_before && !is_behind {
                let (a, b) = (a.bytes(), b.bytes());
                return wrong(format!("two live blocks, of {a} and {b} bytes, overlap"));
            }
        }
    }
    Ok(())
}

fn memory_of(device: &PluginDevice, info: &MemoryInfo) -> Result<Arc<dyn Memory>, Stop> {
    device.memory(info.kind).ok_or_else(|| Stop::Wrong("it is declared and not there".to_owned()))
}

fn allocate(memory: &Arc<dyn Memory>, bytes: usize) -> Result<Tensor, Stop> {
    let shape = expect("a shape", Shape::new(&[bytes as i64]))?;
    match Tensor::allocate(memory, DType::UINT8, shape) {
        Ok(tensor) => Ok(tensor),
        Err(error) if error.code() == Code::RESOURCE_EXHAUSTED => {
            Err(Stop::Skip(error.to_string()))
        }
        Err(error) => wrong(format!(
            "allocating {bytes} bytes: expected memory or RESOURCE_EXHAUSTED, found {}: {error}",
            error.code()
        )),
    }
}

/// More than there can be is refused, and what is in use stays.
fn too_much(device: &Arc<PluginDevice>, info: &MemoryInfo) -> Result<(), Stop> {
    let memory = memory_of(device, info)?;
    let mut sizes = vec![TOO_MUCH];
    sizes.extend(usize::try_from(info.limit).ok().filter(|&limit| limit > 0).map(|l| l + 1));
    for bytes in sizes {
        match allocate(&memory, bytes) {
            Err(Stop::Skip(message)) if !message.trim().is_empty() => {}
            Err(Stop::Skip(_)) => return wrong("RESOURCE_EXHAUSTED comes without words"),
            Err(stop) => return Err(stop),
            Ok(_) => {
                let limit = info.limit;
                return wrong(format!("{bytes} bytes were given, the limit is {limit}"));
            }
        }
    }
    Ok(())
}

/// Filled up to what it declares, it says so, and has room again afterwards.
fn filled(device: &Arc<PluginDevice>, info: &MemoryInfo) -> Result<(), Stop> {
    if info.limit == 0 || info.limit > FILLED {
        return Ok(());
    }
    let memory = memory_of(device, info)?;
    let part = (info.limit / 8).max(1) as usize;
    let mut held = Vec::new();
    let refusal = loop {
        match allocate(&memory, part) {
            Ok(block) if held.len() < 16 => held.push(block),
            Ok(_) => {
                return wrong(format!(
                    "{} bytes were given, the limit is {}",
                    17 * part,
                    info.limit
                ));
            }
            Err(Stop::Skip(message)) => break message,
            Err(stop) => return Err(stop),
        }
    };
    if held.len() < 4 {
        return wrong(format!(
            "expected at least half of the declared {} bytes, found {}: {refusal}",
            info.limit,
            held.len() * part
        ));
    }
    let count = held.len();
    drop(held);
    let again: Result<Vec<Tensor>, Stop> = (0..count).map(|_| allocate(&memory, part)).collect();
    match again {
        Ok(_) => {}
        Err(Stop::Skip(message)) => {
            return wrong(format!("what was given back is not to be had again: {message}"));
        }
        Err(stop) => return Err(stop),
    }
    device.trim();
    Ok(())
}

/// Memory that is given back is to be had again, however often.
fn again_and_again(device: &Arc<PluginDevice>, info: &MemoryInfo) -> Result<(), Stop> {
    let memory = memory_of(device, info)?;
    for round in 0..400 {
        let bytes = 1 + (round * 7919) % 65_536;
        match allocate(&memory, bytes) {
            Ok(_) => {}
            Err(Stop::Skip(message)) => {
                return wrong(format!("round {round} of allocating and freeing: {message}"));
            }
            Err(stop) => return Err(stop),
        }
    }
    // Past the host's lists, which hold some of it for reuse.
    device.trim();
    Ok(())
}

/// Memory in the order of a stream is usable by what is enqueued after it.
fn in_stream_order(device: &Arc<PluginDevice>, info: &MemoryInfo) -> Result<(), Stop> {
    if !device.info().streams {
        return Ok(());
    }
    let lane = expect("a stream", Lane::new(device))?;
    let Some(way) = way_to(&lane, device, info.kind)? else { return Ok(()) };
    let mut results = Vec::new();
    for round in 0..16u64 {
        let mut from = Block::host(&pattern(ON_THE_WAY, round))?;
        for &kind in &way {
            let Some(between) = lane.block(kind, ON_THE_WAY)? else { return Ok(()) };
            expect("a copy on a stream", lane.copy((&from, 0), (&between, 0), ON_THE_WAY))?;
            // What was there before is given back behind this, before any of it has run.
            from = between;
        }
        let to = Block::host(&[0; ON_THE_WAY])?;
        expect("a copy on a stream", lane.copy((&from, 0), (&to, 0), ON_THE_WAY))?;
        results.push((round, to));
    }
    expect("a stream", lane.synchronize())?;
    for (round, to) in &results {
        let what = format!("memory in the order of a stream, block {round}");
        compare(&what, &pattern(ON_THE_WAY, *round), &to.read()?)?;
    }
    Ok(())
}

/// Bytes of a block that goes through several memories.
const ON_THE_WAY: usize = 10_000;

/// Memories by which the device itself copies from the host into this one and back: this alone, or another before and
/// behind it where it leaves copies between host memory and what is as good to the host. `None` where there are none,
/// or no memory in the order of streams.
fn way_to(
    lane: &Lane,
    device: &PluginDevice,
    kind: MemoryKind,
) -> Result<Option<Vec<MemoryKind>>, Stop> {
    let host = Block::host(&[0; 16])?;
    let reach = |one: &Block, other: &Block| one.can_copy_to(other) && other.can_copy_to(one);
    let Some(block) = lane.block(kind, 16)? else { return Ok(None) };
    if reach(&host, &block) {
        return Ok(Some(vec![kind]));
    }
    for by in device.info().memories.iter().map(|info| info.kind) {
        let is_other = by != kind && by != MemoryKind::HOST;
        let Some(other) = (if is_other { lane.block(by, 16)? } else { None }) else { continue };
        if reach(&host, &other) && reach(&other, &block) {
            return Ok(Some(vec![by, kind, by]));
        }
    }
    Ok(None)
}
