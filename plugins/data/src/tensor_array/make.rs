//! Ops that make arrays, and what finds one.

use super::{Element, Form, TensorArray};
use crate::handle_of_step::{self, Way};
use std::sync::atomic::{AtomicU64, Ordering};
use tenon_sdk::{growth, prelude::*};

/// What names of arrays begin with in the container of the step; so TensorFlow has it.
const ARRAYS: &str = "_tensor_arrays";
const GRADIENTS: &str = "_tensor_array_grads";

struct Make {
    name: String,
    dtype: DType,
    shape: PartialShape,
    is_dynamic: bool,
    clears: bool,
    identical: bool,
    way: Way,
}

impl Kernel for Make {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let name: &str = c.attr("tensor_array_name")?;
        let name = if name.is_empty() { c.node() } else { name };
        // The forms before the third have no such attribute.
        let identical = "identical_element_shapes";
        Ok(Make {
            name: name.to_owned(),
            dtype: c.attr("dtype")?,
            shape: c.attr("element_shape")?,
            is_dynamic: c.attr("dynamic_size")?,
            clears: c.attr("clear_after_read")?,
            identical: c.attrs().has(identical) && c.attr(identical)?,
            way: Way::of(c),
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let size = c.integer(0, "size")?;
        let len = usize::try_from(size).map_err(|_| {
            KernelError::invalid_argument(format!("size: expected at least 0, found {size}"))
        })?;
        let name = format!("{}_{}", self.name, MADE.fetch_add(1, Ordering::Relaxed));
        let form = Form {
            name: name.clone(),
            dtype: self.dtype,
            clears: self.clears,
            identical: self.identical,
            is_gradient: false,
        };
        let state = c.state();
        let array =
            state.find_or_create(&state.step_container(), &format!("{ARRAYS}{name}"), || {
                let elements = growth::filled(len, Element::default())?;
                let array = TensorArray::new(form, self.shape.clone(), elements);
                array.lock().is_dynamic = self.is_dynamic;
                Ok(array)
            })?;
        give(c, self.way, &array, [ARRAYS, &name])
    }
}

register_kernel!("TensorArray" on "CPU": Make);
register_kernel!("TensorArrayV2" on "CPU": Make);
register_kernel!("TensorArrayV3" on "CPU": Make);

/// Returns an array; the last version has a flow beside it.
fn give(
    c: &ComputeContext<'_>,
    way: Way,
    array: &ResourceHandle<TensorArray>,
    name: [&str; 2],
) -> Result<(), KernelError> {
    if c.output_count() > 1 {
        c.output::<f32>(1, &[])?.data[0] = 0.0;
    }
    way.output(c, array, name)
}

/// The array that input 0 leads to.
///
/// # Errors
/// As [`handle_of_step::input`].
pub fn array_in(c: &ComputeContext<'_>) -> Result<ResourceHandle<TensorArray>, KernelError> {
    handle_of_step::input(c)
}

struct Gradient {
    source: String,
    way: Way,
}

impl Kernel for Gradient {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Gradient { source: c.attr::<&str>("source")?.to_owned(), way: Way::of(c) })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let forward = array_in(c)?;
        if forward.form.is_gradient {
            return Err(forward.refuse("it is the array of gradients itself, and has none"));
        }
        let before = if c.input_count() > 2 { prefix(c)? } else { Vec::new() };
        {
            let mut state = forward.open()?;
            state.is_dynamic = false;
            if state.has_sums {
                return Err(forward.refuse("values were added in it, and have no gradient"));
            }
        }
        let name = format!("{}@{}", forward.form.name, self.source);
        let state = c.state();
        let array =
            state.find_or_create(&state.step_container(), &format!("{GRADIENTS}{name}"), || {
                gradient_of(&forward, &name, &before)
            })?;
        give(c, self.way, &array, [GRADIENTS, &name])
    }
}

register_kernel!("TensorArrayGrad" on "CPU": Gradient);
register_kernel!("TensorArrayGradV2" on "CPU": Gradient);
register_kernel!("TensorArrayGradV3" on "CPU": Gradient);
register_kernel!("TensorArrayGradWithShape" on "CPU": Gradient);

/// The dimensions that come before those of each element.
fn prefix(c: &ComputeContext<'_>) -> Result<Vec<i64>, KernelError> {
    let before = c.integer_list(2, "shape_to_prepend")?;
    if before.iter().any(|&dim| dim < 0) {
        return Err(KernelError::invalid_argument(format!(
            "shape_to_prepend: expected sizes of at least 0, found {before:?}"
        )));
    }
    Ok(before)
}

/// The array of gradients: of the forward array's size, with zeros of the shapes of what is written there.
fn gradient_of(
    forward: &TensorArray,
    name: &str,
    before: &[i64],
) -> Result<TensorArray, KernelError> {
    let form =
        Form { name: name.to_owned(), clears: true, is_gradient: true, ..forward.form.clone() };
    let state = forward.open()?;
    let longer = |dims: &[i64]| [before, dims].concat();
    let shape = match state.shape.dims() {
        Some(dims) => crate::shapes::shape_of(&longer(dims), "shape_to_prepend")?,
        None => PartialShape::UNKNOWN,
    };
    let elements = state
        .elements
        .iter()
        .map(|element| Element { dims: element.dims.as_deref().map(longer), ..Element::default() });
    let array = TensorArray::new(form, shape, growth::collected(elements)?);
    array.lock().split = state.split;
    Ok(array)
}

fn size(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let len = array_in(c)?.len()?;
    c.output::<i32>(0, &[])?.data[0] = i32::try_from(len).unwrap_or(i32::MAX);
    Ok(())
}

register_kernel!("TensorArraySize" on "CPU": fn size);
register_kernel!("TensorArraySizeV2" on "CPU": fn size);
register_kernel!("TensorArraySizeV3" on "CPU": fn size);

fn close(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    array_in(c)?.close();
    Ok(())
}

register_kernel!("TensorArrayClose" on "CPU": fn close);
register_kernel!("TensorArrayCloseV2" on "CPU": fn close);
register_kernel!("TensorArrayCloseV3" on "CPU": fn close);
