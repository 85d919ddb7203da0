//! `tenon dev`, driven by its events: edits that are right, wrong, and no C at all, while steps run.

use crate::support::{Place, stderr};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

mod promotion;

/// Longer than anything takes on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where it is kept what failed, apart from the user's own.
const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/dev-cache");
/// Time to look at everything in full.
const WHOLE: [&str; 2] = ["--check-time", "60"];

/// A new plugin in C.
fn plugin(place: &Place) -> PathBuf {
    place.text(&["new", "dev-c", "--lang", "c"]);
    place.path("dev-c/plugin.c")
}

/// Replaces a piece of a file, as an editor does: aside, then by its name.
fn edit(file: &Path, piece: &str, by: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert_eq!(text.matches(piece).count(), 1, "{piece}: {text}");
    let aside = file.with_extension("swp");
    fs::write(&aside, text.replace(piece, by)).unwrap();
    fs::rename(&aside, file).unwrap();
}

/// A `tenon dev` that runs, and what it tells.
struct Dev {
    child: Child,
    events: Receiver<Value>,
}

impl Dev {
    fn start(place: &Place, args: &[&str]) -> Dev {
        let mut command = place.command(Path::new(env!("CARGO_BIN_EXE_tenon")));
        command.args(["dev", "dev-c", "--json"]).args(args).env("CFLAGS", "-O1");
        command.env("XDG_CACHE_HOME", CACHE);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (sender, events) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        Dev { child, events }
    }

    /// The next event, which is this one.
    fn next(&self, name: &str) -> Value {
        let event = self.events.recv_timeout(PATIENCE);
        let event = event.unwrap_or_else(|error| panic!("expected {name}: {error}"));
        assert_eq!(event["event"], name, "{event}");
        if !event["steps"].is_null() {
            assert_eq!(event["steps"]["failed"], 0, "no step ever fails: {event}");
        }
        event
    }

    /// The events of a round that is right, and the one that ends it.
    fn right(&self) -> [Value; 3] {
        self.next("building");
        let events = ["checked", "measured", "replaced"].map(|name| self.next(name));
        self.next("waiting");
        assert_eq!(events[0]["right"], true, "{}", events[0]);
        events
    }

