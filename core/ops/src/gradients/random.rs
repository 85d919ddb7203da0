//! Gradients of random numbers by the parameters of their distribution.
//!
//! Source: M. Figurnov and others, "Implicit reparameterization gradients" (2018).

use tenon_author::register_gradient;
use tenon_framework::DType;

register_gradient!("RandomGamma", |c| {
    let (alpha, samples) = (c.input(1), c.output(0));
    let shape = c.cast(c.input(0), DType::INT32)?;
    // The samples' own dimensions come before those of alpha, which broadcasts with them.
    let count = match c.known_dims(shape).as_deref() {
        Some(&[count]) => c.number(DType::INT32, count as f64)?,
        _ => c.unary("Size", shape)?,
    };
    let slopes = c.binary("RandomGammaGrad", alpha, samples)?;
    let axes = c.op("Range").input(c.int(0)?).input(count).input(c.int(1)?).done()?;
    c.set(1, c.sum(c.mul(c.gradient(0)?, slopes)?, axes, false)?)
});
