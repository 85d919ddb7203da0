//! `Conv2D` by Winograd's algorithm, and the code that it shares with `_FusedConv2D`.

use super::{
    blocks::Work,
    contract::{Role, fits, supports},
    factors::{self, Factors},
    transforms::{Four, Transform, Two, TwoOfFive},
};
use crate::{
    kernels::{
        linalg::gemm::isa::{Isa, chosen},
        nn::conv::{self, After, Ending},
    },
    panels::uninitialised,
};
use std::marker::PhantomData;
use tenon_sdk::{
    Code, DType, KernelError,
    abi::Slot,
    author::{ComputeContext, CreateContext, Kernel, Packed, Prepack, Supported, Supports},
    geometry::{Conv2dGeometry, ConvAttributes},
    pages::{Line, Lines},
    reg::Numerics,
    register_kernel,
};

/// The input that is the filter.
const FILTER: usize = 1;

/// A convolution, whose filter is transformed once if it is a constant.
pub struct Convolution<T> {
    attributes: ConvAttributes,
    isa: &'static Isa<f32>,
    filter: Option<Packed>,
    /// The ordinary filter, for images and filters that the transformation does not support.
    direct: conv::Filter<f32>,
    transform: PhantomData<T>,
}

/// A transformed filter.
struct Transformed<T> {
    memory: Lines,
    /// The number of its elements.
    len: usize,
    isa: &'static Isa<f32>,
    /// The numbers of channels and outputs.
    size: [usize; 2],
    transform: PhantomData<T>,
}

impl<T: Transform> Transformed<T> {
    fn new(isa: &'static Isa<f32>, size: [usize; 2], filter: &[f32]) -> Result<Self, KernelError> {
        let none = || {
            let [channels, outputs] = size;
            KernelError::new(
                Code::RESOURCE_EXHAUSTED,
                format!("no memory for the transformed filter of {channels}x{outputs} channels"),
            )
        };
        let len = factors::len::<T>(isa, size).ok_or_else(none)?;
        let mut memory = Lines::zeroed_for::<f32>(len).ok_or_else(none)?;
        let factors = &mut Line::numbers_mut(&mut memory)[..len];
        factors::transform::<T>(filter, size[1], isa.columns, factors);
        Ok(Transformed { memory, len, isa, size, transform: PhantomData })
    }

    fn factors(&self) -> Factors<'_> {
        Factors::new(self.isa, self.size, &Line::numbers(&self.memory)[..self.len])
    }
}

impl<T: Transform> Convolution<T> {
    /// Reads the attributes.
    pub fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let attributes = ConvAttributes::new(c)?;
        let isa = chosen(c.knobs())?.expect("there are tiles of floats");
        let direct = conv::Filter::new(c)?;
        Ok(Convolution { attributes, isa, filter: None, direct, transform: PhantomData })
    }

    /// Transforms a constant filter.
    ///
    /// # Errors
    /// No memory.
    pub fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        // SAFETY: the host passes a filled slot, which is valid during this call.
        let dims = unsafe { view.shape() };
        let &[height, width, channels, outputs] = dims else { return Ok(None) };
        let is_here = view.memory.is_host_address()
            && view.dtype == DType::FLOAT
            && [height, width] == [T::TAPS as i64; 2];
        if input != FILTER || !is_here || view.bytes == 0 {
            return Ok(None);
        }
        let len = view.bytes as usize / size_of::<f32>();
        // SAFETY: the filled slot has host memory of this size, which is valid during this call.
        let filter = unsafe { std::slice::from_raw_parts(view.data.cast_const().cast(), len) };
        let form =
            Transformed::<T>::new(self.isa, [channels, outputs].map(|n| n as usize), filter)?;
        let bytes = size_of_val(&*form.memory) as u64;
        Ok(Some(Packed::new(form, bytes)))
    }

    /// Takes over a transformed filter.
    pub fn attach(&mut self, input: usize, packed: &Packed) {
        if input == FILTER {
            self.filter = Some(packed.clone());
        }
    }

    /// The geometry of a call.
    ///
    /// # Errors
    /// The inputs do not fit each other.
    pub fn geometry(&self, c: &ComputeContext<'_>) -> Result<Conv2dGeometry, KernelError> {
        Ok(Conv2dGeometry::new(&self.attributes.params(c.dims(0), c.dims(1)))?)
    }

    /// Computes the convolution of inputs 0 and 1 into output 0, and applies the ending to the
    /// results.
    ///
    /// # Errors
    /// No memory; the call was cancelled.
    pub fn compute(
        &self,
        c: &ComputeContext<'_>,
        g: &Conv2dGeometry,
        after: Option<&After<'_, f32>>,
    ) -> Result<(), KernelError> {
        if !fits::<T>(g) {
            let ending = Ending::after(after);
            return conv::convolve::<f32>(c, g, &self.direct, ending);
        }
        let y = c.output::<f32>(0, &g.output_dims())?.data;
        let (x, filter) = (c.input::<f32>(0)?.data, c.input::<f32>(FILTER)?.data);
        let size = [g.in_channels as usize, g.out_channels as usize];
        let packed = self.filter.as_ref().and_then(Packed::get::<Transformed<T>>);
        let factors = match packed {
            Some(packed) if packed.size == size => packed.factors(),
            _ => transformed::<T>(c, self.isa, size, filter)?,
        };
        Work::<T>::new(g, [x, filter], factors, y, after).run(c)
    }
}

/// The factors of a filter with these channels and outputs, in memory of the call.
///
/// # Errors
/// No memory.
pub fn transformed<'a, T: Transform>(
    c: &ComputeContext<'a>,
    isa: &'static Isa<f32>,
    size: [usize; 2],
    filter: &[f32],
) -> Result<Factors<'a>, KernelError> {
    let memory = uninitialised(c, factors::len::<T>(isa, size).unwrap_or(usize::MAX))?;
    factors::transform::<T>(filter, size[1], isa.columns, memory);
    Ok(Factors::new(isa, size, memory))
}

struct Conv2d<T>(Convolution<T>);

impl<T: Transform> Kernel for Conv2d<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Conv2d(Convolution::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        self.0.compute(c, &self.0.geometry(c)?, None)
    }
}

impl<T: Transform> Supports for Conv2d<T> {
    fn supports(c: &CreateContext<'_>) -> Supported {
        supports::<T>(c, Role::Forward)
    }
}

impl<T: Transform> Prepack for Conv2d<T> {
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        self.0.prepack(input, view)
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        self.0.attach(input, packed);
    }
}

/// The numerics contract of a transformation's kernels.
pub const fn numerics<T: Transform>() -> Numerics {
    Numerics::relative(1e-30, T::RELATIVE).accumulation(DType::FLOAT)
}

/// The contract with an epilogue, whose functions add the same error as in the ordinary kernel.
pub const fn fused_numerics<T: Transform>() -> Numerics {
    Numerics::relative(1e-6, T::RELATIVE + 4e-6).accumulation(DType::FLOAT)
}

register_kernel!("Conv2D" on "CPU": Conv2d<Four>, types = ("T", &[DType::FLOAT]),
    label = "winograd4", priority = 2, numerics = numerics::<Four>());
register_kernel!("Conv2D" on "CPU": Conv2d<Two>, types = ("T", &[DType::FLOAT]),
    label = "winograd2", priority = 1, numerics = numerics::<Two>());
register_kernel!("Conv2D" on "CPU": Conv2d<TwoOfFive>, types = ("T", &[DType::FLOAT]),
    label = "winograd5", priority = 3, numerics = numerics::<TwoOfFive>());
