//! Pages of made-up reports.

mod contrast;
pub mod report;
pub(crate) mod wellformed;

use super::*;
use crate::{
    compare::against_baseline,
    record::{Problem, ProblemKind, Report, Sampled, read_lines},
};
use report::{calls, single, sweep, with_limits};

/// Pages of everything that a run can be.
fn pages() -> Vec<(&'static str, Report, String)> {
    let reports = [
        ("one kernel", single(&[""])),
        ("two kernels", single(&["", "reference"])),
        ("a sweep", sweep(&["", "avx512", "reference"])),
        ("a sweep under limits", with_limits(sweep(&["", "avx512"]))),
        ("calls of a graph", with_limits(calls())),
        ("nothing", Report { records: Vec::new(), ..single(&[""]) }),
    ];
    reports.into_iter().map(|(name, report)| (name, report.clone(), page(&report, None))).collect()
}

fn count(page: &str, text: &str) -> usize {
    page.matches(text).count()
}

/// The page without its records: what a reader sees.
fn seen(page: &str) -> &str {
    page.split_once("<script").unwrap().0
}

#[test]
fn pages_are_well_formed() {
    for (name, _, page) in pages() {
        wellformed::check(&page).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        assert_eq!(count(&page, "{{"), 0, "{name}");
    }
}

#[test]
fn pages_load_nothing() {
    for (name, _, page) in pages() {
        for outside in ["http:", "https:", "src=", "href=", "url(", "@import", "import("] {
            assert!(!page.contains(outside), "{name}: {outside}");
        }
        assert!(page.contains("default-src 'none'"), "{name}");
    }
}

#[test]
fn every_measurement_is_in_the_table() {
    for (name, report, page) in pages() {
        let rows = page
            .split_once("<tbody>")
            .map_or("", |(_, rest)| rest.split_once("</tbody>").unwrap().0);
        let shown: Vec<&str> = rows.split("<tr>").skip(1).collect();
        if report.records.is_empty() {
            assert!(!page.contains("All measurements"), "{name}");
            continue;
        }
        assert_eq!(shown.len(), report.records.len(), "{name}");
        for (row, record) in shown.iter().zip(&report.records) {
            assert!(row.contains(&crate::words::time(record.median_ns)), "{name}: {row}");
            assert!(row.contains(&format!("data-key=\"{}\"", record.median_ns)), "{name}: {row}");
            let label =
                if record.variant.label.is_empty() { "ordinary" } else { &record.variant.label };
            assert!(row.contains(label), "{name}: {row}");
        }
    }
}

#[test]
fn a_page_has_the_drawings_that_its_report_allows() {
    let headings = |page: &str| {
        ["Sweep of", "<h2>Times", "<h2>Roofline", "<h2>Bandwidth", ">Samples<"]
            .map(|text| page.contains(text))
    };
    let found: Vec<[bool; 5]> = pages().iter().map(|(_, _, page)| headings(page)).collect();
    let expected = [
        [false, true, false, false, true],
        [false, true, false, false, true],
        [true, false, false, false, true],
        [true, false, true, false, true],
        [false, true, true, true, true],
        [false; 5],
    ];
    assert_eq!(found, expected);
}

#[test]
fn every_drawing_says_what_it_shows_and_is_there_for_both_widths() {
    for (name, _, page) in pages() {
        let drawings = count(&page, "<svg class=\"plot ");
        assert_eq!(count(&page, "role=\"img\" aria-label=\""), drawings, "{name}");
        assert_eq!(count(&page, "\"plot wide\""), count(&page, "\"plot narrow\""), "{name}");
        assert!(!seen(&page).contains("NaN") && !seen(&page).contains("inf"), "{name}");
    }
}

