//! `tenon check`.

use crate::support::{Place, plugin, stderr};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tenon_testkit::npy;

/// A plugin in C with one op, `CliTwice`, whose ordinary kernel gives 3x for more than four elements.
fn wrong_plugin(place: &Place) -> PathBuf {
    wrong_plugin_with(place, &[])
}

/// As [`wrong_plugin`], with more options of the compiler.
pub fn wrong_plugin_with(place: &Place, options: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = place.path("libcli_wrong.so");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let done = Command::new(compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared", "-I"])
        .arg(folder.join("../../core/abi/include"))
        .args(options)
        .arg(folder.join("tests/check/wrong.c"))
        .arg("-o")
        .arg(&made)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
    made
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_right_op_is_said_to_be_right() {
    let place = Place::new();
    let cpu = plugin("cpu");
    // Complex numbers have no reference kernel: golden data speaks for them.
    let goldens = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/goldens");
    let args = ["check", path(&cpu), "--op", "Neg", "--jobs", "2", "--goldens", goldens];
    let text = place.text(&args);
    assert!(text.contains("Neg on CPU") && text.contains('✓'), "{text}");
    assert!(text.lines().last().unwrap().ends_with("right"), "{text}");
    assert!(!place.path("tenon-check").exists(), "nothing to reproduce");
}

#[test]
fn what_there_was_no_time_for_is_told_and_fails_the_check() {
    let place = Place::new();
    let cpu = plugin("cpu");
    let args = ["--json", "check", path(&cpu), "--op", "Neg", "--jobs", "1", "--time", "0.001"];
    let output = place.tenon(&args);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &report["right"]), (Some(1), &Value::Bool(false)));
    let problem = report["problems"][0].as_str().unwrap();
    assert!(problem.contains("time is up") && problem.contains("were not looked at"), "{problem}");
    // The first unit is looked at in any case.
    assert!(!report["subjects"][0]["clauses"].as_object().unwrap().is_empty());
}

#[test]
fn a_wrong_plugin_is_reported_in_three_forms_and_reproduced() {
    let place = Place::new();
    let file = wrong_plugin(&place);
    let output = place.tenon(&["check", path(&file), "--junit", "check.xml"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}{}", stderr(&output));
    assert!(text.contains("✗ values: CliTwice on CPU"), "{text}");
    assert!(text.contains("5 of 5 elements are wrong"), "{text}");
    // The command that the report gives runs the smallest input again.
    let again = text.lines().find_map(|line| line.trim().strip_prefix("again: tenon check "));
    let again: Vec<&str> = again.unwrap_or_else(|| panic!("{text}")).split(' ').collect();
    let output = place.tenon(&[&["check"], &again[..]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}{}", stderr(&output));
    assert!(text.contains("✗ values") && text.contains("✓ bounds"), "{text}");
    let xml = fs::read_to_string(place.path("check.xml")).unwrap();
    assert!(
        xml.contains("<testsuite name=\"CliTwice on CPU\"") && xml.contains("<failure"),
        "{xml}"
    );

    let output = place.tenon(&["check", path(&file), "--json", "--reproducers", "elsewhere"]);
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["right"], &json["plugin"]["name"]), (&false.into(), &"cli-wrong".into()));
    assert!(place.path("elsewhere/CliTwice-on-CPU.values.json").is_file());
}

/// A kernel that returns 3x for 2x and that never ran was right, with exit code 0.
#[test]
fn a_kernel_that_was_not_run_is_not_right() {
    let place = Place::new();
    let file = wrong_plugin_with(&place, &["-DCLI_ELSEWHERE"]);
    let text = place.text(&["check", path(&file)]);
    assert!(text.contains("– not run: CliTwice on CPU: this machine has no "), "{text}");
    let last = text.lines().last().unwrap();
    assert!(last.contains("right, but of 1 of 3 subjects nothing was run"), "{last}");
    let json = place.json(&["check", path(&file)]);
    assert_eq!(json["not_run"][0]["name"], "CliTwice on CPU", "{json}");

    let strict = place.tenon(&["check", path(&file), "--strict", "--junit", "strict.xml"]);
    let text = String::from_utf8_lossy(&strict.stdout).into_owned();
    assert_eq!(strict.status.code(), Some(1), "{text}{}", stderr(&strict));
    assert!(text.contains("✗ covered: CliTwice on CPU\n    nothing of it was run: "), "{text}");
    let xml = fs::read_to_string(place.path("strict.xml")).unwrap();
    assert!(xml.contains("name=\"not-run\"") && xml.contains("<failure"), "{xml}");

    // A name that no processor has is a slip.
    let file = wrong_plugin_with(&place, &["-DCLI_SLIP"]);
    let slip = place.tenon(&["check", path(&file)]);
    let text = String::from_utf8_lossy(&slip.stdout).into_owned();
    assert_eq!(slip.status.code(), Some(1), "{text}");
    assert!(text.contains("no processor has a feature 'avx-2': is 'avx2' meant?"), "{text}");
}

