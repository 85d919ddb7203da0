//! The report as one JSON object.

use super::{Failure, Report, Spent, Tally, UnitReport};
use serde_json::{Value, json};
use std::time::Duration;

/// The whole report.
pub fn to_json(report: &Report) -> Value {
    let (plugin, sampling) = (&report.plugin, &report.sampling);
    json!({
        "right": report.is_right(),
        "plugin": {
            "name": plugin.name,
            "version": plugin.version,
            "file": plugin.file.display().to_string(),
            "digest": plugin.digest,
        },
        "seed": sampling.seed,
        "full": sampling.full,
        "seconds": report.time.as_secs_f64(),
        "cases": report.cases(),
        "not_run": report.not_run().into_iter().map(|(unit, reason)| {
            json!({ "name": unit.name, "reason": reason })
        }).collect::<Vec<_>>(),
        "exceptions": report.exceptions.as_ref().map(|file| file.display().to_string()),
        "reproducers": report.reproducers.as_ref().map(|folder| folder.display().to_string()),
        "problems": report.problems,
        "notes": report.notes,
        "subjects": report.units.iter().map(unit).collect::<Vec<_>>(),
    })
}

fn unit(report: &UnitReport) -> Value {
    let unit = &report.unit;
    let clauses =
        report.clauses.iter().map(|(clause, tally)| (clause.name().to_owned(), tally_json(tally)));
    json!({
        "name": unit.name,
        "kind": unit.kind,
        "op": unit.op,
        "device_type": unit.device,
        "label": unit.label,
        "source": unit.source,
        "right": report.is_right(),
        "run": report.not_run().is_none(),
        "looked_at": report.looked.name(),
        "cases": report.cases,
        "clauses": clauses.collect::<serde_json::Map<_, _>>(),
        "seconds": seconds(&report.spent),
    })
}

/// Seconds by what they were spent on, to the microsecond.
fn seconds(spent: &Spent) -> Value {
    let rounded = |time: Duration| time.as_micros() as f64 / 1e6;
    spent.iter().map(|(on, time)| (on.to_string(), json!(rounded(time)))).collect()
}

fn tally_json(tally: &Tally) -> Value {
    json!({
        "passed": tally.passed,
        "failed": tally.failed,
        "failures": tally.failures.iter().map(failure).collect::<Vec<_>>(),
        "skipped": tally.skipped,
    })
}

fn failure(failure: &Failure) -> Value {
    json!({
        "case": failure.case,
        "message": failure.message,
        "input": failure.input,
        "reproducer": failure.reproducer.as_ref().map(|file| file.display().to_string()),
        "arrays": failure.arrays.as_ref().map(|folder| folder.display().to_string()),
        "said": failure.said,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{
        Clause,
        report::testing::{broken, report, skipped},
    };

    #[test]
    fn the_report_says_what_was_not_run() {
        let rows = [("Add", "", "half", &[(Clause::Values, skipped())][..])];
        let json = to_json(&report(&rows));
        let unit = "Add[T=half] on CPU";
        assert_eq!(json["not_run"], json!([{ "name": unit, "reason": "no device" }]));
        assert_eq!(json["subjects"][0]["run"], false);
        assert_eq!(json["subjects"][0]["looked_at"], "whole");
    }

    #[test]
    fn the_report_says_what_failed_and_what_was_skipped() {
        let rows = [(Clause::Values, broken(5)), (Clause::Leak, skipped())];
        let json = to_json(&report(&[("Add", "avx2", "half", &rows)]));
        assert_eq!(json["right"], false);
        let subject = &json["subjects"][0];
        assert_eq!(subject["name"], "Add[T=half] on CPU 'avx2'");
        assert_eq!((&subject["kind"], &subject["run"]), (&json!("kernel"), &json!(true)));
        assert_eq!(json["not_run"], json!([]));
        let values = &subject["clauses"]["values"];
        assert_eq!((&values["passed"], &values["failed"]), (&json!(0), &json!(5)));
        assert_eq!(values["failures"].as_array().map(Vec::len), Some(super::super::KEPT));
        assert_eq!(values["failures"][0]["reproducer"], "tenon-check/Add.values.json");
        assert_eq!(values["failures"][0]["arrays"], "kept/Add.values");
        assert_eq!(subject["clauses"]["leak"]["skipped"]["no device"], 2);
        assert_eq!(subject["seconds"], json!({ "oracle": 0.02, "values": 0.03, "leak": 0.03 }));
    }
}
