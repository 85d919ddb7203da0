//! A sweep: the rate of every variant over the swept size, and below it how many times as fast each is as the base.

use super::{
    frame::{
        Frame, Size, Ticks, class, drawing, label, legend, line_through, mark, spread_out, stroke,
    },
    markup::{Markup, px},
    model::{Entry, Family, Model},
    scale::{Scale, number, range},
};
use crate::{
    record::Comparison,
    words::{in_unit, time},
};

/// The figures, one for each sweep.
pub fn figures(page: &mut Markup, model: &Model<'_>) {
    for family in model.families.iter().filter(|family| family.sweep.is_some()) {
        page.element("figure", &[], |figure| {
            figure.element("figcaption", &[], |caption| {
                caption.leaf("h2", &[], format!("Sweep of {}", family.title));
                caption.leaf("p", &[], "Medians, with the band of their 95 % confidence interval.");
            });
            legend(figure, &model.series, &family.shown(), "legend narrow");
            let unit = measure(family);
            rates(figure, model, family, &unit);
            ratios(figure, model, family);
        });
    }
}

/// The label of the vertical axis.
enum Measure {
    /// Work per nanosecond, in this unit.
    Rate(String),
    /// Nanoseconds, where no work is known.
    Time,
}

fn measure(family: &Family<'_>) -> Measure {
    let unit = &family.entries[0].record.unit;
    let all = family.entries.iter().all(|entry| entry.record.unit == *unit);
    if all && unit != "Gcall/s" { Measure::Rate(unit.clone()) } else { Measure::Time }
}

impl Measure {
    fn title(&self) -> &str {
        match self {
            Measure::Rate(unit) => unit,
            Measure::Time => "time of a call",
        }
    }

    /// The median, then the ends of its interval, the lower first.
    fn of(&self, entry: &Entry<'_>) -> (f64, [f64; 2]) {
        let record = entry.record;
        let [low, high] = record.kernel.summary.interval;
        match self {
            Measure::Time => (record.median_ns, [low, high]),
            Measure::Rate(_) => {
                let work = record.rate * record.median_ns;
                (record.rate, [work / high, work / low])
            }
        }
    }

    fn ticks(&self, scale: &Scale) -> Ticks {
        let text = |value: f64| match self {
            Measure::Time => round_time(value),
            Measure::Rate(_) => number(value),
        };
        scale.ticks(34.0).into_iter().map(|value| (value, text(value))).collect()
    }
}

/// A time beside a tick: no digits that say nothing.
pub fn round_time(ns: f64) -> String {
    let (value, unit) = in_unit(ns, 0.9999);
    format!("{} {unit}", number(value))
}

fn rates(figure: &mut Markup, model: &Model<'_>, family: &Family<'_>, measure: &Measure) {
    let measured = family.entries.iter().flat_map(|entry| measure.of(entry).1);
    let limits = family.entries.iter().filter_map(|entry| limit(entry, measure));
    let (low, high) = range(measured.chain(limits)).unwrap_or((1.0, 10.0));
    let (x, y) = (sizes(family), Scale::log(low / 1.25, high * 1.25));
    let says = format!(
        "{}: {} by size for {} variants",
        family.title,
        measure.title(),
        family.shown().len()
    );
    drawing(
        figure,
        &says,
        |size| size.pick(380.0, 320.0),
        |page, size| {
            let frame = frame(model, family, size, size.pick(380.0, 320.0), x, y);
            frame.y_axis(page, &measure.ticks(&frame.y), measure.title());
            frame.x_axis(page, &points(family, &frame, size), symbol(family));
            roof(page, family, &frame, measure);
            let shown = family.shown();
            for &series in &shown {
                let ends = family.line(series).map(|entry| (at(entry), measure.of(entry).1));
                band(page, &frame, series, &ends.collect::<Vec<_>>());
                let places =
                    family.line(series).map(|entry| frame.place(at(entry), measure.of(entry).0));
                stroke(page, series, &line_through(places));
            }
            for entry in &family.entries {
                let place = frame.place(at(entry), measure.of(entry).0);
                mark(page, entry.series, place, &model.says(entry));
            }
            if size == Size::Wide {
                let last = |series: &usize| {
                    family
                        .line(*series)
                        .last()
                        .map_or(frame.bottom, |e| frame.y.at(measure.of(e).0))
                };
                names(page, model, &frame, &shown, &shown.iter().map(last).collect::<Vec<_>>());
            }
        },
    );
}

