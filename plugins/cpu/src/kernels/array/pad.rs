//! `Pad`, with zeros (empty strings, false).

use super::{SLICED, Word, by_size, element_size, words, words_mut};
use tenon_reference::array as reference;
use tenon_sdk::{
    DType, KernelError,
    author::ComputeContext,
    geometry::{Dims, PadPlan, element_count, pad_dims},
    reg::Numerics,
    register_kernel,
};

/// Dimensions behind the last padded one count as one with it: rows become longer.
fn merged(input: &[i64], paddings: &[i64]) -> Result<(Dims, Vec<i64>), KernelError> {
    let padded = paddings.chunks_exact(2).rposition(|pair| pair != [0, 0]).unwrap_or(0);
    if input.is_empty() {
        return Ok((Dims::EMPTY, Vec::new()));
    }
    let inner = input[padded + 1..].iter().product::<i64>();
    let mut dims = Dims::from_slice(&input[..padded + 1])?;
    let mut pairs = paddings[..2 * (padded + 1)].to_vec();
    dims[padded] *= inner;
    pairs[2 * padded..].iter_mut().for_each(|pad| *pad *= inner);
    Ok((dims, pairs))
}

fn compute<W: Word>(
    c: &ComputeContext<'_>,
    output: &[i64],
    paddings: &[i64],
) -> Result<(), KernelError> {
    let x = words::<W>(c.input_bytes(0)?)?;
    let y = words_mut::<W>(c.output_bytes(0, output)?)?;
    if x.is_empty() {
        y.fill(W::default());
        return Ok(());
    }
    let (dims, pairs) = merged(c.dims(0), paddings)?;
    copy_rows(&PadPlan::new(&dims, &pairs)?, x, y);
    Ok(())
}

/// Writes rows and what lies between them, once each.
fn copy_rows<W: Word>(plan: &PadPlan, x: &[W], y: &mut [W]) {
    let len = plan.row_len();
    let mut done = 0;
    for (x, start) in x.chunks_exact(len).zip(plan.rows()) {
        y[done..start].fill(W::default());
        y[start..start + len].copy_from_slice(x);
        done = start + len;
    }
    y[done..].fill(W::default());
}

/// Paddings of a call: a pair per dimension.
pub fn paddings(c: &ComputeContext<'_>) -> Result<Vec<i64>, KernelError> {
    let rank = c.dims(0).len();
    if c.dims(1) != [rank as i64, 2] {
        return Err(KernelError::invalid_argument(format!(
            "paddings must have shape [{rank}, 2] for an input of {rank} dimensions, found {:?}",
            c.dims(1)
        )));
    }
    c.integers(1)
}

fn pad(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let paddings = paddings(c)?;
    let output = pad_dims(c.dims(0), &paddings)?;
    let len = element_count(&output)?;
    if paddings.iter().all(|&pad| pad == 0) {
        return c.share(0, 0, &output);
    }
    if c.slot(0)?.dtype == DType::STRING {
        let mut y = vec![&b""[..]; len];
        reference::pad(&PadPlan::new(c.dims(0), &paddings)?, &&b""[..], &c.strings(0)?, &mut y);
        return c.set_strings(0, &output, y.into_iter());
    }
    by_size!(element_size(c, 0)?, compute(c, &output, &paddings))
}

register_kernel!("Pad" on "CPU": fn pad, types = ("T", SLICED), host_memory = &["paddings"],
    numerics = Numerics::EXACT);
register_kernel!("Pad" on "CPU": fn pad, types = ("T", &[DType::STRING]),
    host_memory = &["paddings"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_rows_agree_with_the_reference() {
        let cases: [(&[i64], &[i64]); 4] = [
            (&[2, 3, 4, 5], &[0, 0, 1, 2, 3, 1, 0, 0]),
            (&[3, 4], &[2, 0, 0, 0]),
            (&[6], &[1, 1]),
            (&[2, 2, 2], &[0, 0, 0, 0, 1, 0]),
        ];
        for (dims, paddings) in cases {
            let plan = PadPlan::new(dims, paddings).unwrap();
            let x: Vec<u32> = (1..=dims.iter().product::<i64>() as u32).collect();
            let len = plan.output_dims().iter().product::<i64>() as usize;
            let (mut expected, mut found) = (vec![9; len], vec![9; len]);
            reference::pad(&plan, &0, &x, &mut expected);
            let (short, pairs) = merged(dims, paddings).unwrap();
            copy_rows(&PadPlan::new(&short, &pairs).unwrap(), &x, &mut found);
            assert_eq!(found, expected, "{dims:?}");
        }
    }
}