    /// The check of a round whose build is promoted, whether all of it was looked at in full or not.
    fn promoted(&self) -> Value {
        self.next("building");
        let [checked, measured, replaced] =
            ["checked", "measured", "replaced"].map(|name| self.next(name));
        self.next("waiting");
        serde_json::json!({ "checked": checked, "measured": measured, "replaced": replaced })
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    fn end(mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("it does not end");
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // One that has ended is not there.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Edits that are wrong: each is told of, and the old build goes on running.
fn wrong(dev: &Dev, source: &Path) {
    // Wrong results.
    edit(source, "(x[at] > 0.0f ? 1.0f : alpha)", "(x[at] > 0.0f ? 2.0f : alpha)");
    dev.next("building");
    let checked = dev.next("checked");
    assert_eq!(checked["right"], false);
    assert_eq!(checked["broken"][0]["clause"], "values", "{checked}");
    assert_eq!(checked["turned"][0]["now"], "fails", "{checked}");
    let kept = dev.next("kept");
    assert_eq!((&kept["why"], &kept["running"]), (&"check".into(), &true.into()), "{kept}");
    dev.next("waiting");

    // A crash, which is one of a process apart.
    edit(source, "y[at] = x[at] * (x[at] > 0.0f ? 2.0f : alpha);", "*(volatile float *)0 = x[at];");
    dev.next("building");
    assert_eq!(dev.next("checked")["right"], false);
    assert_eq!(dev.next("kept")["why"], "check");
    dev.next("waiting");

    // No C.
    edit(source, "*(volatile float *)0 = x[at];", "y[at] = no_such_name;");
    dev.next("building");
    let failed = dev.next("build_failed");
    assert!(failed["output"].as_str().unwrap().contains("no_such_name"), "{failed}");
    let kept = dev.next("kept");
    assert_eq!((&kept["why"], &kept["running"]), (&"build".into(), &true.into()), "{kept}");
    dev.next("waiting");
}

#[test]
fn a_build_that_is_right_takes_the_old_ones_place_and_no_other_does() {
    let place = Place::new();
    let source = plugin(&place);
    let dev = Dev::start(&place, &WHOLE);
    let [_, measured, first] = dev.right();
    assert_eq!(first["first"], true, "{first}");
    assert!(first["nodes"].as_u64().unwrap() > 0, "{first}");
    assert_eq!(measured["rows"][0]["before_ns"], Value::Null, "{measured}");

    // Another way to say the same, in the ordinary kernel.
    let right = "y[at] = x[at] > 0.0f ? x[at] : alpha * x[at];";
    edit(&source, right, "y[at] = x[at] * (x[at] > 0.0f ? 1.0f : alpha);");
    let [_, measured, second] = dev.right();
    assert_ne!(second["digest"], first["digest"]);
    assert_eq!(second["first"], false);
    assert_ne!(measured["rows"][0], Value::Null, "{measured}");
    for row in measured["rows"].as_array().unwrap() {
        let told = ["faster", "slower", "same"].iter().any(|word| row["verdict"] == *word);
        assert!(told && row["before_ns"].as_f64().unwrap() > 0.0, "{row}");
    }

    wrong(&dev, &source);

    // Another registration: the session is a new one.
    edit(&source, "y[at] = no_such_name;", right);
    edit(
        &source,
        "\"CPU\", entries, types(T, float)",
        "\"CPU\", entries, priority(7), types(T, float)",
    );
    let [checked, _, third] = dev.right();
    let back = |turned: &Value| turned["clause"] == "values" && turned["now"] == "passes";
    assert!(checked["turned"].as_array().unwrap().iter().any(back), "{checked}");
    let changed = &third["registrations"]["changed"][0];
    assert_eq!(changed["name"], "kernel DevC[T=float] on CPU", "{third}");
    assert_eq!((&changed["before"], &changed["now"]), (&"priority 0".into(), &"priority 7".into()));

    dev.signal("-INT");
    let stopped = dev.next("stopped");
    assert!(stopped["steps"]["done"].as_u64().unwrap() > 0, "{stopped}");
    assert!(dev.end().success());
}

#[test]
fn the_users_own_graph_is_run() {
    let place = Place::new();
    place.text(&["new", "dev-c", "--lang", "c", "--kind", "kernel"]);
    place.relu("model.pb");
    let x = tenon_runtime::framework::Tensor::from_slice(&[2], &[1.0f32, -1.0]).unwrap();
    let feed = format!("x={}", place.array("x.npy", &x));
    let once = ["dev", "dev-c", "--once", "--json", "--graph", "model.pb", "--feed", &feed];
    let done = place.tenon(&[&once[..], &["--fetch", "layer/y"]].concat());
    assert!(done.status.success(), "{}{}", stderr(&done), String::from_utf8_lossy(&done.stdout));
    assert!(String::from_utf8_lossy(&done.stdout).contains("\"event\":\"replaced\""));
    let refused = place.tenon(&[&once[..], &["--fetch", "nowhere"]].concat());
    let told = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(told.contains("\"why\":\"load\"") && told.contains("nowhere"), "{told}");
}

#[test]
fn one_round_says_by_its_exit_code_whether_the_build_is_right() {
    let place = Place::new();
    let source = plugin(&place);
    let text = place.text(&[&["dev", "dev-c", "--once", "--op", "DevC"], &WHOLE[..]].concat());
    assert!(text.contains("check: right") && text.contains("dev-c 0.1.0 runs"), "{text}");
    edit(
        &source,
        ": alpha * x[at];\n    }\n    return code;\n}\n\n/*",
        ": x[at];\n    }\n    return code;\n}\n\n/*",
    );
    let broken = place.tenon(&["dev", "dev-c", "--once"]);
    let text = String::from_utf8_lossy(&broken.stdout).into_owned();
    assert_eq!(broken.status.code(), Some(1), "{text}");
    assert!(text.contains("✗ values: DevC") && text.contains("nothing runs yet"), "{text}");
    // Made smaller and told as `tenon check` does, with what runs it again: the build, not the copy that was checked.
    assert!(text.contains("\n      with T = float, alpha = 0.2, input 0: float ["), "{text}");
    let again =
        text.lines().find_map(|line| line.trim().strip_prefix("again: tenon check --case "));
    let again = again.unwrap_or_else(|| panic!("{text}"));
    assert!(again.starts_with("dev-c/tenon-check/DevC"), "{text}");
    let case = place.tenon(&["check", "--case", again]);
    let told = String::from_utf8_lossy(&case.stdout).into_owned();
    assert_eq!(case.status.code(), Some(1), "{told}{}", stderr(&case));
    assert!(told.contains("✗ values") && !told.contains("another build"), "{told}");
    let error = place.error(&["dev", "nowhere"]);
    assert!(error.contains("expected the folder of a plugin's source"), "{error}");
    fs::create_dir(place.path("empty")).unwrap();
    assert!(place.error(&["dev", "empty"]).contains("--build COMMAND --artifact FILE"));
}

/// Ops that write files are in no step that nobody asked for.
#[test]
fn ops_with_state_are_neither_run_nor_timed() {
    let place = Place::new();
    fs::create_dir(place.path("source")).unwrap();
    let artifact = crate::support::plugin("text").display().to_string();
    let built = ["dev", "source", "--build", "true", "--artifact", &artifact, "--once", "--json"];
    let goldens = crate::support::goldens().join("..").display().to_string();
    // Files that ops of the plugin read are not there.
    let exceptions =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/text/libtenon_text.exceptions.toml");
    let known = ["--goldens", &goldens, "--exceptions", exceptions];
    let asked = ["--op", "StringLength", "--op", "WriteFile", "--check-time", "0.1"];
    let told = place.text(&[&built[..], &known, &asked].concat());
    let events: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| {
        let event = events.iter().find(|event| event["event"] == name);
        event.unwrap_or_else(|| panic!("{name} in {told}"))
    };
    let rows = of("measured")["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["op"] == "StringLength"), "{told}");
    assert!(!rows.iter().any(|row| row["op"] == "WriteFile"), "{told}");
    assert!(of("replaced")["nodes"].as_u64() > Some(10), "{told}");
    let files = fs::read_dir(place.path(".")).unwrap().map(|file| file.unwrap().file_name());
    let files: Vec<_> = files.filter(|name| name != "source").collect();
    assert!(files.is_empty(), "{files:?}");
}

/// What changes while a build runs is built after it, once; and a build ends with the command.
#[test]
fn a_change_during_a_build_is_one_more_build_and_none_outlives_the_command() {
    let place = Place::new();
    let source = plugin(&place);
    fs::write(&source, "1").unwrap();
    let wait = "cat plugin.c >> .log; echo $$ > .pid; until test -e .go; do sleep 0.02; done; rm .go; false";
    let dev = Dev::start(&place, &["--build", wait, "--artifact", "none.so"]);
    let folder = source.parent().unwrap();
    let log = || fs::read_to_string(folder.join(".log")).unwrap_or_default();
    let until = |built: &str| {
        let begin = Instant::now();
        while log() != built {
            assert!(begin.elapsed() < PATIENCE, "{}", log());
            thread::sleep(Duration::from_millis(10));
        }
    };
    let finish = || {
        fs::write(folder.join(".go"), "").unwrap();
        dev.next("build_failed");
        assert_eq!(dev.next("kept")["running"], false);
        dev.next("waiting");
    };
    dev.next("building");
    until("1");
    fs::write(&source, "2").unwrap();
    fs::write(&source, "3").unwrap();
    finish();
    dev.next("building");
    until("13");
    // Written as it is, it is no change.
    fs::write(&source, "3").unwrap();
    finish();
    fs::write(&source, "4").unwrap();
    dev.next("building");
    until("134");
    let begin = Instant::now();
    let pid = loop {
        let text = fs::read_to_string(folder.join(".pid")).unwrap();
        if text.ends_with('\n') {
            break text.trim().to_owned();
        }
        assert!(begin.elapsed() < PATIENCE);
    };
    dev.signal("-TERM");
    dev.next("stopped");
    assert!(dev.end().success());
    assert!(!Path::new("/proc").join(pid).exists(), "the build is ended too");
}
