//! Compiled kernels on a device.
//!
//! A variant is compiled and loaded when a kernel first asks for it, and stays loaded until the
//! device is closed. Two threads that ask for the same variant at once may both compile it; one
//! result is kept.

use super::{
    Variant,
    cache::{self, Cache},
    nvrtc::{self, Form, Target},
};
use crate::{
    device::{Context, Stream},
    launch::Grid,
    settings::Settings,
};
use cudarc::driver::sys::{
    self, CUfunction, CUfunction_attribute, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributeValue, CUlaunchConfig, CUmodule,
};
use std::{
    collections::HashMap,
    ffi::{CString, c_void},
    marker::PhantomData,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};
use tenon_sdk::KernelError;

/// The first compute capability at which launches overlap, and the first driver that records such
/// launches: CUDA 12.3.
const OVERLAPS_FROM: u32 = 90;
const RECORDS_OVERLAPS_FROM: u32 = 12030;

/// The loaded kernels of a device.
pub struct Modules {
    context: Arc<Context>,
    cache: Cache,
    /// Whether launches of sources that allow it overlap.
    overlap: bool,
    loaded: Mutex<HashMap<Variant, Arc<Module>>>,
}

impl Modules {
    /// No modules yet. A problem with the compiler is reported when a kernel needs it.
    pub fn new(context: &Arc<Context>, settings: &Settings) -> Modules {
        Modules {
            context: Arc::clone(context),
            cache: Cache::new(&settings.kernel_cache),
            overlap: settings.overlap_launches
                && context.facts().capability >= OVERLAPS_FROM
                && context.facts().driver >= RECORDS_OVERLAPS_FROM,
            loaded: Mutex::default(),
        }
    }

    /// The module of a variant, compiled and loaded if necessary.
    ///
    /// # Errors
    /// `UNAVAILABLE` without a compiler; `INTERNAL` with the compiler's log; the driver's error.
    pub fn get(&self, variant: &Variant) -> Result<Arc<Module>, KernelError> {
        let loaded = || self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = loaded().get(variant) {
            return Ok(Arc::clone(module));
        }
        let module = Arc::new(match self.overlap && variant.source().overlaps {
            true => self.load(&variant.clone().overlapping())?,
            false => self.load(variant)?,
        });
        Ok(Arc::clone(loaded().entry(variant.clone()).or_insert(module)))
    }

    fn load(&self, variant: &Variant) -> Result<Module, KernelError> {
        let facts = self.context.facts();
        let target = Target::for_device(facts.capability)?;
        let print = nvrtc::fingerprint(variant, target)?;
        let driver = facts.driver.to_le_bytes();
        let extension = match target.form {
            Form::Cubin => "cubin",
            Form::Ptx => "ptx",
        };
        let key = format!("{}.{extension}", cache::digest(&[print.as_bytes(), &driver]));
        if let Some(image) = self.cache.get(&key)
            && let Ok(module) = Module::load(&self.context, variant, image)
        {
            return Ok(module);
        }
        let image = nvrtc::compile(variant, target)?.code()?;
        self.cache.put(&key, &image);
        Module::load(&self.context, variant, image)
    }
}

/// Text for the message about an image that the driver rejects: says that the compiler is newer
/// than the driver, if it is. A driver accepts machine code of its own major version, and PTX of
/// its own minor version or older.
fn newer(context: &Context) -> String {
    let driver = context.facts().driver;
    match nvrtc::version() {
        Ok((major, minor)) if major * 1000 + minor * 10 > driver => format!(
            "; NVRTC is of CUDA {major}.{minor} and the driver of CUDA {}.{}: install a newer driver, or NVRTC of \
             the driver's version and name its folder by the knob library_path",
            driver / 1000,
            driver % 1000 / 10
        ),
        _ => String::new(),
    }
}

