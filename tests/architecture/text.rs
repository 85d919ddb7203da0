//! What no file holds: re-exports by glob, and paths of the machine it was written on.

use super::tree;
use syn::{
    ItemMod, ItemUse, UseTree, Visibility,
    visit::{self, Visit},
};

/// The only place with a prelude.
const PRELUDE: &str = "sdk/author/src/";

/// Re-exports by glob outside a module named `prelude`.
struct Globs {
    /// Whether a module of that name counts in this file.
    may_have_prelude: bool,
    in_prelude: bool,
    lines: Vec<usize>,
}

impl<'ast> Visit<'ast> for Globs {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let outside = self.in_prelude;
        self.in_prelude |= self.may_have_prelude && item.ident == "prelude";
        visit::visit_item_mod(self, item);
        self.in_prelude = outside;
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let exported = !matches!(item.vis, Visibility::Inherited);
        if exported && !self.in_prelude && has_glob(&item.tree) {
            self.lines.push(item.use_token.span.start().line);
        }
    }
}

fn has_glob(tree: &UseTree) -> bool {
    match tree {
        UseTree::Path(path) => has_glob(&path.tree),
        UseTree::Group(group) => group.items.iter().any(has_glob),
        UseTree::Glob(_) => true,
        _ => false,
    }
}

#[test]
fn only_the_prelude_re_exports_by_glob() {
    let mut found = Vec::new();
    for source in tree::rust_sources() {
        let may_have_prelude = source.path.starts_with(PRELUDE);
        let in_prelude = may_have_prelude && source.path.ends_with("/prelude.rs");
        let mut globs = Globs { may_have_prelude, in_prelude, lines: Vec::new() };
        globs.visit_file(&source.syntax);
        found.extend(globs.lines.iter().map(|line| (source.path.clone(), format!("line {line}"))));
    }
    tree::expect_none("only the SDK's prelude re-exports by glob", &[], found);
}

#[test]
fn a_glob_is_found_inside_groups_and_modules() {
    let lines = |may_have_prelude| {
        let text = "use a::*;\npub use b::{c, d::*};\nmod prelude {\n    pub(crate) use e::*;\n}\n";
        let mut globs = Globs { may_have_prelude, in_prelude: false, lines: Vec::new() };
        globs.visit_file(&syn::parse_file(text).expect("it is Rust"));
        globs.lines
    };
    assert_eq!(lines(false), [2, 4]);
    assert_eq!(lines(true), [2]);
}

/// First folders of paths that exist on one machine only.
const MACHINE_FOLDERS: [&str; 5] = ["home", "root", "work", "farm", "Users"];

/// True where `line` holds an absolute path into such a folder. A relative path may contain a folder of that name.
fn names_machine_path(line: &str) -> bool {
    MACHINE_FOLDERS.iter().any(|folder| {
        let path = format!("/{folder}/");
        line.match_indices(&path).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || "_.-/}~$*".contains(c))
        })
    })
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    let mut found = Vec::new();
    for source in tree::sources(|_| true) {
        for (index, line) in source.text.lines().enumerate() {
            if names_machine_path(line) {
                found.push((source.path.clone(), format!("line {}: {}", index + 1, line.trim())));
            }
        }
    }
    tree::expect_none("no absolute path of a machine", &[], found);
}

#[test]
fn a_machine_path_is_told_from_a_relative_one() {
    let [folder, ..] = MACHINE_FOLDERS;
    assert!(names_machine_path(&format!("open(\"/{folder}/me/graph.pb\")")));
    assert!(names_machine_path(&format!("/{folder}/me")));
    assert!(!names_machine_path(&format!("frame/{folder}/x")));
    assert!(!names_machine_path(&format!("${{ROOT}}/{folder}/x")));
}

/// The package has its sources where others have theirs in a folder: cargo finds no test that is not named.
#[test]
fn every_test_file_is_named_in_the_manifest() {
    let folder = tree::root().join("tests");
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
    let files = std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    let missing = names.filter(|name| name.ends_with(".rs")).filter_map(|name| {
        let path = format!("path = \"{name}\"");
        (!manifest.contains(&path)).then(|| (format!("tests/{name}"), "no [[test]]".to_owned()))
    });
    let missing: Vec<(String, String)> = missing.collect();
    tree::expect_none("every file beside tests/Cargo.toml is a test", &[], missing);
}
