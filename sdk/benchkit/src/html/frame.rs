//! Common parts of drawings: two widths, axes, marks, legends.
//!
//! Every drawing is made twice, for wide and for narrow windows; the style sheet shows one of them. Text in a drawing
//! that is merely scaled would be too small to read on a telephone.

use super::{
    markup::{Markup, px},
    model::Series,
    scale::Scale,
};

/// For which window a drawing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Desktop and paper.
    Wide,
    /// Telephone.
    Narrow,
}

impl Size {
    /// Units across.
    pub fn width(self) -> f64 {
        if self == Size::Wide { 880.0 } else { 360.0 }
    }

    /// One of two values.
    pub fn pick<T>(self, wide: T, narrow: T) -> T {
        if self == Size::Wide { wide } else { narrow }
    }
}

/// Draws for both widths. `label` describes the drawing for readers who cannot see it.
pub fn drawing(
    page: &mut Markup,
    label: &str,
    height: impl Fn(Size) -> f64,
    draw: impl Fn(&mut Markup, Size),
) {
    for size in [Size::Wide, Size::Narrow] {
        let (width, height) = (size.width(), height(size));
        let view = format!("0 0 {} {}", px(width), px(height));
        let class = size.pick("plot wide", "plot narrow");
        let attrs: [(&str, &dyn std::fmt::Display); 4] =
            [("class", &class), ("viewBox", &view), ("role", &"img"), ("aria-label", &label)];
        page.element("svg", &attrs, |inside| draw(inside, size));
    }
}

/// The inside of a drawing with two axes.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Left edge.
    pub left: f64,
    /// Right edge.
    pub right: f64,
    /// Top edge.
    pub top: f64,
    /// Bottom edge.
    pub bottom: f64,
    /// From values to places across.
    pub x: Scale,
    /// From values to places upwards.
    pub y: Scale,
}

/// About how wide a letter of a tick is, and the room at the right of a frame.
const LETTER: f64 = 7.0;
const MARGIN: f64 = 8.0;

/// Ticks: values with their labels.
pub type Ticks = Vec<(f64, String)>;

impl Frame {
    /// A frame with these edges.
    pub fn new(edges: [f64; 4], x: Scale, y: Scale) -> Frame {
        let [left, right, top, bottom] = edges;
        Frame { left, right, top, bottom, x: x.on(left, right), y: y.on(bottom, top) }
    }

    /// The axis at the bottom.
    pub fn x_axis(&self, page: &mut Markup, ticks: &Ticks, title: &str) {
        let line = format!("M{} {}H{}", px(self.left), px(self.bottom), px(self.right));
        page.shape("path", &[("class", &"axis"), ("d", &line)]);
        for (value, text) in ticks {
            let x = self.x.at(*value);
            let tick = format!("M{} {}v4", px(x), px(self.bottom));
            page.shape("path", &[("class", &"axis"), ("d", &tick)]);
            // The last one's text would leave the page.
            let leaves = x + 0.5 * LETTER * text.len() as f64 > self.right + MARGIN;
            label(page, x, self.bottom + 17.0, if leaves { "end" } else { "middle" }, text);
        }
        if !title.is_empty() {
            page.leaf(
                "text",
                &[
                    ("class", &"title"),
                    ("x", &px(self.right)),
                    ("y", &px(self.bottom + 35.0)),
                    ("text-anchor", &"end"),
                ],
                title,
            );
        }
    }

    /// The axis at the left, with a thin line across at each tick.
    pub fn y_axis(&self, page: &mut Markup, ticks: &Ticks, title: &str) {
        for (value, text) in ticks {
            let y = self.y.at(*value);
            let line = format!("M{} {}H{}", px(self.left), px(y), px(self.right));
            page.shape("path", &[("class", &"grid"), ("d", &line)]);
            label(page, self.left - 7.0, y + 4.0, "end", text);
        }
        page.leaf("text", &[("class", &"title"), ("x", &"0"), ("y", &px(self.top - 14.0))], title);
    }

    /// Where a pair of values is.
    pub fn place(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }
}

/// A text beside something.
pub fn label(page: &mut Markup, x: f64, y: f64, anchor: &str, text: &str) {
    page.leaf("text", &[("x", &px(x)), ("y", &px(y)), ("text-anchor", &anchor)], text);
}

/// A line through places.
pub fn line_through(places: impl Iterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    for (at, (x, y)) in places.enumerate() {
        d.push_str(&format!("{}{} {}", if at == 0 { 'M' } else { 'L' }, px(x), px(y)));
    }
    d
}

/// Colours there are; beyond them marks are hollow.
pub const COLOURS: usize = 6;
/// Strokes of lines, one per colour; nothing is a line without gaps.
const DASHES: [&str; COLOURS] = ["none", "7 3", "2 3", "9 3 2 3", "13 4", "5 3 1 3 1 3"];

