//! Whether inputs are read up to their last byte and no further.
//!
//! A buffer of 20 bytes that is aligned to 64 cannot touch an inaccessible page with its end: 44 bytes beyond it
//! may be read, which goes unnoticed unless a result changes. So a few cases are called once more on inputs that end
//! to the byte, aligned to their elements alone, and one of them with rows of each short length. That is less than
//! kernels are promised: what such a call gives is not looked at, nor that it ends the process, as an aligned load
//! does. A read beyond an input's last byte, whose address says so, is the one thing that counts.

use super::{
    choice::{self, Chosen},
    site::{ReadOnly, Site, copies},
    verdicts::Verdicts,
};
use crate::{
    check::{
        case::{CheckCase, Fill, Tag},
        clause::Clause,
    },
    harness::Form,
};
use std::time::{Duration, Instant};
use tenon_framework::{Tensor, device::base::DeviceBase};
use tenon_runtime::host::memory::{
    HostMemory,
    guarded::{Guard, Side},
};

/// Cases that are called.
const CASES: usize = 6;
/// Of a kernel of which a call takes longer, no more cases are called.
const SLOW: Duration = Duration::from_millis(250);

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
    let chosen: Vec<Chosen> =
        choice::accepted(site, cases, CASES).into_iter().map(|(chosen, _)| chosen).collect();
    let mut longest = Duration::ZERO;
    for chosen in &chosen {
        for form in [Form::Shapes, Form::Packed] {
            let begin = Instant::now();
            call(site, guard, chosen, form, verdicts);
            longest = longest.max(begin.elapsed());
        }
    }
    if longest > SLOW {
        verdicts.set_case("");
        return verdicts.pass(clause);
    }
    for chosen in large(&chosen, cases).into_iter().chain(rows(site, &chosen)) {
        call(site, guard, &chosen, Form::Shapes, verdicts);
    }
    verdicts.set_case("");
    verdicts.pass(clause);
}

/// Calls the kernel on inputs that end to the byte.
fn call(site: &Site<'_>, guard: &Guard, chosen: &Chosen, form: Form, verdicts: &mut Verdicts<'_>) {
    let Some(inputs) = exact(guard, &chosen.inputs) else { return };
    verdicts.set_case(&chosen.case.name);
    verdicts.begin_unpromised(Clause::Bounds);
    // Neither what it gives nor that it refuses says anything.
    let _ = site.run(&chosen.case, inputs.tensors(), form);
    verdicts.begin(Clause::Bounds);
    drop(inputs);
    let _ = guard.violations();
}

/// A large case, where none is among those that are called: a kernel may take another way through it.
fn large(called: &[Chosen], cases: &[CheckCase]) -> Option<Chosen> {
    let is_large = |case: &CheckCase| case.is(Tag::Large);
    let is_called = called.iter().any(|chosen| is_large(&chosen.case));
    cases.iter().filter(|case| is_large(case) && !is_called).find_map(Chosen::new)
}

/// Rows of each length up to this one are tried: what a loop over vectors leaves may be wrong for one of them alone.
const LENGTHS: i64 = 17;
/// Elements of a case whose rows are made shorter and longer.
const SMALL: i64 = 4096;

/// A case with its rows of each length, where the shape function takes them. An op's own cases say which there are.
fn rows<'a>(site: &'a Site<'_>, chosen: &[Chosen]) -> impl Iterator<Item = Chosen> + use<'a> {
    let rows = |chosen: &&Chosen| {
        let dims = chosen.case.inputs.iter().map(|input| &input.dims);
        let elements = dims.map(|dims| dims.iter().product::<i64>()).fold(0, i64::saturating_add);
        row_of(&chosen.case).is_some() && elements <= SMALL
    };
    // Of a single row each length is one of the whole buffer.
    let count = |chosen: &&Chosen| -> i64 {
        let first = chosen.case.inputs.iter().find(|input| !input.dims.is_empty());
        first.map_or(0, |input| input.dims[..input.dims.len() - 1].iter().product())
    };
    let has_own = !site.subject.op.cases().is_empty();
    let base = chosen.iter().filter(|_| !has_own).filter(rows).min_by_key(count);
    let base = base.map(|chosen| chosen.case.clone());
    (1..=LENGTHS).filter_map(move |length| {
        let chosen = Chosen::new(&with_rows(base.as_ref()?, length)?)?;
        let node = site.node(&chosen.case, &chosen.inputs, Form::Shapes).ok()?;
        node.infer().ok().map(|_| chosen)
    })
}

/// The last dimension of the first input that has one; none where there is nothing in it.
fn row_of(case: &CheckCase) -> Option<i64> {
    let row = case.inputs.iter().find_map(|input| input.dims.last().copied());
    row.filter(|&row| row > 0)
}

/// The case with rows of another length in all inputs that have them.
fn with_rows(case: &CheckCase, length: i64) -> Option<CheckCase> {
    let row = row_of(case)?;
    let mut case = case.clone();
    case.name = format!("{} with rows of {length}", case.name);
    for input in case.inputs.iter_mut().filter(|input| !input.constant) {
        match input.dims.last_mut() {
            Some(last) if *last == row && !matches!(input.fill, Fill::Explicit(_)) => {
                *last = length
            }
            _ => {}
        }
    }
    Some(case)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Argument;
    use tenon_framework::{DType, attr::AttrMap};

    #[test]
    fn all_inputs_that_have_rows_get_others() {
        let input = |dims: &[i64], constant| Argument {
            dtype: DType::FLOAT,
            dims: dims.to_vec(),
            fill: Fill::Special { seed: 1 },
            constant,
        };
        let inputs =
            vec![input(&[], false), input(&[2, 7], false), input(&[7], false), input(&[7], true)];
        let case =
            CheckCase { name: "2x7".to_owned(), tags: Vec::new(), attrs: AttrMap::new(), inputs };
        let made = with_rows(&case, 3).unwrap();
        let dims: Vec<&[i64]> = made.inputs.iter().map(|input| &input.dims[..]).collect();
        assert_eq!(dims, [&[][..], &[2, 3], &[3], &[7]]);
        assert_eq!(made.name, "2x7 with rows of 3");
        let empty = CheckCase { inputs: vec![input(&[0], false)], ..case };
        assert!(with_rows(&empty, 3).is_none());
    }
}
