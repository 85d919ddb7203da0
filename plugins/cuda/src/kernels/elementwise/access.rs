//! How the launches of a call access elements: the width of accesses and of indices, and the entry
//! compiled for it.

use crate::{
    compile::{Arguments, Entry, Variant},
    kernels::{
        divisor::Divide,
        strided::{Strided, Walk},
    },
    launch::{Grid, Launch, Operand},
};
use std::sync::OnceLock;
use tenon_sdk::{DType, KernelError, geometry::BroadcastPlan};

/// Bytes of the widest access.
const WIDEST: u64 = 16;

/// Number of elements from which indices have 64 bits: kernels with 32-bit indices add a grid's
/// threads to an index.
const MANY: u64 = 1 << 31;

/// Width of accesses and of indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Access {
    /// Elements per access.
    pub lanes: u64,
    /// Whether indices have 64 bits.
    pub is_long: bool,
}

/// Bytes of an element.
pub(super) fn bytes_of(dtype: DType) -> u64 {
    dtype.size().unwrap_or(1) as u64
}

/// Elements per access, such that an access of the widest of these types has 16 bytes.
pub(super) fn most_lanes(types: &[DType]) -> u64 {
    WIDEST / types.iter().map(|dtype| bytes_of(*dtype)).max().unwrap_or(1).clamp(1, WIDEST)
}

impl Access {
    /// Access to whole operands of `elements` elements: one element at a time where an address is
    /// not aligned.
    pub fn whole(elements: u64, operands: &[Operand]) -> Access {
        let types: Vec<DType> = operands.iter().map(|operand| operand.dtype).collect();
        let lanes = most_lanes(&types);
        let aligned = operands.iter().all(|one| one.is_aligned(lanes * bytes_of(one.dtype)));
        Access { lanes: if aligned { lanes } else { 1 }, is_long: elements >= MANY }
    }

    /// A grid for `elements` elements.
    pub fn grid(self, elements: u64, launch: &Launch<'_>) -> Grid {
        // At least one thread for each element of the remainder.
        Grid::stride(elements.div_ceil(self.lanes).max(elements % self.lanes), launch.facts())
    }
}

/// How `N` operands repeat over an output.
#[derive(Debug)]
pub(super) struct Repeats<const N: usize>(Walk<N>);

impl<const N: usize> Repeats<N> {
    /// The repetitions of a plan.
    pub fn new(plan: &BroadcastPlan<N>) -> Repeats<N> {
        let steps = |d: usize| std::array::from_fn(|operand| plan.strides(operand)[d]);
        let dims = plan.extents().iter().enumerate();
        Repeats(Walk::new(dims.map(|(d, extent)| (*extent, steps(d)))))
    }

    /// The widest access for which accesses end where rows do and begin at their multiples.
    pub fn access(&self, operands: [Operand; N], output: Operand) -> Access {
        let mut types: Vec<DType> = operands.iter().map(|operand| operand.dtype).collect();
        types.push(output.dtype);
        let mut lanes = most_lanes(&types);
        while lanes > 1 && !self.takes(lanes, &operands, output) {
            lanes /= 2;
        }
        Access { lanes, is_long: output.elements >= MANY }
    }

    fn takes(&self, lanes: u64, operands: &[Operand; N], output: Operand) -> bool {
        let is_aligned = |operand: &Operand| operand.is_aligned(lanes * bytes_of(operand.dtype));
        let ((extent, inner), dims) = (self.0.inner(), self.0.dims());
        let outer = &dims[..dims.len().saturating_sub(1)];
        let fits = |(at, operand): (usize, &Operand)| match inner[at] {
            0 => true,
            1 => {
                let whole = |step: i64| step.unsigned_abs().is_multiple_of(lanes);
                is_aligned(operand) && outer.iter().all(|(_, steps)| whole(steps[at]))
            }
            _ => false,
        };
        extent.unsigned_abs().is_multiple_of(lanes)
            && is_aligned(&output)
            && operands.iter().enumerate().all(fits)
    }

    /// The kernels' parameter, with the innermost dimension counted in accesses of `lanes`
    /// elements.
    ///
    /// # Errors
    /// As [`Walk::strided`].
    pub fn parameter<I: Divide>(&self, lanes: u64) -> Result<Strided<I, N>, KernelError> {
        self.0.in_packs(lanes as i64).strided()
    }
}

