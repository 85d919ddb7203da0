//! The parameters of fused products: checked as in plugins/int8, and converted to values for each
//! column.

use super::product::{Column, Form, Stage};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext},
    element::Element,
    fixed_point::{
        Activation, Depth, FixedPointError, Multiplier, QuantizedRange, Scale, ZeroPoint,
    },
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

/// The attributes of a fused product.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attributes {
    /// Types of the factors.
    pub types: [DType; 2],
    out: DType,
    in_fixed_point: bool,
    activation: Activation,
}

impl Attributes {
    /// Reads the attributes.
    ///
    /// # Errors
    /// An activation that the output's type does not support.
    pub fn new(c: &CreateContext<'_>) -> Result<Attributes, KernelError> {
        let name: &str = c.attr("activation")?;
        let activation = Activation::parse(name, [c.attr("clamp_min")?, c.attr("clamp_max")?])?;
        let out = c.attr("Tout")?;
        let bounds_sums = matches!(activation, Activation::Relu6 | Activation::Clamp { .. });
        if out == DType::QINT32 && bounds_sums {
            return Err(KernelError::invalid_argument(format!(
                "activation {name} needs the output's scale, which sums (Tout = qint32) have not: use NONE or RELU"
            )));
        }
        Ok(Attributes {
            types: [c.attr("Ta")?, c.attr("Tb")?],
            out,
            in_fixed_point: c.attr::<&str>("requantize")? == "FIXED_POINT",
            activation,
        })
    }
}

/// The parameters of one call.
pub(super) struct Parameters<'a> {
    attributes: Attributes,
    a_scale: f32,
    a_zero_point: i32,
    b_scale: &'a [f32],
    b_zero_point: &'a [i32],
    out_scale: f32,
    out_zero_point: i32,
    bias: &'a [i32],
    depth: usize,
}

fn scalar<T: Element>(
    c: &ComputeContext<'_>,
    input: usize,
    what: &'static str,
) -> Result<T, KernelError> {
    let view = c.input::<T>(input)?;
    match (view.data, view.dims) {
        (&[value], []) => Ok(value),
        (_, dims) => Err(GeometryError::Rank { what, expected: 0, found: dims.len() }.into()),
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
        [found] => {
            let found = usize::try_from(found).unwrap_or(0);
            Err(GeometryError::Length { what, expected: columns, found }.into())
        }
        _ => Err(GeometryError::Rank { what, expected: 1, found: view.dims.len() }.into()),
    }
}

/// The value of a column: its own, or the one for all.
fn of_column<T: Copy>(values: &[T], column: usize) -> Option<T> {
    values.get(column).or(values.first()).copied()
}

impl<'a> Parameters<'a> {
    /// Reads the parameters of a product of `depth` terms and `columns` columns.
    ///
    /// # Errors
    /// A vector of the wrong length, a zero point outside its type, a product too deep for 32 bits.
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
        let parameters = Parameters {
            attributes,
            a_scale: scalar(c, A_SCALE, "a_scale")?,
            a_zero_point: scalar(c, A_ZERO_POINT, "a_zero_point")?,
            b_scale: vector(c, B_SCALE, "b_scale", columns, true)?,
            b_zero_point: vector(c, B_ZERO_POINT, "b_zero_point", columns, true)?,
            out_scale: scalar(c, OUT_SCALE, "out_scale")?,
            out_zero_point: scalar(c, OUT_ZERO_POINT, "out_zero_point")?,
            bias,
            depth,
        };
        parameters.limits()?.check(depth)?;
        Ok(parameters)
    }

    /// The limits on the magnitudes of the terms.
    fn limits(&self) -> Result<Depth, FixedPointError> {
        let [left, right] = self.attributes.types;
        let reach = |what, dtype, zero| ZeroPoint::new(what, dtype, zero).map(ZeroPoint::reach);
        let mut depth = Depth {
            left: reach("a_zero_point", left, self.a_zero_point)?,
            right: 0,
            bias: self.bias.iter().map(|bias| bias.unsigned_abs()).max().unwrap_or(0).into(),
        };
        for &zero in self.b_zero_point {
            depth.right = depth.right.max(reach("b_zero_point", right, zero)?);
        }
        Ok(depth)
    }

    /// The left zero point.
    pub fn left_zero(&self) -> i32 {
        self.a_zero_point
    }

    /// The output stage, and the output scale by which sums are divided.
    ///
    /// # Errors
    /// An invalid scale; a zero point outside the output's type.
    fn form(&self) -> Result<(Stage, f32), KernelError> {
        let Attributes { out, activation, in_fixed_point, .. } = self.attributes;
        Ok(match out {
            DType::QINT32 => {
                let low = if activation == Activation::Relu { 0 } else { i32::MIN };
                (Stage { form: Form::Sums, low, high: i32::MAX, zero_point: 0 }, 1.0)
            }
            DType::FLOAT => {
                let [low, high] = activation.bounds().map(|bound| bound.to_bits().cast_signed());
                (Stage { form: Form::Real, low, high, zero_point: 0 }, 1.0)
            }
            _ => {
                let (scale, zero_point) = (self.out_scale, self.out_zero_point);
                let range = QuantizedRange::new(activation, out, scale, zero_point)?;
                let [low, high] = range.steps();
                let form = if in_fixed_point { Form::FixedPoint } else { Form::Float };
                (Stage { form, low, high, zero_point }, scale)
            }
        })
    }

    /// The output stage, and the values for columns: a single one where all are equal.
    ///
    /// # Errors
    /// A scale that is invalid or too far from 1; a zero point outside the output's type.
    pub fn columns(&self) -> Result<(Stage, Vec<Column>), KernelError> {
        let (stage, out) = self.form()?;
        let count = self.b_scale.len().max(self.b_zero_point.len()).max(self.bias.len()).max(1);
        let column = |at| self.column(at, stage.form, out);
        Ok((stage, (0..count).map(column).collect::<Result<_, _>>()?))
    }

    fn column(&self, at: usize, form: Form, out: f32) -> Result<Column, KernelError> {
        let scale = of_column(self.b_scale, at).unwrap_or(1.0);
        let scale = Scale::requantize(["a_scale", "b_scale"], self.a_scale, scale, out)?;
        let (multiplier, exponent) = match form {
            Form::Sums => (0, 0),
            Form::Real => (scale.as_real()?.to_bits().cast_signed(), 0),
            Form::Float => (scale.as_float()?.to_bits().cast_signed(), 0),
            Form::FixedPoint => {
                let by = Multiplier::new(scale)?;
                (by.mantissa(), by.exponent())
            }
        };
        let zero = of_column(self.b_zero_point, at).unwrap_or(0);
        // The depth was checked to fit in 32 bits; the rest is arithmetic modulo 2^32.
        let centre = (self.depth as i32).wrapping_mul(self.a_zero_point).wrapping_mul(zero);
        let bias = of_column(self.bias, at).unwrap_or(0);
        let (base, slope) = (bias.wrapping_add(centre), zero.wrapping_neg());
        Ok(Column { base, slope, multiplier, exponent })
    }
}