/// The class with the colour of a series.
pub fn class(series: usize) -> String {
    format!("s{}", series % COLOURS)
}

/// The line of a series.
pub fn stroke(page: &mut Markup, series: usize, d: &str) {
    let class = format!("line {}", class(series));
    let dash = DASHES[series % COLOURS];
    page.shape("path", &[("class", &class), ("stroke-dasharray", &dash), ("d", &d)]);
}

/// The mark of a series, with what it says when it is pointed at.
pub fn mark(page: &mut Markup, series: usize, (x, y): (f64, f64), says: &str) {
    page.element("g", &[("class", &"point")], |inside| {
        inside.leaf("title", &[], says);
        let hit = [("class", &"hit" as &dyn std::fmt::Display), ("cx", &px(x)), ("cy", &px(y))];
        inside.shape("circle", &[hit[0], hit[1], hit[2], ("r", &"11")]);
        shape(inside, series, x, y, 4.6);
    });
}

/// The mark of a series alone.
pub fn shape(page: &mut Markup, series: usize, x: f64, y: f64, r: f64) {
    let hollow = if (series / COLOURS) % 2 == 1 { " hollow" } else { "" };
    let class = format!("mark {}{hollow}", class(series));
    let at = |dx: f64, dy: f64| format!("{} {}", px(x + dx * r), px(y + dy * r));
    let polygon = |corners: &[(f64, f64)]| {
        let corners: Vec<String> = corners.iter().map(|&(dx, dy)| at(dx, dy)).collect();
        format!("M{}Z", corners.join("L"))
    };
    let d = match series % COLOURS {
        0 => {
            let (left, r, across) = (at(-1.0, 0.0), px(r), px(2.0 * r));
            format!("M{left}a{r} {r} 0 1 0 {across} 0a{r} {r} 0 1 0 -{across} 0Z")
        }
        1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => polygon(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
        3 => polygon(&[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)]),
        4 => polygon(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
        _ => {
            let a = 0.4;
            polygon(&[
                (-a, -1.2),
                (a, -1.2),
                (a, -a),
                (1.2, -a),
                (1.2, a),
                (a, a),
                (a, 1.2),
                (-a, 1.2),
                (-a, a),
                (-1.2, a),
                (-1.2, -a),
                (-a, -a),
            ])
        }
    };
    page.shape("path", &[("class", &class), ("d", &d)]);
}

/// Which mark is which; nothing where there is one series only.
pub fn legend(page: &mut Markup, all: &[Series], shown: &[usize], class: &str) {
    if shown.len() < 2 {
        return;
    }
    page.element("ul", &[("class", &class)], |list| {
        for &at in shown {
            list.element("li", &[], |item| {
                swatch(item, at);
                item.text(&all[at].name);
            });
        }
    });
}

/// Line and mark of a series beside its name. The name says all, so readers of screens pass over it.
pub fn swatch(page: &mut Markup, series: usize) {
    let attrs: [(&str, &dyn std::fmt::Display); 3] =
        [("class", &"swatch"), ("viewBox", &"0 0 26 12"), ("aria-hidden", &"true")];
    page.element("svg", &attrs, |inside| {
        stroke(inside, series, "M0 6H26");
        shape(inside, series, 13.0, 6.0, 4.2);
    });
}

/// Moves labels apart: none is nearer to its neighbour than `apart`, none leaves `low..high` unless there is no room.
pub fn spread_out(places: &[f64], apart: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|&a, &b| places[a].total_cmp(&places[b]));
    let mut moved = places.to_vec();
    let mut least = low;
    for &at in &order {
        moved[at] = moved[at].max(least);
        least = moved[at] + apart;
    }
    let mut most = high;
    for &at in order.iter().rev() {
        moved[at] = moved[at].min(most);
        most = moved[at] - apart;
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_moved_apart() {
        assert_eq!(spread_out(&[50.0, 10.0, 51.0], 14.0, 0.0, 100.0), [50.0, 10.0, 64.0]);
        assert_eq!(spread_out(&[99.0, 98.0], 10.0, 0.0, 100.0), [100.0, 90.0]);
        assert_eq!(spread_out(&[], 10.0, 0.0, 100.0), [0.0; 0]);
    }

    #[test]
    fn series_differ_by_more_than_colour() {
        let drawn = |series| {
            let mut page = Markup::new();
            shape(&mut page, series, 0.0, 0.0, 4.0);
            page.finish()
        };
        let all: std::collections::BTreeSet<String> = (0..2 * COLOURS).map(drawn).collect();
        assert_eq!(all.len(), 2 * COLOURS);
        let dashes: std::collections::BTreeSet<&str> = DASHES.into();
        assert_eq!(dashes.len(), COLOURS);
    }
}
