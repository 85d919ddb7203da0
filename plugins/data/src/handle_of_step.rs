//! How older graphs reach what goes with a step: by a name of two strings, or by a reference to them.
//!
//! Arrays and stacks of the last version are found by the handles of their resources.

use tenon_sdk::{abi::slot_flags, prelude::*};

/// What a node gives for the handle of what it makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The handle of the resource.
    Resource,
    /// The two strings.
    Name,
    /// A reference to the two strings.
    Reference,
}

impl Way {
    /// By the type of the node's first output.
    pub fn of(c: &CreateContext<'_>) -> Way {
        match c.output_types().first() {
            Some(&DType::RESOURCE) | None => Way::Resource,
            Some(dtype) if dtype.is_ref() => Way::Reference,
            Some(_) => Way::Name,
        }
    }

    /// Returns the way to a resource as output 0.
    ///
    /// # Errors
    /// As [`ComputeContext::output_handle`] and [`ComputeContext::set_strings`].
    pub fn output<T: ResourceValue>(
        self,
        c: &ComputeContext<'_>,
        resource: &ResourceHandle<T>,
        name: [&str; 2],
    ) -> Result<(), KernelError> {
        match self {
            Way::Resource => c.output_handle(0, resource),
            Way::Name => c.set_strings(0, &[2], name.into_iter()),
            Way::Reference => c.output_ref_to_strings(0, &name),
        }
    }
}

/// What input 0 leads to: a resource of the step, by its handle, its name, or a reference to its name.
///
/// # Errors
/// `INVALID_ARGUMENT` for something else; `NOT_FOUND` when the step has none of that name.
pub fn input<T: ResourceValue>(c: &ComputeContext<'_>) -> Result<ResourceHandle<T>, KernelError> {
    let (state, slot) = (c.state(), c.slot(0)?);
    if slot.dtype == DType::RESOURCE {
        return state.input_resource::<T>(0);
    }
    let names = match slot.flags & slot_flags::REF != 0 {
        true => state.input_ref_strings(0)?,
        false => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            c.strings(0)?.into_iter().map(text).collect()
        }
    };
    let [group, name] = &names[..] else {
        return Err(KernelError::invalid_argument(format!(
            "handle: expected a name of 2 strings, found {}",
            names.len()
        )));
    };
    let (container, key) = (state.step_container(), format!("{group}{name}"));
    state.find::<T>(&container, &key)?.ok_or_else(|| {
        let message = format!("handle: container '{container}' has no {} '{key}'", T::NAME);
        KernelError::new(Code::NOT_FOUND, message)
    })
}
