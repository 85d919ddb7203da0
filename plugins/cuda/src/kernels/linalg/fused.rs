//! A product and its steps: cuBLASLt performs as many of them as it can within the product.
//!
//! ```text
//! product with the first steps ── no algorithm ──> product alone ── no algorithm ──> own kernel, with all steps
//!        └─ the other steps, in a pass                 └─ all steps, in a pass
//! ```

use super::{
    after::After,
    epilogue::{Arguments, Attributes},
    gemm::Product,
    products::{Own, Products, Run},
};
use crate::{
    cublaslt::Epilogue,
    device::Cuda,
    launch::{Launch, Operand, device_for},
    settings,
};
use std::sync::OnceLock;
use tenon_sdk::{
    DType, KernelError, author::CreateContext, fused::EpilogueStep, geometry::MatMulGeometry,
};

/// What the library does after a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ending {
    /// The epilogue.
    pub epilogue: Epilogue,
    /// Index of the further input that is a matrix to add.
    pub added: Option<usize>,
    /// Index of the further input that is a vector to add.
    pub bias: Option<usize>,
}

impl Ending {
    /// An ending that does nothing.
    pub const NONE: Ending = Ending { epilogue: Epilogue::None, added: None, bias: None };
}

/// What the library does of these steps, and how many of the first steps that covers: optionally a
/// vector and then a matrix to add, or the matrix alone, optionally followed by a function.
///
/// A ReLU is included where `relu` allows it: ours preserves NaN, while the library only promises
/// the greater of a number and 0. In double the library promises only the addition of a matrix.
fn ending_of(steps: &[EpilogueStep], dtype: DType, relu: bool) -> (Ending, usize) {
    use EpilogueStep::{Add, BiasAdd, GeluApproximate, Relu};
    let is_double = dtype == DType::DOUBLE;
    let (bias, added) = match steps {
        [Add, ..] => (None, Some(0)),
        _ if is_double => (None, None),
        [BiasAdd, Add, ..] => (Some(0), Some(1)),
        [BiasAdd, ..] => (Some(0), None),
        _ => (None, None),
    };
    let done = usize::from(bias.is_some()) + usize::from(added.is_some());
    let (epilogue, more) = match (steps.get(done), bias.is_some()) {
        (Some(GeluApproximate), true) if !is_double => (Epilogue::BiasGeluByTanh, 1),
        (Some(GeluApproximate), false) if !is_double => (Epilogue::GeluByTanh, 1),
        (Some(Relu), true) if relu && !is_double => (Epilogue::BiasRelu, 1),
        (Some(Relu), false) if relu && !is_double => (Epilogue::Relu, 1),
        (_, true) => (Epilogue::Bias, 0),
        (_, false) => (Epilogue::None, 0),
    };
    (Ending { epilogue, added, bias }, done + more)
}

/// Whether the library performs all of these steps within a product.
///
/// # Errors
/// The host's error when the knobs cannot be read.
pub(in crate::kernels) fn does_all(
    c: &CreateContext<'_>,
    steps: &[EpilogueStep],
    dtype: DType,
) -> Result<bool, KernelError> {
    Ok(ending_of(steps, dtype, settings::fuse_relu(c.knobs())?).1 == steps.len())
}

/// What the library does, and the pass after it that does the other steps.
struct Way {
    ending: Ending,
    dtype: DType,
    /// The other steps; empty for none.
    rest: String,
    after: OnceLock<After>,
}

impl Way {
    fn new(ending: Ending, dtype: DType, rest: String) -> Way {
        Way { ending, dtype, rest, after: OnceLock::new() }
    }

    /// The pass, compiled on first use; `None` where there are no other steps.
    fn after(&self, device: &Cuda) -> Result<Option<&After>, KernelError> {
        if !self.rest.is_empty() && self.after.get().is_none() {
            // If another thread was first, its result is equivalent.
            let _ = self.after.set(After::on(device, self.dtype, &self.rest)?);
        }
        Ok(self.after.get())
    }
}

