//! How far from the machine's limits: operations per byte against operations per nanosecond, and, for calls that do
//! no arithmetic, bytes of a call against bytes per nanosecond.

use super::{
    frame::{Frame, Size, Ticks, class, drawing, label, legend, line_through, mark, spread_out},
    markup::{Markup, px},
    model::{Entry, Model, shown},
    scale::{Scale, number, range},
};
use crate::{
    record::{Level, Peak, Roofline},
    roofline::peaks_of,
    words::figure,
};
use tenon_framework::DType;

/// A call that is drawn, and where.
struct Point<'a> {
    entry: Entry<'a>,
    x: f64,
    y: f64,
}

impl<'a> Point<'a> {
    /// Operations per byte, and per nanosecond.
    fn of_arithmetic(entry: &Entry<'a>) -> Point<'a> {
        let (record, work) = (entry.record, entry.record.work);
        let flops = work.flops.unwrap_or_default();
        Point { entry: *entry, x: flops / (work.read + work.written), y: flops / record.median_ns }
    }

    /// Bytes, and bytes per nanosecond.
    fn of_memory(entry: &Entry<'a>) -> Point<'a> {
        let bytes = entry.record.work.read + entry.record.work.written;
        Point { entry: *entry, x: bytes, y: bytes / entry.record.median_ns }
    }
}

/// The figures; nothing without limits, or for kernels of other devices than the CPU.
pub fn figures(page: &mut Markup, model: &Model<'_>) {
    let Some(limits) = &model.report.run.roofline else { return };
    let on_host = |entry: &&Entry<'_>| {
        let work = entry.record.work;
        entry.record.variant.device == "CPU" && work.read + work.written > 0.0
    };
    let entries: Vec<Entry<'_>> = model.entries().filter(on_host).copied().collect();
    let (computing, moving): (Vec<Entry<'_>>, Vec<Entry<'_>>) =
        entries.into_iter().partition(|entry| entry.record.work.flops.is_some_and(|f| f > 0.0));
    if !computing.is_empty() && !limits.levels.is_empty() {
        arithmetic(page, model, limits, &computing);
    }
    if !moving.is_empty() && !limits.levels.is_empty() {
        bandwidth(page, model, limits, &moving);
    }
}

fn arithmetic(page: &mut Markup, model: &Model<'_>, limits: &Roofline, entries: &[Entry<'_>]) {
    let points: Vec<Point<'_>> = entries.iter().map(Point::of_arithmetic).collect();
    let peaks = peaks(limits, entries);
    let (x, y) = scales(&points, limits, &peaks);
    page.element("figure", &[], |figure| {
        figure.element("figcaption", &[], |caption| {
            caption.leaf("h2", &[], "Roofline");
            let threads = limits.threads;
            caption.leaf("p", &[], format!(
                "Each call against what this machine reached with {threads} {}: arithmetic of each instruction set, \
                 and reading from each level of memory.",
                if threads == 1 { "thread" } else { "threads" }
            ));
        });
        legend(figure, &model.series, &shown(entries.iter()), "legend");
        let says = format!("Roofline: {} calls under the limits of the machine", points.len());
        drawing(figure, &says, |size| size.pick(440.0, 380.0), |page, size| {
            let bottom = size.pick(440.0, 380.0) - 44.0;
            let right = size.width() - size.pick(124.0, 8.0);
                let frame = Frame::new([size.pick(48.0, 40.0), right, 30.0, bottom], x, y);
                frame.y_axis(page, &ticks(&frame.y, 34.0), "GFLOP/s");
            frame.x_axis(page, &ticks(&frame.x, size.pick(70.0, 48.0)), "operations per byte");
            roofs(page, &frame, limits, &peaks, size);
            draw(page, model, &frame, &points);
        });
    });
}

