//! Two crates of others are each named in few places: what they do is hidden from the rest of the project.

use super::tree;

/// A crate, the parts of the code that name it, and the manifests that list it.
struct Contained {
    name: &'static str,
    code: &'static [&'static str],
    manifests: &'static [&'static str],
}

const CONTAINED: [Contained; 2] = [
    // The layout check of door 1. Its edges are in core/abi/docs/evolution.md.
    Contained { name: "abi_stable", code: &["core/abi/"], manifests: &["core/abi/Cargo.toml"] },
    // Opening a library runs its constructors: of plugins only the loader does it, after the checks that come first.
    // The others open libraries that are no plugins: NVIDIA's, what stands in for them in tests, and a profiler's.
    Contained {
        name: "libloading",
        code: &[
            "core/host/src/loader/",
            "plugins/cuda/src/libraries.rs",
            "plugins/cuda/src/compile/nvrtc_api.rs",
            "plugins/cuda/src/cudnn/api.rs",
            "plugins/cuda/tests/",
            "sdk/ranges/src/",
            "tests/support/cuda.rs",
        ],
        manifests: &[
            "core/host/Cargo.toml",
            "plugins/cuda/Cargo.toml",
            "sdk/ranges/Cargo.toml",
            "tests/Cargo.toml",
        ],
    },
];

/// The fixtures' own workspace holds plugins that break the rules on purpose.
const BROKEN_ON_PURPOSE: &str = "tests/fixtures/";

#[test]
fn contained_crates_are_named_in_few_places() {
    let sources = tree::rust_sources();
    for Contained { name, code, .. } in &CONTAINED {
        let (mut inside, mut outside) = (0, Vec::new());
        let concerned = |file: &&tree::RustSource| {
            !file.path.starts_with(BROKEN_ON_PURPOSE) && file.text.contains(name)
        };
        for source in sources.iter().filter(concerned) {
            tree::identifiers(&source.tokens, &mut |ident, _| {
                if ident != name {
                } else if code.iter().any(|code| source.path.starts_with(code)) {
                    inside += 1;
                } else {
                    let line = ident.span().start().line;
                    outside.push((source.path.clone(), format!("line {line} names {name}")));
                }
            });
        }
        let places = code.join(", ");
        assert!(inside > 0, "{name} is not named under {places}: has it moved?");
        tree::expect_none(&format!("only {places} name {name}"), &[], outside);
    }
}

#[test]
fn contained_crates_are_listed_by_few_manifests() {
    let manifests = tree::sources(|name| name == "Cargo.toml");
    for Contained { name, manifests: known, .. } in &CONTAINED {
        let lists = |text: &str| {
            text.lines().any(|line| {
                let rest = line.trim_start().strip_prefix(name);
                rest.is_some_and(|rest| rest.trim_start().starts_with(['.', '=']))
            })
        };
        // The root gives the version, which is not a dependency of anything.
        let mut listing: Vec<&str> = manifests
            .iter()
            .filter(|file| file.path != "Cargo.toml" && !file.path.starts_with(BROKEN_ON_PURPOSE))
            .filter(|file| lists(&file.text))
            .map(|file| file.path.as_str())
            .collect();
        listing.sort_unstable();
        assert_eq!(listing, *known, "manifests that list {name}");
    }
}
