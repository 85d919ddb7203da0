//! What is computed once where inputs are constants: the packed form of right factors, and what follows from all inputs
//! but the first one.

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

/// Terms of a sum beyond which it leaves 32 bits whatever the zero points are: 131,072 * 128 * 128 = 2^31.
const MOST_DEPTH: i64 = 131_071;

/// Which input of a kernel its right factor is.
pub const RIGHT: usize = 1;

/// How a right factor is packed, and what was packed.
pub struct RightFactor {
    isa: &'static Isa,
    flip: u8,
    transposed: bool,
    packed: Option<Packed>,
}

/// The dimensions of what the host shows for packing.
fn dims(view: &Slot) -> &[i64] {
    // SAFETY: the host shows a filled slot during that call.
    unsafe { view.shape() }
}

impl RightFactor {
    /// One whose bytes are turned over by `flip`; where it is transposed, columns are lines.
    pub fn new(isa: &'static Isa, flip: u8, transposed: bool) -> RightFactor {
        RightFactor { isa, flip, transposed, packed: None }
    }

    fn columns<'a>(&self, data: &'a [u8], [depth, columns]: [usize; 2]) -> Source<'a> {
        Source::new(data, [columns, depth], !self.transposed, self.flip)
    }

    /// Packs a constant matrix, where the input is the right factor.
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

    /// As [`RightFactor::prepack_matrix`], of a filter, whose memory is a matrix of one column for each output channel.
    pub fn prepack_filter(&self, input: usize, view: &Slot) -> Option<Packed> {
        let &[height, width, channels, columns] = dims(view) else { return None };
        if input != RIGHT {
            return None;
        }
        let depth = height.saturating_mul(width).saturating_mul(channels);
        self.prepack(view, [depth, columns])
    }

    fn prepack(&self, view: &Slot, [depth, columns]: [i64; 2]) -> Option<Packed> {
        // Of nothing there is nothing to pack, and what is too deep every call refuses.
        if !view.memory.is_host_address() || view.bytes == 0 || depth > MOST_DEPTH {
            return None;
        }
        // SAFETY: the host shows a filled slot during this call: host memory of so many bytes.
        let data = unsafe {
            std::slice::from_raw_parts(view.data.cast_const().cast::<u8>(), view.bytes as usize)
        };
        let source = self.columns(data, [depth as usize, columns as usize]);
        let packed = PackedRight::pack(self.isa, &source)?;
        let bytes = packed.bytes() as u64;
        Some(Packed::new(packed, bytes))
    }

    /// Takes what was packed of an input.
    pub fn attach(&mut self, input: usize, packed: &Packed) {
        if input == RIGHT {
            self.packed = Some(packed.clone());
        }
    }

    /// The factor as it was packed once, or packed now.
    ///
    /// # Errors
    /// No memory.
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

/// What follows from inputs that are constants. The host shows each constant for packing: where there is no form of its
/// own for one, it is remembered that it is one ([`Constants::mark`]).
pub struct Constants<T> {
    inputs: u64,
    made: OnceLock<T>,
}

impl<T> Constants<T> {
    /// No input is known to be a constant.
    pub fn new() -> Constants<T> {
        Constants { inputs: 0, made: OnceLock::new() }
    }

    /// The packed form of an input of which only that it is a constant matters.
    pub fn mark() -> Packed {
        Packed::new((), 0)
    }

    /// Takes note of a constant.
    pub fn attach(&mut self, input: usize) {
        self.inputs |= 1u64.checked_shl(input as u32).unwrap_or(0);
    }

    /// Whether all these inputs are constants, so that what follows from them may be kept.
    pub fn has(&self, mut inputs: Range<usize>) -> bool {
        inputs.all(|input| input < 64 && self.inputs >> input & 1 == 1)
    }

    /// What was kept.
    pub fn kept(&self) -> Option<&T> {
        self.made.get()
    }

    /// Keeps what a call made, unless another one was faster.
    pub fn keep(&self, made: T) -> &T {
        self.made.get_or_init(|| made)
    }
}
