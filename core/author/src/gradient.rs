//! The gradient of an op as its author writes it.
//!
//! A gradient is a function over a [`GradientContext`]: it reads one node, adds nodes that compute the gradients of the
//! node's inputs from those of its outputs, and sets them. `register_gradient!` gives it to the op.

mod formulas;
mod node;

pub use node::NodeMaker;

use crate::attrs::AttrReader;
use std::marker::PhantomData;
use tenon_abi::{
    Code, GradientCall, GradientKind, GradientParts, GradientTable, GraphValue, Host, MAX_RANK, Str,
};
use tenon_framework::{
    DType, KernelError, Tensor,
    attr::FromAttr,
    gradient::Gradient,
    plugin::{guard, install_host},
};

/// A node whose gradient is made.
///
/// Values are numbers of tensors of the graph. One that does not exist, such as an input beyond the last one, has no
/// type and no shape, and a node that reads it is refused.
pub struct GradientContext<'a> {
    call: *mut GradientCall,
    table: &'a GradientTable,
    lent: PhantomData<&'a mut GradientCall>,
}

macro_rules! entry {
    ($context:expr, $name:ident $(, $arg:expr)*) => {{
        let entry = $context.table.$name.expect("the host fills every entry");
        // SAFETY: an entry of the host's table with the run that it lent.
        unsafe { entry($context.call $(, $arg)*) }
    }};
}
use entry;

