//! Gradients of partitions and stitches.

use super::Outcome;
use tenon_author::{GradientContext, register_gradient};

register_gradient!("DynamicPartition", |c| {
    let (data, partitions) = (c.input(0), c.input(1));
    let count = c.unary("Size", partitions)?;
    let numbers = c.op("Range").input(c.int(0)?).input(count).input(c.int(1)?).done()?;
    let numbers = c.reshape_like(numbers, partitions)?;
    let node = c.op("DynamicPartition").input(numbers).input(partitions);
    let places = node.copy(&["num_partitions"]).outputs()?;
    let gradients = (0..places.len()).map(|index| c.gradient(index));
    let gradients = gradients.collect::<Result<Vec<_>, _>>()?;
    let whole = c.op("DynamicStitch").inputs(places).inputs(gradients).done()?;
    c.set(0, c.reshape_like(whole, data)?)
});
register_gradient!("DynamicStitch", stitched);
register_gradient!("ParallelDynamicStitch", stitched);

fn stitched(c: &GradientContext<'_>) -> Outcome {
    let g = c.gradient(0)?;
    let count = c.input_count() / 2;
    for index in 0..count {
        if c.wants(count + index) {
            let zero = c.int(0)?;
            let part = c.op("GatherV2").input(g).input(c.input(index)).input(zero).done()?;
            c.set(count + index, part)?;
        }
    }
    Ok(())
}