/// An entry of a source, in every width: the usual width is compiled in advance.
pub(super) struct Entries<A> {
    variant: Variant,
    name: &'static str,
    /// Lanes of the usual width, which has 32-bit indices.
    lanes: u64,
    usual: OnceLock<Entry<A>>,
}

impl<A: Arguments> Entries<A> {
    /// The entry `name` of a source with these defines.
    ///
    /// # Safety
    /// - In every width, the parameters of the entry are the parts of `A`.
    pub unsafe fn new(variant: Variant, name: &'static str, lanes: u64) -> Entries<A> {
        Entries { variant, name, lanes, usual: OnceLock::new() }
    }

    fn load(&self, launch: &Launch<'_>, access: Access) -> Result<Entry<A>, KernelError> {
        let variant = widened(self.variant.clone(), access);
        let module = launch.device().modules().get(&variant)?;
        // SAFETY: the caller of `new` guarantees that the parameters are the parts of `A`.
        unsafe { module.entry(self.name) }
    }

    /// Enqueues a launch.
    ///
    /// # Errors
    /// The error of the compiler or the driver.
    ///
    /// # Safety
    /// - The caller upholds what [`Launch::run`] requires.
    pub unsafe fn run(
        &self,
        launch: &Launch<'_>,
        access: Access,
        grid: Grid,
        arguments: A,
    ) -> Result<(), KernelError> {
        if grid.is_empty() {
            return Ok(());
        }
        if access != (Access { lanes: self.lanes, is_long: false }) {
            let entry = self.load(launch, access)?;
            // SAFETY: the caller guarantees that the addresses come from this call, and that the
            // entry stays within them.
            return unsafe { launch.run(&entry, grid, arguments) };
        }
        let entry = match self.usual.get() {
            Some(entry) => entry,
            None => {
                let entry = self.load(launch, access)?;
                self.usual.get_or_init(|| entry)
            }
        };
        // SAFETY: the caller guarantees that the addresses come from this call, and that the entry
        // stays within them.
        unsafe { launch.run(entry, grid, arguments) }
    }
}

/// A variant in this width.
pub(super) fn widened(variant: Variant, access: Access) -> Variant {
    let index = if access.is_long { "u64" } else { "u32" };
    variant.define("INDEX", index).define("LANES", access.lanes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operand(address: u64, dtype: DType) -> Operand {
        Operand { address, elements: 8, dtype }
    }

    #[test]
    fn the_widest_type_fills_an_access() {
        assert_eq!(most_lanes(&[DType::FLOAT, DType::FLOAT]), 4);
        assert_eq!(most_lanes(&[DType::BOOL, DType::DOUBLE]), 2);
        assert_eq!(most_lanes(&[DType::INT8]), 16);
    }

    #[test]
    fn an_odd_address_takes_elements_one_by_one() {
        let whole = |x, y| Access::whole(8, &[operand(x, DType::FLOAT), operand(y, DType::BOOL)]);
        assert_eq!(whole(256, 260), Access { lanes: 4, is_long: false });
        assert_eq!(whole(260, 256).lanes, 1);
        assert_eq!(whole(256, 258).lanes, 1);
        assert!(Access::whole(1 << 31, &[operand(0, DType::FLOAT)]).is_long);
    }

    #[test]
    fn accesses_end_with_rows() {
        let floats = |address| Operand { address, elements: 1, dtype: DType::FLOAT };
        let repeats =
            |x: &[i64], y: &[i64]| Repeats::new(&BroadcastPlan::new([x, y]).expect("shapes"));
        let lanes =
            |repeats: &Repeats<2>, at| repeats.access([floats(at), floats(0)], floats(0)).lanes;
        let rows = repeats(&[5, 8], &[8]);
        assert_eq!([0, 4, 8].map(|at| lanes(&rows, at)), [4, 1, 2]);
        assert_eq!(lanes(&repeats(&[5, 6], &[6]), 0), 2);
        assert_eq!(lanes(&repeats(&[5, 3], &[3]), 0), 1);
        assert_eq!(lanes(&repeats(&[1], &[1, 1]), 0), 1);
        assert!(rows.parameter::<u64>(4).is_ok());
    }
}
