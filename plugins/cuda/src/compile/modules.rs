//! Compiled kernels on a device.
//!
//! A variant is compiled and loaded when a kernel asks for it first, and stays until the device is closed. Two
//! threads that ask for the same one at once may both compile it; one result is kept.

use super::{
    Variant,
    cache::{self, Cache},
    nvrtc::{self, Form, Target},
};
use crate::{
    device::{Context, Stream},
    launch::Grid,
};
use cudarc::driver::sys::{self, CUfunction, CUfunction_attribute, CUmodule};
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

/// The loaded kernels of a device.
pub struct Modules {
    context: Arc<Context>,
    cache: Cache,
    loaded: Mutex<HashMap<Variant, Arc<Module>>>,
}

impl Modules {
    /// Without any.
    ///
    /// # Errors
    /// None now: what is wrong with the compiler is said when a kernel needs it.
    pub fn new(context: &Arc<Context>, cache: &str) -> Result<Modules, KernelError> {
        let cache = Cache::new(cache);
        Ok(Modules { context: Arc::clone(context), cache, loaded: Mutex::default() })
    }

    /// The module of a variant.
    ///
    /// # Errors
    /// `UNAVAILABLE` without a compiler; `INTERNAL` with its log; what the driver says.
    pub fn get(&self, variant: &Variant) -> Result<Arc<Module>, KernelError> {
        let loaded = || self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = loaded().get(variant) {
            return Ok(Arc::clone(module));
        }
        let module = Arc::new(self.load(variant)?);
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

/// A loaded variant.
pub struct Module {
    context: Arc<Context>,
    name: String,
    raw: CUmodule,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    fn load(
        context: &Arc<Context>,
        variant: &Variant,
        mut image: Vec<u8>,
    ) -> Result<Module, KernelError> {
        // PTX is a text that ends with 0; more does no harm to machine code.
        image.push(0);
        let mut raw: CUmodule = std::ptr::null_mut();
        // SAFETY: an image that the compiler made, and a place for the result.
        let load = || unsafe { sys::cuModuleLoadData(&mut raw, image.as_ptr().cast()) };
        context.call("cuModuleLoadData", load).map_err(|error| {
            KernelError::new(error.code, format!("cannot load {variant}: {}", error.message))
        })?;
        Ok(Module { context: Arc::clone(context), name: variant.to_string(), raw })
    }

    /// An entry point.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is none of this name.
    ///
    /// # Safety
    /// The parameters of the entry point are, in order, the parts of `A`, each of the same size and layout.
    pub unsafe fn entry<A: Arguments>(
        self: &Arc<Module>,
        name: &str,
    ) -> Result<Entry<A>, KernelError> {
        let text =
            CString::new(name).map_err(|_| KernelError::internal("a name with a zero byte"))?;
        let mut raw: CUfunction = std::ptr::null_mut();
        // SAFETY: a module of this object, a place for the result.
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
    /// How many blocks a multiprocessor has room for at once, by the logarithm of their warps; 0: nobody has asked.
    room: [AtomicU32; 6],
    arguments: PhantomData<fn(A)>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl<A> Send for Entry<A> {}
// SAFETY: as above.
unsafe impl<A> Sync for Entry<A> {}

impl<A: Arguments> Entry<A> {
    /// Allows blocks of this entry more dynamic shared memory than 48 KiB.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` beyond what the GPU has.
    pub fn allow_shared(&self, bytes: u32) -> Result<(), KernelError> {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: a function of a loaded module.
        let set = || unsafe { sys::cuFuncSetAttribute(self.raw, attribute, bytes as i32) };
        self.module.context.call("cuFuncSetAttribute", set)
    }

    /// Blocks of such a grid that the GPU has room for at once: that depends on the registers of this entry.
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
            // SAFETY: a place for the result, a function of a loaded module.
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

    /// Enqueues a launch. Nothing is launched for a grid without blocks.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the device is lost; what the driver says.
    ///
    /// # Safety
    /// Addresses among the arguments are of this device and stay valid until the launch is done, for all that the
    /// entry reads and writes with these arguments and this grid.
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        grid: Grid,
        mut arguments: A,
    ) -> Result<(), KernelError> {
        if grid.is_empty() {
            return Ok(());
        }
        let ([mut x, y, z], [bx, by, bz]) = (grid.blocks, grid.threads);
        if grid.loops && x > self.module.context.facts().multiprocessors {
            x = x.min(self.room(&grid)?);
        }
        arguments.with_pointers(|pointers| {
            // SAFETY: a function of a loaded module, a stream of its context, as many pointers to parameters as it
            // has; the driver copies them during the call. The rest is the caller's promise.
            let launch = || unsafe {
                sys::cuLaunchKernel(
                    self.raw,
                    x,
                    y,
                    z,
                    bx,
                    by,
                    bz,
                    grid.shared,
                    stream.raw(),
                    pointers.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            };
            self.module.context.call("cuLaunchKernel", launch)
        })
    }
}

/// The arguments of a launch: a tuple of values, each copied as it lies in memory.
pub trait Arguments {
    /// Has `run` see a pointer to each.
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
