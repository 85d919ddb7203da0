//! Windows that slide over one spatial dimension, with TensorFlow's formulas.
//!
//! The dilated window spans `span = (kernel - 1) * dilation + 1` inputs. With division rounding towards 0:
//! - `SAME`: `output = ceil(input / stride)`, `pads = max((output - 1) * stride + span - input, 0)`, of which
//!   `pads / 2` come before and the rest after;
//! - `VALID`: `output = (input - span + stride) / stride`, no pads;
//! - explicit: as `VALID`, with `input + before + after` for `input`.
//!
//! Output `o` reads inputs `o * stride - pad_before + k * dilation` for `k` below `kernel`, as far
//! as they exist.
//!
//! A window that is too large by less than a stride gives 0 outputs, as in TensorFlow's kernels;
//! larger ones are errors. If the sizes are known before a call, TensorFlow's shape functions
//! refuse every window that is too large, and so does [`WindowDim::check_fits`].

use crate::error::{GeometryError, Result};
use crate::format::Padding;
use std::ops::Range;

/// Names of the spatial dimensions of `N`, in their order.
pub(crate) const fn dim_names<const N: usize>() -> [&'static str; N] {
    const ALL: [&str; 3] = ["planes", "rows", "columns"];
    let mut names = [ALL[2]; N];
    let mut at = 0;
    while at < N {
        names[at] = ALL[at + ALL.len() - N];
        at += 1;
    }
    names
}

/// Padding of one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DimPadding {
    /// Padding computed for `ceil(input / stride)` outputs.
    Same,
    /// No padding.
    Valid,
    /// Padding as given.
    Explicit {
        /// Zeros before the first input.
        before: i64,
        /// Zeros after the last input.
        after: i64,
    },
}

/// One spatial dimension of a convolution or pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowDim {
    /// The name of the dimension in messages.
    pub name: &'static str,
    /// Inputs; -1 if unknown.
    pub input: i64,
    /// Taps of the window; -1 if unknown.
    pub kernel: i64,
    /// Inputs between neighbouring windows.
    pub stride: i64,
    /// Inputs between neighbouring taps.
    pub dilation: i64,
    /// Padding before the first input; -1 if it depends on something unknown.
    pub pad_before: i64,
    /// Padding after the last input; -1 if it depends on something unknown.
    pub pad_after: i64,
    /// Outputs; -1 if they depend on something unknown.
    pub output: i64,
}

impl WindowDim {
    /// One input, one tap, one output: in place of a missing dimension.
    pub const ONE: WindowDim = WindowDim {
        name: "planes",
        input: 1,
        kernel: 1,
        stride: 1,
        dilation: 1,
        pad_before: 0,
        pad_after: 0,
        output: 1,
    };

    /// Computes padding and outputs. `input` and `kernel` may be -1 (unknown).
    ///
    /// Fails if `kernel`, `stride` or `dilation` is below 1, a pad is negative, the window is too
    /// large by a stride or more, or a number overflows.
    pub fn new(
        name: &'static str,
        input: i64,
        kernel: i64,
        stride: i64,
        dilation: i64,
        padding: DimPadding,
    ) -> Result<WindowDim> {
        at_least("a size of the input", 0, if input == -1 { 0 } else { input })?;
        at_least(
            "a size of the window (filter or ksize)",
            1,
            if kernel == -1 { 1 } else { kernel },
        )?;
        at_least("strides in space", 1, stride)?;
        at_least("dilations in space", 1, dilation)?;
        if let DimPadding::Explicit { before, after } = padding {
            at_least("explicit_paddings", 0, before.min(after))?;
        }
        let (pad_before, pad_after, output) = (0, 0, -1);
        let mut window =
            WindowDim { name, input, kernel, stride, dilation, pad_before, pad_after, output };
        window.solve(padding)?;
        Ok(window)
    }

    /// Refuses a window larger than the padded input, if both are known. Computed pads, as for
    /// [`Padding::Same`], always suffice.
    pub fn check_fits(&self, padding: Padding) -> Result<()> {
        if padding == Padding::Same || self.input < 0 || self.kernel < 1 {
            return Ok(());
        }
        let padding = i128::from(self.pad_before) + i128::from(self.pad_after);
        match i128::from(self.input) + padding < self.span() {
            true => Err(self.window_too_large(padding)),
            false => Ok(()),
        }
    }

    fn solve(&mut self, padding: DimPadding) -> Result<()> {
        let known = self.input >= 0 && self.kernel >= 1;
        match padding {
            DimPadding::Same => {
                if self.input >= 0 {
                    self.output =
                        self.input / self.stride + i64::from(self.input % self.stride != 0);
                }
                (self.pad_before, self.pad_after) = (-1, -1);
                if known {
                    let needed = i128::from(self.output - 1) * i128::from(self.stride)
                        + self.span()
                        - i128::from(self.input);
                    let needed = i64::try_from(needed.max(0)).map_err(|_| self.too_large())?;
                    self.pad_before = needed / 2;
                    self.pad_after = needed - needed / 2;
                }
            }
            DimPadding::Valid => {
                self.output = if known { self.fit(0, 0)? } else { -1 };
            }
            DimPadding::Explicit { before, after } => {
                (self.pad_before, self.pad_after) = (before, after);
                self.output = if known { self.fit(before, after)? } else { -1 };
            }
        }
        Ok(())
    }

