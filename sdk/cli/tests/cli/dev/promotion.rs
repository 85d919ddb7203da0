//! What comes into the session: nothing that was not run before, and nothing that died of it.

use super::{CACHE, Dev, edit, plugin};
use crate::support::Place;
use serde_json::Value;
use std::{path::Path, process::Output};

/// No time for anything but what is done whatever the time.
const HURRY: [&str; 4] = ["--check-time", "0.001", "--bench-time", "0.001"];

const LOOP: &str = "y[at] = x[at] > 0.0f ? x[at] : alpha * x[at];";
/// The loop of the ordinary kernel, which writes 64 MB behind its output where there is enough for a vector.
const FAR: &str = "y[at] = x[at] > 0.0f ? x[at] : alpha * x[at];
        if (at >= 8) {
            *(volatile float *)(y + at + (1 << 24)) = 1.0f;
        }";

/// A round of its own, as a script makes it.
fn once(place: &Place, args: &[&str]) -> (Output, Vec<Value>) {
    let mut command = place.command(Path::new(env!("CARGO_BIN_EXE_tenon")));
    command.args(["dev", "dev-c", "--once", "--json"]).args(args).env("CFLAGS", "-O1");
    let output = command.env("XDG_CACHE_HOME", CACHE).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let events = told.lines().map(|line| serde_json::from_str(line).unwrap());
    (output, events.collect())
}

fn of<'e>(events: &'e [Value], name: &str) -> &'e Value {
    let event = events.iter().find(|event| event["event"] == name);
    event.unwrap_or_else(|| panic!("{name} in {events:?}"))
}

/// A kernel of another op, which the round could look at instead.
fn with_another_op(source: &Path) {
    edit(
        source,
        "/* The specification, as",
        "TENON_OP(\"AnotherOp\", inputs(\"x: T\"), outputs(\"y: T\"), attrs(\"T: {float}\", \"alpha: float = 0.2\"), \
shape(tenon_shape_of_first), summary(\"The same.\"));\n\n/* The specification, as",
    );
    edit(
        source,
        "TENON_PLUGIN();",
        "TENON_KERNEL(\"AnotherOp\", \"CPU\", plain, types(T, float), numerics(tenon_within_ulps(1.0)));\n\
TENON_KERNEL(\"AnotherOp\", \"CPU\", plain, types(T, float), numerics(tenon_within_ulps(1.0)), label(\"reference\"),\n             \
on_request);\nTENON_PLUGIN();",
    );
}

/// A check that found the crash.
fn crashed(event: Value) {
    assert_eq!(event["right"], false, "{event}");
    let named = |broken: &Value| {
        let message = broken["message"].as_str().unwrap();
        broken["kernel"] == "DevC[T=float] on CPU" && message.contains("SIGSEGV")
    };
    assert!(event["broken"].as_array().unwrap().iter().any(named), "{event}");
}

/// The trial: a build that crashes was promoted, since the time of the round was spent on other kernels; and once more
/// after a comment was added elsewhere, though its crash was known.
#[test]
fn a_build_that_crashes_is_not_promoted_however_little_time_there_is() {
    let place = Place::new();
    let source = plugin(&place);
    with_another_op(&source);
    let dev = Dev::start(&place, &HURRY);
    let first = dev.promoted();
    assert_eq!(first["checked"]["kernels"], 4, "{first}");
    assert_eq!(first["checked"]["broken"], Value::Array(Vec::new()), "{first}");

    edit(&source, LOOP, FAR);
    dev.next("building");
    crashed(dev.next("checked"));
    let kept = dev.next("kept");
    assert_eq!((&kept["why"], &kept["running"]), (&"check".into(), &true.into()), "{kept}");
    dev.next("waiting");

    // A comment elsewhere, and a figure, so that the build is another one.
    edit(
        &source,
        "/* The specification, as",
        "static const int edited = 1;\n/* Edited. The specification, as",
    );
    edit(
        &source,
        "const double alpha = *(const float *)state;",
        "const double alpha = *(const float *)state * edited;",
    );
    dev.next("building");
    let checked = dev.next("checked");
    assert_eq!(
        checked["in_full"], 1,
        "what failed is looked at first, and that is enough: {checked}"
    );
    crashed(checked);
    assert_eq!(dev.next("kept")["running"], true);
    dev.next("waiting");
    dev.signal("-INT");
    assert!(dev.next("stopped")["steps"]["done"].as_u64().unwrap() > 0);
    assert!(dev.end().success());

    // Another run knows of it, and ends by itself, not by a signal.
    let (output, events) = once(&place, &HURRY);
    assert_eq!(output.status.code(), Some(1), "{events:?}");
    assert_eq!(of(&events, "checked")["in_full"], 1, "{events:?}");
    assert_eq!(of(&events, "kept")["running"], false, "{events:?}");

    edit(&source, FAR, LOOP);
    let (output, events) = once(&place, &HURRY);
    assert!(output.status.success(), "{events:?}");
    let checked = of(&events, "checked");
    assert_eq!(checked["right"], false, "a part is never right: {checked}");
    assert_eq!(checked["left"], serde_json::json!(["AnotherOp", "DevC"]), "{checked}");
    of(&events, "replaced");
}

/// The kernel dies in processes of this subcommand alone: what comes after the check is tried apart as well.
fn dying_in(source: &Path, subcommand: &str) {
    edit(
        source,
        "static TenonCode compute(",
        "static int is_in(const char *subcommand)
{
    static char text[4096];
    FILE *file = fopen(\"/proc/self/cmdline\", \"r\");
    size_t count = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
    if (file != NULL) {
        fclose(file);
    }
    for (size_t at = 0; at < count; at++) {
        text[at] = text[at] == 0 ? ' ' : text[at];
    }
    return strstr(text, subcommand) != NULL;
}

static TenonCode compute(",
    );
    let dies = format!(
        "const float alpha = *(const float *)state;\n    if (is_in(\"{subcommand}\")) {{ *(volatile float *)8 = alpha; }}"
    );
    edit(source, "const float alpha = *(const float *)state;", &dies);
}

/// A bench process that died was `0 calls`, and the build was promoted.
#[test]
fn a_bench_process_that_dies_keeps_the_old_build() {
    let place = Place::new();
    dying_in(&plugin(&place), "dev-measure");
    let (output, events) = once(&place, &[]);
    assert_eq!(output.status.code(), Some(1), "{events:?}");
    let died = &of(&events, "measured")["died"];
    assert_eq!((&died["op"], &died["label"]), (&"DevC".into(), &"".into()), "{died}");
    let message = died["message"].as_str().unwrap();
    for part in ["signal 11 (SIGSEGV", "address 8: a null pointer", "while DevC was timed: "] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(of(&events, "kept")["why"], "bench", "{events:?}");
}

#[test]
fn a_build_that_dies_in_the_sessions_steps_is_tried_apart_first() {
    let place = Place::new();
    dying_in(&plugin(&place), "dev-rehearse");
    let (output, events) = once(&place, &[]);
    assert_eq!(output.status.code(), Some(1), "{events:?}");
    let kept = of(&events, "kept");
    assert_eq!(kept["why"], "session", "{events:?}");
    let reason = kept["reason"].as_str().unwrap();
    for part in [
        "signal 11 (SIGSEGV",
        "a null pointer",
        "the session's steps were tried in a process apart",
    ] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
}
