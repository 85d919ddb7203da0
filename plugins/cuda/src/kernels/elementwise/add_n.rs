//! `AddN`: in launches of up to nine inputs, in the order in which TensorFlow rounds.

use super::{
    access::{Access, Entries, most_lanes},
    types::{EXAMPLES, NUMBERS},
};
use crate::{
    compile::{Source, Variant},
    kernels::dtype::name_of,
    launch::{Launch, Operand},
    source,
};
use std::sync::OnceLock;
use tenon_sdk::{DType, KernelError, prelude::*, reg::Numerics};

static SOURCE: Source = source!("add_n.cu", overlaps);

/// Most inputs of a launch.
const MOST: usize = 9;
/// Inputs of each launch after the first.
const EIGHT: usize = 8;

fn variant(dtype: DType, inputs: usize, is_onto: bool) -> Result<Variant, KernelError> {
    let variant = Variant::new(&SOURCE).define("T", name_of(dtype)?).define("INPUTS", inputs);
    Ok(variant.define("ONTO", u8::from(is_onto)))
}

/// Each kind of number with two inputs, and with eight added to a sum; the other numbers of inputs
/// in one type.
pub(super) fn variants() -> Vec<Variant> {
    let types = NUMBERS.iter().filter(|dtype| EXAMPLES.contains(dtype));
    let mut all: Vec<Variant> =
        types.flat_map(|&t| [variant(t, 2, false), variant(t, EIGHT, true)]).flatten().collect();
    all.extend((1..=MOST).filter(|n| *n != 2).flat_map(|n| variant(DType::FLOAT, n, false)));
    all
}

/// Number of inputs that are summed from left to right before the sums of eight.
fn leading(count: usize) -> usize {
    match count % EIGHT {
        r @ (0 | 1) => (r + EIGHT).min(count),
        r => r,
    }
}

type Call<const N: usize> = ([u64; N], u64, u64);

/// The entry for `N` inputs, created on first use.
struct Sum<const N: usize>(OnceLock<Entries<Call<N>>>);

/// A launch that sums some of the inputs.
struct Part<'a> {
    dtype: DType,
    inputs: &'a [Operand],
    output: Operand,
    is_onto: bool,
}

impl<const N: usize> Sum<N> {
    fn run(&self, launch: &Launch<'_>, part: &Part<'_>) -> Result<(), KernelError> {
        let entries = match self.0.get() {
            Some(entries) => entries,
            None => {
                let variant = variant(part.dtype, N, part.is_onto)?;
                let lanes = most_lanes(&[part.dtype]);
                // SAFETY: `add_n` takes the number of addresses that it is compiled for, the
                // address of the sum and a count.
                let entries = unsafe { Entries::new(variant, "add_n", lanes) };
                self.0.get_or_init(|| entries)
            }
        };
        let operands: Vec<Operand> = part.inputs.iter().copied().chain([part.output]).collect();
        let access = Access::whole(part.output.elements, &operands);
        let inputs = std::array::from_fn(|n| part.inputs[n].address);
        let arguments = (inputs, part.output.address, part.output.elements);
        let grid = access.grid(part.output.elements, launch);
        // SAFETY: all operands have `elements` elements.
        unsafe { entries.run(launch, access, grid, arguments) }
    }
}

macro_rules! sums {
    ($($field:ident: $n:literal),*) => {
        #[derive(Default)]
        struct Sums {
            $($field: Sum<$n>,)*
            onto: Sum<EIGHT>,
        }

        impl Sums {
            fn run(&self, launch: &Launch<'_>, part: &Part<'_>) -> Result<(), KernelError> {
                match part.inputs.len() {
                    _ if part.is_onto => self.onto.run(launch, part),
                    $($n => self.$field.run(launch, part),)*
                    found => Err(KernelError::internal(format!(
                        "expected 1 to {MOST} inputs of a launch, found {found}"
                    ))),
                }
            }
        }
    };
}

impl<const N: usize> Default for Sum<N> {
    fn default() -> Self {
        Sum(OnceLock::new())
    }
}

sums!(one: 1, two: 2, three: 3, four: 4, five: 5, six: 6, seven: 7, eight: 8, nine: 9);

struct AddN {
    dtype: DType,
    sums: Sums,
}

impl Kernel for AddN {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(AddN { dtype: c.attr("T")?, sums: Sums::default() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (dims, count) = (c.dims(0), c.input_count());
        if let Some(i) = (0..count).find(|&i| c.dims(i) != dims) {
            return Err(KernelError::invalid_argument(format!(
                "inputs must have the same shape: inputs[0] has {dims:?}, inputs[{i}] has {:?}",
                c.dims(i)
            )));
        }
        let launch = Launch::new(c)?;
        let inputs = (0..count).map(|i| launch.input(i)).collect::<Result<Vec<_>, _>>()?;
        let output = launch.output(0, dims)?;
        let (first, rest) = inputs.split_at(leading(count));
        let part = |inputs, is_onto| Part { dtype: self.dtype, inputs, output, is_onto };
        self.sums.run(&launch, &part(first, false))?;
        rest.chunks(EIGHT).try_for_each(|eight| self.sums.run(&launch, &part(eight, true)))
    }
}

register_kernel!("AddN" on "CUDA": AddN, types = ("T", NUMBERS), numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::leading;

    #[test]
    fn eights_are_left_after_the_first_inputs() {
        for count in 1..100 {
            let first = leading(count);
            assert!((1..=9).contains(&first) && (count - first).is_multiple_of(8), "{count}");
        }
        assert_eq!([leading(1), leading(8), leading(9), leading(10)], [1, 8, 9, 2]);
    }
}
