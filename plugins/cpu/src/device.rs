//! The device type `CPU`: the host's memory and threads, without streams.

use tenon_sdk::{
    KernelError,
    author::Knobs,
    device::author::{DeviceHandle, DeviceInfo, DeviceKind, NoStreams},
    register_device,
};

/// The processor of this machine; there is one.
pub struct Cpu;

impl DeviceKind for Cpu {
    type Stream = NoStreams;
    type Event = NoStreams;

    fn probe(_knobs: Knobs<'_>) -> Result<u32, KernelError> {
        Ok(1)
    }

    fn open(_ordinal: u32, _handle: DeviceHandle, _knobs: Knobs<'_>) -> Result<Cpu, KernelError> {
        Ok(Cpu)
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo::host("the processor of this machine")
    }
}

register_device!("CPU": Cpu);
