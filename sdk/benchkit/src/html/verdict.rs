//! The findings in words: which variant is faster, by how much, from which size on, how far from the limit, and what
//! went wrong.

use super::{
    markup::Markup,
    model::{Entry, Model},
};
use crate::{
    record::{Comparison, ProblemKind, Verdict},
    words::{self, Chance, time},
};

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `better`, `worse`, or nothing.
    pub tone: &'static str,
    /// What was found.
    pub lead: String,
    /// By how much, where.
    pub more: String,
}

/// Regressions that are named one by one.
const NAMED: usize = 12;

/// The findings as a list.
pub fn list(page: &mut Markup, model: &Model<'_>) {
    page.element("section", &[("aria-labelledby", &"findings")], |section| {
        section.leaf("h2", &[("id", &"findings")], "Findings");
        section.element("ul", &[("class", &"findings")], |list| {
            for Finding { tone, lead, more } in findings(model) {
                list.element("li", &[("class", &tone)], |item| {
                    item.leaf("strong", &[], lead);
                    if !more.is_empty() {
                        item.text(" ").leaf("span", &[], more);
                    }
                });
            }
        });
    });
}

/// What was found, the most important first.
pub fn findings(model: &Model<'_>) -> Vec<Finding> {
    let mut found = problems(model);
    found.extend(since(model));
    let groups = groups(model);
    if groups.is_empty() {
        found.extend(alone(model));
    }
    found.extend(groups.iter().map(|group| group.finding(model)));
    if let Some(sweep) = &model.report.run.sweep {
        let turns = model.report.crossovers.iter().filter(|turn| turn.after.is_some());
        found.extend(
            turns.map(|turn| neutral(words::crossover(turn, &sweep.symbol), String::new())),
        );
    }
    found.extend(nearest(model));
    found
}

fn neutral(lead: String, more: String) -> Finding {
    Finding { tone: "", lead, more }
}

/// What is wrong, then what was only left out.
fn problems(model: &Model<'_>) -> Vec<Finding> {
    let mut problems: Vec<_> = model.report.problems.iter().collect();
    let weight = |kind| match kind {
        ProblemKind::Wrong | ProblemKind::Failed | ProblemKind::Changed => 0,
        ProblemKind::TooSlow | ProblemKind::Unverified => 1,
        ProblemKind::Refused => 2,
    };
    problems.sort_by_key(|problem| weight(problem.kind));
    let finding = |problem: &&crate::record::Problem| Finding {
        tone: if weight(problem.kind) == 0 { "worse" } else { "" },
        lead: format!("{}: {}.", words::problem(problem.kind), problem.variant),
        more: format!("{}: {}", problem.case, problem.message),
    };
    problems.iter().map(finding).collect()
}

/// The outcome of the baseline.
fn since(model: &Model<'_>) -> Vec<Finding> {
    let Some(baseline) = model.baseline else { return Vec::new() };
    let mut found = Vec::new();
    let slower = baseline.comparisons.iter().filter(|found| found.verdict == Verdict::Slower);
    for comparison in slower.clone().take(NAMED) {
        let record = &model.report.records[comparison.record as usize];
        let p = comparison.p.map(|p| format!(", p = {}", Chance(p))).unwrap_or_default();
        found.push(Finding {
            tone: "worse",
            lead: format!("Slower than before: {} {}, {}.", record.bench, record.size, record.peer),
            more: format!("{}{p}", words::compared(comparison)),
        });
    }
    if let Some(rest) = slower.count().checked_sub(NAMED).filter(|rest| *rest > 0) {
        found.push(Finding {
            tone: "worse",
            lead: format!("{rest} more are slower than before."),
            more: String::new(),
        });
    }
    let (slower, faster) = (baseline.regressions(), baseline.count(Verdict::Faster));
    let compared = baseline.compared();
    let busy = match baseline.count(Verdict::Busy) {
        0 => String::new(),
        busy => format!(" {busy} not judged: the machine was busy."),
    };
    found.push(neutral(
        format!(
            "Against the baseline: {slower} slower, {faster} faster, of {compared} compared.{busy}"
        ),
        baseline.notes.join("; "),
    ));
    if !baseline.missing.is_empty() {
        found.push(neutral("In the baseline only:".into(), baseline.missing.join("; ")));
    }
    found
}

/// Comparisons of one variant with one base in one family.
struct Group<'a> {
    family: usize,
    series: usize,
    against: String,
    points: Vec<(&'a Entry<'a>, Comparison)>,
}

fn groups<'a>(model: &'a Model<'a>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (family, entries) in model.families.iter().enumerate() {
        for entry in &entries.entries {
            let Some(found) = model.comparison(entry.place) else { continue };
            let (series, against) = (entry.series, found.against.clone());
            // What cannot be compared stands by itself in the table.
            if matches!(found.verdict, Verdict::NotComparable | Verdict::Busy) {
                continue;
            }
            // Calls of several ops without a sweep are counted together.
            let family = if entries.sweep.is_some() { family } else { usize::MAX };
            let known = groups
                .iter_mut()
                .find(|g| g.family == family && g.series == series && g.against == against);
            match known {
                Some(group) => group.points.push((entry, found)),
                None => {
                    groups.push(Group { family, series, against, points: vec![(entry, found)] })
                }
            }
        }
    }
    groups
}