/// The products of a node, and its steps.
pub(in crate::kernels) struct Fused {
    products: Products,
    /// From the way in which the library does most, to the one in which it only computes the
    /// product.
    ways: Vec<Way>,
    own: Own,
}

impl Fused {
    /// The products with the steps of these attributes, if any.
    ///
    /// # Errors
    /// The library is missing; its error; the compiler's error for the steps that the library does
    /// not perform.
    pub fn new(
        c: &CreateContext<'_>,
        dtype: DType,
        transposed: [bool; 2],
        allow_tf32: bool,
        steps: Option<&Attributes>,
    ) -> Result<Fused, KernelError> {
        let names = steps.map_or(&[][..], Attributes::steps);
        let rest = |done| steps.map_or_else(String::new, |steps| steps.define(done));
        let (ending, done) = ending_of(names, dtype, settings::fuse_relu(c.knobs())?);
        let mut ways = vec![Way::new(ending, dtype, rest(done))];
        if ending != Ending::NONE {
            ways.push(Way::new(Ending::NONE, dtype, rest(0)));
        }
        // What is probably needed is compiled before a step waits for it.
        ways[0].after(device_for(c)?)?;
        Ok(Fused {
            products: Products::new(c, dtype, transposed, allow_tf32)?,
            ways,
            own: Own::new(dtype, transposed, rest(0)),
        })
    }

    /// Enqueues a product of these sizes and its steps.
    ///
    /// # Errors
    /// Out of memory; the error of the library, the driver or the compiler.
    pub fn run(
        &self,
        launch: &Launch<'_>,
        g: &MatMulGeometry,
        operands: [Operand; 3],
        arguments: Arguments,
    ) -> Result<(), KernelError> {
        for way in &self.ways {
            if self.products.run(launch, g, &Run::ONE, operands, (way.ending, &arguments))? {
                return match way.after(launch.device())? {
                    Some(after) => after.run(launch, operands[2], g.n, arguments),
                    None => Ok(()),
                };
            }
        }
        self.own.run(launch, &Product::new(g)?, operands, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_adds_and_does_the_approximation_of_gelu_and_nothing_else() {
        use EpilogueStep::*;
        let ending = |epilogue, bias, added| Ending { epilogue, added, bias };
        let of = |steps: &[EpilogueStep]| ending_of(steps, DType::HALF, false);
        let gelu = Epilogue::BiasGeluByTanh;
        assert_eq!(of(&[BiasAdd, GeluApproximate]), (ending(gelu, Some(0), None), 2));
        assert_eq!(of(&[BiasAdd, GeluExact]), (ending(Epilogue::Bias, Some(0), None), 1));
        assert_eq!(of(&[BiasAdd, Relu]), (ending(Epilogue::Bias, Some(0), None), 1));
        assert_eq!(of(&[BiasAdd, Add, Relu]), (ending(Epilogue::Bias, Some(0), Some(1)), 2));
        assert_eq!(of(&[Add, BiasAdd]), (ending(Epilogue::None, None, Some(0)), 1));
        assert_eq!(of(&[Relu, BiasAdd]), (Ending::NONE, 0));
        assert_eq!(ending_of(&[BiasAdd, Add], DType::DOUBLE, true), (Ending::NONE, 0));
        let added = (ending(Epilogue::None, None, Some(0)), 1);
        assert_eq!(ending_of(&[Add, Relu], DType::DOUBLE, true), added);
    }

    #[test]
    fn a_relu_is_the_librarys_where_that_is_asked_for() {
        use EpilogueStep::*;
        let of = |steps: &[EpilogueStep]| {
            let (ending, done) = ending_of(steps, DType::FLOAT, true);
            (ending.epilogue, done)
        };
        assert_eq!(of(&[BiasAdd, Relu]), (Epilogue::BiasRelu, 2));
        assert_eq!(of(&[BiasAdd, Add, Relu, Tanh]), (Epilogue::BiasRelu, 3));
        assert_eq!(of(&[Relu]), (Epilogue::Relu, 1));
        assert_eq!(of(&[BiasAdd, Relu6]), (Epilogue::Bias, 1));
    }
}
