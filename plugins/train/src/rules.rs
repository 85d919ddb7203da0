//! The formulas.
//!
//! A rule says how one element of the variables changes by one element of the gradient. The formulas
//! and the order of their operations are those of TensorFlow's kernels, so that the results are the
//! same bits; where its rows have other formulas than its whole variables, there are two rules.

pub mod adaptive;
pub mod descent;
pub mod proximal;
pub mod sign;

use tenon_sdk::prelude::*;

/// The most variables that a rule has.
pub const MOST: usize = 4;

/// What a call gives a rule beside variables and gradient.
pub struct Given<W> {
    /// The scalar inputs, in the order of [`Rule::SCALARS`].
    pub scalars: [W; 8],
    /// Input `global_step`, or 0.
    pub step: i64,
    /// Attribute [`Rule::FLAG`], or false.
    pub flag: bool,
    /// Whether the gradient is one of rows of one element.
    pub is_single: bool,
}

/// A rule over numbers of this type.
pub trait Rule<W>: Copy + Send + Sync + 'static {
    /// The scalar inputs.
    const SCALARS: &'static [&'static str];
    /// The attribute of type bool that changes the rule.
    const FLAG: Option<&'static str> = None;
    /// Whether it has an input `global_step`.
    const HAS_STEP: bool = false;
    /// Nanoseconds for an element beside those of its memory.
    const COST_NS: f64 = 0.3;

    /// The rule with these scalars.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a scalar that the op refuses.
    fn new(given: &Given<W>) -> Result<Self, KernelError>;

    /// The elements of the variables after an update; what is beyond the rule's variables is passed on.
    fn update(&self, variables: [W; MOST], gradient: W) -> [W; MOST];

    /// The same for an element of an incomplete packet at the end ([`Lane::PACKET`]).
    #[inline(always)]
    fn update_rest(&self, variables: [W; MOST], gradient: W) -> [W; MOST] {
        self.update(variables, gradient)
    }
}

/// A rule for elements of an incomplete packet.
#[derive(Clone, Copy)]
pub struct OfRest<R>(pub R);

impl<W, R: Rule<W>> Rule<W> for OfRest<R> {
    const SCALARS: &'static [&'static str] = R::SCALARS;
    const FLAG: Option<&'static str> = R::FLAG;
    const HAS_STEP: bool = R::HAS_STEP;
    const COST_NS: f64 = R::COST_NS;

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        Ok(OfRest(R::new(given)?))
    }

    #[inline(always)]
    fn update(&self, variables: [W; MOST], gradient: W) -> [W; MOST] {
        self.0.update_rest(variables, gradient)
    }
}

/// Implements both updates of a rule by its method `step`, which takes the function for reciprocal
/// roots.
macro_rules! by_root {
    () => {
        #[inline(always)]
        fn update(&self, variables: [W; MOST], gradient: W) -> [W; MOST] {
            self.step(variables, gradient, W::rsqrt)
        }

        #[inline(always)]
        fn update_rest(&self, variables: [W; MOST], gradient: W) -> [W; MOST] {
            self.step(variables, gradient, W::rsqrt_of_rounded)
        }
    };
}
use by_root;
