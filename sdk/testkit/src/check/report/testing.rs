//! Reports for the tests of what writes them.

use super::{Failure, PluginFacts, Report, Tally, UnitReport};
use crate::check::{
    Clause,
    protocol::{Sampling, Unit, UnitKind},
    report::{Activity, Looked, Spent},
};
use std::time::Duration;

pub fn kept() -> Tally {
    Tally { passed: 2, ..Tally::default() }
}

pub fn skipped() -> Tally {
    let mut tally = Tally::default();
    tally.skipped.insert("no device".to_owned(), 2);
    tally
}

pub fn broken(failures: usize) -> Tally {
    let mut tally = Tally::default();
    for at in 0..failures {
        tally.fail(Failure {
            case: format!("prime_{at}"),
            message: format!("{at} of 7 elements are wrong; at [0] got 1, expected 2 <&>"),
            said: String::new(),
            input: Some("input 0: float [1] = [1.0]".to_owned()),
            reproducer: Some("tenon-check/Add.values.json".into()),
            arrays: Some("kept/Add.values".into()),
        });
    }
    tally
}

/// Op, label, type, and what became of clauses.
type Row<'a> = (&'a str, &'a str, &'a str, &'a [(Clause, Tally)]);

pub fn report(rows: &[Row<'_>]) -> Report {
    let unit = |(op, label, types, clauses): &Row<'_>| {
        let quoted = if label.is_empty() { String::new() } else { format!(" '{label}'") };
        let unit = Unit {
            kind: UnitKind::Kernel,
            name: format!("{op}[T={types}] on CPU{quoted}"),
            op: (*op).to_owned(),
            device: "CPU".to_owned(),
            label: (*label).to_owned(),
            source: "src/lib.rs:7".to_owned(),
        };
        let mut spent = Spent::default();
        spent.add(Activity::Oracle, Duration::from_millis(20));
        clauses.iter().for_each(|(clause, _)| {
            spent.add(Activity::Clause(*clause), Duration::from_millis(30))
        });
        let (clauses, looked) = (clauses.iter().cloned().collect(), Looked::Whole);
        UnitReport { unit, cases: 2, clauses, spent, looked }
    };
    Report {
        plugin: PluginFacts {
            name: "tenon-test".to_owned(),
            version: "0.1.0".to_owned(),
            file: "libtenon_test.so".into(),
            digest: "00ff".to_owned(),
        },
        sampling: Sampling { seed: 1, cases: 2, full: false },
        units: rows.iter().map(unit).collect(),
        problems: Vec::new(),
        notes: Vec::new(),
        exceptions: None,
        reproducers: None,
        time: Duration::from_millis(1500),
    }
}
