//! The upload of host words to device memory for the launches of a call.

use crate::{
    compile::{Entry, Source, Variant},
    launch::{Grid, Launch, THREADS, device_for},
    source,
};
use std::ptr::without_provenance_mut;
use tenon_sdk::{
    KernelError,
    abi::MemoryKind,
    author::CreateContext,
    device::author::{DeviceMemory, Place},
};

static SOURCE: Source = source!("upload.cu");

pub(super) fn variants() -> Vec<Variant> {
    vec![Variant::new(&SOURCE)]
}

/// The number of words that one launch takes, as in the source: nearly as many as parameters allow.
const WORDS: usize = 960;

/// The number of launches from which a copy costs less. A copy is not recorded, so that a step with
/// one runs unrecorded.
const LAUNCHES: usize = 4;

/// The kernel that copies words to the device.
pub(super) struct Upload(Entry<(u64, u32, [u32; WORDS])>);

impl Upload {
    /// Compiles the kernel.
    ///
    /// # Errors
    /// As [`crate::compile::Modules::get`].
    pub(super) fn new(c: &CreateContext<'_>) -> Result<Upload, KernelError> {
        let module = device_for(c)?.modules().get(&Variant::new(&SOURCE))?;
        // SAFETY: `upload` takes an address, a count, and `WORDS` words.
        Ok(Upload(unsafe { module.entry("upload")? }))
    }

    /// Returns the address of a device copy of `words`, valid during the call. It does not wait,
    /// and the words may be freed on return.
    ///
    /// # Errors
    /// No memory; an error of the driver.
    pub(super) fn run(&self, launch: &Launch<'_>, words: &[u32]) -> Result<u64, KernelError> {
        let address = launch.scratch(size_of_val(words))?;
        if words.len() > LAUNCHES * WORDS {
            copy(launch, address, words)?;
            return Ok(address);
        }
        let mut to = address;
        for some in words.chunks(WORDS) {
            let mut given = [0; WORDS];
            given[..some.len()].copy_from_slice(some);
            let grid = Grid::new((some.len() as u32).div_ceil(THREADS), THREADS);
            // SAFETY: the scratch memory has room for all words.
            unsafe { launch.run(&self.0, grid, (to, some.len() as u32, given))? };
            to += size_of_val(some) as u64;
        }
        Ok(address)
    }
}

fn copy(launch: &Launch<'_>, address: u64, words: &[u32]) -> Result<(), KernelError> {
    let device = launch.device();
    let source = Place::host(words.as_ptr().cast_mut().cast());
    let to = without_provenance_mut(address as usize);
    let destination = Place::on(device, to, MemoryKind::DEVICE);
    let bytes = size_of_val(words) as u64;
    // SAFETY: both have `bytes` bytes. The copy on a stream reads ordinary memory before it
    // returns.
    unsafe { device.copy(&source, &destination, bytes, Some(launch.stream())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_fit_among_parameters() {
        assert!(size_of::<(u64, u32, [u32; WORDS])>() <= 4096);
    }
}
