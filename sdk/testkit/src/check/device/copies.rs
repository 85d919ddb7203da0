//! Copies in all directions, of many sizes, from and to the midst of blocks.

use super::{
    Stop, expect,
    lane::{Block, Lane, compare, copy, pattern},
    wrong,
};
use std::sync::Arc;
use tenon_framework::{KernelError, abi::MemoryKind, device::base::DeviceBase};
use tenon_runtime::host::devices::PluginDevice;

/// Sizes: none, odd ones, around a page, and large.
const SIZES: [usize; 10] = [0, 1, 3, 64, 1000, 4095, 4096, 4097, 65_537, 1_000_003];
/// Sizes for pairs of blocks on devices.
const FEW: [usize; 4] = [0, 1, 1000, 65_537];
/// Bytes at which copies begin, at the source and at the destination, where that is an address: handles take
/// no offset.
const OFFSETS: [(usize, usize); 4] = [(0, 0), (64, 0), (1, 7), (4096, 129)];
/// Bytes behind what is copied.
const BEYOND: usize = 64;

/// The place of one end of a copy.
#[derive(Clone, Copy)]
enum Side<'a> {
    Host,
    Device(&'a Arc<PluginDevice>, MemoryKind),
}

impl Side<'_> {
    fn is(self, other: Side<'_>) -> bool {
        match (self, other) {
            (Side::Host, Side::Host) => true,
            (Side::Device(a, kind), Side::Device(b, other)) => Arc::ptr_eq(a, b) && kind == other,
            _ => false,
        }
    }

    fn block(self, bytes: &[u8]) -> Result<Block, Stop> {
        let host = Block::host(bytes)?;
        let Side::Device(device, kind) = self else { return Ok(host) };
        let block = Block::device(device, kind, bytes.len())?;
        expect("filling a block", copy((&host, 0), (&block, 0), bytes.len()))?;
        compare("a block, filled from the host and read back", bytes, &contents(&block)?)?;
        Ok(block)
    }

    /// A byte in the midst of a block, where an address can be given for it.
    fn offset(self, wanted: usize) -> usize {
        match self {
            Side::Device(_, kind) if !kind.is_host_address() => 0,
            _ => wanted,
        }
    }

    fn text(self) -> String {
        match self {
            Side::Host => "the host".to_owned(),
            Side::Device(device, kind) => {
                format!("memory of kind {} of {}", kind.0, device.full_name())
            }
        }
    }
}

/// Judges the clause: copies of this device with the host, with itself and with the others of its type.
pub(super) fn examine(
    device: &Arc<PluginDevice>,
    devices: &[Arc<PluginDevice>],
) -> Result<(), Stop> {
    let own = sides(device);
    if own.is_empty() {
        return Err(Stop::Skip("the device has no memory of its own".to_owned()));
    }
    reaches_the_host(device, &own)?;
    let others: Vec<Side<'_>> = devices.iter().flat_map(sides).collect();
    for &here in &own {
        for there in [Side::Host].iter().chain(&others) {
            direction(device, here, *there)?;
            // Towards itself is the same direction.
            if !here.is(*there) {
                direction(device, *there, here)?;
            }
        }
    }
    Ok(())
}

fn sides(device: &Arc<PluginDevice>) -> Vec<Side<'_>> {
    let kinds = device.info().memories.iter().map(|memory| memory.kind);
    kinds.filter(|&kind| kind != MemoryKind::HOST).map(|kind| Side::Device(device, kind)).collect()
}

/// Without these two the host cannot bring anything there, nor back.
fn reaches_the_host(device: &PluginDevice, own: &[Side<'_>]) -> Result<(), Stop> {
    for side in own {
        let Side::Device(owner, kind) = side else { continue };
        let block = Block::device(owner, *kind, 16)?;
        let host = Block::host(&[0; 16])?;
        let reached = block.can_copy_to(&host) && host.can_copy_to(&block);
        if !reached && !kind.is_host_address() {
            return wrong(format!(
                "can_copy refuses copies between the host and {}: {} cannot be filled or read",
                side.text(),
                device.full_name()
            ));
        }
    }
    Ok(())
}

/// One direction, at once and on a stream.
fn direction(device: &Arc<PluginDevice>, from: Side<'_>, to: Side<'_>) -> Result<(), Stop> {
    let has_streams = device.info().streams;
    let with_host = matches!(from, Side::Host) || matches!(to, Side::Host);
    let sizes: &[usize] = if with_host { &SIZES } else { &FEW };
    let place = |(source, target)| (from.offset(source), to.offset(target));
    for &bytes in sizes {
        // Large ones from and to one place.
        let places = if bytes > 10_000 { &OFFSETS[..1] } else { &OFFSETS };
        for offsets in places.iter().copied().map(place) {
            let named = |way: &str, stop| match stop {
                Stop::Wrong(problem) => Stop::Wrong(format!(
                    "{bytes} bytes from byte {} of a block in {} to byte {} of one in {}, {way}: {problem}",
                    offsets.0,
                    from.text(),
                    offsets.1,
                    to.text()
                )),
                skip => skip,
            };
            one_copy(from, to, bytes, offsets, copy).map_err(|stop| named("at once", stop))?;
            if has_streams {
                let enqueue = |from: (&Block, usize), to: (&Block, usize), bytes: usize| {
                    on_stream(device, from, to, bytes)
                };
                one_copy(from, to, bytes, offsets, enqueue)
                    .map_err(|stop| named("on a stream", stop))?;
            }
        }
    }
    Ok(())
}

fn on_stream(
    device: &Arc<PluginDevice>,
    from: (&Block, usize),
    to: (&Block, usize),
    bytes: usize,
) -> Result<(), KernelError> {
    if !from.0.can_copy_to(to.0) {
        // The host stages, which it does without a stream.
        return copy(from, to, bytes);
    }
    let lane = Lane::new(device)?;
    lane.copy(from, to, bytes)?;
    lane.synchronize()
}

/// Copies, and looks at every byte of the destination and at those of the source.
fn one_copy(
    from: Side<'_>,
    to: Side<'_>,
    bytes: usize,
    (source_at, target_at): (usize, usize),
    run: impl Fn((&Block, usize), (&Block, usize), usize) -> Result<(), KernelError>,
) -> Result<(), Stop> {
    let source = pattern(source_at + bytes + BEYOND, bytes as u64 + 1);
    let mut target = pattern(target_at + bytes + BEYOND, bytes as u64 + 2);
    let (from_block, to_block) = (from.block(&source)?, to.block(&target)?);
    expect("the copy", run((&from_block, source_at), (&to_block, target_at), bytes))?;
    target[target_at..target_at + bytes].copy_from_slice(&source[source_at..source_at + bytes]);
    compare("the destination", &target, &contents(&to_block)?)?;
    compare("the source", &source, &contents(&from_block)?)
}

/// The bytes of a block, by way of the host.
fn contents(block: &Block) -> Result<Vec<u8>, Stop> {
    let host = Block::host(&vec![0; block.bytes()])?;
    expect("reading a block back", copy((block, 0), (&host, 0), block.bytes()))?;
    host.read()
}
