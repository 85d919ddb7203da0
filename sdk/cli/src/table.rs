//! Aligned tables.

use crate::output::plain;
use std::fmt::Write;
use tenon_runtime::framework::text::cut_text;

/// How a column is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Figures.
    Right,
}

/// A table of text.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

/// Between columns.
const GAP: &str = "  ";

impl Table {
    /// A table of these columns. A column whose title begins with `>` holds figures.
    pub fn new<const N: usize>(columns: [&'static str; N]) -> Table {
        let column = |title: &'static str| match title.strip_prefix('>') {
            Some(title) => (title, Align::Right),
            None => (title, Align::Left),
        };
        Table { columns: columns.into_iter().map(column).collect(), rows: Vec::new() }
    }

    /// Adds a row. A cell is one line of plain text, whatever is in it, and the beginning of one that is very long.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(
            cells.iter().map(|cell| plain(&cut_text(cell).to_string()).into_owned()).collect(),
        );
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table, each line after `indent` spaces. Columns without any text are left out.
    pub fn render(&self, indent: usize) -> String {
        let cell = |row: &'_ [String], at: usize| row.get(at).map_or(0, |c| c.chars().count());
        let shown: Vec<(usize, usize)> = (0..self.columns.len())
            .filter_map(|at| {
                let widest = self.rows.iter().map(|row| cell(row, at)).max().unwrap_or(0);
                (widest > 0).then(|| (at, widest.max(self.columns[at].0.chars().count())))
            })
            .collect();
        let titles: Vec<String> =
            self.columns.iter().map(|(title, _)| title.to_uppercase()).collect();
        let mut text = String::new();
        for row in std::iter::once(&titles).chain(&self.rows) {
            let mut line = " ".repeat(indent);
            for &(at, width) in &shown {
                let value = row.get(at).map_or("", String::as_str);
                let _ = match self.columns[at].1 {
                    Align::Left => write!(line, "{value:<width$}{GAP}"),
                    Align::Right => write!(line, "{value:>width$}{GAP}"),
                };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        let mut table = Table::new(["name", "label", ">time"]);
        table.row(["Conv2D".into(), String::new(), "12.5 µs".into()]);
        table.row(["Relu".into(), String::new(), "9 ns".into()]);
        let expected = "  NAME       TIME\n  Conv2D  12.5 µs\n  Relu       9 ns\n";
        assert_eq!(table.render(2), expected);
    }

    #[test]
    fn a_cell_cannot_begin_another_line_or_command_the_terminal() {
        let mut table = Table::new(["name"]);
        table.row(["a\n\u{1b}[31mb".into()]);
        assert_eq!(table.render(0), "NAME\na\\n\\u{1b}[31mb\n");
    }

    #[test]
    fn a_name_of_megabytes_takes_a_line_of_a_thousand_letters() {
        let mut table = Table::new(["name", "label"]);
        table.row(["n".repeat(5_000_000), "avx".into()]);
        let text = table.render(0);
        assert!(
            text.len() < 2200 && text.contains("nnn... (5000000 bytes)  avx"),
            "{}",
            text.len()
        );
    }
}
