//! Caches for constant inputs: the packed form of right factors, and values computed from all
//! inputs but the first one.

use crate::{
    isa::Isa,
    pack::Source,
    product::{PackedRight, Right},
    spread::pack_right,
};
use std::{ops::Range, sync::OnceLock};
use tenon_sdk::{
    KernelError,
    abi::Slot,
    author::{ComputeContext, Packed},
};

/// Most terms of a sum in 32 bits, for the worst zero points: 131,072 * 128 * 128 = 2^31.
const MOST_DEPTH: i64 = 131_071;

/// Index of a kernel's right factor among its inputs.
pub const RIGHT: usize = 1;

/// The right factor of a product: how it is packed, and its packed form.
pub struct RightFactor {
    isa: &'static Isa,
    flip: u8,
    transposed: bool,
    packed: Option<Packed>,
}

/// The dimensions of an input that the host passes for packing.
fn dims(view: &Slot) -> &[i64] {
    // SAFETY: the host passes a filled slot for this call.
    unsafe { view.shape() }
}

impl RightFactor {
    /// A factor whose bytes are XORed with `flip`; if it is transposed, columns are lines.
    pub fn new(isa: &'static Isa, flip: u8, transposed: bool) -> RightFactor {
        RightFactor { isa, flip, transposed, packed: None }
    }

    fn columns<'a>(&self, data: &'a [u8], [depth, columns]: [usize; 2]) -> Source<'a> {
        Source::new(data, [columns, depth], !self.transposed, self.flip)
    }

    /// Packs a constant matrix, if the input is the right factor.
    pub fn prepack_matrix(&self, input: usize, view: &Slot) -> Option<Packed> {
        if input != RIGHT {
            return None;
        }
        match *dims(view) {
            [columns, depth] if self.transposed => self.prepack(view, [depth, columns]),
            [depth, columns] => self.prepack(view, [depth, columns]),
            _ => None,
        }
    }

    /// Like [`RightFactor::prepack_matrix`], for a filter, which in memory is a matrix with a
    /// column for each output channel.
    pub fn prepack_filter(&self, input: usize, view: &Slot) -> Option<Packed> {
        let &[height, width, channels, columns] = dims(view) else { return None };
        if input != RIGHT {
            return None;
        }
        let depth = height.saturating_mul(width).saturating_mul(channels);
        self.prepack(view, [depth, columns])
    }

    fn prepack(&self, view: &Slot, [depth, columns]: [i64; 2]) -> Option<Packed> {
        // An empty factor needs no packing, and every call refuses one that is too deep.
        if !view.memory.is_host_address() || view.bytes == 0 || depth > MOST_DEPTH {
            return None;
        }
        // SAFETY: the host passes a filled slot for this call, with `bytes` bytes of host memory.
        let data = unsafe {
            std::slice::from_raw_parts(view.data.cast_const().cast::<u8>(), view.bytes as usize)
        };
        let source = self.columns(data, [depth as usize, columns as usize]);
        let packed = PackedRight::pack(self.isa, &source)?;
        let bytes = packed.bytes() as u64;
        Some(Packed::new(packed, bytes))
    }

    /// Receives the packed form of an input.
    pub fn attach(&mut self, input: usize, packed: &Packed) {
        if input == RIGHT {
            self.packed = Some(packed.clone());
        }
    }

    /// The factor's packed form; packs it now if it is not constant.
    ///
    /// # Errors
    /// Out of memory.
    pub fn get<'c, 'a: 'c>(
        &'c self,
        c: &ComputeContext<'a>,
        [depth, columns]: [usize; 2],
    ) -> Result<Right<'c>, KernelError> {
        if let Some(packed) = self.packed.as_ref().and_then(Packed::get::<PackedRight>) {
            let packed = packed.view();
            if packed.depth() == depth && packed.columns() == columns {
                return Ok(packed);
            }
        }
        pack_right(c, self.isa, &self.columns(c.input_bytes(RIGHT)?, [depth, columns]))
    }
}

/// A value computed from constant inputs. The host passes each constant for packing: if it has no
/// packed form, a mark records that it is constant ([`Constants::mark`]).
pub struct Constants<T> {
    inputs: u64,
    made: OnceLock<T>,
}

impl<T> Constants<T> {
    /// Without known constants.
    pub fn new() -> Constants<T> {
        Constants { inputs: 0, made: OnceLock::new() }
    }

    /// The packed form of an input that only records that it is constant.
    pub fn mark() -> Packed {
        Packed::new((), 0)
    }

    /// Records that an input is constant.
    pub fn attach(&mut self, input: usize) {
        self.inputs |= 1u64.checked_shl(input as u32).unwrap_or(0);
    }

    /// Whether all these inputs are constants, so that a value computed from them may be kept.
    pub fn has(&self, mut inputs: Range<usize>) -> bool {
        inputs.all(|input| input < 64 && self.inputs >> input & 1 == 1)
    }

    /// The kept value.
    pub fn kept(&self) -> Option<&T> {
        self.made.get()
    }

    /// Keeps the value of a call, unless another call has stored one first.
    pub fn keep(&self, made: T) -> &T {
        self.made.get_or_init(|| made)
    }
}
