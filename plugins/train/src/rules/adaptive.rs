//! RMSProp, Adam and their kin, and Adadelta. Adagrad is in `adagrad`.

pub mod adagrad;
pub mod adam;

use super::{Given, MOST, Rule, by_root};
use crate::lane::Lane;
use tenon_sdk::prelude::*;

/// `accum = rho accum + (1 - rho) grad^2; u = grad sqrt(accum_update + epsilon) / sqrt(accum + epsilon);
/// var -= lr u; accum_update = rho accum_update + (1 - rho) u^2`.
#[derive(Clone, Copy)]
pub struct Adadelta<W> {
    lr: W,
    rho: W,
    rest: W,
    epsilon: W,
}

impl<W: Lane> Adadelta<W> {
    #[inline(always)]
    fn step(
        &self,
        [var, accum, accum_update, d]: [W; MOST],
        gradient: W,
        rsqrt: impl Fn(W) -> W,
    ) -> [W; MOST] {
        let Adadelta { lr, rho, rest, epsilon } = *self;
        let accum = accum * rho + gradient.square() * rest;
        let update = (accum_update + epsilon).sqrt() * rsqrt(accum + epsilon) * gradient;
        [var - update * lr, accum, accum_update * rho + update.square() * rest, d]
    }
}

impl<W: Lane> Rule<W> for Adadelta<W> {
    const SCALARS: &'static [&'static str] = &["lr", "rho", "epsilon"];

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        let [lr, rho, epsilon, ..] = given.scalars;
        Ok(Adadelta { lr, rho, rest: W::of(1.0) - rho, epsilon })
    }

    by_root!();
}

/// The scalars of RMSProp.
#[derive(Clone, Copy)]
struct OfRms<W> {
    lr: W,
    rho: W,
    rest: W,
    momentum: W,
    epsilon: W,
}

/// The names of those scalars.
const OF_RMS: &[&str] = &["lr", "rho", "momentum", "epsilon"];

impl<W: Lane> OfRms<W> {
    fn new(given: &Given<W>) -> Self {
        let [lr, rho, momentum, epsilon, ..] = given.scalars;
        OfRms { lr, rho, rest: W::of(1.0) - rho, momentum, epsilon }
    }
}

/// `ms += (grad^2 - ms) (1 - rho); mom = mom momentum + lr grad / sqrt(ms + epsilon); var -= mom`.
#[derive(Clone, Copy)]
pub struct RmsProp<W>(OfRms<W>);

impl<W: Lane> Rule<W> for RmsProp<W> {
    const SCALARS: &'static [&'static str] = OF_RMS;

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        Ok(RmsProp(OfRms::new(given)))
    }

    #[inline(always)]
    fn update(&self, [var, ms, mom, d]: [W; MOST], gradient: W) -> [W; MOST] {
        let OfRms { lr, rest, momentum, epsilon, .. } = self.0;
        let ms = ms + (gradient.square() - ms) * rest;
        let mom = mom * momentum + gradient * lr / (ms + epsilon).sqrt();
        [var - mom, ms, mom, d]
    }
}

/// Of rows: `ms = rho ms + (1 - rho) grad^2`; the rest as [`RmsProp`].
#[derive(Clone, Copy)]
pub struct RmsPropRows<W>(OfRms<W>);

impl<W: Lane> RmsPropRows<W> {
    #[inline(always)]
    fn step(&self, [var, ms, mom, d]: [W; MOST], gradient: W, rsqrt: impl Fn(W) -> W) -> [W; MOST] {
        let OfRms { lr, rho, rest, momentum, epsilon } = self.0;
        let ms = ms * rho + gradient.square() * rest;
        let mom = mom * momentum + rsqrt(ms + epsilon) * lr * gradient;
        [var - mom, ms, mom, d]
    }
}

impl<W: Lane> Rule<W> for RmsPropRows<W> {
    const SCALARS: &'static [&'static str] = OF_RMS;

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        Ok(RmsPropRows(OfRms::new(given)))
    }

    by_root!();
}

/// `ms += (grad^2 - ms) (1 - rho); mg += (grad - mg) (1 - rho);
/// mom = mom momentum + lr grad / sqrt(ms - mg^2 + epsilon); var -= mom`.
#[derive(Clone, Copy)]
pub struct CenteredRmsProp<W>(OfRms<W>);

impl<W: Lane> Rule<W> for CenteredRmsProp<W> {
    const SCALARS: &'static [&'static str] = OF_RMS;

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        Ok(CenteredRmsProp(OfRms::new(given)))
    }

    #[inline(always)]
    fn update(&self, [var, mg, ms, mom]: [W; MOST], gradient: W) -> [W; MOST] {
        let OfRms { lr, rest, momentum, epsilon, .. } = self.0;
        let ms = ms + (gradient.square() - ms) * rest;
        let mg = mg + (gradient - mg) * rest;
        let variance = ms - mg.square() + epsilon;
        let mom = mom * momentum + gradient * lr / variance.sqrt();
        [var - mom, mg, ms, mom]
    }
}

/// Of rows: `ms = rho ms + (1 - rho) grad^2; mg = rho mg + (1 - rho) grad`; the rest as
/// [`CenteredRmsProp`].
#[derive(Clone, Copy)]
pub struct CenteredRmsPropRows<W>(OfRms<W>);

impl<W: Lane> CenteredRmsPropRows<W> {
    #[inline(always)]
    fn step(
        &self,
        [var, mg, ms, mom]: [W; MOST],
        gradient: W,
        rsqrt: impl Fn(W) -> W,
    ) -> [W; MOST] {
        let OfRms { lr, rho, rest, momentum, epsilon } = self.0;
        let ms = ms * rho + gradient.square() * rest;
        let mg = mg * rho + gradient * rest;
        let variance = ms + epsilon - mg.square();
        let mom = mom * momentum + rsqrt(variance) * lr * gradient;
        [var - mom, mg, ms, mom]
    }
}

impl<W: Lane> Rule<W> for CenteredRmsPropRows<W> {
    const SCALARS: &'static [&'static str] = OF_RMS;

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        Ok(CenteredRmsPropRows(OfRms::new(given)))
    }

    by_root!();
}
