//! A report as one page: `tenon bench --html FILE`.
//!
//! What it is: a file that needs nothing else. Style, script and the records themselves are part of it; its policy
//! forbids the browser to load anything, and to run any script but the page's own. Tables and drawings are there
//! without the script, which sorts, shows values beside the pointer, and saves the records.
//! What it is not: a program; its contents are those of the report, nothing is computed for the page alone but
//! densities and places.
//!
//! Names and messages come from plugins, and are text wherever they appear (`markup`).

pub mod curves;
mod facts;
mod frame;
mod markup;
mod model;
mod roofline;
mod scale;
mod spread;
mod sweep;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod times;
mod verdict;

use crate::{
    compare::Baseline,
    record::{Report, write_lines},
};
use markup::{Markup, script_json};
use model::Model;
use sha2::{Digest, Sha256};

const PAGE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/page.js");

/// Ops that a title names.
const NAMED: usize = 4;

/// The page of a report, and of what became of the baseline.
pub fn page(report: &Report, baseline: Option<&Baseline>) -> String {
    let model = Model::new(report, baseline);
    let mut main = Markup::new();
    verdict::list(&mut main, &model);
    sweep::figures(&mut main, &model);
    times::figure(&mut main, &model);
    roofline::figures(&mut main, &model);
    spread::figures(&mut main, &model);
    table::table(&mut main, &model);
    facts::section(&mut main, &model);
    let mut heading = Markup::new();
    heading.text(title(&model));
    let mut line = Markup::new();
    line.text(facts::line(&model));
    let file = format!("tenon-bench-{}.jsonl", report.run.date);
    let mut name = Markup::new();
    name.text(file);
    fill(
        PAGE,
        &[
            ("policy", &policy()),
            ("style", STYLE),
            ("title", &heading.finish()),
            ("line", &line.finish()),
            ("main", &main.finish()),
            ("file", &name.finish()),
            ("records", &script_json(&records(report))),
            ("script", SCRIPT),
        ],
    )
}

/// The ops.
fn title(model: &Model<'_>) -> String {
    let ops = model.ops();
    match ops.len() {
        0 => "Nothing was timed".to_owned(),
        count if count > NAMED => format!("{} and {} more", ops[..NAMED].join(", "), count - NAMED),
        _ => ops.join(", "),
    }
}

/// The report as `--record` writes it.
fn records(report: &Report) -> String {
    let mut lines = Vec::new();
    // Writing to memory does not fail.
    let _ = write_lines(report, &mut lines);
    String::from_utf8_lossy(&lines).into_owned()
}

/// What a browser may do with the page: nothing from elsewhere, no script but this one.
fn policy() -> String {
    let digest = base64(&Sha256::digest(SCRIPT.as_bytes()));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
}

/// Base 64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let three = [0, 1, 2].map(|at| u32::from(chunk.get(at).copied().unwrap_or(0)));
        let bits = three[0] << 16 | three[1] << 8 | three[2];
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

/// A template with its `{{name}}`s filled. What is filled in is not looked at again.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut page = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        page.push_str(before);
        let Some((name, after)) = after.split_once("}}") else { break };
        let value = values.iter().find(|(known, _)| *known == name);
        page.push_str(value.map_or("", |(_, value)| value));
        rest = after;
    }
    page.push_str(rest);
    page
}
