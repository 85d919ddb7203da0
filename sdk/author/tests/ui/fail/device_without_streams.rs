//! A type of streams without `DeviceStreams`.

use tenon_sdk::prelude::*;

struct Card;

impl DeviceKind for Card {
    type Stream = u32;

    fn probe(_knobs: Knobs<'_>) -> Result<u32, KernelError> {
        Ok(1)
    }

    fn open(_: u32, _: DeviceHandle, _: Knobs<'_>) -> Result<Card, KernelError> {
        Ok(Card)
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo::host("a card")
    }
}

register_device!("CARD": Card);

fn main() {}
