//! The table of clauses, the zoo's plugins, the tests and the page for readers say the same.

use std::{collections::BTreeSet, fs};
use tenon_tests::{
    bench::Bench,
    build::{files, repository},
    clauses::{CALL, Clause, DEVICE, ONE_LANGUAGE},
    zoo::Language,
};

fn all() -> impl Iterator<Item = &'static Clause> {
    CALL.iter().chain(DEVICE)
}

/// Ops of the zoo in one language, by their full names.
fn registered(language: Language) -> BTreeSet<String> {
    let bench = Bench::with([language.zoo(), language.device_zoo()]);
    let plugins: Vec<_> = bench.plugins.list().into_iter().filter(|p| p.path.is_some()).collect();
    assert_eq!(plugins.len(), 2);
    let registry = bench.plugins.registry();
    let own = registry.ops().filter(|op| op.name.starts_with(language.prefix()));
    let names = own.map(|op| op.name.clone());
    names.inspect(|op| assert!(!registry.kernels_of(op).is_empty(), "{op} has a kernel")).collect()
}

#[test]
fn every_clause_has_an_op_in_both_languages_and_every_op_a_clause() {
    for language in Language::ALL {
        let found = registered(language);
        let alone = ONE_LANGUAGE.iter().map(|(op, ..)| (*op).to_owned());
        let used: BTreeSet<String> =
            all().flat_map(|clause| clause.ops.iter().map(|op| language.op(op))).collect();
        let missing: Vec<_> = used.difference(&found).collect();
        assert!(missing.is_empty(), "{language:?} has no {missing:?}");
        let known: BTreeSet<String> = used.into_iter().chain(alone).collect();
        let unused: Vec<_> = found.difference(&known).collect();
        assert!(unused.is_empty(), "{language:?}: no clause names {unused:?}");
    }
}

#[test]
fn every_clause_has_a_test() {
    let tests = repository().join("tests");
    let mut sources = files(&tests.join("boundary/zoo_calls"), &[".rs"]);
    let others = [
        "boundary/zoo_device.rs",
        "sessions/zoo_knobs.rs",
        "sessions/kernel_functions.rs",
        "graphs/gradients.rs",
    ];
    sources.extend(others.map(|name| tests.join(name)));
    let text: String = sources.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    for clause in all() {
        let wanted = format!("#[test]\nfn {}()", clause.test);
        assert!(text.contains(&wanted), "'{}' names test {}", clause.text, clause.test);
    }
}

fn row(clause: &Clause) -> String {
    let ops: Vec<String> = clause.ops.iter().map(|op| format!("`{op}`")).collect();
    let ops = if ops.is_empty() { "the host itself".to_owned() } else { ops.join(", ") };
    format!("| {} | {ops} | `{}` |", clause.text, clause.test)
}

#[test]
fn the_page_shows_the_table() {
    let path = repository().join("tests/zoo/README.md");
    let page = fs::read_to_string(&path).unwrap();
    let missing: Vec<String> = all().map(row).filter(|row| !page.contains(row)).collect();
    assert!(missing.is_empty(), "{} lacks these rows:\n{}", path.display(), missing.join("\n"));
    for (op, clause, reason) in ONE_LANGUAGE {
        let row = format!("| `{op}` | {clause} | {reason} |");
        assert!(page.contains(&row), "{} lacks {row}", path.display());
    }
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |")).count();
    assert_eq!(rows, all().count(), "the page has no further rows");
}
