//! What ops of handles and of references have in common: where their inputs are, and what is checked.

use crate::{
    lane::Trained,
    rules::{Given, Rule},
};
use tenon_sdk::{
    author::{StateContext, Var},
    prelude::*,
};

/// How an op reaches its variables.
pub trait Door: 'static {
    /// Whether calls that update rows do so at the same time, unless the op says `use_locking`.
    const SHARES_ROWS: bool;

    /// The variable that is an input.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the input is not a variable.
    fn variable<'a>(state: &StateContext<'a>, input: usize) -> Result<Var<'a>, KernelError>;

    /// Gives the output after an update.
    ///
    /// # Errors
    /// `INTERNAL` when the output is not of the op's type.
    fn finish(state: &StateContext<'_>, variable: &Var<'_>) -> Result<(), KernelError>;
}

/// By handles.
pub struct Handle;
/// By references.
pub struct Reference;

impl Door for Handle {
    const SHARES_ROWS: bool = true;

    fn variable<'a>(state: &StateContext<'a>, input: usize) -> Result<Var<'a>, KernelError> {
        state.input_variable(input)
    }

    fn finish(_: &StateContext<'_>, _: &Var<'_>) -> Result<(), KernelError> {
        Ok(())
    }
}

impl Door for Reference {
    const SHARES_ROWS: bool = false;

    fn variable<'a>(state: &StateContext<'a>, input: usize) -> Result<Var<'a>, KernelError> {
        state.input_ref(input)
    }

    fn finish(state: &StateContext<'_>, variable: &Var<'_>) -> Result<(), KernelError> {
        state.output_ref(variable, 0)
    }
}

/// Where the inputs of a node are.
pub struct Inputs {
    /// The names of the variables.
    variables: Vec<String>,
    /// The scalars, in the order of [`Rule::SCALARS`].
    scalars: Vec<usize>,
    step: Option<usize>,
    /// The gradient.
    pub gradient: usize,
    /// The attribute [`Rule::FLAG`].
    flag: bool,
    /// The attribute `use_locking`.
    pub use_locking: bool,
}

impl Inputs {
    /// The inputs of a node whose op has this rule, and that many variables.
    ///
    /// # Errors
    /// `INTERNAL` when the op lacks one of them.
    pub fn new<W, R: Rule<W>>(
        c: &CreateContext<'_>,
        variables: usize,
    ) -> Result<Inputs, KernelError> {
        let names = c.input_args();
        let find = |name: &str| c.input_named(name).map(|range| range.start);
        let gradient = if names.contains(&"delta") { "delta" } else { "grad" };
        Ok(Inputs {
            variables: names.iter().take(variables).map(|name| (*name).to_owned()).collect(),
            scalars: R::SCALARS.iter().map(|name| find(name)).collect::<Result<_, _>>()?,
            step: R::HAS_STEP.then(|| find("global_step")).transpose()?,
            gradient: find(gradient)?,
            flag: R::FLAG.map_or(Ok(false), |name| c.attr(name))?,
            use_locking: c.attr("use_locking")?,
        })
    }

    /// The rule of a call.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an input of another shape than a scalar, and for a scalar that the rule refuses.
    pub fn rule<T: Trained, R: Rule<T::Lane>>(
        &self,
        c: &ComputeContext<'_>,
        is_single: bool,
    ) -> Result<R, KernelError> {
        let mut scalars = [T::default().up(); 8];
        for ((value, &input), name) in scalars.iter_mut().zip(&self.scalars).zip(R::SCALARS) {
            *value = scalar::<T>(c, input, name)?.up();
        }
        let step = self.step.map_or(Ok(0), |input| scalar::<i64>(c, input, "global_step"))?;
        R::new(&Given { scalars, step, flag: self.flag, is_single })
    }

    /// Checks that the variables have one shape.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when they have not.
    pub fn check_shapes(&self, shapes: &[&[i64]]) -> Result<(), KernelError> {
        let (Some(first), Some(name)) = (shapes.first(), self.variables.first()) else {
            return Ok(());
        };
        for (other, shape) in self.variables.iter().zip(shapes).skip(1) {
            same_shape(name, first, other, shape)?;
        }
        Ok(())
    }

    /// The name of the trained variable's input.
    pub fn trained(&self) -> &str {
        self.variables.first().map_or("var", String::as_str)
    }
}

fn scalar<T: Element>(c: &ComputeContext<'_>, input: usize, name: &str) -> Result<T, KernelError> {
    let value = c.input::<T>(input)?;
    match (value.data, value.dims) {
        (&[value], []) => Ok(value),
        (_, dims) => Err(KernelError::invalid_argument(format!(
            "{name} is not a scalar: found shape {dims:?}"
        ))),
    }
}

/// Checks that two arguments have one shape.
///
/// # Errors
/// `INVALID_ARGUMENT` when they have not.
pub fn same_shape(
    name: &str,
    shape: &[i64],
    other: &str,
    other_shape: &[i64],
) -> Result<(), KernelError> {
    if shape == other_shape {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "{name} and {other} do not have the same shape: {shape:?} and {other_shape:?}"
    )))
}

/// As many values as there are variables, each made for its position.
///
/// # Errors
/// The first error of `make`.
pub fn each<V, const N: usize>(
    mut make: impl FnMut(usize) -> Result<V, KernelError>,
) -> Result<[V; N], KernelError> {
    let mut values = [const { None }; N];
    for (at, value) in values.iter_mut().enumerate() {
        *value = Some(make(at)?);
    }
    Ok(values.map(|value| value.expect("the loop above has filled it")))
}

/// Registers the ops of rules for a type of kernels, by handles and by references.
macro_rules! kernels {
    ($kernel:ident: $($rule:ident $variables:literal: $handle:literal $(, $reference:literal)? for $types:tt;)*) => {$(
        const _: () = {
            type OfHandles<T> = $kernel<Handle, T, $rule<<T as Trained>::Lane>, $variables>;
            register_kernel!($handle on "CPU": OfHandles<T> for "T" in $types);
            $(
                type OfReferences<T> = $kernel<Reference, T, $rule<<T as Trained>::Lane>, $variables>;
                register_kernel!($reference on "CPU": OfReferences<T> for "T" in $types);
            )?
        };
    )*};
}

pub(crate) use kernels;

/// Nanoseconds for the memory of an element: each variable is read and written, the gradient is read.
pub fn memory_ns<T>(variables: usize) -> f64 {
    /// What one thread moves in a nanosecond.
    const BYTES: f64 = 10.0;
    ((2 * variables + 1) * size_of::<T>()) as f64 / BYTES
}
