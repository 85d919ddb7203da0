//! In which order units have their turn, and how far each is looked at.
//!
//! A check examines every unit in full, in the plugin's order. A caller with little time, such as `tenon dev`,
//! asks for more: what failed before comes first, then every kernel is called, and what is left of the time goes to
//! looking at the rest in full.

use crate::check::protocol::{Unit, UnitKind};
use std::{collections::BTreeSet, path::PathBuf, time::Duration};

/// The order of examination, and when it ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turns {
    /// Units that are known to fail: they come first, in full and whatever the time.
    pub failed: BTreeSet<String>,
    /// Whether every kernel is called, whatever the time, before any other is looked at in full.
    pub call_all: bool,
    /// Files that were changed: what is registered there comes before the rest.
    pub changed: Vec<PathBuf>,
    /// Ops whose units come before those of other ops, in this order.
    pub ops: Vec<String>,
    /// Names of units that come after the others of their op.
    pub later: BTreeSet<String>,
    /// Time for looking at the rest in full, from when that begins. The unit that is begun is ended.
    pub time: Option<Duration>,
    /// Whether nothing further is begun once something failed.
    pub until_failure: bool,
}

/// How far a unit is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Depth {
    /// All steps, whatever the time.
    Known,
    /// A short call or two, whatever the time.
    Call,
    /// All steps, where there is time.
    Full,
}

/// A unit's turn.
pub(super) type Turn = (usize, Depth);

impl Turns {
    /// The turns of these units, those of a plugin as a whole apart: what looks at it comes after the rest, when it is
    /// known which kernels end their process.
    pub(super) fn of(&self, units: &[Unit]) -> (Vec<Turn>, Vec<usize>) {
        let (last, mut all): (Vec<usize>, Vec<usize>) =
            (0..units.len()).partition(|&at| units[at].kind == UnitKind::Plugin);
        all.sort_by_key(|&at| self.rank(&units[at]));
        let known = |at: &usize| self.failed.contains(&units[*at].name);
        let (first, rest): (Vec<usize>, Vec<usize>) = all.into_iter().partition(known);
        let mut turns: Vec<Turn> = first.into_iter().map(|at| (at, Depth::Known)).collect();
        if self.call_all {
            let kernels = rest.iter().filter(|&&at| units[at].kind == UnitKind::Kernel);
            turns.extend(kernels.map(|&at| (at, Depth::Call)));
        }
        turns.extend(rest.into_iter().map(|at| (at, Depth::Full)));
        (turns, last)
    }

    /// Less is sooner.
    fn rank(&self, unit: &Unit) -> impl Ord + use<> {
        let op = self.ops.iter().position(|op| *op == unit.op).unwrap_or(self.ops.len());
        (!self.is_changed(unit), op, self.later.contains(&unit.name))
    }

    /// Whether the unit is registered in a file that was changed.
    fn is_changed(&self, unit: &Unit) -> bool {
        let place = unit.source.split_whitespace().last().unwrap_or_default();
        let file = place.rsplit_once(':').map_or(place, |(file, _)| file);
        !file.is_empty() && self.changed.iter().any(|changed| changed.ends_with(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(op: &str, label: &str, source: &str) -> Unit {
        Unit {
            kind: UnitKind::Kernel,
            name: format!("{op} '{label}'"),
            op: op.to_owned(),
            device: "CPU".to_owned(),
            label: label.to_owned(),
            source: source.to_owned(),
        }
    }

    fn names(turns: &[Turn], units: &[Unit]) -> Vec<(String, Depth)> {
        turns.iter().map(|&(at, depth)| (units[at].name.clone(), depth)).collect()
    }

    #[test]
    fn what_failed_comes_first_then_every_kernel_then_what_was_changed() {
        let units = [
            unit("A", "", "own src/a.rs:3"),
            unit("A", "fast", "own src/fast.rs:9"),
            unit("B", "", "own src/b.rs:7"),
            Unit { kind: UnitKind::Plugin, ..unit("", "", "") },
        ];
        let turns = Turns {
            failed: BTreeSet::from(["B ''".to_owned()]),
            call_all: true,
            changed: vec!["/src/own/src/fast.rs".into()],
            ..Turns::default()
        };
        let (found, last) = turns.of(&units);
        let expected = [
            ("B ''", Depth::Known),
            ("A 'fast'", Depth::Call),
            ("A ''", Depth::Call),
            ("A 'fast'", Depth::Full),
            ("A ''", Depth::Full),
        ];
        assert_eq!(names(&found, &units), expected.map(|(name, depth)| (name.to_owned(), depth)));
        assert_eq!(last, [3], "the plugin as a whole comes last");
    }

    #[test]
    fn without_a_wish_units_keep_their_order_and_none_is_called_twice() {
        let units = [unit("B", "", ""), unit("A", "", "")];
        let (turns, last) = Turns::default().of(&units);
        assert_eq!((turns, last), (vec![(0, Depth::Full), (1, Depth::Full)], vec![]));
        let wish = Turns { ops: vec!["A".into()], ..Turns::default() };
        assert_eq!(wish.of(&units).0, [(1, Depth::Full), (0, Depth::Full)]);
        let later = Turns { later: BTreeSet::from(["B ''".into()]), ..Turns::default() };
        assert_eq!(later.of(&units).0, [(1, Depth::Full), (0, Depth::Full)]);
    }
}
