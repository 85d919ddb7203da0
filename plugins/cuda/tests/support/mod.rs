//! The fake CUDA stack, built once, and devices on it: each test takes one of its own, so that a device that one
//! test loses is no other's.

#![allow(dead_code, reason = "each file of tests uses some of it")]

mod fake;
pub mod notify;

use libloading::Library;
use std::{
    ffi::{CString, c_char, c_void},
    ptr::NonNull,
    sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};
use tenon_cuda::{Cuda, Settings, device::Stream, libraries};
use tenon_sdk::{
    KernelError,
    abi::MemoryKind,
    device::author::{DeviceHandle, DeviceMemory, Place},
};

type Set = unsafe extern "C" fn(name: *const c_char, value: *const c_char);
type Take = unsafe extern "C" fn(buffer: *mut c_char, length: usize) -> usize;

fn fake() -> &'static Library {
    static FAKE: OnceLock<Library> = OnceLock::new();
    FAKE.get_or_init(|| {
        let folder = fake::folder();
        libraries::look_in(&folder.display().to_string());
        // SAFETY: the tests' own library, which does nothing when it is opened.
        let fake = unsafe { Library::new(folder.join("libcuda.so")) }.expect("the fake opens");
        tell(&fake, "FAKE_CUDA_DEVICES", Some("18"));
        fake
    })
}

fn tell(fake: &Library, name: &str, value: Option<&str>) {
    let text = |text: &str| CString::new(text).expect("no zero bytes");
    let (name, value) = (text(name), value.map(text));
    let value = value.as_ref().map_or(std::ptr::null(), |value| value.as_ptr());
    // SAFETY: the fake's entry, with texts that live during the call.
    unsafe {
        let set = fake.get::<Set>(b"fake_cuda_set\0").expect("the fake takes orders");
        set(name.as_ptr(), value);
    }
}

/// Orders are of the whole process: while one test gives some, no other runs.
pub struct Turn(#[allow(dead_code, reason = "held, not read")] RwLockWriteGuard<'static, ()>);

static TURN: RwLock<()> = RwLock::new(());

pub fn turn() -> Turn {
    Turn(TURN.write().unwrap_or_else(PoisonError::into_inner))
}

/// The turn of tests that give no orders.
pub fn shared_turn() -> RwLockReadGuard<'static, ()> {
    TURN.read().unwrap_or_else(PoisonError::into_inner)
}

impl Turn {
    /// Orders something of the fake driver until the turn ends.
    pub fn order(&self, name: &str, value: &str) {
        tell(fake(), name, Some(value));
    }

    pub fn take_back(&self, name: &str) {
        tell(fake(), name, None);
    }

    /// What the fake driver was asked for since the last time: a line each.
    pub fn take_log(&self) -> String {
        // SAFETY: the fake's entry; it fills no more than it is given.
        unsafe {
            let take = fake().get::<Take>(b"fake_cuda_log_take\0").expect("the fake keeps a log");
            let mut bytes = vec![0u8; take(std::ptr::null_mut(), 0) + 1];
            take(bytes.as_mut_ptr().cast(), bytes.len());
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        for name in ["FAIL", "FAIL_LATER", "MEMORY", "SLOW_NS", "PEERS"] {
            tell(fake(), &format!("FAKE_CUDA_{name}"), None);
        }
    }
}

/// Device `ordinal`, with settings.
pub fn open(ordinal: u32, settings: &Settings) -> Cuda {
    fake();
    Cuda::new(ordinal, settings, DeviceHandle::NONE).expect("the fake has such a device")
}

pub fn settings() -> Settings {
    Settings { kernel_cache: "none".to_owned(), ..Settings::default() }
}

/// A block of a device, given back at the end.
pub struct Block<'d> {
    device: &'d Cuda,
    data: NonNull<c_void>,
    bytes: u64,
    memory: MemoryKind,
}

impl<'d> Block<'d> {
    pub fn new(device: &'d Cuda, bytes: u64, memory: MemoryKind) -> Result<Self, KernelError> {
        let data = device.allocate(bytes, 64, memory, None)?;
        Ok(Block { device, data, bytes, memory })
    }

    pub fn place(&self) -> Place<'_, Cuda> {
        Place::on(self.device, self.data.as_ptr(), self.memory)
    }

    pub fn address(&self) -> u64 {
        self.data.as_ptr().addr() as u64
    }

    /// Copies bytes in, on a stream or at once.
    pub fn write(&self, bytes: &[u8], stream: Option<&Stream>) -> Result<(), KernelError> {
        let source = Place::host(bytes.as_ptr().cast_mut().cast());
        // SAFETY: the block is as long; the caller keeps both until the copy is done.
        unsafe { self.device.copy(&source, &self.place(), bytes.len() as u64, stream) }
    }

    /// Copies bytes out.
    pub fn read(&self, bytes: &mut [u8], stream: Option<&Stream>) -> Result<(), KernelError> {
        let target = Place::host(bytes.as_mut_ptr().cast());
        // SAFETY: as in `write`.
        unsafe { self.device.copy(&self.place(), &target, bytes.len() as u64, stream) }
    }
}

impl Drop for Block<'_> {
    fn drop(&mut self) {
        // SAFETY: from this device, once, and used by nothing any more: tests synchronise first.
        unsafe { self.device.deallocate(self.data, self.bytes, self.memory, None) };
    }
}
