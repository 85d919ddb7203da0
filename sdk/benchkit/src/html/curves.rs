//! Curves over the steps of a run, such as the loss of a training: a page with a drawing for each quantity.

use super::{
    STYLE, fill,
    frame::{
        Frame, Size, Ticks, class, drawing, label, line_through, shape, spread_out, stroke, swatch,
    },
    markup::{Markup, px},
    scale::{Scale, number, range},
};

/// What a page of curves shows.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The command that made the page, such as `tenon demo train`.
    pub command: String,
    /// The heading.
    pub title: String,
    /// Where and when it ran.
    pub line: String,
    /// What was found, and whether it is as it should be.
    pub findings: Vec<(bool, String)>,
    /// The drawings.
    pub figures: Vec<Figure>,
}

/// A drawing of several curves.
#[derive(Debug, Clone, Default)]
pub struct Figure {
    /// The heading.
    pub title: String,
    /// A sentence about what is drawn.
    pub note: String,
    /// What the horizontal axis counts.
    pub x: String,
    /// What the vertical axis measures, with its unit.
    pub y: String,
    /// Whether equal ratios are equally high. Values that are not positive are then left out.
    pub is_log: bool,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Places on the horizontal axis with a word, such as where a run was interrupted.
    pub marks: Vec<(f64, String)>,
}

/// One curve.
#[derive(Debug, Clone, Default)]
pub struct Curve {
    /// The name, which is written beside it.
    pub name: String,
    /// Pairs of step and value. Others than finite values are left out.
    pub points: Vec<(f64, f64)>,
}

impl Figure {
    fn points<'a>(&'a self, curve: &'a Curve) -> impl Iterator<Item = (f64, f64)> + 'a {
        let is_drawn = |value: f64| value.is_finite() && (!self.is_log || value > 0.0);
        curve.points.iter().copied().filter(move |(_, value)| is_drawn(*value))
    }

    /// All points of all curves.
    fn all(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.curves.iter().flat_map(|curve| self.points(curve))
    }
}

/// The page: a file that needs nothing else, without a script.
pub fn page(shown: &Page) -> String {
    let mut main = Markup::new();
    findings(&mut main, &shown.findings);
    for figure in &shown.figures {
        draw(&mut main, figure);
    }
    let text = |text: &str| {
        let mut markup = Markup::new();
        markup.text(text);
        markup.finish()
    };
    let values = [
        ("style", STYLE),
        ("command", &text(&shown.command)),
        ("title", &text(&shown.title)),
        ("line", &text(&shown.line)),
        ("main", &main.finish()),
    ];
    fill(include_str!("curves.html"), &values)
}

fn findings(main: &mut Markup, findings: &[(bool, String)]) {
    main.element("section", &[], |section| {
        section.leaf("h2", &[], "What was found");
        section.element("ul", &[("class", &"findings")], |list| {
            for (is_good, text) in findings {
                list.leaf("li", &[("class", if *is_good { &"better" } else { &"worse" })], text);
            }
        });
    });
}

/// Room above the axis for its title, and below it for ticks and title.
const ABOVE: f64 = 30.0;
const BELOW: f64 = 46.0;

fn draw(main: &mut Markup, figure: &Figure) {
    let (Some(x), Some(y)) =
        (range(figure.all().map(|at| at.0)), range(figure.all().map(|at| at.1)))
    else {
        return;
    };
    let y = match figure.is_log {
        true => Scale::log(y.0 / 1.25, y.1 * 1.25),
        false => {
            let room = 0.05 * (y.1 - y.0);
            Scale::linear(y.0 - room, y.1 + room)
        }
    };
    let x = Scale::linear(x.0, x.1);
    main.element("figure", &[], |main| {
        main.element("figcaption", &[], |caption| {
            caption.leaf("h2", &[], &figure.title);
            caption.leaf("p", &[], &figure.note);
        });
        legend(main, figure);
        let height = |size: Size| size.pick(340.0, 300.0);
        drawing(main, &described(figure), height, |page, size| {
            let right = size.width() - size.pick(names_room(figure), 8.0);
            let frame = Frame::new([52.0, right, ABOVE, height(size) - BELOW], x, y);
            let ticks = |scale: &Scale, apart: f64| -> Ticks {
                let values = scale.ticks(apart).into_iter();
                values.map(|value| (value, number(value))).collect()
            };
            frame.y_axis(page, &ticks(&frame.y, 34.0), &figure.y);
            frame.x_axis(page, &ticks(&frame.x, size.pick(70.0, 60.0)), &figure.x);
            marks(page, &frame, &figure.marks);
            curves(page, &frame, figure, size);
        });
    });
}

