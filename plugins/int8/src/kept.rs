//! Terms and stages together with their memory: scratch memory of a call, or memory of their own,
//! so that they can be kept for later calls.

use crate::{
    output::{Multipliers, Scales, Slopes, Stage, Terms, Width, column_terms},
    product::{Right, flip, flipped_zero},
    spread::too_large,
};
use std::ops::DerefMut;
use tenon_sdk::{
    DType, KernelError,
    author::ComputeContext,
    fixed_point::{Multiplier, QuantizedRange, Scale},
    growth,
};

/// A source of memory.
pub trait Room {
    /// The memory of numbers.
    type Memory: DerefMut<Target = [i32]>;

    /// `count` numbers, all 0.
    ///
    /// # Errors
    /// Out of memory.
    fn zeros(&self, count: usize) -> Result<Self::Memory, KernelError>;
}

/// Provides scratch memory of the call.
impl<'a> Room for ComputeContext<'a> {
    type Memory = &'a mut [i32];

    fn zeros(&self, count: usize) -> Result<&'a mut [i32], KernelError> {
        self.scratch_slice(count)
    }
}

/// Provides heap memory, which can be kept.
pub struct Heap;

impl Room for Heap {
    type Memory = Vec<i32>;

    fn zeros(&self, count: usize) -> Result<Vec<i32>, KernelError> {
        growth::filled(count, 0)
    }
}

/// Two numbers for each column: all first numbers, then all second ones.
fn pairs<R: Room>(room: &R, columns: usize) -> Result<R::Memory, KernelError> {
    room.zeros(columns.checked_mul(2).ok_or_else(too_large)?)
}

fn halves(memory: &mut [i32]) -> (&mut [i32], &mut [i32]) {
    memory.split_at_mut(memory.len() / 2)
}

/// Zero points of unpacked factors: the left one, and on the right one, or one for each column.
pub type ZeroPoints<'a> = (i32, &'a [i32]);

/// [`Terms`] with their memory.
pub struct KeptTerms<M> {
    /// Terms, and slopes unless one applies to all columns.
    memory: M,
    slope: Option<i32>,
}

impl<M: DerefMut<Target = [i32]>> KeptTerms<M> {
    /// The initial sums of a product of these types, with a bias for each column or none.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(
        room: &impl Room<Memory = M>,
        right: Right<'_>,
        types: [DType; 2],
        (left_zero, right_zeros): ZeroPoints<'_>,
        bias: &[i32],
    ) -> Result<KeptTerms<M>, KernelError> {
        let isa = right.isa();
        let flips = [flip(isa, types[0], true), flip(isa, types[1], false)];
        let left_zero = flipped_zero(left_zero, types[0], flips[0]);
        let slope = |zero: &i32| flipped_zero(*zero, types[1], flips[1]).wrapping_neg();
        let same = right_zeros.iter().all(|zero| *zero == right_zeros[0]);
        let mut memory = pairs(room, right.padded_columns())?;
        let (columns, slopes) = halves(&mut memory);
        let one = same.then(|| right_zeros.first().map_or(0, slope));
        slopes.iter_mut().zip(right_zeros).for_each(|(to, zero)| *to = slope(zero));
        let slopes = one.map_or(Slopes::Each(slopes), Slopes::One);
        column_terms(right, left_zero, slopes, bias, columns);
        Ok(KeptTerms { memory, slope: one })
    }

    /// The terms.
    pub fn view(&self) -> Terms<'_> {
        let (columns, slopes) = self.memory.split_at(self.memory.len() / 2);
        Terms { columns, slopes: self.slope.map_or(Slopes::Each(slopes), Slopes::One) }
    }
}

/// [`Stage`] with its memory.
pub struct KeptStage<M> {
    /// Scales, or mantissas and exponents.
    memory: M,
    form: Form,
    /// [`Scales::are_small`].
    are_small: bool,
}

/// The stage and its parameters, without numbers of columns.
#[derive(Clone, Copy)]
pub enum Form {
    /// [`Stage::Sums`].
    Sums([i32; 2]),
    /// [`Stage::Real`].
    Real([f32; 2]),
    /// [`Stage::Float`].
    Float(QuantizedRange, Width),
    /// [`Stage::Fixed`].
    Fixed(QuantizedRange, Width),
}

impl<M: DerefMut<Target = [i32]>> KeptStage<M> {
    /// A stage for the padded columns, of which the first have their own scales, or all have that
    /// of the first.
    ///
    /// # Errors
    /// An error of `scale`; a scale that the stage does not support; out of memory.
    pub fn new(
        room: &impl Room<Memory = M>,
        form: Form,
        columns: usize,
        scales: usize,
        scale: impl Fn(usize) -> Result<Scale, KernelError>,
    ) -> Result<KeptStage<M>, KernelError> {
        let mut memory = match form {
            Form::Sums(_) => room.zeros(0)?,
            _ => pairs(room, columns)?,
        };
        let (first, second) = halves(&mut memory);
        let pair = |at: usize| -> Result<(i32, i32), KernelError> {
            let scale = scale(at)?;
            let bits = |scale: f32| (scale.to_bits().cast_signed(), 0);
            Ok(match form {
                Form::Sums(_) => (0, 0),
                Form::Real(_) => bits(scale.as_real()?),
                Form::Float(..) => bits(scale.as_float()?),
                Form::Fixed(..) => {
                    let by = Multiplier::new(scale)?;
                    (by.mantissa(), by.exponent())
                }
            })
        };
        let (a, b) = pair(0)?;
        first.fill(a);
        second.fill(b);
        for at in 1..scales {
            let (a, b) = pair(at)?;
            first.get_mut(at).into_iter().for_each(|to| *to = a);
            second.get_mut(at).into_iter().for_each(|to| *to = b);
        }
        let are_small = Scales::new(bytemuck::cast_slice(first)).are_small;
        Ok(KeptStage { memory, form, are_small })
    }

    /// The stage.
    pub fn view(&self) -> Stage<'_> {
        let (first, second) = self.memory.split_at(self.memory.len() / 2);
        match self.form {
            Form::Sums(bounds) => Stage::Sums(bounds),
            Form::Real(bounds) => Stage::Real(bytemuck::cast_slice(first), bounds),
            Form::Float(range, width) => {
                let each = bytemuck::cast_slice(first);
                Stage::Float(Scales { each, are_small: self.are_small }, range, width)
            }
            Form::Fixed(range, width) => {
                Stage::Fixed(Multipliers { mantissas: first, exponents: second }, range, width)
            }
        }
    }
}
