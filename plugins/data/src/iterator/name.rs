//! Iterators as texts: the handle as a message with the fields of TensorFlow's `ResourceHandleProto`.

use super::Iterator;
use crate::{
    dataset::{Spec, text},
    place::{Place, Shared, find_by_place, input, keep_findable},
    wire::{Value, fields, put_bytes},
};
use tenon_sdk::prelude::*;

const DEVICE: u64 = 1;
const CONTAINER: u64 = 2;
const NAME: u64 = 3;
const TYPE: u64 = 5;

struct ToText {
    device: String,
}

impl Kernel for ToText {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ToText { device: c.device().to_owned() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let iterator = input::<Iterator>(c)?;
        keep_findable(c, &iterator)?;
        let (Place { container, name }, mut message) = (iterator.place(), Vec::new());
        put_bytes(&mut message, DEVICE, self.device.as_bytes())?;
        put_bytes(&mut message, CONTAINER, container.as_bytes())?;
        put_bytes(&mut message, NAME, name.as_bytes())?;
        put_bytes(&mut message, TYPE, Iterator::NAME.as_bytes())?;
        c.set_strings(0, &[], [message].iter())
    }
}

struct FromText {
    device: String,
    /// What its elements are to be; `None` where the node does not say.
    spec: Option<Spec>,
}

impl Kernel for FromText {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let spec = Some(Spec::new(c)?).filter(|spec| !spec.types.is_empty());
        Ok(FromText { device: c.device().to_owned(), spec })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let place = self.parsed(text(c, 0, "string_handle")?)?;
        let (handle, iterator) = find_by_place::<Iterator>(c, &place)?;
        if let Some(spec) = &self.spec {
            spec.check(&iterator.spec, &iterator.label())?;
        }
        c.output_handle(0, &handle)
    }
}

impl FromText {
    fn parsed(&self, message: &[u8]) -> Result<Place, KernelError> {
        let wrong = |what: &str| {
            KernelError::invalid_argument(format!(
                "string_handle: expected what IteratorToStringHandle gives, found {what}"
            ))
        };
        let mut parts = [const { String::new() }; 4];
        for field in fields(message) {
            let (number, value) = field.map_err(|_| wrong("bytes that are not a message"))?;
            let part = usize::try_from(number).ok().and_then(|number| parts.get_mut(number));
            if let (Some(part), Value::Bytes(bytes)) = (part, value) {
                let text = std::str::from_utf8(bytes);
                *part = text.map_err(|_| wrong("a name that is not a text"))?.to_owned();
            }
        }
        let [_, device, container, name] = parts;
        if name.is_empty() {
            return Err(wrong("a handle without a name"));
        }
        if device != self.device {
            return Err(wrong(&format!(
                "an iterator on device {device}, while this node is on {}",
                self.device
            )));
        }
        Ok(Place { container, name })
    }
}

register_kernel!("IteratorToStringHandle" on "CPU": ToText);
register_kernel!("IteratorFromStringHandle" on "CPU": FromText);
register_kernel!("IteratorFromStringHandleV2" on "CPU": FromText);
