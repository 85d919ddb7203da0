//! The list of everything that this plugin registers, as `manifest.txt` has it: proof that the linker dropped
//! nothing. Run with `TENON_UPDATE=1` to rewrite the file.

use tenon_cuda as _;
use tenon_sdk::reg::{Registration, registrations};

#[test]
fn registrations_are_those_of_the_manifest() {
    let mut lines: Vec<String> = registrations().into_iter().map(Registration::line).collect();
    lines.sort();
    for pair in lines.windows(2) {
        assert_ne!(pair[0], pair[1], "registered twice");
    }
    let found = lines.join("\n") + "\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/manifest.txt");
    if std::env::var_os("TENON_UPDATE").is_some() {
        std::fs::write(path, &found).expect("manifest.txt can be written");
    }
    let expected = std::fs::read_to_string(path).expect("manifest.txt can be read");
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "run with TENON_UPDATE=1 to accept");
    }
    assert_eq!(
        found.lines().count(),
        expected.lines().count(),
        "run with TENON_UPDATE=1 to accept"
    );
}
