//! Plugins that fail before anything of them can be checked.

use super::support::{check, options, text};
use std::time::{Duration, Instant};
use tenon_testkit::{
    TestkitError,
    check::{Clause, driver},
};
use tenon_tests::fixtures;

/// The message under which loading failed.
#[track_caller]
fn refusal(name: &str) -> String {
    let report = check(&options(fixtures::check(name)));
    let broken: Vec<_> = report.broken().collect();
    assert_eq!(broken.len(), 1, "{}", text(&report));
    let (unit, clause, tally) = broken[0];
    assert_eq!((unit.name.as_str(), clause), (&*format!("plugin fixture-{name}"), Clause::Load));
    format!("{}\n{}", tally.failures[0].message, tally.failures[0].said)
}

#[test]
fn a_plugin_that_aborts_when_it_is_loaded_is_named() {
    let message = refusal("aborts-loading");
    assert!(message.contains("SIGABRT") && message.contains("while it was loaded"), "{message}");
    assert!(message.contains("the fixture aborts"), "{message}");
}

#[test]
fn a_plugin_that_is_refused_is_named_with_the_step() {
    let report = check(&options(fixtures::c("open_fails")));
    let (_, clause, tally) = report.broken().next().expect("a failure");
    assert_eq!(clause, Clause::Load);
    let message = &tally.failures[0].message;
    assert!(message.contains("the fixture's library is not installed"), "{message}");
}

/// What is no plugin is an error of the user's, and is found before any process is started.
#[test]
fn what_is_no_plugin_is_an_error() {
    let begin = Instant::now();
    let error = driver::check(&options(fixtures::text()), &|_| {}).unwrap_err();
    assert!(matches!(error, TestkitError::Plugin(_)), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(5));
    let error = driver::check(&options("/no/such/plugin.so".into()), &|_| {}).unwrap_err();
    assert!(error.to_string().contains("/no/such/plugin.so"), "{error}");
}

#[test]
fn ops_that_are_not_there_are_named() {
    let mut options = options(tenon_tests::zoo::plugin("zoo_right"));
    options.setup.ops = vec!["Cube".into()];
    let error = driver::check(&options, &|_| {}).unwrap_err().to_string();
    assert!(error.contains("of op Cube"), "{error}");
}
