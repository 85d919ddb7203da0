//! The device type `CPU`: the host's memory and threads, without streams.

use tenon_sdk::{
    KernelError,
    author::Knobs,
    device::author::{DeviceHandle, DeviceInfo, DeviceKind, NoStreams},
    register_device, register_knob,
};

register_knob!(
    "devices": INT = "1",
    "Number of CPU devices. All compute with the same threads; several serve graphs that were written for more than one."
);

/// The most CPU devices.
const MAX_DEVICES: i64 = 1024;

/// The processor of this machine.
pub struct Cpu;

impl DeviceKind for Cpu {
    type Stream = NoStreams;

    fn probe(knobs: Knobs<'_>) -> Result<u32, KernelError> {
        let devices = knobs.int("devices")?;
        let fits = u32::try_from(devices).ok().filter(|_| (1..=MAX_DEVICES).contains(&devices));
        fits.ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "knob devices: expected 1 to {MAX_DEVICES}, found {devices}"
            ))
        })
    }

    fn open(_ordinal: u32, _handle: DeviceHandle, _knobs: Knobs<'_>) -> Result<Cpu, KernelError> {
        Ok(Cpu)
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo::host("the processor of this machine")
    }
}

register_device!("CPU": Cpu);
