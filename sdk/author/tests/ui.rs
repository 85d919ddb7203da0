//! What the compiler says of misused macros: a file for each way, with the message that authors get.
//!
//! After a change that is wanted: `TRYBUILD=overwrite cargo test -p tenon-sdk --test ui`, and read the diff.

#[test]
fn misuse_is_explained() {
    let cases = trybuild::TestCases::new();
    // With a case that passes all are built, not only checked: two exports meet in code generation.
    cases.pass("tests/ui/pass/*.rs");
    cases.compile_fail("tests/ui/fail/*.rs");
}