/// The arrays of a failing case can be looked at elsewhere, and the message has the values that matter.
#[test]
fn a_failing_case_is_kept_as_arrays_and_told_with_its_own_inputs() {
    let place = Place::new();
    let file = wrong_plugin(&place);
    let output = place.tenon(&["check", path(&file), "--keep-failures", "kept"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for said in ["; at the same place", "largest error", "arrays: kept/CliTwice-on-CPU.values"] {
        let said = said.trim_start_matches("; ");
        assert!(text.contains(said), "{said}: {text}");
    }
    let read = |folder: &str, name: &str| {
        let tensor = npy::read(place.path(folder).join(name), None).unwrap();
        tensor.as_slice::<f32>().unwrap().to_vec()
    };
    let all =
        |folder: &str| ["input0.npy", "expected0.npy", "got0.npy"].map(|name| read(folder, name));
    let [x, expected, got] = all("kept/CliTwice-on-CPU.values");
    assert_eq!(x.len(), 5, "the smallest that fails");
    assert_eq!(expected, x.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
    assert_eq!(got, x.iter().map(|x| 3.0 * x).collect::<Vec<_>>());
    let case = place.arg("tenon-check/CliTwice-on-CPU.values.json");
    let output = place.tenon(&["check", "--case", &case, "--keep-failures", "again"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("arrays: again/CliTwice-on-CPU.values"), "{text}{}", stderr(&output));
    assert_eq!(all("again/CliTwice-on-CPU.values"), [x, expected, got]);
}

/// All keys of an entry are where an author looks.
#[test]
fn the_help_names_every_key_of_an_exception() {
    let help = Place::new().text(&["check", "--help"]);
    let keys = ["op", "kernel", "device", "dtype", "clause", "case", "reason"];
    let words: Vec<&str> = help.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    for key in keys.iter().chain(&["unsupported", "expected_failure"]) {
        assert!(words.contains(key), "{key}: {help}");
    }
}

/// Exceptions that lie beside the plugin are found; those that are named are taken instead.
#[test]
fn exceptions_turn_a_known_failure_into_none() {
    let place = Place::new();
    let file = wrong_plugin(&place);
    let entry =
        "[[expected_failure]]\nkernel = 'CliTwice on CPU'\nclause = 'values'\nreason = 'r'\n";
    fs::write(place.path("libcli_wrong.exceptions.toml"), entry).unwrap();
    let text = place.text(&["check", path(&file)]);
    assert!(text.contains("expected failure: r"), "{text}");
    assert!(text.contains("libcli_wrong.exceptions.toml"), "{text}");
    fs::write(place.path("other.toml"), "[[unsupported]]\nop = 'Cli*'\n").unwrap();
    let error = place.error(&["check", path(&file), "--exceptions", &place.arg("other.toml")]);
    assert!(error.contains("other.toml") && error.contains("missing field `reason`"), "{error}");
}

#[test]
fn what_cannot_be_checked_is_an_error() {
    let place = Place::new();
    assert!(place.error(&["check", "no-such-file.so"]).contains("no-such-file.so"));
    let cpu = plugin("cpu");
    let error = place.error(&["check", path(&cpu), "--op", "NoSuchOp"]);
    assert!(error.contains("nothing to check") && error.contains("NoSuchOp"), "{error}");
    assert_eq!(place.tenon(&["check"]).status.code(), Some(2));
}

#[test]
fn the_worker_is_no_command_for_people() {
    assert!(!Place::new().text(&["--help"]).contains("check-worker"));
}
