//! The summary: kernels and devices by clause, one sign each.
//!
//! Rows with the same signs are one row, so that differences are visible.

use super::{Mark, Report, Tally, UnitReport};
use crate::check::{Clause, protocol::UnitKind};
use std::{collections::BTreeMap, fmt::Write};

/// How many names a row lists before it only counts.
const NAMES: usize = 3;
/// Columns of text that names take at most.
const WIDTH: usize = 48;

/// A row: kernels of one op, device type and label, whatever their element types.
struct Row {
    name: String,
    kind: UnitKind,
    subjects: usize,
    cases: usize,
    marks: BTreeMap<Clause, Mark>,
}

impl Row {
    fn new(report: &UnitReport) -> Row {
        let (name, kind) = (report.unit.row(), report.unit.kind);
        Row { name, kind, subjects: 0, cases: 0, marks: BTreeMap::new() }
    }

    fn add(&mut self, report: &UnitReport) {
        self.subjects += 1;
        self.cases += report.cases;
        for (clause, tally) in &report.clauses {
            let mark = self.marks.entry(*clause).or_insert(Mark::Nothing);
            *mark = (*mark).max(Tally::mark(tally));
        }
    }
}

fn sign(mark: Mark) -> &'static str {
    match mark {
        Mark::Nothing => " ",
        Mark::Skipped => "–",
        Mark::Kept => "✓",
        Mark::Broken => "✗",
    }
}

/// A clause as the title of a column; its full name is below the table.
fn title(clause: Clause) -> &'static str {
    match clause {
        Clause::Load => "load",
        Clause::Covered => "cov",
        Clause::Verified => "ver",
        Clause::Values => "val",
        Clause::Shapes => "shp",
        Clause::Bounds => "bnd",
        Clause::Inputs => "inp",
        Clause::Uninitialised => "uni",
        Clause::InPlace => "ipl",
        Clause::Concurrent => "con",
        Clause::Repeatable => "rep",
        Clause::Leak => "leak",
        Clause::Refusals => "ref",
        Clause::Attributes => "attr",
        Clause::Cancellation => "can",
        Clause::Progress => "prg",
        Clause::Lifecycle => "life",
        Clause::Allocation => "mem",
        Clause::Copies => "cop",
        Clause::StreamOrder => "ord",
        Clause::Events => "evt",
        Clause::Streams => "str",
        Clause::Faults => "flt",
        Clause::Loss => "loss",
    }
}

fn rows(report: &Report) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut at: BTreeMap<String, usize> = BTreeMap::new();
    for unit in &report.units {
        let place = *at.entry(unit.unit.row()).or_insert_with(|| {
            rows.push(Row::new(unit));
            rows.len() - 1
        });
        rows[place].add(unit);
    }
    rows
}

/// The summary as text.
pub fn table(report: &Report) -> String {
    let rows = rows(report);
    let mut text = String::new();
    for (kinds, heading) in [
        (&[UnitKind::Kernel, UnitKind::Op][..], "KERNEL"),
        (&[UnitKind::Device, UnitKind::Plugin][..], "DEVICE, PLUGIN"),
    ] {
        let rows: Vec<&Row> = rows.iter().filter(|row| kinds.contains(&row.kind)).collect();
        if !rows.is_empty() {
            text.push_str(&part(&rows, heading));
            text.push('\n');
        }
    }
    text
}

/// Rows of one kind.
fn part(rows: &[&Row], heading: &str) -> String {
    let clauses: Vec<Clause> = Clause::ALL
        .into_iter()
        .filter(|clause| rows.iter().any(|row| row.marks.contains_key(clause)))
        .collect();
    let merged = merged(rows, &clauses);
    let width = merged.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
    let width = width.max(heading.chars().count());
    let mut text = format!("{heading:<width$} TYPES CASES");
    for clause in &clauses {
        let _ = write!(text, " {}", title(*clause));
    }
    text.push('\n');
    for (name, subjects, cases, marks) in merged {
        let mut line = format!("{name:<width$} {subjects:>5} {cases:>5}");
        for (clause, mark) in clauses.iter().zip(marks) {
            let _ = write!(line, " {:^width$}", sign(mark), width = title(*clause).len());
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str(&legend(&clauses));
    text
}

/// What the titles of columns are short for, as far as they are.
fn legend(clauses: &[Clause]) -> String {
    let short = clauses.iter().filter(|clause| title(**clause) != clause.name());
    let words: Vec<String> =
        short.map(|clause| format!("{} {}", title(*clause), clause.name())).collect();
    let mut text = String::new();
    for line in words.chunks(8) {
        let _ = writeln!(text, "  {}", line.join(", "));
    }
    text
}

type Merged = (String, usize, usize, Vec<Mark>);

/// Rows with the same signs are one; those with something broken stay apart.
fn merged(rows: &[&Row], clauses: &[Clause]) -> Vec<Merged> {
    let mut groups: Vec<(Vec<Mark>, Vec<&Row>)> = Vec::new();
    for row in rows {
        let mark = |clause| row.marks.get(clause).copied().unwrap_or(Mark::Nothing);
        let marks: Vec<Mark> = clauses.iter().map(mark).collect();
        let broken = marks.contains(&Mark::Broken);
        match groups.iter_mut().find(|(other, _)| !broken && *other == marks) {
            Some((_, group)) => group.push(row),
            None => groups.push((marks, vec![row])),
        }
    }
    groups.sort_by_key(|(marks, _)| !marks.contains(&Mark::Broken));
    let one = |(marks, rows): (Vec<Mark>, Vec<&Row>)| {
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        let count = |get: fn(&Row) -> usize| rows.iter().map(|row| get(row)).sum();
        (names_in_short(&names), count(|row| row.subjects), count(|row| row.cases), marks)
    };
    groups.into_iter().map(one).collect()
}

/// The first names, and how many there are besides.
fn names_in_short(names: &[&str]) -> String {
    let mut text = String::new();
    for (at, name) in names.iter().enumerate() {
        let separator = if at == 0 { "" } else { ", " };
        let long = text.chars().count() + name.chars().count() + 2 > WIDTH;
        if at > 0 && (at == NAMES || long) {
            let _ = write!(text, " and {} more", names.len() - at);
            break;
        }
        let _ = write!(text, "{separator}{name}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::report::testing::{broken, kept, report, skipped};

    #[test]
    fn rows_that_are_alike_are_one() {
        let report = report(&[
            ("Add", "", "half", &[(Clause::Values, kept()), (Clause::Leak, skipped())]),
            ("Add", "", "float", &[(Clause::Values, kept()), (Clause::Leak, kept())]),
            ("Mul", "", "float", &[(Clause::Values, kept()), (Clause::Leak, kept())]),
            ("Sub", "avx2", "float", &[(Clause::Values, broken(1))]),
        ]);
        let expected = "\
KERNEL                 TYPES CASES val leak
Sub on CPU 'avx2'          1     2  ✗
Add on CPU, Mul on CPU     3     6  ✓   ✓
  val values

";
        assert_eq!(table(&report), expected);
    }

    #[test]
    fn long_lists_of_names_are_cut() {
        assert_eq!(names_in_short(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
        let long = "x".repeat(WIDTH);
        assert_eq!(names_in_short(&[&long, "b"]), format!("{long} and 1 more"));
    }
}
