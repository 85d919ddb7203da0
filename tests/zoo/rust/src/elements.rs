//! Kinds of elements: numbers as bytes, strings.

use tenon_sdk::{
    abi::{Str, StringElement},
    author::host,
    prelude::*,
};

register_op!(
    "ZooBytes",
    inputs = &["x: T"],
    outputs = &["bytes: uint8"],
    attrs = &["T: type"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.unknown_of_rank(1)),
    summary = "The bytes of any tensor with elements of fixed size.",
);

fn bytes(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input_bytes(0)?;
    c.output::<u8>(0, &[x.len() as i64])?.data.copy_from_slice(x);
    Ok(())
}

register_kernel!("ZooBytes" on "CPU": fn bytes, types = ("T", COPYABLE));

register_op!(
    "ZooStrings",
    inputs = &["x: string"],
    outputs = &["y: string"],
    attrs = &["removed: string = ''"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
    summary = "Each string in reverse; those equal to `removed` become empty.",
);

struct Strings {
    removed: Vec<u8>,
}

fn ok(code: Code) -> Result<(), KernelError> {
    if code.is_ok() { Ok(()) } else { Err(KernelError::new(code, "cannot write a string")) }
}

/// Writes `text` in reverse, in room made beforehand.
///
/// # Safety
/// `element` belongs to an output of the running call.
unsafe fn write_reversed(element: *mut StringElement, text: &[u8]) -> Result<(), KernelError> {
    // SAFETY: the host fills its tables; the element is this call's, and has room for `text.len()` bytes.
    unsafe {
        let table = &*host().strings;
        ok(table.reserve.expect("the host fills every entry")(element, text.len() as u64))?;
        for (at, byte) in text.iter().rev().enumerate() {
            *(*element).data.add(at) = *byte;
        }
        (*element).len = text.len() as u64;
    }
    Ok(())
}

impl Kernel for Strings {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Strings { removed: c.attr::<&[u8]>("removed")?.to_vec() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.strings(0)?;
        let first = c.prepare(0, c.dims(0))?.data.cast::<StringElement>();
        // SAFETY: the host fills its tables.
        let table = unsafe { &*host().strings };
        for (at, text) in x.into_iter().enumerate() {
            // SAFETY: element `at` of the output, which has as many as the input.
            unsafe {
                let element = first.add(at);
                write_reversed(element, text)?;
                if text == self.removed {
                    // `set` and `destroy` are all that this op has not used yet.
                    ok(table.set.expect("the host fills every entry")(element, Str::new("gone")))?;
                    table.destroy.expect("the host fills every entry")(element);
                }
            }
        }
        Ok(())
    }
}

register_kernel!("ZooStrings" on "CPU": Strings);