/// The gradient of an op.
pub type GradientFunction = fn(&GradientContext<'_>) -> Result<(), KernelError>;

/// What an edit that the host refused becomes: the host has kept its message.
const REFUSED: &str = "the host refused an edit";

fn checked(code: Code) -> Result<(), KernelError> {
    if code.is_ok() { Ok(()) } else { Err(KernelError::new(code, REFUSED)) }
}

fn parts(gradient: Option<Gradient<GraphValue>>) -> GradientParts {
    let none = GraphValue::NONE;
    let (kind, values, indices, dense_shape) = match gradient {
        None => (GradientKind::NONE, none, none, none),
        Some(Gradient::Dense(values)) => (GradientKind::DENSE, values, none, none),
        Some(Gradient::Slices { values, indices, dense_shape }) => {
            (GradientKind::SLICES, values, indices, dense_shape.unwrap_or(none))
        }
    };
    GradientParts { kind, reserved: 0, values, indices, dense_shape }
}

impl<'a> GradientContext<'a> {
    fn text(&self, text: Str) -> String {
        // SAFETY: the host's text is readable for the run; it is copied here.
        String::from_utf8_lossy(unsafe { text.bytes() }).into_owned()
    }

    /// Name of the node.
    pub fn node_name(&self) -> String {
        self.text(entry!(self, name))
    }

    /// Op of the node.
    pub fn node_op(&self) -> String {
        self.text(entry!(self, op))
    }

    /// Name of this differentiation: another one of the same graph has another name. What a gradient makes once for
    /// each differentiation has it in its name.
    pub fn scope(&self) -> String {
        self.text(entry!(self, scope))
    }

    /// The value of an attribute of the node.
    ///
    /// # Errors
    /// `NOT_FOUND` when the node has no attribute of that name, `INVALID_ARGUMENT` when it is of another type.
    pub fn attr<T: FromAttr<'a>>(&self, name: &str) -> Result<T, KernelError> {
        let attrs = entry!(self, attrs);
        // SAFETY: the host lends the attributes for the run.
        unsafe { AttrReader::new(attrs) }.get(name)
    }

    /// Number of data inputs.
    pub fn input_count(&self) -> usize {
        entry!(self, input_count) as usize
    }

    /// Number of outputs.
    pub fn output_count(&self) -> usize {
        entry!(self, output_count) as usize
    }

    /// Value of an input.
    pub fn input(&self, index: usize) -> GraphValue {
        entry!(self, input, index as u32)
    }

    /// Values of all inputs.
    pub fn inputs(&self) -> Vec<GraphValue> {
        (0..self.input_count()).map(|index| self.input(index)).collect()
    }

    /// Value of an output.
    pub fn output(&self, index: usize) -> GraphValue {
        entry!(self, output, index as u32)
    }

    /// Whether the gradient of an input is wanted. It need not be made otherwise.
    pub fn wants(&self, input: usize) -> bool {
        entry!(self, is_wanted, input as u32) != 0
    }

    /// Gradient of an output as a tensor: zeros where there is none, and the sum of slices.
    ///
    /// # Errors
    /// There is no such output, or the type has no zero.
    pub fn gradient(&self, output: usize) -> Result<GraphValue, KernelError> {
        let mut result = GraphValue::NONE;
        checked(entry!(self, dense_gradient, output as u32, &raw mut result))?;
        Ok(result)
    }

    /// Gradient of an output in its own form.
    pub fn gradient_parts(&self, output: usize) -> Option<Gradient<GraphValue>> {
        let found = entry!(self, gradient, output as u32);
        match found.kind {
            GradientKind::DENSE => Some(Gradient::Dense(found.values)),
            GradientKind::SLICES => Some(Gradient::Slices {
                values: found.values,
                indices: found.indices,
                dense_shape: Some(found.dense_shape).filter(|shape| *shape != GraphValue::NONE),
            }),
            _ => None,
        }
    }

    /// Whether an output has a gradient.
    pub fn has_gradient(&self, output: usize) -> bool {
        self.gradient_parts(output).is_some()
    }

    /// Element type of a value.
    pub fn dtype(&self, value: GraphValue) -> DType {
        entry!(self, dtype, value)
    }

    /// Dimensions of a value, -1 where unknown; `None` if the rank is unknown.
    pub fn dims(&self, value: GraphValue) -> Option<Vec<i64>> {
        let mut dims = [0; MAX_RANK];
        let rank = entry!(self, shape, value, dims.as_mut_ptr(), MAX_RANK as u32);
        let rank = usize::try_from(rank).ok()?;
        dims.get(..rank).map(<[i64]>::to_vec)
    }

    /// Dimensions of a value, if all of them are known.
    pub fn known_dims(&self, value: GraphValue) -> Option<Vec<i64>> {
        self.dims(value).filter(|dims| dims.iter().all(|&dim| dim >= 0))
    }

    /// Rank of a value, if it is known.
    pub fn rank(&self, value: GraphValue) -> Option<usize> {
        self.dims(value).map(|dims| dims.len())
    }

    /// The value when it is the same in every step.
    pub fn constant(&self, value: GraphValue) -> Option<Tensor> {
        let slot = entry!(self, constant, value);
        // SAFETY: null, or a slot that the host lends until the next edit, with readable dimensions and data, both of
        // which are copied here.
        unsafe {
            let slot = slot.as_ref()?;
            let dims = tenon_abi::Dims { ptr: slot.dims, len: slot.rank as usize }.slice();
            let bytes = match slot.bytes {
                0 => &[],
                bytes => {
                    std::slice::from_raw_parts(slot.data.cast::<u8>().cast_const(), bytes as usize)
                }
            };
            Tensor::from_bytes(slot.dtype, dims, bytes).ok()
        }
    }

    /// The integers of a value of type int32 or int64 that is the same in every step.
    pub fn constant_ints(&self, value: GraphValue) -> Option<Vec<i64>> {
        let tensor = self.constant(value)?;
        match tensor.dtype() {
            DType::INT32 => {
                Some(tensor.as_slice::<i32>().ok()?.iter().map(|&v| v.into()).collect())
            }
            DType::INT64 => tensor.as_slice::<i64>().ok().map(<[i64]>::to_vec),
            _ => None,
        }
    }

    /// Whether two values are known to have the same shape in every step.
    pub fn same_shape(&self, a: GraphValue, b: GraphValue) -> bool {
        entry!(self, same_shape, a, b) != 0
    }

    /// Starts a node of this op.
    pub fn op<'c>(&'c self, op: &str) -> NodeMaker<'c, 'a> {
        NodeMaker::new(self, op)
    }

    /// Sets the gradient of an input to a tensor of its shape. An input that is not set has none.
    ///
    /// # Errors
    /// There is no such input, or the types differ.
    pub fn set(&self, input: usize, gradient: GraphValue) -> Result<(), KernelError> {
        self.set_parts(input, Some(Gradient::Dense(gradient)))
    }

    /// Sets the gradient of an input to slices along its first axis.
    ///
    /// # Errors
    /// As [`GradientContext::set`].
    pub fn set_slices(
        &self,
        input: usize,
        values: GraphValue,
        indices: GraphValue,
        dense_shape: GraphValue,
    ) -> Result<(), KernelError> {
        let dense_shape = Some(dense_shape);
        self.set_parts(input, Some(Gradient::Slices { values, indices, dense_shape }))
    }

    /// Sets the gradient of an input in any form.
    ///
    /// # Errors
    /// As [`GradientContext::set`].
    pub fn set_parts(
        &self,
        input: usize,
        gradient: Option<Gradient<GraphValue>>,
    ) -> Result<(), KernelError> {
        let parts = parts(gradient);
        checked(entry!(self, set, input as u32, &raw const parts))
    }
}

/// Runs the body of a gradient; a panic in it is an error.
///
/// # Safety
/// What the host gives to a gradient: its table, a run and the table of the run.
#[doc(hidden)]
pub unsafe fn enter_gradient(
    host: *const Host,
    call: *mut GradientCall,
    table: *const GradientTable,
    body: GradientFunction,
) -> Code {
    // SAFETY: the host gives a gradient its table, which lives as long as the process, and a run with the run's table,
    // which live through the call; the caller passes them on.
    let context = unsafe {
        install_host(host, std::ptr::null());
        GradientContext { call, table: &*table, lent: PhantomData }
    };
    let fail = |code: Code, text: &str| {
        entry!(context, fail, code, Str { ptr: text.as_ptr(), len: text.len() })
    };
    match guard(|| body(&context)) {
        Ok(Ok(())) => Code::OK,
        // The host has kept its own message already.
        Ok(Err(error)) if error.message == REFUSED => error.code,
        Ok(Err(error)) => fail(error.code, &error.message),
        Err(panic) => fail(Code::INTERNAL, &format!("the gradient panicked: {panic}")),
    }
}
