//! A product with all its parameters: the common part of fused matrix products and convolutions.

use super::parameters::{Attributes, Names, Parameters};
use crate::{
    constant::{Constants, RightFactor},
    isa::chosen,
    kept::{Heap, KeptStage, KeptTerms, Room},
    pack::Left,
    product::{Product, Right},
    spread::compute,
};
use std::ops::DerefMut;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Packed},
};

/// Index of the first parameter; the inputs before are the factors.
pub const PARAMETERS: usize = 2;

/// The state of a kernel.
pub struct FusedProduct {
    attributes: Attributes,
    left_flip: u8,
    /// The right factor.
    pub right: RightFactor,
    constants: Constants<Ready<Vec<i32>>>,
}

/// Data of a product besides its factors.
struct Ready<M> {
    terms: KeptTerms<M>,
    stage: KeptStage<M>,
    left_zero: u8,
}

impl<M: DerefMut<Target = [i32]>> Ready<M> {
    fn new(
        room: &impl Room<Memory = M>,
        parameters: &Parameters<'_>,
        right: Right<'_>,
    ) -> Result<Ready<M>, KernelError> {
        let terms = parameters.terms(room, right)?;
        let stage = parameters.stage(room, right.padded_columns())?;
        Ok(Ready { terms, stage, left_zero: parameters.left_zero() })
    }
}

impl FusedProduct {
    /// Reads the attributes of an op whose parameters have these names; if the right factor is
    /// transposed, its columns are lines.
    ///
    /// # Errors
    /// As [`Attributes::new`]; an instruction set that this CPU does not have.
    pub fn new(
        c: &CreateContext<'_>,
        names: Names,
        transposed: bool,
    ) -> Result<FusedProduct, KernelError> {
        let (isa, attributes) = (chosen(c.knobs())?, Attributes::new(c, names)?);
        let [left_flip, right_flip] = attributes.flips(isa);
        let right = RightFactor::new(isa, right_flip, transposed);
        Ok(FusedProduct { attributes, left_flip, right, constants: Constants::new() })
    }

    /// Receives the packed form of an input.
    pub fn attach(&mut self, input: usize, packed: &Packed) {
        self.right.attach(input, packed);
        self.constants.attach(input);
    }

    /// Computes the output of these dimensions, of a product with these numbers of terms and
    /// columns. `left` creates the left factor from the code of 0 and the XOR mask for its values.
    ///
    /// # Errors
    /// Parameters that are invalid or do not match the factors; out of memory; an error of `left`.
    pub fn compute<'a>(
        &self,
        c: &ComputeContext<'a>,
        sizes: [usize; 2],
        dims: &[i64],
        left: impl FnOnce(u8, u8) -> Result<Left<'a>, KernelError>,
    ) -> Result<(), KernelError> {
        if let Some(ready) = self.constants.kept() {
            return self.run(c, dims, left, self.right.get(c, sizes)?, ready);
        }
        let parameters = Parameters::read(c, self.attributes, sizes)?;
        if dims.contains(&0) {
            return parameters.compute_nothing(c, dims);
        }
        let right = self.right.get(c, sizes)?;
        if self.constants.has(1..c.input_count()) {
            let ready = Ready::new(&Heap, &parameters, right)?;
            return self.run(c, dims, left, right, self.constants.keep(ready));
        }
        self.run(c, dims, left, right, &Ready::new(c, &parameters, right)?)
    }

    fn run<'a, M: DerefMut<Target = [i32]>>(
        &self,
        c: &ComputeContext<'a>,
        dims: &[i64],
        left: impl FnOnce(u8, u8) -> Result<Left<'a>, KernelError>,
        right: Right<'_>,
        ready: &Ready<M>,
    ) -> Result<(), KernelError> {
        let y = c.output_bytes(0, dims)?;
        if y.is_empty() {
            return Ok(());
        }
        let left = left(ready.left_zero, self.left_flip)?;
        compute(c, &Product::new(left, right, ready.terms.view(), ready.stage.view(), y))
    }
}
