//! Parameters of quantised ops besides their factors: scales, zero points, bias, and the output's
//! type.

use crate::{
    depthwise::Filter,
    isa::Isa,
    kept::{Form, KeptStage, KeptTerms, Room},
    output::Width,
    product::{Right, flip},
};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext},
    element::Element,
    fixed_point::{Activation, Depth, FixedPointError, QuantizedRange, Scale, ZeroPoint},
    geometry::GeometryError,
};

/// Positions of the inputs.
const A_SCALE: usize = 2;
const A_ZERO_POINT: usize = 3;
const B_SCALE: usize = 4;
const B_ZERO_POINT: usize = 5;
const OUT_SCALE: usize = 6;
const OUT_ZERO_POINT: usize = 7;
const BIAS: usize = 8;

/// Names of the scales and zero points of both factors, inputs 2 to 5.
pub type Names = [&'static str; 4];

/// The attributes.
#[derive(Debug, Clone, Copy)]
pub struct Attributes {
    names: Names,
    /// Types of the factors.
    pub types: [DType; 2],
    out: DType,
    in_fixed_point: bool,
    activation: Activation,
}

impl Attributes {
    /// Reads the attributes of an op whose inputs have these names.
    ///
    /// # Errors
    /// An activation that the output's type does not support.
    pub fn new(c: &CreateContext<'_>, names: Names) -> Result<Attributes, KernelError> {
        let bounds = [c.attr("clamp_min")?, c.attr("clamp_max")?];
        let name: &str = c.attr("activation")?;
        let activation = Activation::parse(name, bounds)?;
        let out = c.attr("Tout")?;
        let bounds_sums = matches!(activation, Activation::Relu6 | Activation::Clamp { .. });
        if out == DType::QINT32 && bounds_sums {
            return Err(KernelError::invalid_argument(format!(
                "activation {name} needs the output's scale, which sums (Tout = qint32) have not: use NONE or RELU"
            )));
        }
        Ok(Attributes {
            names,
            types: [c.attr("Ta")?, c.attr("Tb")?],
            out,
            in_fixed_point: c.attr::<&str>("requantize")? == "FIXED_POINT",
            activation,
        })
    }

    /// The XOR masks that convert the factors' values to those that an instruction set packs.
    pub fn flips(&self, isa: &Isa) -> [u8; 2] {
        [flip(isa, self.types[0], true), flip(isa, self.types[1], false)]
    }
}

/// The parameters of one call, checked.
#[derive(Debug, Clone, Copy)]
pub struct Parameters<'a> {
    attributes: Attributes,
    a_scale: f32,
    a_zero_point: i32,
    b_scale: &'a [f32],
    b_zero_point: &'a [i32],
    out_scale: f32,
    out_zero_point: i32,
    bias: &'a [i32],
}

fn scalar<T: Element>(
    c: &ComputeContext<'_>,
    input: usize,
    what: &'static str,
) -> Result<T, KernelError> {
    let view = c.input::<T>(input)?;
    let found = view.dims.len();
    match *view.data {
        [value] if found == 0 => Ok(value),
        _ => Err(GeometryError::Rank { what, expected: 0, found }.into()),
    }
}

/// One value for each of `columns` columns, or, where `may_be_scalar`, one for all.
fn vector<'a, T: Element>(
    c: &ComputeContext<'a>,
    input: usize,
    what: &'static str,
    columns: usize,
    may_be_scalar: bool,
) -> Result<&'a [T], KernelError> {
    let view = c.input::<T>(input)?;
    match *view.dims {
        [] if may_be_scalar => Ok(view.data),
        [found] if found == columns as i64 => Ok(view.data),
        [found] => Err(GeometryError::Length {
            what,
            expected: columns,
            found: found.try_into().unwrap_or(0),
        }
        .into()),
        _ => Err(GeometryError::Rank { what, expected: 1, found: view.dims.len() }.into()),
    }
}

