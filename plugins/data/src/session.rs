//! Tensors that are kept between steps under a text: session handles.
//!
//! The store is a resource of its own of the device. A handle is `<node>;<number>;<device>`, as
//! TensorFlow writes them; its number is the store's, so that no text is given twice. A tensor stays
//! until it is deleted or the container of the store is reset.

use crate::tensors::Held;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tenon_sdk::prelude::*;

/// Where the store is found. Names that begin with `_` are no graph's.
const NAME: &str = "_session_tensors";

#[derive(Default)]
struct Tensors {
    by_handle: HashMap<String, Held>,
    next: u64,
}

/// The tensors of a device.
#[derive(Default)]
struct Store(Mutex<Tensors>);

impl ResourceValue for Store {
    const NAME: &'static str = "tenon_data.SessionTensors";
}

impl Store {
    fn of(c: &ComputeContext<'_>) -> Result<ResourceHandle<Store>, KernelError> {
        c.state().find_or_create("", NAME, || Ok(Store::default()))
    }

    fn lock(&self) -> MutexGuard<'_, Tensors> {
        // Its users return errors before they change it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unknown(handle: &str) -> KernelError {
    KernelError::invalid_argument(format!(
        "no tensor is kept under handle '{handle}': expected what GetSessionHandle gave, and not yet deleted"
    ))
}

fn handle_of(c: &ComputeContext<'_>) -> Result<String, KernelError> {
    let text = c.strings(0)?;
    let [text] = text.as_slice() else {
        let found = text.len();
        return Err(KernelError::invalid_argument(format!("expected one handle, found {found}")));
    };
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// What a handle that is not a text leads to: the handle's name is the text.
struct Marker;

impl ResourceValue for Marker {
    const NAME: &'static str = "tenon_data.SessionTensor";
}

/// The container of these.
const MARKERS: &str = "TensorHandle";

/// Keeps a tensor.
struct Keep {
    node: String,
    device: String,
    gives_text: bool,
}

impl Kernel for Keep {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let gives_text = c.output_types().first() != Some(&DType::RESOURCE);
        Ok(Keep { node: c.node().to_owned(), device: c.device().to_owned(), gives_text })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (store, tensor) = (Store::of(c)?, Arc::new(c.keep(0)?));
        let mut tensors = store.lock();
        let handle = format!("{};{};{}", self.node, tensors.next, self.device);
        tensors.next += 1;
        tensors.by_handle.insert(handle.clone(), tensor);
        drop(tensors);
        if self.gives_text {
            return c.set_strings(0, &[], [handle].iter());
        }
        c.output_handle(0, &c.state().find_or_create(MARKERS, &handle, || Ok(Marker))?)
    }
}

register_kernel!("GetSessionHandle" on "CPU": Keep);
register_kernel!("GetSessionHandleV2" on "CPU": Keep);

fn get(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let handle = handle_of(c)?;
    let found = Store::of(c)?.lock().by_handle.get(&handle).cloned();
    let tensor = found.ok_or_else(|| unknown(&handle))?;
    c.output_kept(0, &tensor)
}

register_kernel!("GetSessionTensor" on "CPU": fn get);

fn delete(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let handle = handle_of(c)?;
    let found = Store::of(c)?.lock().by_handle.remove(&handle);
    c.state().remove::<Marker>(MARKERS, &handle)?;
    // The tensor goes after the lock does.
    found.map(drop).ok_or_else(|| unknown(&handle))
}

register_kernel!("DeleteSessionTensor" on "CPU": fn delete);
