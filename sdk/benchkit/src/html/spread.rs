//! How samples are distributed: for each measurement the density of their distances from its median, over the samples
//! in the order in which they were taken.

use super::{
    frame::{Frame, Size, class, drawing, label, line_through},
    markup::{Markup, px},
    model::{Entry, Family, Model},
    scale::{Scale, number, range},
    times::{cut, points, room, some},
};
use crate::{
    stats::describe::{quantile, sorted},
    words::time,
};

/// Places at which a density is drawn.
const PLACES: usize = 96;

/// Fewer samples than these have no density.
const FEW: usize = 12;

/// The figures, one for each family.
pub fn figures(page: &mut Markup, model: &Model<'_>) {
    if model.report.records.is_empty() {
        return;
    }
    page.element("section", &[("aria-labelledby", &"samples")], |section| {
        section.leaf("h2", &[("id", &"samples")], "Samples");
        section.leaf(
            "p",
            &[("class", &"note")],
            "Distance of single samples from the median of their measurement: how they are distributed, and below \
             that each sample, the first one taken on top. At the right: the median, and how many samples lie beyond \
             the end of the axis.",
        );
        for family in &model.families {
            section.element("figure", &[], |figure| of_family(figure, model, family));
        }
    });
}

fn of_family(figure: &mut Markup, model: &Model<'_>, family: &Family<'_>) {
    if model.families.len() > 1 {
        figure.element("figcaption", &[], |caption| {
            caption.leaf("h3", &[], &family.title);
        });
    }
    let rows: Vec<Row<'_>> = family.entries.iter().map(Row::new).collect();
    let x = axis(&rows);
    let says =
        format!("{}: distribution of the samples of {} measurements", family.title, rows.len());
    let height = |size: Size| 70.0 + rows.len() as f64 * step(size);
    drawing(figure, &says, height, |page, size| draw(page, model, family, &rows, x, size));
}

fn step(size: Size) -> f64 {
    size.pick(36.0, 52.0)
}

/// Distances of samples from their median, as shares of it.
struct Row<'a> {
    entry: &'a Entry<'a>,
    sorted: Vec<f64>,
}

impl<'a> Row<'a> {
    fn new(entry: &'a Entry<'a>) -> Row<'a> {
        let distances: Vec<f64> =
            entry.record.kernel.ns.iter().map(|&ns| distance(entry, ns)).collect();
        Row { entry, sorted: sorted(&distances) }
    }

    /// Gaussian kernels, as wide as Silverman's rule says ("Density Estimation", 1986, 3.31).
    fn density(&self, scale: &Scale) -> Vec<(f64, f64)> {
        let (from, to) = scale.ends();
        let count = self.sorted.len() as f64;
        let mean = self.sorted.iter().sum::<f64>() / count;
        let deviation =
            (self.sorted.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
        let quartiles = quantile(&self.sorted, 0.75) - quantile(&self.sorted, 0.25);
        let narrow = if quartiles > 0.0 { deviation.min(quartiles / 1.34) } else { deviation };
        // Never narrower than what can be seen.
        let width = (0.9 * narrow * count.powf(-0.2)).max((to - from) / 300.0);
        let at = |place: usize| from + (to - from) * place as f64 / (PLACES - 1) as f64;
        let sum = |x: f64| {
            self.sorted.iter().map(|v| (-0.5 * ((x - v) / width).powi(2)).exp()).sum::<f64>()
        };
        let heights: Vec<(f64, f64)> =
            (0..PLACES).map(|place| (at(place), sum(at(place)))).collect();
        let most = range(heights.iter().map(|(_, height)| *height)).map_or(1.0, |ends| ends.1);
        heights.into_iter().map(|(x, height)| (x, height / most.max(f64::MIN_POSITIVE))).collect()
    }
}

fn distance(entry: &Entry<'_>, ns: f64) -> f64 {
    ns / entry.record.median_ns - 1.0
}