/// The limit of a record in what is drawn.
fn limit(entry: &Entry<'_>, measure: &Measure) -> Option<f64> {
    let reached = entry.record.reached.as_ref()?;
    match measure {
        Measure::Rate(_) => Some(reached.roof),
        Measure::Time => None,
    }
}

/// The machine's limit along the sweep.
fn roof(page: &mut Markup, family: &Family<'_>, frame: &Frame, measure: &Measure) {
    let mut limits: Vec<(f64, f64)> = Vec::new();
    for case in family.cases() {
        let of_case = range(case.iter().filter_map(|entry| limit(entry, measure)));
        limits.extend(of_case.map(|(_, high)| (at(&case[0]), high)));
    }
    let Some(&(_, last)) = limits.last() else { return };
    let d = line_through(limits.iter().map(|&(x, y)| frame.place(x, y)));
    page.shape("path", &[("class", &"roof"), ("d", &d)]);
    label(page, frame.right, frame.y.at(last) - 6.0, "end", "limit");
}

fn ratios(figure: &mut Markup, model: &Model<'_>, family: &Family<'_>) {
    let found: Vec<(&Entry<'_>, Comparison)> = family
        .entries
        .iter()
        .filter_map(|entry| Some((entry, model.comparison(entry.place)?)))
        .filter(|(_, found)| found.note.is_none())
        .collect();
    let mut bases: Vec<&str> = found.iter().map(|(_, found)| found.against.as_str()).collect();
    bases.dedup();
    let [base] = bases[..] else { return };
    let ends = found.iter().flat_map(|(_, found)| found.interval).chain([0.9, 1.1]);
    let (low, high) = range(ends).unwrap_or((0.5, 2.0));
    let (x, y) = (sizes(family), Scale::log(low / 1.06, high * 1.06));
    let shown = super::model::shown(found.iter().map(|(entry, _)| *entry));
    let says = format!("{}: speed relative to {base} by size", family.title);
    let title = format!("times as fast as {base}");
    drawing(
        figure,
        &says,
        |size| size.pick(250.0, 230.0),
        |page, size| {
            let frame = frame(model, family, size, size.pick(250.0, 230.0), x, y);
            let ticks =
                frame.y.ticks(30.0).into_iter().map(|v| (v, format!("{}\u{d7}", number(v))));
            frame.y_axis(page, &ticks.collect(), &title);
            frame.x_axis(page, &points(family, &frame, size), symbol(family));
            same(page, &frame, found[0].1.threshold);
            let mut last = Vec::new();
            for &series in &shown {
                let of_series = found.iter().filter(|(entry, _)| entry.series == series);
                let ends = of_series.clone().map(|(entry, found)| (at(entry), found.interval));
                band(page, &frame, series, &ends.collect::<Vec<_>>());
                let places: Vec<(f64, f64)> =
                    of_series.map(|(entry, found)| frame.place(at(entry), found.speedup)).collect();
                stroke(page, series, &line_through(places.iter().copied()));
                last.push(places.last().map_or(frame.bottom, |place| place.1));
            }
            for (entry, found) in &found {
                let place = frame.place(at(entry), found.speedup);
                let says = format!(
                    "{}, {}\n{}",
                    model.name(entry),
                    model.case(entry),
                    crate::words::compared(found)
                );
                mark(page, entry.series, place, &says);
            }
            if size == Size::Wide {
                names(page, model, &frame, &shown, &last);
            }
        },
    );
}

/// The line of no difference.
fn same(page: &mut Markup, frame: &Frame, threshold: f64) {
    let (top, bottom) = (frame.y.at(1.0 + threshold), frame.y.at(1.0 / (1.0 + threshold)));
    page.shape(
        "rect",
        &[
            ("class", &"level"),
            ("x", &px(frame.left)),
            ("y", &px(top)),
            ("width", &px(frame.right - frame.left)),
            ("height", &px((bottom - top).max(1.0))),
        ],
    );
    let y = px(frame.y.at(1.0));
    page.shape(
        "path",
        &[("class", &"roof"), ("d", &format!("M{} {y}H{}", px(frame.left), px(frame.right)))],
    );
}

fn at(entry: &Entry<'_>) -> f64 {
    entry.record.case.at.unwrap_or(1) as f64
}

fn symbol<'a>(family: &'a Family<'_>) -> &'a str {
    family.sweep.map(|sweep| sweep.symbol.as_str()).unwrap_or_default()
}

/// The axis across: sizes that double are equally far apart, those that grow by steps too.
fn sizes(family: &Family<'_>) -> Scale {
    let values: Vec<f64> = family.entries.iter().map(at).collect();
    let (low, high) = range(values.iter().copied()).unwrap_or((1.0, 2.0));
    if high / low >= 4.0 { Scale::log(low, high) } else { Scale::linear(low, high) }
}

/// Ticks at the sizes that were measured, as many as there is room for.
fn points(family: &Family<'_>, frame: &Frame, size: Size) -> Ticks {
    let mut values: Vec<f64> = family.entries.iter().map(at).collect();
    values.dedup();
    let apart = size.pick(44.0, 36.0);
    let mut last = f64::NEG_INFINITY;
    values.retain(|value| {
        let fits = frame.x.at(*value) - last >= apart;
        if fits {
            last = frame.x.at(*value);
        }
        fits
    });
    values.into_iter().map(|value| (value, number(value))).collect()
}

/// A frame with room for names at the right, beside the lines.
fn frame(
    model: &Model<'_>,
    family: &Family<'_>,
    size: Size,
    height: f64,
    x: Scale,
    y: Scale,
) -> Frame {
    let longest =
        family.shown().into_iter().map(|at| shortened(&model.series[at].name).chars().count());
    let names = longest.max().unwrap_or(0) as f64 * 7.0 + 18.0;
    let right = size.width() - size.pick(names, 12.0);
    Frame::new([size.pick(62.0, 50.0), right, 30.0, height - 44.0], x, y)
}

/// A name that has room beside a line.
fn shortened(name: &str) -> String {
    const MOST: usize = 26;
    match name.chars().count() > MOST {
        true => name.chars().take(MOST - 1).chain(['\u{2026}']).collect(),
        false => name.to_owned(),
    }
}

fn names(page: &mut Markup, model: &Model<'_>, frame: &Frame, shown: &[usize], last: &[f64]) {
    let places = spread_out(last, 16.0, frame.top, frame.bottom);
    for (&series, y) in shown.iter().zip(places) {
        let class = format!("name {}", class(series));
        let attrs: [(&str, &dyn std::fmt::Display); 3] =
            [("class", &class), ("x", &px(frame.right + 11.0)), ("y", &px(y + 4.0))];
        page.leaf("text", &attrs, shortened(&model.series[series].name));
    }
}

/// The area between the ends of intervals.
fn band(page: &mut Markup, frame: &Frame, series: usize, ends: &[(f64, [f64; 2])]) {
    let low = ends.iter().map(|(x, [low, _])| frame.place(*x, *low));
    let high = ends.iter().rev().map(|(x, [_, high])| frame.place(*x, *high));
    let d = format!("{}Z", line_through(low.chain(high)));
    page.shape("path", &[("class", &format!("band {}", class(series))), ("d", &d)]);
}

/// What a call says when it is pointed at.
impl Model<'_> {
    /// Variant, case, time, rate, limit.
    pub fn says(&self, entry: &Entry<'_>) -> String {
        let record = entry.record;
        let spread = 100.0 * crate::words::half_width(record);
        let mut says = format!(
            "{}, {}\n{} \u{b1}{spread:.1}%\n{} {}",
            self.name(entry),
            self.case(entry),
            time(record.median_ns),
            crate::words::figure(record.rate),
            record.unit
        );
        if let Some(reached) = &record.reached {
            says.push_str(&format!(
                "\n{:.0}% of the limit ({})",
                100.0 * reached.fraction,
                reached.bound
            ));
        }
        says
    }
}