impl<'a> Parameters<'a> {
    /// Reads the parameters of a product of `depth` terms and `columns` columns.
    ///
    /// # Errors
    /// A vector of the wrong length, a zero point outside its type, a product too deep for 32 bits.
    /// Scales are checked when they are used.
    pub fn read(
        c: &ComputeContext<'a>,
        attributes: Attributes,
        [depth, columns]: [usize; 2],
    ) -> Result<Parameters<'a>, KernelError> {
        let bias = match c.input_count() - BIAS {
            0 => &[],
            1 => vector::<i32>(c, BIAS, "bias", columns, false)?,
            found => {
                let what = "the list of biases (num_bias)";
                return Err(GeometryError::Length { what, expected: 1, found }.into());
            }
        };
        let [a_scale, a_zero_point, b_scale, b_zero_point] = attributes.names;
        let p = Parameters {
            attributes,
            a_scale: scalar(c, A_SCALE, a_scale)?,
            a_zero_point: scalar(c, A_ZERO_POINT, a_zero_point)?,
            b_scale: vector(c, B_SCALE, b_scale, columns, true)?,
            b_zero_point: vector(c, B_ZERO_POINT, b_zero_point, columns, true)?,
            out_scale: scalar(c, OUT_SCALE, "out_scale")?,
            out_zero_point: scalar(c, OUT_ZERO_POINT, "out_zero_point")?,
            bias,
        };
        p.limits()?.check(depth)?;
        Ok(p)
    }

    /// The limits on the magnitudes of the terms.
    fn limits(&self) -> Result<Depth, FixedPointError> {
        let Attributes { types: [left, right], names: [_, a_zero_point, _, b_zero_point], .. } =
            self.attributes;
        let reach = |what, dtype, zero| ZeroPoint::new(what, dtype, zero).map(ZeroPoint::reach);
        let mut depth = Depth {
            left: reach(a_zero_point, left, self.a_zero_point)?,
            right: 0,
            bias: self.bias.iter().map(|bias| bias.unsigned_abs()).max().unwrap_or(0).into(),
        };
        for &zero in self.b_zero_point {
            depth.right = depth.right.max(reach(b_zero_point, right, zero)?);
        }
        Ok(depth)
    }

    /// The left zero point as a byte of its type.
    pub fn left_zero(&self) -> u8 {
        self.a_zero_point as u8
    }

    /// The right factor with the zero points and the bias.
    pub fn filter<'b>(&'b self, data: &'b [u8]) -> Filter<'b> {
        Filter {
            data,
            dtype: self.attributes.types[1],
            zeros: self.b_zero_point,
            left_zero: self.a_zero_point,
            bias: self.bias,
        }
    }

    /// Writes an output of these dimensions, one of which is 0.
    ///
    /// # Errors
    /// As [`Parameters::stage`].
    pub fn compute_nothing(&self, c: &ComputeContext<'a>, dims: &[i64]) -> Result<(), KernelError> {
        self.stage(c, self.b_scale.len())?;
        c.output_bytes(0, dims).map(drop)
    }

    /// The initial values of sums.
    ///
    /// # Errors
    /// Out of memory.
    pub fn terms<R: Room>(
        &self,
        room: &R,
        right: Right<'_>,
    ) -> Result<KeptTerms<R::Memory>, KernelError> {
        let types = self.attributes.types;
        KeptTerms::new(room, right, types, (self.a_zero_point, self.b_zero_point), self.bias)
    }

    /// The output stage for these columns, including those that fill the last panel.
    ///
    /// # Errors
    /// A scale that is invalid or too far from 1; a zero point outside the output's type; out of
    /// memory.
    pub fn stage<R: Room>(
        &self,
        room: &R,
        columns: usize,
    ) -> Result<KeptStage<R::Memory>, KernelError> {
        let Attributes { out, activation, in_fixed_point, .. } = self.attributes;
        let (form, over) = match out {
            DType::QINT32 => {
                let low = if activation == Activation::Relu { 0 } else { i32::MIN };
                (Form::Sums([low, i32::MAX]), 1.0)
            }
            DType::FLOAT => (Form::Real(activation.bounds()), 1.0),
            _ => {
                let (scale, zero) = (self.out_scale, self.out_zero_point);
                let range = QuantizedRange::new(activation, out, scale, zero)?;
                let width = if out == DType::QINT16 { Width::Word } else { Width::Byte };
                let form = if in_fixed_point { Form::Fixed } else { Form::Float };
                (form(range, width), scale)
            }
        };
        let scales = self.b_scale.len();
        KeptStage::new(room, form, columns, scales, |at| self.scale_over(at, over))
    }

    fn scale_over(&self, column: usize, out: f32) -> Result<Scale, KernelError> {
        let scale = self.b_scale.get(column).or(self.b_scale.first()).unwrap_or(&1.0);
        let [a_name, _, b_name, _] = self.attributes.names;
        Ok(Scale::requantize([a_name, b_name], self.a_scale, *scale, out)?)
    }
}