#[test]
fn names_from_plugins_are_text_wherever_they_stand() {
    const NASTY: &str = "</script><img src=x onerror=alert(1)>\"'&\u{202e}";
    let mut report = with_limits(sweep(&["", NASTY]));
    for record in &mut report.records {
        record.size = NASTY.into();
        record.checked = Some(NASTY.into());
        record.case.op = NASTY.into();
        record.case.inputs[0].name = NASTY.into();
    }
    report.run.plugins[0].name = NASTY.into();
    report.run.machine.cpu = NASTY.into();
    report.run.command.push(NASTY.into());
    report.run.date = NASTY.into();
    report.comparisons[0].against = NASTY.into();
    report.crossovers[0].above = NASTY.into();
    let (case, variant, message) = (NASTY.into(), NASTY.into(), NASTY.into());
    report.problems.push(Problem { kind: ProblemKind::Wrong, case, variant, message });
    let page = page(&report, None);
    wellformed::check(&page).unwrap();
    assert_eq!((count(&page, "</script>"), count(&page, "<img")), (2, 0));
    assert!(count(&page, "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;") > 10);
}

#[test]
fn a_page_holds_its_records() {
    let report = with_limits(sweep(&["", "</script>"]));
    let page = page(&report, None);
    let (_, rest) = page.split_once("id=\"records\">").unwrap();
    let (lines, _) = rest.split_once("</script>").unwrap();
    let values = |lines: &str| {
        let of_line = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        lines.lines().map(of_line).collect::<Vec<_>>()
    };
    assert_eq!(values(lines).len(), 9);
    assert!(values(lines) == values(&records(&report)), "{lines}");
    assert_eq!(read_lines(lines.as_bytes()).unwrap().records.len(), 8);
}

#[test]
fn findings_say_who_is_faster_and_from_where_on() {
    let page = page(&with_limits(sweep(&["", "avx512"])), None);
    let seen = seen(&page);
    for said in [
        "avx512 against ordinary, of 4 sizes: faster at 3, slower at 1.",
        "speed from 0.500\u{d7} (0.450\u{2013}0.550) at n = 64 to 4.00\u{d7} (3.60\u{2013}4.40) at n = 512",
        "Square: avx512 is faster from n = 128 up, ordinary up to n = 64",
        "Nearest to the limit: ",
        "Sweep of Square float, x=n\u{d7}n",
        "2 cores",
        "&quot;A&quot; CPU",
    ] {
        assert!(seen.contains(said), "{said}: {seen}");
    }
    let two = super::page(&single(&["", "avx512"]), None);
    assert!(two.contains("avx512 is 2.00\u{d7} faster than ordinary."), "{two}");
    let one = super::page(&single(&[""]), None);
    assert!(one.contains("ordinary takes 2.00 \u{b5}s."), "{one}");
}

#[test]
fn problems_and_partial_judgements_are_said() {
    let mut report = single(&["", "fast"]);
    report.records[0].sampled = Some(Sampled { what: "rows".into(), judged: 24, of: 2048 });
    report.problems.push(Problem {
        kind: ProblemKind::TooSlow,
        case: "Square".into(),
        variant: "slow of mine".into(),
        message: "the first call took 12.0 s".into(),
    });
    let page = page(&report, None);
    assert!(page.contains("the reference, 24 of 2048 rows"), "{page}");
    assert!(page.contains("TOO SLOW, not timed: slow of mine."), "{page}");
}

#[test]
fn a_baseline_has_a_column_and_its_regressions_are_named() {
    let before = single(&["", "avx512"]);
    let mut now = before.clone();
    let slowed = now.records[0].kernel.ns.iter().map(|ns| 3.0 * ns).collect();
    now.records[0] = report::record("", None, slowed);
    let found = against_baseline(&now, &before, None);
    let page = page(&now, Some(&found));
    wellformed::check(&page).unwrap();
    assert!(page.contains("Since the baseline"));
    assert!(page.contains("Slower than before: Square x=8x8"), "{page}");
    assert!(page.contains("Against the baseline: 1 slower, 0 faster, of 2 compared."));
    assert!(page.contains("\u{25bc} 3.00x slower than"), "{page}");
}

#[test]
fn the_policy_names_the_script() {
    let shown = [&b""[..], b"f", b"fo", b"foo", b"foobar"].map(base64);
    assert_eq!(shown, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYmFy"]);
    assert!(policy().contains(&base64(&Sha256::digest(SCRIPT))));
    let page = page(&single(&[""]), None);
    assert!(page.contains(&format!("<script>{SCRIPT}</script>")));
}

#[test]
fn what_is_filled_in_is_not_a_template() {
    assert_eq!(fill("{{a}}-{{b}}", &[("a", "{{b}}"), ("b", "x")]), "{{b}}-x");
}
