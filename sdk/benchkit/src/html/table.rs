//! All measurements as a table.

use super::{
    frame::swatch,
    markup::Markup,
    model::{Entry, Model},
};
use crate::{
    record::{Comparison, Verdict},
    words::{Chance, compared, dispatch, figure, half_width, reached, spread, time, timed},
};

/// A cell: its text, and the number that it is sorted by, if that is not the text.
struct Cell {
    text: String,
    key: Option<f64>,
    class: &'static str,
}

impl Cell {
    fn words(text: String) -> Cell {
        Cell { text, key: None, class: "" }
    }

    /// A figure; without one it stays at the end, whichever way it is sorted.
    fn number(text: String, key: Option<f64>) -> Cell {
        Cell { text, key: Some(key.unwrap_or(f64::NAN)), class: "number" }
    }

    fn comparison(found: Option<&Comparison>) -> Cell {
        let Some(found) = found else {
            return Cell { class: "verdict", ..Cell::number(String::new(), None) };
        };
        let (mark, class) = match found.verdict {
            Verdict::Faster => ("\u{25b2} ", "verdict better"),
            Verdict::Slower => ("\u{25bc} ", "verdict worse"),
            Verdict::Same | Verdict::NotComparable | Verdict::Busy => ("", "verdict"),
        };
        let p = found.p.map(|p| format!(", p = {}", Chance(p))).unwrap_or_default();
        let key = (found.verdict != Verdict::NotComparable).then_some(found.speedup);
        Cell { class, ..Cell::number(format!("{mark}{}{p}", compared(found)), key) }
    }
}

/// Name of a column, and the part of a record that it shows.
type Column<'m> = (&'static str, Box<dyn Fn(&Entry<'_>) -> Cell + 'm>);

fn columns<'m>(model: &'m Model<'_>) -> Vec<Column<'m>> {
    let mut columns: Vec<Column<'_>> = Vec::new();
    if model.ops().len() > 1 {
        columns.push(("Op", Box::new(|entry| Cell::words(entry.record.bench.clone()))));
    }
    if model.report.run.sweep.is_some() {
        columns.push((
            "Size",
            Box::new(|entry| {
                let at = entry.record.case.at;
                Cell::number(
                    at.map(|at| at.to_string()).unwrap_or_default(),
                    at.map(|at| at as f64),
                )
            }),
        ));
    } else {
        columns.push(("Call", Box::new(|entry| Cell::words(model.case(entry)))));
    }
    if model.entries().any(|entry| entry.record.case.node.is_some()) {
        columns.push((
            "Calls",
            Box::new(|entry| {
                let calls = entry.record.case.calls;
                Cell::number(calls.to_string(), Some(calls as f64))
            }),
        ));
    }
    columns.push((
        "Variant",
        Box::new(|entry| {
            let chosen = if entry.record.variant.chosen { "*" } else { "" };
            Cell::words(format!("{}{chosen}{}", model.name(entry), timed(entry.record.timing)))
        }),
    ));
    columns.extend(times());
    if model.baseline.is_some() {
        columns.push(("Before", Box::new(|entry| before(model, entry))));
    }
    columns.push((
        "Against",
        Box::new(|entry| Cell::comparison(model.comparison(entry.place).as_ref())),
    ));
    if model.baseline.is_some() {
        columns.push((
            "Since the baseline",
            Box::new(|entry| Cell::comparison(model.change(entry.place))),
        ));
    }
    columns.extend(rates());
    let judged = |entry: &Entry<'_>| Cell { class: "judge", ..Cell::words(entry.record.judged()) };
    columns.push(("Judged by", Box::new(judged)));
    columns
}

/// The time in the earlier run.
fn before(model: &Model<'_>, entry: &Entry<'_>) -> Cell {
    let comparable = |found: &&Comparison| found.verdict != Verdict::NotComparable;
    let ns = model.change(entry.place).filter(comparable);
    let ns = ns.map(|found| entry.record.median_ns * found.speedup);
    Cell::number(ns.map(time).unwrap_or_default(), ns)
}

