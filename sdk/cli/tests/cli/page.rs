//! Pages of `tenon bench --html` in a browser. Where there is none, nothing is looked at, and that is said.

use crate::support::{Place, goldens, stderr};
use serde_json::Value;
use std::{
    fs::{self, File},
    io::{self, Write},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const PROBE: &str = include_str!("page/probe.html");
/// Names of a browser that can be told what to do.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Nothing from elsewhere, nothing on the screen; console messages on standard error.
const QUIET: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--hide-scrollbars",
    "--window-size=1200,1000",
];
const PATIENCE: Duration = Duration::from_secs(120);

fn browser() -> Option<&'static str> {
    let runs = |name: &&str| {
        let mut command = Command::new(name);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let found = BROWSERS.into_iter().find(runs);
    if found.is_none() {
        // Past the capture of the test's output: what was not looked at is to be seen.
        let _ = writeln!(
            io::stderr(),
            "skipped: pages of `tenon bench --html` were not looked at: none of {} is installed",
            BROWSERS.join(", ")
        );
    }
    found
}

/// The page of a short run.
fn page(place: &Place, own: &[&str]) -> String {
    let short = ["--time", "0.003", "--html"];
    let file = place.arg("page.html");
    let mut command = place.command(env!("CARGO_BIN_EXE_tenon").as_ref());
    command.args([&["bench"], own, &short, &[&file]].concat());
    let output = command.env("XDG_CACHE_HOME", place.path("cache")).output().unwrap();
    assert!(output.status.success(), "{own:?}: {}", stderr(&output));
    fs::read_to_string(&file).unwrap()
}

/// What the probe finds on a page, in a light or a dark scheme, and what the browser's console says.
fn look(place: &Place, browser: &str, page: &str, dark: bool) -> (Value, String) {
    let escaped = page.replace('&', "&amp;").replace('"', "&quot;");
    let probe = place.path("probe.html");
    fs::write(&probe, PROBE.replace("{{page}}", &escaped)).unwrap();
    let scheme = format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 });
    let profile = place.path(if dark { "dark" } else { "light" });
    let (dom, log) = (place.path("dom.html"), place.path("log.txt"));
    let mut command = Command::new(browser);
    command.args(QUIET).arg(scheme).arg(format!("--user-data-dir={}", profile.display()));
    command.arg("--dump-dom").arg(format!("file://{}", probe.display()));
    command.stdin(Stdio::null());
    command.stdout(File::create(&dom).unwrap()).stderr(File::create(&log).unwrap());
    wait(&mut command);
    let dom = fs::read_to_string(dom).unwrap();
    let log = String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned();
    let found =
        dom.split_once("<pre id=\"found\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (found, _) = found.unwrap_or_else(|| panic!("no answer: {log}"));
    let found = found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let value =
        serde_json::from_str(&found).unwrap_or_else(|error| panic!("{error}: {found} {log}"));
    let console = log.lines().filter(|line| line.contains("CONSOLE"));
    (value, console.collect::<Vec<_>>().join("\n"))
}

fn wait(command: &mut Command) {
    let mut child = command.spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("the browser does not end: {command:?}");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// What holds of every page at a width.
fn fits(found: &Value, key: &str, width: u64) {
    let at = &found[key];
    assert_eq!(at["width"], width, "{found}");
    assert!(at["scroll"].as_u64().unwrap() <= width, "wider than its window: {at}");
    assert_eq!(
        (&at["outside"], &at["small"]),
        (&Value::from(vec![""; 0]), &Value::from(vec![""; 0]))
    );
    let other = if key == "narrow" { "wide" } else { "narrow" };
    assert!(at[key].as_u64().unwrap() > 0 && at[other] == 0, "{at}");
}

fn check(found: &Value, console: &str, dark: bool) {
    assert_eq!(console, "", "{found}");
    fits(found, "narrow", 400);
    fits(found, "wide", 1100);
    assert_eq!((found["lang"].as_str(), &found["save"]), (Some("en"), &true.into()));
    assert_eq!((&found["dark"], &found["unnamed"]), (&dark.into(), &0.into()), "{found}");
    let paper = if dark { "rgb(21, 23, 26)" } else { "rgb(255, 255, 255)" };
    assert_eq!(found["paper"], paper);
    let sorted = |turn: &str, order: fn(&f64, &f64) -> std::cmp::Ordering| {
        let mut expected = numbers(&found["before"]);
        expected.sort_by(order);
        assert_eq!(numbers(&found[turn]["keys"]), expected, "{found}");
        let place = found["time"].as_u64().unwrap() as usize;
        assert_eq!(
            (&found[turn]["sort"][place], &found[turn]["focused"]),
            (&turn.into(), &true.into())
        );
    };
    sorted("ascending", f64::total_cmp);
    sorted("descending", |a, b| b.total_cmp(a));
    let tip = &found["tip"];
    assert!(tip["text"].as_str().unwrap().contains('\u{b1}'), "{tip}");
    assert!(
        tip["left"].as_f64().unwrap() >= 0.0 && tip["right"].as_f64().unwrap() <= 400.0,
        "{tip}"
    );
}

#[test]
fn a_page_of_a_sweep_works_in_a_browser() {
    let Some(browser) = browser() else { return };
    let place = Place::new();
    let own = [
        "MatMul",
        "--label",
        "portable",
        "--label",
        "reference",
        "--shape",
        "a=[n,3],b=[3,n]",
        "--sweep",
        "n=2..32",
        "--vs",
        "reference",
    ];
    let page = page(&place, &own);
    for dark in [false, true] {
        let (found, console) = look(&place, browser, &page, dark);
        check(&found, &console, dark);
        assert_eq!(found["title"], "MatMul: tenon bench");
        assert_eq!(numbers(&found["before"]).len(), 10);
    }
}

#[test]
fn a_page_of_one_kernel_and_one_of_a_graph_work_in_a_browser() {
    let Some(browser) = browser() else { return };
    let place = Place::new();
    let one = page(&place, &["Relu:", "--shape", "70", "--device", "CPU"]);
    let (found, console) = look(&place, browser, &one, false);
    check(&found, &console, false);
    let graph = goldens().join("cnn.pb").display().to_string();
    let own = [graph.as_str(), "--calls", "--shape", "x=1x17x13x3", "--device", "CPU"];
    let graph = page(&place, &own);
    let (found, console) = look(&place, browser, &graph, true);
    check(&found, &console, true);
    assert!(numbers(&found["before"]).len() > 4);
}

#[test]
fn the_page_of_a_baseline_works_in_a_browser_and_a_file_that_cannot_be_written_is_named() {
    let place = Place::new();
    let own = ["Relu:", "--shape", "70", "--device", "CPU", "--time", "0.003", "--no-roofline"];
    let record = place.arg("records.jsonl");
    place.text(&[&["bench"], &own[..], &["--record", &record]].concat());
    let missing = place.arg("none/page.html");
    let output = place.tenon(&[&["bench"], &own[..], &["--html", &missing]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("none/page.html: cannot be written"), "{}", stderr(&output));
    let Some(browser) = browser() else { return };
    let own =
        ["Relu", "--shape", "70", "--device", "CPU", "--baseline", &record, "--threshold", "1000"];
    let page = page(&place, &own);
    assert!(page.contains("Since the baseline"));
    let (found, console) = look(&place, browser, &page, false);
    check(&found, &console, false);
}
