use super::*;

const ADD: Place<'static> = Place { op: "Add", device: "CPU", subject: "Add[T=half] on CPU" };
const MUL: Place<'static> = Place { op: "Mul", device: "CPU", subject: "Mul[T=half] on CPU" };

fn read(name: &str, text: &str) -> Result<CheckExceptions, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    CheckExceptions::read(&path).map_err(|error| error.to_string())
}

fn entries(text: &str) -> CheckExceptions {
    read("e.toml", text).unwrap()
}

fn failed() -> Verdict {
    Verdict::Failed("wrong".to_owned())
}

#[test]
fn toml_and_json_say_the_same() {
    let toml = entries("[[unsupported]]\nop = 'Add'\nclause = 'values'\nreason = 'r'\n");
    let json = r#"{"unsupported": [{"op": "Add", "clause": "values", "reason": "r"}]}"#;
    assert_eq!(read("e.json", json).unwrap(), toml);
    assert_eq!(entries(""), CheckExceptions::default());
}

/// An entry for one element type needs no name of a kernel.
#[test]
fn an_entry_may_be_for_an_element_type() {
    let about = |dtype: &str, subject: &'static str| {
        let text = format!("[[unsupported]]\nop = 'Add'\ndtype = '{dtype}'\nreason = 'r'\n");
        entries(&text).unsupported[0].is_about(Place { subject, ..ADD })
    };
    let pair = "Add[T=bfloat16, Tidx=int32] on CPU";
    assert!(about("half", ADD.subject) && !about("float", ADD.subject));
    assert!(about("bfloat16", pair) && about("int32", pair) && about("*16", pair));
    assert!(!about("16", pair) && !about("float", pair) && !about("*", "Add on CPU"));
    let alone = read("e.toml", "[[unsupported]]\ndtype = 'half'\nreason = 'r'\n").unwrap_err();
    assert!(alone.contains("op, kernel or device"), "{alone}");
    let entry =
        &entries("[[unsupported]]\nop = 'Add'\ndtype = 'half'\nreason = 'r'\n").unsupported[0];
    assert_eq!(entry.to_string(), r#"op = "Add", dtype = "half", reason = "r""#);
}

#[test]
fn what_is_malformed_is_named_with_its_line() {
    let cases = [
        ("[[unsupported]]\nop = 'Add'\n", "reason"),
        ("[[unsupported]]\nop = 'Add'\nreason = ' '\n", "an entry has a reason"),
        ("[[unsupported]]\nreason = 'r'\n", "op, kernel or device"),
        (
            "[[unsupported]]\nop = 'Add'\nreason = 'r'\nclause = 'luck'\n",
            "no clause is called 'luck'",
        ),
        ("[[unsupported]]\nop = 'Add'\nreason = 'r'\ncases = '*'\n", "unknown field `cases`"),
        ("[[supported]]\nop = 'Add'\nreason = 'r'\n", "unknown field `supported`"),
    ];
    for (text, expected) in cases {
        let message = read("e.toml", text).unwrap_err();
        assert!(message.contains(expected) && message.contains("line "), "{text}: {message}");
        assert!(message.contains("e.toml"), "{message}");
    }
    let message = read("e.json", "{\n \"unsupported\": [{\"op\": \"Add\"}]}").unwrap_err();
    assert!(message.contains("reason") && message.contains("line 2"), "{message}");
}

#[test]
fn an_unsupported_case_is_skipped_with_its_reason() {
    let text = "[[unsupported]]\nop = 'A*'\ncase = 'large*'\nreason = 'too large'\n";
    let mut applied = Applied::new(entries(text));
    assert!(applied.entries().not_run(ADD, "large_1").is_some());
    assert!(applied.entries().not_run(ADD, "prime_1").is_none());
    assert!(applied.entries().not_run(MUL, "large_1").is_none());
    let skipped = Verdict::Skipped("too large".to_owned());
    assert_eq!(applied.apply(ADD, Clause::Values, "large_1", failed()), skipped);
    assert_eq!(applied.apply(ADD, Clause::Values, "prime_1", failed()), failed());
    assert_eq!(applied.apply(MUL, Clause::Values, "large_1", Verdict::Passed), Verdict::Passed);
    assert_eq!(applied.stale(|_| true).count(), 0);
}

#[test]
fn an_entry_of_one_clause_leaves_the_case_to_be_run() {
    let text = "[[unsupported]]\nop = 'Add'\nclause = 'leak'\nreason = 'r'\n";
    let mut applied = Applied::new(entries(text));
    assert!(applied.entries().not_run(ADD, "").is_none());
    let skipped = Verdict::Skipped("r".to_owned());
    assert_eq!(applied.apply(ADD, Clause::Leak, "", failed()), skipped);
    assert_eq!(applied.apply(ADD, Clause::Values, "a", failed()), failed());
}

const EXPECTED: &str =
    "[[expected_failure]]\nkernel = '*half] on CPU'\nclause = 'values'\nreason = 'r'\n";

#[test]
fn an_expected_failure_must_fail_for_each_kernel() {
    let mut applied = Applied::new(entries(EXPECTED));
    let verdict = applied.apply(ADD, Clause::Values, "a", failed());
    assert_eq!(verdict, Verdict::Skipped("expected failure: r".to_owned()));
    assert_eq!(applied.apply(ADD, Clause::Values, "b", Verdict::Passed), Verdict::Passed);
    assert_eq!(applied.unexpected_passes().count(), 0);
    applied.apply(MUL, Clause::Values, "a", Verdict::Passed);
    let passes: Vec<_> = applied.unexpected_passes().collect();
    assert_eq!(passes.len(), 1);
    assert_eq!((passes[0].0, passes[0].1), (MUL.subject, Clause::Values));
    assert!(passes[0].2.contains("passes 1 times"), "{}", passes[0].2);
}

#[test]
fn an_entry_that_covers_nothing_is_stale() {
    let mut applied = Applied::new(entries(EXPECTED));
    applied.apply(ADD, Clause::Shapes, "a", failed());
    applied.apply(ADD, Clause::Values, "a", Verdict::Skipped("no oracle".to_owned()));
    let stale: Vec<_> = applied.stale(|_| true).collect();
    let [(_, message)] = &stale[..] else { panic!("{stale:?}") };
    assert!(message.contains("kernel = \"*half] on CPU\""), "{message}");
    assert_eq!(applied.stale(|entry| !entry.is_about(ADD)).count(), 0);
}
