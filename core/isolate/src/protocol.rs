//! What a worker's message may do to an output: one table, which [`super::outputs`] consults before
//! it does anything.
//!
//! ```text
//!             Unset     Planned   Allocated Forwarded     Written
//! Allocate    Allocated Allocated Allocated Allocated     -        plain, bool
//! Forward     Forwarded Forwarded Forwarded -             -        plain, from plain
//! There       -         Written   Written   Written       -        plain, bool
//! Shared      Written   Written   Written   Written       -        from the same kind; plain from bool too
//! Strings     Written   -         -         -             -        string, as many as the shape has
//! Unset       Unset     -         -         -             -        every kind
//! ```
//!
//! A dash is an invalid message: its sender is not a genuine worker, or a plugin has overwritten
//! the worker's memory. The call fails and the process is ended.
//!
//! Elements of strings contain addresses of the host: they are never interpreted as bytes.
//! Resources, variants and references do not cross at all. A bool crosses as a byte, and becomes a
//! bool when it is copied.

use tenon_abi::DType;

/// What the elements of an output or an input are to another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bytes of which every value is a valid element.
    Plain,
    /// One byte each, of which only 0 and 1 are valid elements.
    Bool,
    /// Text in memory of the host.
    Strings,
    /// Resources, variants, references and types of another version, which do not cross.
    Kept,
}

impl Kind {
    /// The kind of an element type.
    pub fn of(dtype: DType) -> Kind {
        match dtype {
            DType::BOOL => Kind::Bool,
            DType::STRING => Kind::Strings,
            _ if dtype.is_ref() || dtype.needs_drop() || dtype.size().is_none() => Kind::Kept,
            _ => Kind::Plain,
        }
    }
}

/// The state of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It has neither memory nor a value.
    Unset,
    /// It had memory before the call.
    Planned,
    /// The worker received memory for it.
    Allocated,
    /// The worker received an input's memory for it.
    Forwarded,
    /// It is complete: no further message may change it.
    Written,
}

/// What a message does to an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Requests memory.
    Allocate,
    /// Requests the memory of an input of this kind.
    Forward(Kind),
    /// Reports that it is written in its place.
    There,
    /// Reports that it is an input of this kind, with another shape.
    Shared(Kind),
    /// Sends `sent` strings for a shape of `shape` elements; `None` for more than a u64 holds.
    Strings { shape: Option<u64>, sent: u64 },
    /// Reports that nothing was written.
    Unset,
}

/// The state of an output after a message; as an error, what is wrong with the message.
pub(super) fn after(state: State, kind: Kind, act: Act) -> Result<State, &'static str> {
    use State::{Allocated, Forwarded, Unset, Written};
    if state == Written {
        return Err("it is written already");
    }
    match (act, kind) {
        (Act::Unset, _) if state == Unset => Ok(Unset),
        (Act::Unset, _) => Err("it has memory, and is called unset"),
        (_, Kind::Kept) => Err("its elements cannot cross"),
        (Act::Allocate | Act::Forward(_) | Act::There, Kind::Strings) => {
            Err("its strings are sent, never written as bytes")
        }
        (Act::Allocate, _) => Ok(Allocated),
        (Act::Forward(_), _) if state == Forwarded => Err("it has an input's memory already"),
        (Act::Forward(Kind::Plain), Kind::Plain) => Ok(Forwarded),
        (Act::Forward(_), _) => Err("its memory cannot be that of this input"),
        (Act::There, _) if state == Unset => Err("it has no memory"),
        (Act::There, _) => Ok(Written),
        (Act::Shared(Kind::Bool), Kind::Plain) => Ok(Written),
        (Act::Shared(from), to) if from == to => Ok(Written),
        (Act::Shared(_), _) => Err("its elements are of another kind than those of this input"),
        (Act::Strings { shape, sent }, Kind::Strings) => match shape == Some(sent) {
            true if state == Unset => Ok(Written),
            true => Err("strings have no memory of their own before they are sent"),
            false => Err("the strings are not as many as its shape has"),
        },
        (Act::Strings { .. }, _) => Err("it is not a tensor of strings"),
    }
}

/// Number of elements of a shape.
pub(super) fn elements(dims: &[i64]) -> Option<u64> {
    dims.iter().try_fold(1u64, |all, &dim| all.checked_mul(u64::try_from(dim).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use State::{Allocated, Forwarded, Planned, Unset, Written};

    const STATES: [State; 5] = [Unset, Planned, Allocated, Forwarded, Written];
    const KINDS: [Kind; 4] = [Kind::Plain, Kind::Bool, Kind::Strings, Kind::Kept];

    fn acts() -> Vec<Act> {
        let of = KINDS.into_iter().flat_map(|kind| [Act::Forward(kind), Act::Shared(kind)]);
        let strings = [(Some(2), 2), (Some(2), 3), (None, 2)];
        let strings = strings.map(|(shape, sent)| Act::Strings { shape, sent });
        [Act::Allocate, Act::There, Act::Unset].into_iter().chain(of).chain(strings).collect()
    }

    /// Lists every permitted act: all others are refused.
    #[test]
    fn only_these_messages_change_an_output() {
        let early = [Unset, Planned, Allocated, Forwarded];
        let mut allowed = Vec::new();
        for kind in [Kind::Plain, Kind::Bool] {
            allowed.extend(early.map(|state| (state, kind, Act::Allocate, Allocated)));
            allowed.extend(early[1..].iter().map(|&state| (state, kind, Act::There, Written)));
        }
        for (from, to) in [
            (Kind::Plain, Kind::Plain),
            (Kind::Bool, Kind::Plain),
            (Kind::Bool, Kind::Bool),
            (Kind::Strings, Kind::Strings),
        ] {
            allowed.extend(early.map(|state| (state, to, Act::Shared(from), Written)));
        }
        let forward = Act::Forward(Kind::Plain);
        allowed.extend(early[..3].iter().map(|&state| (state, Kind::Plain, forward, Forwarded)));
        let strings = Act::Strings { shape: Some(2), sent: 2 };
        allowed.push((Unset, Kind::Strings, strings, Written));
        allowed.extend(KINDS.map(|kind| (Unset, kind, Act::Unset, Unset)));
        for state in STATES {
            for kind in KINDS {
                for act in acts() {
                    let row =
                        allowed.iter().find(|row| (row.0, row.1, row.2) == (state, kind, act));
                    let found = after(state, kind, act).ok();
                    assert_eq!(found, row.map(|row| row.3), "{state:?}, {kind:?}, {act:?}");
                }
            }
        }
    }

    #[test]
    fn kinds_are_those_of_the_element_types() {
        assert_eq!(Kind::of(DType::BOOL), Kind::Bool);
        assert_eq!(Kind::of(DType::STRING), Kind::Strings);
        for dtype in [DType::RESOURCE, DType::VARIANT, DType::FLOAT.as_ref_type(), DType(9999)] {
            assert_eq!(Kind::of(dtype), Kind::Kept, "{dtype}");
        }
        assert_eq!(Kind::of(DType::COMPLEX128), Kind::Plain);
    }

    #[test]
    fn elements_of_a_shape_are_counted_or_too_many() {
        assert_eq!(
            (elements(&[]), elements(&[3, 0]), elements(&[2, 5])),
            (Some(1), Some(0), Some(10))
        );
        assert_eq!((elements(&[1 << 40, 1 << 40]), elements(&[-1])), (None, None));
    }
}
