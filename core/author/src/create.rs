//! The context in which a kernel is created.

use crate::{Knobs, attrs::AttrReader};
use std::slice;
use tenon_abi::{Code, Create, DType, DeviceState, Range, ShapeView, Slot, Str};
use tenon_framework::{KernelError, attr::FromAttr, shape::PartialShape};

/// The node that a kernel is created for.
pub struct CreateContext<'a> {
    raw: &'a Create,
}

impl<'a> CreateContext<'a> {
    /// Wraps what the host gives.
    ///
    /// # Safety
    /// `raw` is filled as its docs say, for `'a`.
    pub unsafe fn new(raw: &'a Create) -> CreateContext<'a> {
        CreateContext { raw }
    }

    /// The attributes.
    pub fn attrs(&self) -> AttrReader<'a> {
        // SAFETY: the attributes are lent for as long as `create` runs.
        unsafe { AttrReader::new(self.raw.attrs) }
    }

    /// The value of an attribute.
    ///
    /// # Errors
    /// As [`AttrReader::get`].
    pub fn attr<T: FromAttr<'a>>(&self, name: &str) -> Result<T, KernelError> {
        self.attrs().get(name)
    }

    /// Name of the op.
    pub fn op(&self) -> &'a str {
        text(self.raw.op)
    }

    /// Name of the node.
    pub fn node(&self) -> &'a str {
        text(self.raw.node)
    }

    /// Full name of the device.
    pub fn device(&self) -> &'a str {
        text(self.raw.device)
    }

    /// The plugin's knobs, with the values of the session that the kernel is made for: read here what a session may
    /// choose, and keep it.
    pub fn knobs(&self) -> Knobs<'a> {
        // SAFETY: the context is lent for as long as `create` runs.
        unsafe { Knobs::from_raw(self.raw.context) }
    }

    /// The device's own state, for kernels of the plugin that made it; null on the host's memory.
    pub fn device_state(&self) -> *mut DeviceState {
        self.raw.device_state
    }

    /// Element types of the inputs.
    pub fn input_types(&self) -> &'a [DType] {
        // SAFETY: `input_count` elements.
        unsafe { array(self.raw.input_types, self.raw.input_count) }
    }

    /// Element types of the outputs.
    pub fn output_types(&self) -> &'a [DType] {
        // SAFETY: `output_count` elements.
        unsafe { array(self.raw.output_types, self.raw.output_count) }
    }

    /// What is known of the shape of an input.
    pub fn input_shape(&self, input: usize) -> PartialShape {
        // SAFETY: `input_count` elements.
        let shapes = unsafe { array(self.raw.input_shapes, self.raw.input_count) };
        shapes.get(input).map_or(PartialShape::UNKNOWN, partial_shape)
    }

    /// Names of the input arguments, in order.
    pub fn input_args(&self) -> Vec<&'a str> {
        // SAFETY: texts that the host lends with the context.
        unsafe { self.raw.input_args.slice() }.iter().map(|name| text(*name)).collect()
    }

    /// Names of the output arguments, in order.
    pub fn output_args(&self) -> Vec<&'a str> {
        // SAFETY: as in `input_args`.
        unsafe { self.raw.output_args.slice() }.iter().map(|name| text(*name)).collect()
    }

    /// Flat positions of the input argument of this name, for a kernel that serves several ops.
    ///
    /// ```
    /// use tenon_author::{ComputeContext, CreateContext, Kernel};
    /// use tenon_framework::KernelError;
    ///
    /// struct Bias {
    ///     bias: usize,
    /// }
    ///
    /// impl Kernel for Bias {
    ///     fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
    ///         Ok(Bias { bias: c.input_named("bias")?.start })
    ///     }
    ///
    ///     fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
    ///         let bias = c.input::<f32>(self.bias)?;
    ///         // ...
    /// #       let _ = bias;
    ///         Ok(())
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// `NOT_FOUND` when the op has no such input.
    pub fn input_named(&self, name: &str) -> Result<std::ops::Range<usize>, KernelError> {
        let args = self.input_args();
        let arg = args.iter().position(|arg| *arg == name);
        arg.map(|arg| self.input_range(arg)).ok_or_else(|| self.no_arg("input", name, &args))
    }

    /// Flat positions of the output argument of this name.
    ///
    /// # Errors
    /// `NOT_FOUND` when the op has no such output.
    pub fn output_named(&self, name: &str) -> Result<std::ops::Range<usize>, KernelError> {
        let args = self.output_args();
        let arg = args.iter().position(|arg| *arg == name);
        arg.map(|arg| self.output_range(arg)).ok_or_else(|| self.no_arg("output", name, &args))
    }

    fn no_arg(&self, what: &str, name: &str, args: &[&str]) -> KernelError {
        let (op, args) = (self.op(), args.join(", "));
        let message = format!("op '{op}' has no {what} '{name}': expected one of {args}");
        KernelError::new(Code::NOT_FOUND, message)
    }

    /// Flat positions of the named input argument number `arg`.
    pub fn input_range(&self, arg: usize) -> std::ops::Range<usize> {
        // SAFETY: as many ranges as names.
        positions(unsafe { array(self.raw.input_ranges, self.raw.input_args.len as u32) }, arg)
    }

    /// Flat positions of the named output argument number `arg`.
    pub fn output_range(&self, arg: usize) -> std::ops::Range<usize> {
        // SAFETY: as many ranges as names.
        positions(unsafe { array(self.raw.output_ranges, self.raw.output_args.len as u32) }, arg)
    }

    /// The value of an input that is the same in every call; `None` when it is not, or not known yet.
    pub fn constant(&self, input: usize) -> Option<&'a Slot> {
        // SAFETY: `input_count` elements.
        let constants = unsafe { array(self.raw.constants, self.raw.input_count) };
        constants.get(input).filter(|slot| !slot.data.is_null())
    }
}

/// Answer of [`crate::Supports::supports`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Supported {
    /// Whatever the unknown dimensions turn out to be.
    Yes,
    /// Ask again when the shapes are known. If the graph does not determine them, that is in the step which brings
    /// them: once for each new shape, from any thread. A kernel that is made then is kept for that shape.
    DependsOnShapes,
    /// Not these attributes or shapes, with the reason.
    No(String),
}

fn positions(ranges: &[Range], arg: usize) -> std::ops::Range<usize> {
    ranges.get(arg).map_or(0..0, |range| range.start as usize..(range.start + range.len) as usize)
}

fn text<'a>(text: Str) -> &'a str {
    // SAFETY: text that the host lends with the context.
    unsafe { text.text() }.unwrap_or("")
}

unsafe fn array<'a, T>(first: *const T, count: u32) -> &'a [T] {
    if first.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: `first` is not null, and the caller gives `count` elements that live for `'a`.
    unsafe { slice::from_raw_parts(first, count as usize) }
}

fn partial_shape(view: &ShapeView) -> PartialShape {
    if view.unknown_rank != 0 {
        return PartialShape::UNKNOWN;
    }
    // SAFETY: dimensions that the host lends with the context.
    PartialShape::new(unsafe { view.dims.slice() }).unwrap_or(PartialShape::UNKNOWN)
}
