//! Two crates of others are each named in one place: what they do is hidden from the rest of the project.

use super::tree;

/// A crate, the part of the code that names it, and the manifest that lists it.
struct Contained {
    name: &'static str,
    code: &'static str,
    manifest: &'static str,
}

const CONTAINED: [Contained; 2] = [
    // The layout check of door 1. Its edges are in core/abi/docs/evolution.md.
    Contained { name: "abi_stable", code: "core/abi/", manifest: "core/abi/Cargo.toml" },
    // Opening a library runs its constructors: only the loader does it, after the checks that come first.
    Contained {
        name: "libloading",
        code: "core/host/src/loader/",
        manifest: "core/host/Cargo.toml",
    },
];

/// The fixtures' own workspace holds plugins that break the rules on purpose.
const BROKEN_ON_PURPOSE: &str = "tests/fixtures/";

#[test]
fn contained_crates_are_named_in_one_place() {
    let sources = tree::rust_sources();
    for Contained { name, code, .. } in &CONTAINED {
        let (mut inside, mut outside) = (0, Vec::new());
        for source in sources.iter().filter(|file| !file.path.starts_with(BROKEN_ON_PURPOSE)) {
            tree::identifiers(&source.tokens, &mut |ident, _| {
                if ident != name {
                } else if source.path.starts_with(code) {
                    inside += 1;
                } else {
                    let line = ident.span().start().line;
                    outside.push((source.path.clone(), format!("line {line} names {name}")));
                }
            });
        }
        assert!(inside > 0, "{name} is not named under {code}: has it moved?");
        tree::expect_none(&format!("only {code} names {name}"), &[], outside);
    }
}

#[test]
fn contained_crates_are_listed_by_one_manifest() {
    let manifests = tree::sources(|name| name == "Cargo.toml");
    for Contained { name, manifest, .. } in &CONTAINED {
        let lists = |text: &str| {
            text.lines().any(|line| {
                let rest = line.trim_start().strip_prefix(name);
                rest.is_some_and(|rest| rest.trim_start().starts_with(['.', '=']))
            })
        };
        // The root gives the version, which is not a dependency of anything.
        let listing: Vec<&str> = manifests
            .iter()
            .filter(|file| file.path != "Cargo.toml" && !file.path.starts_with(BROKEN_ON_PURPOSE))
            .filter(|file| lists(&file.text))
            .map(|file| file.path.as_str())
            .collect();
        assert_eq!(listing, [*manifest], "manifests that list {name}");
    }
}
