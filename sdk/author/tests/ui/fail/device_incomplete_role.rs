use tenon_sdk::{device::author::Notification, prelude::*};

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

impl DeviceStreams for Card {
    fn create_stream(&self) -> Result<u32, KernelError> {
        Ok(0)
    }

    fn notify(&self, _: &u32, done: Notification) {
        done.run(Code::OK);
    }
}

impl DeviceTimers for Card {
    fn create_timer(&self) -> Result<u32, KernelError> {
        Ok(0)
    }

    fn elapsed_ns(&self, first: &u32, last: &u32) -> Result<u64, KernelError> {
        Ok(u64::from(last - first))
    }
}

register_device!("CARD": Card);

fn main() {}