/// What a reader who cannot see the drawing is told.
fn described(figure: &Figure) -> String {
    let ends = figure.curves.iter().filter_map(|curve| {
        let (first, last) = (figure.points(curve).next()?, figure.points(curve).last()?);
        let [first, last] = [first, last].map(|point| number_of(point.1));
        Some(format!("{} from {first} to {last}", curve.name))
    });
    format!("{} over {}: {}", figure.y, figure.x, ends.collect::<Vec<_>>().join(", "))
}

/// Three digits are enough beside a curve.
fn number_of(value: f64) -> String {
    let digits = (2.0 - value.abs().max(1e-9).log10().floor()).clamp(0.0, 9.0);
    format!("{value:.*}", digits as usize)
}

fn legend(main: &mut Markup, figure: &Figure) {
    if figure.curves.len() < 2 {
        return;
    }
    main.element("ul", &[("class", &"legend narrow")], |list| {
        for (at, curve) in figure.curves.iter().enumerate() {
            list.element("li", &[], |item| {
                swatch(item, at);
                item.text(&curve.name);
            });
        }
    });
}

/// How wide the names beside the curves are.
fn names_room(figure: &Figure) -> f64 {
    let longest = figure.curves.iter().map(|curve| curve.name.chars().count()).max().unwrap_or(0);
    24.0 + 7.0 * longest as f64
}

fn marks(page: &mut Markup, frame: &Frame, marks: &[(f64, String)]) {
    for (step, text) in marks {
        let x = frame.x.at(*step);
        let line = format!("M{} {}V{}", px(x), px(frame.top), px(frame.bottom));
        page.shape("path", &[("class", &"roof"), ("stroke-dasharray", &"2 4"), ("d", &line)]);
        label(page, x, frame.top - 4.0, "middle", text);
    }
}

fn curves(page: &mut Markup, frame: &Frame, figure: &Figure, size: Size) {
    let mut ends = Vec::new();
    for (at, curve) in figure.curves.iter().enumerate() {
        let places: Vec<_> = figure.points(curve).map(|(x, y)| frame.place(x, y)).collect();
        stroke(page, at, &line_through(places.iter().copied()));
        if let Some(&(x, y)) = places.last() {
            shape(page, at, x, y, 4.2);
            ends.push((at, x, y));
        }
    }
    if size == Size::Narrow || figure.curves.len() < 2 {
        return;
    }
    let heights: Vec<f64> = ends.iter().map(|end| end.2).collect();
    let moved = spread_out(&heights, 15.0, frame.top, frame.bottom);
    for ((at, x, _), y) in ends.into_iter().zip(moved) {
        let class = format!("name {}", class(at));
        let (x, y) = (px(x + 10.0), px(y + 4.0));
        page.leaf("text", &[("class", &class), ("x", &x), ("y", &y)], &figure.curves[at].name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::tests::wellformed;

    fn shown() -> Page {
        let curve = |name: &str, values: &[f64]| Curve {
            name: name.to_owned(),
            points: values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect(),
        };
        Page {
            command: "tenon demo <train>".to_owned(),
            title: "Digits & letters".to_owned(),
            line: "here".to_owned(),
            findings: vec![(true, "as it should be".to_owned()), (false, "too slow".to_owned())],
            figures: vec![Figure {
                title: "Loss".to_owned(),
                y: "loss".to_owned(),
                x: "step".to_owned(),
                is_log: true,
                curves: vec![
                    curve("CPU", &[2.0, 1.0, 0.5]),
                    curve("ACCEL", &[2.0, 0.0, f64::NAN, 0.25]),
                ],
                marks: vec![(1.0, "killed".to_owned())],
                ..Figure::default()
            }],
        }
    }

    #[test]
    fn a_page_is_well_formed_and_escapes_what_it_shows() {
        let page = page(&shown());
        wellformed::check(&page).unwrap();
        assert!(page.contains("tenon demo &lt;train&gt;") && page.contains("Digits &amp; letters"));
        assert!(page.contains("<li class=\"worse\">too slow</li>"));
        // Twice: for wide and for narrow windows.
        assert_eq!(
            page.matches("<path class=\"line s1\"").count(),
            3,
            "with the one of the legend"
        );
        let says =
            "aria-label=\"loss over step: CPU from 2.00 to 0.500, ACCEL from 2.00 to 0.250\"";
        assert_eq!(page.matches(says).count(), 2);
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let mut shown = shown();
        shown.figures[0].curves =
            vec![Curve { name: "none".to_owned(), points: vec![(0.0, f64::NAN)] }];
        let page = page(&shown);
        wellformed::check(&page).unwrap();
        assert!(!page.contains("<figure"));
    }
}