/// What arithmetic reaches, for the element types that occur, the fastest first.
fn peaks<'a>(limits: &'a Roofline, entries: &[Entry<'_>]) -> Vec<&'a Peak> {
    let mut peaks: Vec<&Peak> = Vec::new();
    for entry in entries {
        let first = entry.record.case.inputs.first();
        let dtype = first.and_then(|input| DType::from_name(&input.dtype));
        for peak in peaks_of(limits, dtype.unwrap_or(DType::INVALID)) {
            if !peaks.iter().any(|known| std::ptr::eq(*known, peak)) {
                peaks.push(peak);
            }
        }
    }
    peaks.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    peaks
}

/// Axes that hold the calls, and the knee of the roof.
fn scales(points: &[Point<'_>], limits: &Roofline, peaks: &[&Peak]) -> (Scale, Scale) {
    let reads: Vec<f64> = limits.levels.iter().map(|level| level.read).collect();
    let (slow, fast) = range(reads.into_iter()).unwrap_or((1.0, 1.0));
    let xs = range(points.iter().map(|point| point.x)).unwrap_or((1.0, 1.0));
    let ys = range(points.iter().map(|point| point.y)).unwrap_or((1.0, 1.0));
    let top = peaks.first().map_or(fast * xs.1, |peak| peak.rate);
    let (from, to) = ((xs.0 / 2.0).min(top / fast / 3.0), (xs.1 * 2.0).max(top / slow * 1.6));
    let low = (ys.0 / 2.0).min(slow * from * 3.0);
    (Scale::log(from, to), Scale::log(low, (top * 1.8).max(ys.1 * 1.3)))
}

fn roofs(page: &mut Markup, frame: &Frame, limits: &Roofline, peaks: &[&Peak], size: Size) {
    let ((from, to), (low, high)) = (frame.x.ends(), frame.y.ends());
    let top = peaks.first().map_or(high, |peak| peak.rate);
    let slope = (frame.y.unit() / frame.x.unit()).atan().to_degrees();
    let mut before: Option<(f64, f64)> = None;
    for level in &limits.levels {
        let (start, end) = (from.max(low / level.read), to.min(top / level.read));
        if start >= end {
            continue;
        }
        let ends = [start, end].map(|x| frame.place(x, x * level.read));
        let d = line_through(ends.into_iter());
        page.shape("path", &[("class", &"roof"), ("d", &d)]);
        // A name that would stand in the one before it moves along its line.
        let near = |(x, y): (f64, f64)| (ends[0].0 - x).abs() + (ends[0].1 - y).abs() < 22.0;
        let shift = if before.is_some_and(near) { 98.0 } else { 8.0 };
        before = if shift > 8.0 { None } else { Some(ends[0]) };
        let name = format!("{} {} GB/s", level.name, figure(level.read));
        along(page, ends[0], slope, shift, &name);
    }
    let fastest = range(limits.levels.iter().map(|level| level.read)).map_or(1.0, |ends| ends.1);
    for (at, peak) in peaks.iter().enumerate() {
        let ends = [peak.rate / fastest, to].map(|x| frame.place(x, peak.rate));
        let class = if at == 0 { "roof" } else { "roof lesser" };
        page.shape("path", &[("class", &class), ("d", &line_through(ends.into_iter()))]);
    }
    names(page, frame, peaks, size);
}

/// Names of the peaks: beside the lines, or above the highest where there is no room beside them.
fn names(page: &mut Markup, frame: &Frame, peaks: &[&Peak], size: Size) {
    let text = |peak: &Peak| format!("{} {} {}", peak.isa, peak.dtype, figure(peak.rate));
    let places: Vec<f64> = peaks.iter().map(|peak| frame.y.at(peak.rate)).collect();
    match size {
        Size::Wide => {
            let places = spread_out(&places, 14.0, frame.top, frame.bottom);
            for (peak, y) in peaks.iter().zip(places) {
                label(page, frame.right + 8.0, y + 4.0, "start", &text(peak));
            }
        }
        Size::Narrow => {
            if let (Some(peak), Some(y)) = (peaks.first(), places.first()) {
                label(page, frame.right, y - 5.0, "end", &text(peak));
            }
        }
    }
}

/// A text along a rising line.
fn along(page: &mut Markup, (x, y): (f64, f64), slope: f64, shift: f64, text: &str) {
    let turn = format!("translate({} {}) rotate({})", px(x), px(y), px(-slope));
    page.leaf("text", &[("transform", &turn), ("x", &px(shift)), ("y", &"-5")], text);
}

/// The calls; those of one variant along a sweep are joined.
fn draw(page: &mut Markup, model: &Model<'_>, frame: &Frame, points: &[Point<'_>]) {
    let place = |point: &Point<'_>| frame.place(point.x, point.y);
    for family in model.families.iter().filter(|family| family.sweep.is_some()) {
        for series in family.shown() {
            let of_line = |point: &&Point<'_>| {
                family.line(series).any(|entry| entry.place == point.entry.place)
            };
            let d = line_through(points.iter().filter(of_line).map(place));
            let class = format!("path {}", class(series));
            page.shape("path", &[("class", &class), ("d", &d)]);
        }
    }
    for point in points {
        mark(page, point.entry.series, place(point), &model.says(&point.entry));
    }
}