/// An axis that holds most samples of most measurements: a few far ones must not flatten all others.
fn axis(rows: &[Row<'_>]) -> Scale {
    let most = |q: f64, of_rows: f64| {
        let ends: Vec<f64> = rows.iter().map(|row| quantile(&row.sorted, q)).collect();
        quantile(&sorted(&ends), of_rows)
    };
    Scale::linear(
        (1.15 * most(0.01, 0.1)).clamp(-0.9, -0.005),
        (1.3 * most(0.95, 0.9)).clamp(0.01, 1.0),
    )
}

fn draw(
    page: &mut Markup,
    model: &Model<'_>,
    family: &Family<'_>,
    rows: &[Row<'_>],
    x: Scale,
    size: Size,
) {
    let several = family.cases().nth(1).is_some();
    let name = |row: &Row<'_>| match several {
        true => format!("{}, {}", model.case(row.entry), model.name(row.entry)),
        false => model.name(row.entry).to_owned(),
    };
    let names: Vec<String> = rows.iter().map(|row| cut(&name(row), size.pick(38, 46))).collect();
    let bottom = 26.0 + rows.len() as f64 * step(size);
    let room = room(names.iter().map(String::as_str));
    let edges = [size.pick(room, 8.0), size.width() - size.pick(150.0, 118.0), 22.0, bottom];
    let frame = Frame::new(edges, x, Scale::linear(0.0, 1.0));
    let text = |v: f64| {
        format!("{}{}%", if v > 0.0 { "+" } else { "" }, number((1e4 * v).round() / 100.0))
    };
    let ticks = frame.x.ticks(size.pick(70.0, 52.0)).into_iter().map(|v| (v, text(v)));
    frame.x_axis(page, &ticks.collect(), "from the median");
    let middle = format!("M{} {}V{}", px(frame.x.at(0.0)), px(frame.top), px(frame.bottom));
    page.shape("path", &[("class", &"grid"), ("d", &middle)]);
    let (median, beyond) = (frame.right + size.pick(80.0, 66.0), size.width());
    for (x, name) in [(median, "median"), (beyond, "beyond")] {
        label(page, x, frame.top - 8.0, "end", name);
    }
    for (at, row) in rows.iter().enumerate() {
        let top = frame.top + at as f64 * step(size) + size.pick(0.0, 16.0);
        let name = &names[at];
        match size {
            Size::Wide => label(page, frame.left - 12.0, top + 20.0, "end", name),
            Size::Narrow => label(page, frame.left, top - 2.0, "start", name),
        }
        shape(page, &frame, row, top);
        label(page, median, top + 20.0, "end", &time(row.entry.record.median_ns));
        let far = row.sorted.iter().filter(|value| **value > frame.x.ends().1).count();
        if far > 0 {
            label(page, beyond, top + 20.0, "end", &far.to_string());
        }
    }
}

/// Density and samples of a row that begins at `top`.
fn shape(page: &mut Markup, frame: &Frame, row: &Row<'_>, top: f64) {
    let ground = top + 19.0;
    if row.sorted.len() >= FEW {
        outline(page, frame, row, ground);
    }
    dots(page, frame, row, ground);
}

fn outline(page: &mut Markup, frame: &Frame, row: &Row<'_>, ground: f64) {
    let places = row.density(&frame.x);
    let outline = places.iter().map(|&(x, height)| (frame.x.at(x), ground - 17.0 * height));
    let d =
        format!("{}L{} {}H{}Z", line_through(outline), px(frame.right), px(ground), px(frame.left));
    page.shape("path", &[("class", &format!("density {}", class(row.entry.series))), ("d", &d)]);
}

/// Each sample, the first one on top.
fn dots(page: &mut Markup, frame: &Frame, row: &Row<'_>, ground: f64) {
    let ns = &row.entry.record.kernel.ns;
    let (_, end) = frame.x.ends();
    let inside = some(ns.len()).filter(|&at| distance(row.entry, ns[at]) <= end);
    let dots = inside.map(|at| {
        let order = at as f64 / ns.len() as f64;
        (frame.x.at(distance(row.entry, ns[at])), ground + 2.5 + 10.0 * order)
    });
    points(page, row.entry.series, dots);
}