/// A loaded variant.
pub struct Module {
    context: Arc<Context>,
    name: String,
    raw: CUmodule,
    /// Whether entries wait for the preceding launch themselves.
    overlaps: bool,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as for `Send`.
unsafe impl Sync for Module {}

impl Module {
    fn load(
        context: &Arc<Context>,
        variant: &Variant,
        mut image: Vec<u8>,
    ) -> Result<Module, KernelError> {
        // PTX is a text that must end with 0; a trailing 0 does no harm to machine code.
        image.push(0);
        let mut raw: CUmodule = std::ptr::null_mut();
        // SAFETY: an image from the compiler; the result pointer is valid for writes.
        let load = || unsafe { sys::cuModuleLoadData(&mut raw, image.as_ptr().cast()) };
        context.call("cuModuleLoadData", load).map_err(|error| {
            let message = format!("cannot load {variant}: {}{}", error.message, newer(context));
            KernelError::new(error.code, message)
        })?;
        let overlaps = variant.overlaps();
        Ok(Module { context: Arc::clone(context), name: variant.to_string(), raw, overlaps })
    }

    /// An entry point.
    ///
    /// # Errors
    /// `NOT_FOUND` when the module has no entry of this name.
    ///
    /// # Safety
    /// - The parameters of the entry point are, in order, the parts of `A`, each of the same size
    ///   and layout.
    pub unsafe fn entry<A: Arguments>(
        self: &Arc<Module>,
        name: &str,
    ) -> Result<Entry<A>, KernelError> {
        let text =
            CString::new(name).map_err(|_| KernelError::internal("a name with a zero byte"))?;
        let mut raw: CUfunction = std::ptr::null_mut();
        // SAFETY: a module of this object; the result pointer is valid for writes.
        let find = || unsafe { sys::cuModuleGetFunction(&mut raw, self.raw, text.as_ptr()) };
        self.context.call("cuModuleGetFunction", find).map_err(|error| {
            let message = format!("{} has no entry '{name}': {}", self.name, error.message);
            KernelError::new(error.code, message)
        })?;
        Ok(Entry {
            module: Arc::clone(self),
            raw,
            room: Default::default(),
            arguments: PhantomData,
        })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: nothing of it runs: steps are over before their kernels go.
        self.context.release(|| unsafe { sys::cuModuleUnload(self.raw) });
    }
}

/// An entry point whose parameters are `A`.
pub struct Entry<A> {
    module: Arc<Module>,
    raw: CUfunction,
    /// How many blocks fit on a multiprocessor at once, by the logarithm of their warps; 0: not yet
    /// asked.
    room: [AtomicU32; 6],
    arguments: PhantomData<fn(A)>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl<A> Send for Entry<A> {}
// SAFETY: as for `Send`.
unsafe impl<A> Sync for Entry<A> {}

impl<A: Arguments> Entry<A> {
    /// Allows blocks of this entry more than 48 KiB of dynamic shared memory.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for more than the GPU has.
    pub fn allow_shared(&self, bytes: u32) -> Result<(), KernelError> {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: a function of a loaded module.
        let set = || unsafe { sys::cuFuncSetAttribute(self.raw, attribute, bytes as i32) };
        self.module.context.call("cuFuncSetAttribute", set)
    }

    /// How many blocks of such a grid the GPU runs at once, which depends on the registers of this
    /// entry.
    fn room(&self, grid: &Grid) -> Result<u32, KernelError> {
        let threads: u32 = grid.threads.iter().product();
        let place = threads.checked_ilog2().and_then(|bits| bits.checked_sub(5));
        let known = place.and_then(|place| self.room.get(place as usize));
        let Some(known) = known.filter(|_| threads.is_power_of_two() && grid.shared == 0) else {
            return Ok(u32::MAX);
        };
        let mut each = known.load(Ordering::Relaxed);
        if each == 0 {
            let mut blocks = 0;
            // SAFETY: a function of a loaded module; the result pointer is valid for writes.
            let ask = || unsafe {
                sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    &mut blocks,
                    self.raw,
                    threads as i32,
                    0,
                )
            };
            self.module.context.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ask)?;
            each = blocks.max(1) as u32;
            known.store(each, Ordering::Relaxed);
        }
        Ok(self.module.context.facts().multiprocessors.saturating_mul(each))
    }