fn bandwidth(page: &mut Markup, model: &Model<'_>, limits: &Roofline, entries: &[Entry<'_>]) {
    let points: Vec<Point<'_>> = entries.iter().map(Point::of_memory).collect();
    let xs = range(points.iter().map(|point| point.x)).unwrap_or((1.0, 1.0));
    let ys = range(points.iter().map(|point| point.y)).unwrap_or((1.0, 1.0));
    let ends = |level: &Level| {
        let all = [level.read, level.write, level.copy, level.triad];
        range(all.into_iter()).unwrap_or((1.0, 1.0))
    };
    let reached = range(limits.levels.iter().flat_map(|level| <[f64; 2]>::from(ends(level))));
    let reached = reached.unwrap_or(ys);
    let x = Scale::log(xs.0.min(4096.0) / 2.0, (xs.1 * 2.0).max(holds_most(limits) * 8.0));
    let y = Scale::log(ys.0.min(reached.0) / 1.6, ys.1.max(reached.1) * 1.6);
    page.element("figure", &[], |figure| {
        figure.element("figcaption", &[], |caption| {
            caption.leaf("h2", &[], "Bandwidth");
            caption.leaf(
                "p",
                &[],
                "Calls that move elements, or whose arithmetic is not known, against what this \
                machine moves in each level of memory, from writing alone to reading alone.",
            );
        });
        legend(figure, &model.series, &shown(entries.iter()), "legend");
        let says = format!("Bandwidth: {} calls beside that of the levels of memory", points.len());
        drawing(
            figure,
            &says,
            |size| size.pick(380.0, 340.0),
            |page, size| {
                let bottom = size.pick(380.0, 340.0) - 44.0;
                let frame =
                    Frame::new([size.pick(48.0, 40.0), size.width() - 8.0, 30.0, bottom], x, y);
                frame.y_axis(page, &ticks(&frame.y, 34.0), "GB/s");
                frame.x_axis(page, &sizes(&frame.x, size), "bytes of a call");
                levels(page, &frame, limits, ends);
                draw(page, model, &frame, &points);
            },
        );
    });
}

/// The size of the largest level that has one.
fn holds_most(limits: &Roofline) -> f64 {
    let sizes = limits.levels.iter().filter_map(|level| level.bytes).map(|bytes| bytes as f64);
    range(sizes).map_or(1e6, |ends| ends.1) * f64::from(limits.threads)
}

/// A block per level: from its least to its greatest bandwidth, over the sizes that are in it.
fn levels(
    page: &mut Markup,
    frame: &Frame,
    limits: &Roofline,
    ends: impl Fn(&Level) -> (f64, f64),
) {
    let mut from = frame.x.ends().0;
    for level in &limits.levels {
        let most = level.bytes.map(|bytes| bytes as f64 * f64::from(limits.threads));
        let to = most.unwrap_or(f64::INFINITY).min(frame.x.ends().1);
        let (low, high) = ends(level);
        let ((left, top), (right, bottom)) = (frame.place(from, high), frame.place(to, low));
        if right > left {
            let (width, height) = (px(right - left), px((bottom - top).max(1.0)));
            page.shape(
                "rect",
                &[
                    ("class", &"level"),
                    ("x", &px(left)),
                    ("y", &px(top)),
                    ("width", &width),
                    ("height", &height),
                ],
            );
            label(page, left + 3.0, top - 5.0, "start", &level.name);
        }
        from = to;
    }
}

/// Ticks with plain numbers.
fn ticks(scale: &Scale, apart: f64) -> Ticks {
    scale.ticks(apart).into_iter().map(|value| (value, number(value))).collect()
}

/// Ticks at powers of two, as sizes are.
fn sizes(scale: &Scale, size: Size) -> Ticks {
    let (from, to) = scale.ends();
    let all = (0..16).map(|power| 4f64.powi(2 * power)).filter(|v| (from..=to).contains(v));
    let text = |bytes: f64| match bytes {
        _ if bytes >= 1_073_741_824.0 => format!("{} GiB", number(bytes / 1_073_741_824.0)),
        _ if bytes >= 1_048_576.0 => format!("{} MiB", number(bytes / 1_048_576.0)),
        _ if bytes >= 1024.0 => format!("{} KiB", number(bytes / 1024.0)),
        _ => format!("{} B", number(bytes)),
    };
    let every = size.pick(1, 2);
    all.step_by(every).map(|value| (value, text(value))).collect()
}