    /// Outputs of a window over the padded input.
    fn fit(&self, before: i64, after: i64) -> Result<i64> {
        let padding = i128::from(before) + i128::from(after);
        let room = i128::from(self.input) + padding - self.span() + i128::from(self.stride);
        let output = i64::try_from(room / i128::from(self.stride)).map_err(|_| self.too_large())?;
        if output < 0 { Err(self.window_too_large(padding)) } else { Ok(output) }
    }

    fn window_too_large(&self, padding: i128) -> GeometryError {
        GeometryError::WindowTooLarge {
            dim: self.name,
            input: self.input,
            padding: i64::try_from(padding).unwrap_or(i64::MAX),
            window: i64::try_from(self.span()).unwrap_or(i64::MAX),
        }
    }

    fn span(&self) -> i128 {
        i128::from(self.kernel - 1) * i128::from(self.dilation) + 1
    }

    fn too_large(&self) -> GeometryError {
        GeometryError::TooLarge { dims: vec![self.input, self.kernel] }
    }

    /// The input that tap 0 of an output reads; negative if it is in the padding.
    pub fn start(&self, output: usize) -> i64 {
        (output as i64).saturating_mul(self.stride).saturating_sub(self.pad_before)
    }

    /// The input that a tap of an output reads; `None` if it is in the padding.
    pub fn input_at(&self, output: usize, tap: usize) -> Option<usize> {
        let position =
            self.start(output).saturating_add((tap as i64).saturating_mul(self.dilation));
        usize::try_from(position).ok().filter(|_| position < self.input)
    }

    /// The taps of an output that read inputs instead of padding.
    #[inline]
    pub fn taps(&self, output: usize) -> Range<usize> {
        let start = self.start(output);
        let last = (self.kernel - 1).saturating_mul(self.dilation).saturating_add(start);
        if start >= 0 && last < self.input {
            // For most outputs these are all taps, without a division.
            return 0..self.kernel as usize;
        }
        let ceil = |x: i64| if x <= 0 { 0 } else { (x - 1) / self.dilation + 1 };
        let first = ceil(start.saturating_neg()).min(self.kernel);
        let end = ceil(self.input.saturating_sub(start)).clamp(first, self.kernel);
        first as usize..end as usize
    }
}

fn at_least(what: &'static str, least: i64, found: i64) -> Result<()> {
    if found < least { Err(GeometryError::TooSmall { what, least, found }) } else { Ok(()) }
}

/// The padding of the spatial dimension at `dim` of the format, from both attributes.
/// [`check_explicit_paddings`] must have accepted the list.
pub(crate) fn dim_padding(padding: Padding, explicit: &[i64], dim: usize) -> DimPadding {
    match padding {
        Padding::Same => DimPadding::Same,
        Padding::Valid => DimPadding::Valid,
        Padding::Explicit => {
            DimPadding::Explicit { before: explicit[2 * dim], after: explicit[2 * dim + 1] }
        }
    }
}

/// Checks `explicit_paddings`: empty unless the padding is explicit, otherwise a pair per dimension
/// of the format, none negative, and 0 for batch and channels.
pub(crate) fn check_explicit_paddings(
    padding: Padding,
    explicit: &[i64],
    channel: usize,
) -> Result<()> {
    const DIMS: usize = 4;
    if padding != Padding::Explicit {
        return match explicit.len() {
            0 => Ok(()),
            found => Err(GeometryError::UnexpectedExplicitPaddings { found }),
        };
    }
    check_len("explicit_paddings", 2 * DIMS, explicit)?;
    at_least("explicit_paddings", 0, explicit.iter().copied().min().unwrap_or(0))?;
    for (dim, name) in
        [(0, "the explicit padding of the batch"), (channel, "the explicit padding of the depth")]
    {
        let found = explicit[2 * dim].max(explicit[2 * dim + 1]);
        if found != 0 {
            return Err(GeometryError::SizeMismatch { what: name, expected: 0, found });
        }
    }
    Ok(())
}

/// The window of each spatial dimension, created by the function from its index and name.
pub(crate) fn windows<const N: usize>(
    window: impl Fn(usize, &'static str) -> Result<WindowDim>,
) -> Result<[WindowDim; N]> {
    let mut all = [WindowDim::ONE; N];
    for (i, (slot, name)) in all.iter_mut().zip(dim_names::<N>()).enumerate() {
        *slot = window(i, name)?;
    }
    Ok(all)
}

/// Refuses windows larger than the padded input, like [`WindowDim::check_fits`].
pub fn check_windows(windows: &[WindowDim], padding: Padding) -> Result<()> {
    windows.iter().try_for_each(|window| window.check_fits(padding))
}

/// Checks the length of a list.
pub(crate) fn check_len(what: &'static str, expected: usize, list: &[i64]) -> Result<()> {
    if list.len() == expected {
        Ok(())
    } else {
        Err(GeometryError::Length { what, expected, found: list.len() })
    }
}

/// Checks that an attribute with four values is 1 for one dimension.
pub(crate) fn check_one(what: &'static str, dim: &'static str, found: i64) -> Result<()> {
    if found == 1 { Ok(()) } else { Err(GeometryError::NotSpatial { what, dim, found }) }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