    /// Enqueues a launch. A grid without blocks launches nothing.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the device is lost; the driver's error.
    ///
    /// # Safety
    /// - Addresses among the arguments are of this device.
    /// - Until the launch is done, they stay valid for everything that the entry reads and writes
    ///   with these arguments and this grid.
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        mut grid: Grid,
        mut arguments: A,
    ) -> Result<(), KernelError> {
        if grid.is_empty() {
            return Ok(());
        }
        if grid.loops && grid.blocks[0] > self.module.context.facts().multiprocessors {
            grid.blocks[0] = grid.blocks[0].min(self.room(&grid)?);
        }
        arguments.with_pointers(|pointers| {
            let pointers = pointers.as_mut_ptr();
            // SAFETY: the caller guarantees that the addresses are of this device, and valid until
            // the launch is done for all that the entry uses; there are as many pointers to
            // parameters as it has.
            unsafe {
                match self.module.overlaps {
                    true => self.launch_overlapping(stream, grid, pointers),
                    false => self.launch_plain(stream, grid, pointers),
                }
            }
        })
    }

    /// Enqueues a launch that begins when the preceding one on the stream has ended.
    ///
    /// # Safety
    /// - The caller upholds what [`Entry::launch`] requires.
    /// - `parameters` points to a pointer for each parameter of the entry.
    unsafe fn launch_plain(
        &self,
        stream: &Stream,
        grid: Grid,
        parameters: *mut *mut c_void,
    ) -> Result<(), KernelError> {
        let ([x, y, z], [bx, by, bz]) = (grid.blocks, grid.threads);
        let (function, shared, stream) = (self.raw, grid.shared, stream.raw());
        // SAFETY: a function of a loaded module, a stream of its context; the driver copies
        // parameters during the call. The caller guarantees that there is a pointer for each
        // parameter, and that addresses stay valid until the launch is done.
        let launch = || unsafe {
            let none = std::ptr::null_mut();
            sys::cuLaunchKernel(function, x, y, z, bx, by, bz, shared, stream, parameters, none)
        };
        self.module.context.call("cuLaunchKernel", launch)
    }

    /// Enqueues a launch that may begin before the preceding one on the stream has ended; the entry
    /// waits for that itself.
    ///
    /// # Safety
    /// - The caller upholds what [`Entry::launch_plain`] requires.
    unsafe fn launch_overlapping(
        &self,
        stream: &Stream,
        grid: Grid,
        parameters: *mut *mut c_void,
    ) -> Result<(), KernelError> {
        let [grid_x, grid_y, grid_z] = grid.blocks;
        let [block_x, block_y, block_z] = grid.threads;
        let mut attribute = CUlaunchAttribute {
            id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
        };
        let config = CUlaunchConfig {
            gridDimX: grid_x,
            gridDimY: grid_y,
            gridDimZ: grid_z,
            blockDimX: block_x,
            blockDimY: block_y,
            blockDimZ: block_z,
            sharedMemBytes: grid.shared,
            hStream: stream.raw(),
            attrs: &mut attribute,
            numAttrs: 1,
        };
        let none = std::ptr::null_mut();
        // SAFETY: as in `launch_plain`; configuration and attribute live during the call.
        let launch = || unsafe { sys::cuLaunchKernelEx(&config, self.raw, parameters, none) };
        self.module.context.call("cuLaunchKernelEx", launch)
    }
}

/// The arguments of a launch: a tuple of values, each copied byte for byte.
pub trait Arguments {
    /// Calls `run` with a pointer to each argument.
    fn with_pointers<R>(&mut self, run: impl FnOnce(&mut [*mut c_void]) -> R) -> R;
}

macro_rules! arguments {
    ($($part:ident)+) => {
        impl<$($part: Copy),+> Arguments for ($($part,)+) {
            #[allow(non_snake_case, reason = "a binding for each type")]
            fn with_pointers<R>(&mut self, run: impl FnOnce(&mut [*mut c_void]) -> R) -> R {
                let ($($part,)+) = self;
                run(&mut [$(std::ptr::from_mut($part).cast()),+])
            }
        }
    };
}

arguments!(A);
arguments!(A B);
arguments!(A B C);
arguments!(A B C D);
arguments!(A B C D E);
arguments!(A B C D E F);
arguments!(A B C D E F G);
arguments!(A B C D E F G H);
arguments!(A B C D E F G H I);
arguments!(A B C D E F G H I J);
arguments!(A B C D E F G H I J K);
arguments!(A B C D E F G H I J K L);
