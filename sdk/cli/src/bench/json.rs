//! The report as JSON.

use serde_json::{Value, json};
use tenon_benchkit::{
    compare::Baseline,
    record::{Report, Verdict},
};

/// The report, and what became of the baseline.
pub fn value(report: &Report, baseline: Option<&Baseline>) -> Value {
    let mut value = json!(report);
    if let Some(found) = baseline {
        value["baseline"] = json!({
            "comparisons": found.comparisons,
            "missing": found.missing,
            "notes": found.notes,
            "regressions": found.regressions(),
            "improvements": found.count(Verdict::Faster),
            "compared": found.compared(),
            "busy": found.count(Verdict::Busy),
        });
    }
    value
}