impl Group<'_> {
    fn finding(&self, model: &Model<'_>) -> Finding {
        let count =
            |verdict| self.points.iter().filter(|(_, found)| found.verdict == verdict).count();
        let (faster, slower) = (count(Verdict::Faster), count(Verdict::Slower));
        let tone = match (faster, slower) {
            (0, 0) => "",
            (_, 0) => "better",
            (0, _) => "worse",
            _ => "",
        };
        let name = &model.series[self.series].name;
        let (lead, more) = match &self.points[..] {
            [(entry, found)] => self.single(model, name, entry, found),
            _ => self.several(model, name, faster, slower),
        };
        Finding { tone, lead, more }
    }

    fn single(
        &self,
        model: &Model<'_>,
        name: &str,
        entry: &Entry<'_>,
        found: &Comparison,
    ) -> (String, String) {
        let case = model.at(entry);
        let [low, high] = found.interval;
        let against = &self.against;
        let interval =
            |low: f64, high: f64| format!("95 % interval {low:.2}\u{2013}{high:.2}\u{d7}; {case}");
        match found.verdict {
            Verdict::Faster => (
                format!("{name} is {:.2}\u{d7} faster than {against}.", found.speedup),
                interval(low, high),
            ),
            Verdict::Slower => (
                format!("{name} is {:.2}\u{d7} slower than {against}.", 1.0 / found.speedup),
                interval(1.0 / high, 1.0 / low),
            ),
            _ => (
                format!("{name} and {against}: no difference that can be shown."),
                format!(
                    "{:.3}\u{d7}, 95 % interval {low:.3}\u{2013}{high:.3}\u{d7}; below {:.1} % is none; {case}",
                    found.speedup,
                    100.0 * found.threshold
                ),
            ),
        }
    }

    fn several(
        &self,
        model: &Model<'_>,
        name: &str,
        faster: usize,
        slower: usize,
    ) -> (String, String) {
        let (all, against) = (self.points.len(), &self.against);
        let what = if self.family == usize::MAX { "calls" } else { "sizes" };
        let title = model.families.get(self.family).map(|family| format!("{}: ", family.title));
        let lead = match (faster, slower) {
            (f, _) if f == all => format!("{name} is faster than {against} at all {all} {what}."),
            (_, s) if s == all => format!("{name} is slower than {against} at all {all} {what}."),
            (0, 0) => format!(
                "{name} and {against}: no difference that can be shown at any of {all} {what}."
            ),
            _ => {
                let parts = [
                    ("faster", faster),
                    ("slower", slower),
                    ("no different", all - faster - slower),
                ];
                let parts = parts.iter().filter(|(_, count)| *count > 0);
                let parts: Vec<String> =
                    parts.map(|(word, count)| format!("{word} at {count}")).collect();
                format!("{name} against {against}, of {all} {what}: {}.", parts.join(", "))
            }
        };
        let title = title.unwrap_or_default();
        let ends = self.ends(model, slower == all, faster == all);
        (lead, format!("{title}{ends}, each with its 95 % interval"))
    }

    /// The least and the greatest difference; where all are slower, by how much they are.
    fn ends(&self, model: &Model<'_>, slower: bool, faster: bool) -> String {
        let by_speed = |a: &&(&Entry<'_>, Comparison), b: &&(&Entry<'_>, Comparison)| {
            a.1.speedup.total_cmp(&b.1.speedup)
        };
        let (least, most) =
            (self.points.iter().min_by(by_speed), self.points.iter().max_by(by_speed));
        let end = |(entry, found): &(&Entry<'_>, Comparison)| {
            let [low, high] = found.interval;
            let figures = match slower {
                true => [1.0 / found.speedup, 1.0 / high, 1.0 / low],
                false => [found.speedup, low, high],
            };
            let [ratio, low, high] = figures.map(words::figure);
            format!("{ratio}\u{d7} ({low}\u{2013}{high}) at {}", model.at(entry))
        };
        let ends = if slower { [most, least] } else { [least, most] };
        let ends: Vec<String> = ends.into_iter().flatten().map(end).collect();
        let by = if slower || faster { "by" } else { "speed from" };
        format!("{by} {}", ends.join(" to "))
    }
}

/// Variants that nothing is compared with.
fn alone(model: &Model<'_>) -> Vec<Finding> {
    let entries: Vec<&Entry<'_>> = model.entries().collect();
    if entries.len() > 3 {
        return vec![neutral(
            format!("{} measurements, nothing to compare them with.", entries.len()),
            String::new(),
        )];
    }
    let finding = |entry: &&Entry<'_>| {
        let [low, high] = entry.record.kernel.summary.interval;
        neutral(
            format!("{} takes {}.", model.name(entry), time(entry.record.median_ns)),
            format!("95 % interval {} to {}; {}", time(low), time(high), model.at(entry)),
        )
    };
    entries.iter().map(finding).collect()
}

/// What comes nearest to the machine's limit.
fn nearest(model: &Model<'_>) -> Option<Finding> {
    // Nothing is nearer than the limit: beyond it, the work or the limit is not what it is taken for.
    let fraction = |entry: &&Entry<'_>| {
        let reached = entry.record.reached.as_ref().filter(|reached| !reached.impossible);
        reached.map(|reached| reached.fraction)
    };
    let best = model.entries().filter(|entry| fraction(entry).is_some()).max_by(|a, b| {
        fraction(a).unwrap_or_default().total_cmp(&fraction(b).unwrap_or_default())
    })?;
    let reached = best.record.reached.as_ref()?;
    let bound = if reached.bound == "compute" {
        "arithmetic".to_owned()
    } else {
        format!("{} bandwidth", reached.bound)
    };
    Some(neutral(
        format!(
            "Nearest to the limit: {}, {:.0} % of it.",
            model.name(best),
            100.0 * reached.fraction
        ),
        format!(
            "{} {} at {}; bound by {bound}",
            words::figure(best.record.rate),
            best.record.unit,
            model.at(best)
        ),
    ))
}
