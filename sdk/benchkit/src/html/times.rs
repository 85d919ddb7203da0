//! Calls beside each other, where there is no sweep: a row for each call with a mark for each variant; for one call
//! alone a row for each variant, with its samples.

use super::{
    frame::{Frame, Size, class, drawing, label, legend, mark},
    markup::{Markup, px},
    model::{Entry, Family, Model, shown},
    scale::{Scale, range},
    sweep::round_time,
};
use crate::words::time;
use std::fmt::Display;

/// Samples that are drawn of a row at most.
pub const MOST_DOTS: usize = 160;

/// The figure; nothing where all calls are sweeps.
pub fn figure(page: &mut Markup, model: &Model<'_>) {
    let families: Vec<&Family<'_>> =
        model.families.iter().filter(|family| family.sweep.is_none()).collect();
    let cases: Vec<&[Entry<'_>]> = families.iter().flat_map(|family| family.cases()).collect();
    let rows: Vec<Row<'_>> = match &cases[..] {
        [] => return,
        [only] => only.iter().map(|entry| Row::of_variant(model, entry)).collect(),
        _ => cases.iter().map(|case| Row::of_case(model, case)).collect(),
    };
    let alone = cases.len() == 1;
    let entries = || rows.iter().flat_map(|row| row.entries);
    let ends = entries().flat_map(|entry| {
        let said = entry.record.kernel.summary;
        if alone { [said.min, said.p95] } else { said.interval }
    });
    let Some((low, high)) = range(ends) else { return };
    let x = Scale::log(low / 1.03, high * 1.03);
    page.element("figure", &[], |figure| {
        figure.element("figcaption", &[], |caption| {
            let says = "Medians with their 95 % confidence interval; the dots are single samples.";
            caption.leaf("h2", &[], "Times");
            caption.leaf(
                "p",
                &[],
                if alone { says } else { "Medians. Times are told apart by ratio." },
            );
        });
        if !alone {
            legend(figure, &model.series, &shown(entries()), "legend");
        }
        let says = format!("Times of {} calls, a row each", rows.len());
        let height = |size: Size| 70.0 + rows.len() as f64 * step(size);
        drawing(figure, &says, height, |page, size| draw(page, model, &rows, x, alone, size));
    });
}

/// Height of a row: in narrow drawings its name is above it.
fn step(size: Size) -> f64 {
    size.pick(30.0, 44.0)
}

struct Row<'a> {
    name: String,
    entries: &'a [Entry<'a>],
}

impl<'a> Row<'a> {
    fn of_variant(model: &Model<'_>, entry: &'a Entry<'a>) -> Row<'a> {
        let name = model.name(entry).to_owned();
        Row { name, entries: std::slice::from_ref(entry) }
    }

    fn of_case(model: &Model<'_>, case: &'a [Entry<'a>]) -> Row<'a> {
        let name = model.at(&case[0]);
        Row { name, entries: case }
    }
}

fn draw(page: &mut Markup, model: &Model<'_>, rows: &[Row<'_>], x: Scale, alone: bool, size: Size) {
    let bottom = 26.0 + rows.len() as f64 * step(size);
    let longest = rows.iter().map(|row| row.name.as_str());
    let edges = [size.pick(room(longest), 8.0), size.width() - size.pick(80.0, 70.0), 22.0, bottom];
    let frame = Frame::new(edges, x, Scale::linear(0.0, 1.0));
    let ticks = frame.x.ticks(size.pick(80.0, 64.0)).into_iter().map(|v| (v, round_time(v)));
    frame.x_axis(page, &ticks.collect(), "time of a call");
    let said = if alone { "median" } else { "fastest" };
    label(page, size.width(), frame.top - 4.0, "end", said);
    for (at, row) in rows.iter().enumerate() {
        let top = frame.top + at as f64 * step(size);
        let y = top + size.pick(16.0, 30.0);
        let rule = format!("M{} {}H{}", px(frame.left), px(y), px(frame.right));
        page.shape("path", &[("class", &"grid"), ("d", &rule)]);
        let name = cut(&row.name, size.pick(38, 46));
        match size {
            Size::Wide => label(page, frame.left - 12.0, y + 4.0, "end", &name),
            Size::Narrow => label(page, frame.left, top + 12.0, "start", &name),
        }
        for entry in row.entries {
            if alone {
                dots(page, &frame, entry, y);
            }
            interval(page, &frame, entry, y);
            let place = (frame.x.at(entry.record.median_ns), y);
            mark(page, entry.series, place, &model.says(entry));
        }
        let best = range(row.entries.iter().map(|entry| entry.record.median_ns));
        label(page, size.width(), y + 4.0, "end", &time(best.map_or(0.0, |ends| ends.0)));
    }
}

/// Room for names at the left of wide drawings.
pub fn room<'a>(names: impl Iterator<Item = &'a str>) -> f64 {
    let longest = names.map(|name| name.chars().count()).max().unwrap_or(0);
    (longest as f64 * 7.2 + 16.0).clamp(60.0, 300.0)
}

/// A text of at most this length.
pub fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['\u{2026}']).collect(),
        false => text.to_owned(),
    }
}

fn interval(page: &mut Markup, frame: &Frame, entry: &Entry<'_>, y: f64) {
    let [low, high] = entry.record.kernel.summary.interval.map(|ns| frame.x.at(ns));
    let class = format!("interval {}", class(entry.series));
    let d = format!("M{} {}H{}", px(low), px(y), px(high));
    page.shape("path", &[("class", &class), ("d", &d)]);
}

fn dots(page: &mut Markup, frame: &Frame, entry: &Entry<'_>, y: f64) {
    let ns = &entry.record.kernel.ns;
    let places = some(ns.len()).map(|at| {
        let order = at as f64 / ns.len() as f64 - 0.5;
        (frame.x.at(ns[at]), y + 20.0 * order)
    });
    points(page, entry.series, places);
}

/// Places of some of this many samples, evenly spread.
pub fn some(count: usize) -> impl Iterator<Item = usize> {
    let taken = count.min(MOST_DOTS);
    (0..taken).map(move |at| at * count / taken)
}

/// Dots as one stroke: a page has many of them.
pub fn points(page: &mut Markup, series: usize, places: impl Iterator<Item = (f64, f64)>) {
    let d: String = places.map(|(x, y)| format!("M{} {}h0", px(x), px(y))).collect();
    let attrs: [(&str, &dyn Display); 2] =
        [("class", &format!("dots {}", class(series))), ("d", &d)];
    page.shape("path", &attrs);
}
