//! Quantised numbers: conversion of real numbers to codes and back, and ops on codes.
//!
//! A code is an integer of a quantised type. Two further float tensors hold the ends of the range,
//! which determine the real number that each code represents.

mod convert;
mod elements;
mod fake;
mod requantize;
mod windows;

use crate::shape::input_of_rank;
use tenon_author::{ShapeContext, ShapeResult};

/// The position and the name of an input.
type Named = (usize, &'static str);

/// Checks that these inputs are scalars, as far as their ranks are known.
fn check_scalars(c: &ShapeContext<'_>, inputs: &[Named]) -> ShapeResult {
    inputs.iter().try_for_each(|&(input, what)| input_of_rank(c, input, what, 0).map(drop))
}

/// Makes the outputs from number `first` on scalars: the ends of a range.
fn scalar_outputs(c: &ShapeContext<'_>, first: usize) -> ShapeResult {
    (first..c.output_count()).try_for_each(|output| c.set_output(output, c.scalar()))
}

/// The first output has the shape of the first input; the ranges of both are scalars.
fn unchanged_with_range(c: &ShapeContext<'_>, range: &[Named]) -> ShapeResult {
    check_scalars(c, range)?;
    c.set_output(0, c.input(0))?;
    scalar_outputs(c, 1)
}

#[cfg(test)]
mod tests;