fn times<'m>() -> Vec<Column<'m>> {
    vec![
        ("Time", Box::new(|e| Cell::number(time(e.record.median_ns), Some(e.record.median_ns)))),
        ("\u{b1}", Box::new(|e| Cell::number(spread(e.record), Some(half_width(e.record))))),
    ]
}

fn rates<'m>() -> Vec<Column<'m>> {
    vec![
        (
            "Rate",
            Box::new(|e| {
                let text = format!("{} {}", figure(e.record.rate), e.record.unit);
                Cell::number(text, Some(e.record.rate))
            }),
        ),
        (
            "Of the limit",
            Box::new(|e| {
                let found = e.record.reached.as_ref();
                let fraction = found.map(|found| found.fraction);
                Cell::number(found.map(reached).unwrap_or_default(), fraction)
            }),
        ),
        (
            "Dispatch",
            Box::new(|e| {
                let found = e.record.dispatch.as_ref();
                let text = found.map(dispatch).unwrap_or_default();
                Cell::number(text, found.map(|found| found.median))
            }),
        ),
        ("Fastest", Box::new(|e| Cell::number(time(e.record.min_ns), Some(e.record.min_ns)))),
        (
            "Samples",
            Box::new(|e| {
                Cell::number(e.record.samples.to_string(), Some(f64::from(e.record.samples)))
            }),
        ),
    ]
}

/// The table, in its own box that scrolls where it is too wide.
pub fn table(page: &mut Markup, model: &Model<'_>) {
    if model.report.records.is_empty() {
        return;
    }
    let columns = columns(model);
    page.element("section", &[("aria-labelledby", &"measurements")], |section| {
        section.leaf("h2", &[("id", &"measurements")], "All measurements");
        section.leaf("p", &[("class", &"note")], note(model));
        let attrs: [(&str, &dyn std::fmt::Display); 4] = [
            ("class", &"scroll"),
            ("tabindex", &"0"),
            ("role", &"region"),
            ("aria-labelledby", &"measurements"),
        ];
        section.element("div", &attrs, |scroll| {
            scroll.element("table", &[("class", &"sortable")], |table| {
                table.leaf("caption", &[], "Medians of the kernel alone");
                table.element("thead", &[], |head| {
                    head.element("tr", &[], |row| {
                        for (name, cell) in &columns {
                            let first = model.entries().next().map(|entry| cell(entry).class);
                            let class =
                                first.filter(|class| *class == "number").unwrap_or_default();
                            let attrs: [(&str, &dyn std::fmt::Display); 3] =
                                [("class", &class), ("scope", &"col"), ("aria-sort", &"none")];
                            row.leaf("th", &attrs, name);
                        }
                    });
                });
                table.element("tbody", &[], |body| {
                    for entry in model.entries() {
                        body.element("tr", &[], |row| cells(row, &columns, entry));
                    }
                });
            });
        });
    });
}

fn note(model: &Model<'_>) -> String {
    let size = model.report.run.sweep.as_ref();
    let size = size.map(|sweep| format!(" Size is {}.", sweep.symbol)).unwrap_or_default();
    format!(
        "\u{b1} is half the width of the 95 % interval, with ! where it did not become narrow enough; dispatch is what a \
         whole one-op step costs on top of the kernel. * is what the runtime would choose.{size}"
    )
}

fn cells(row: &mut Markup, columns: &[Column<'_>], entry: &Entry<'_>) {
    for (name, cell) in columns {
        let Cell { text, key, class } = cell(entry);
        let shown = key.map(|key| if key.is_nan() { String::new() } else { format!("{key}") });
        let mut attrs: Vec<(&'static str, &dyn std::fmt::Display)> = Vec::new();
        if !class.is_empty() {
            attrs.push(("class", &class));
        }
        if let Some(key) = &shown {
            attrs.push(("data-key", key));
        }
        if *name == "Variant" {
            row.element("th", &[("scope", &"row")], |head| {
                swatch(head, entry.series);
                head.text(&text);
            });
        } else {
            row.leaf("td", &attrs, &text);
        }
    }
}
