//! Whether inputs are read up to their last byte and no further.
//!
//! A buffer of 20 bytes that is aligned to 64 cannot touch an inaccessible page with its end: 44 bytes beyond it
//! may be read, and nobody notices unless a result changes. So a few cases are called once more on inputs that end
//! to the byte, aligned to their elements alone. That is less than kernels are promised: what such a call gives is
//! not looked at, nor that it ends the process, as an aligned load does. A read beyond an input's last byte, whose
//! address says so, is the one thing that counts.

use super::{
    choice,
    site::{ReadOnly, Site, copies},
    verdicts::Verdicts,
};
use crate::{
    check::{case::CheckCase, clause::Clause},
    harness::Form,
};
use tenon_framework::{Tensor, device::base::DeviceBase};
use tenon_runtime::host::memory::{
    HostMemory,
    guarded::{Guard, Side},
};

/// Cases that are called.
const CASES: usize = 6;

/// Judges [`Clause::Bounds`] once more, of inputs that end to the byte.
pub(super) fn examine(site: &Site<'_>, cases: &[CheckCase], verdicts: &mut Verdicts<'_>) {
    let clause = Clause::Bounds;
    let Some(guard) = HostMemory::guarded() else {
        return verdicts.skip(clause, "the process does not guard its memory");
    };
    // Told case by case.
    if !site.device().info().host_memory {
        return;
    }
    for (chosen, _) in choice::accepted(site, cases, CASES) {
        verdicts.set_case(&chosen.case.name);
        for form in [Form::Shapes, Form::Packed] {
            let Some(inputs) = exact(guard, &chosen.inputs) else { continue };
            verdicts.begin_unpromised(clause);
            // Neither what it gives nor that it refuses says anything.
            let _ = site.run(&chosen.case, inputs.tensors(), form);
            verdicts.begin(clause);
            drop(inputs);
            let _ = guard.violations();
        }
    }
    verdicts.set_case("");
    verdicts.pass(clause);
}

/// Copies that end to the byte. Strings stay aligned: they are objects, not bytes.
fn exact(guard: &Guard, inputs: &[Tensor]) -> Option<ReadOnly> {
    let copied = inputs.iter().map(|input| {
        if !input.dtype().needs_drop() {
            guard.set_side(Side::Exact);
        }
        let copy = copies(std::slice::from_ref(input));
        guard.set_side(Side::End);
        copy?.pop()
    });
    copied.collect::<Option<Vec<Tensor>>>().map(ReadOnly::new)
}
