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
    let re_exports =
        |file: &&tree::RustSource| file.text.contains("pub use ") || file.text.contains(") use ");
    for source in tree::rust_sources().iter().filter(re_exports) {
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

/// What declares the file of a test program: the manifest, or the file above it. `None` for a file of no program.
fn declaration(path: &str, is_program: impl Fn(&str) -> bool) -> Option<(String, String)> {
    let inside = path.strip_prefix("tests/")?.strip_suffix(".rs")?;
    let Some((program, module)) = inside.split_once('/') else {
        return Some(("tests/Cargo.toml".to_owned(), format!("path = \"{inside}.rs\"")));
    };
    if !is_program(program) {
        return None;
    }
    if module == "main" {
        return Some(("tests/Cargo.toml".to_owned(), format!("path = \"{program}/main.rs\"")));
    }
    Some(match module.rsplit_once('/') {
        None => (format!("tests/{program}/main.rs"), format!("mod {module};")),
        Some((above, module)) => (format!("tests/{program}/{above}.rs"), format!("mod {module};")),
    })
}

/// The package has its sources where others have theirs in a folder: cargo finds no program that is not named, and
/// compiles no file that no module declares.
#[test]
fn every_file_of_a_test_program_is_compiled() {
    let files = tree::sources(|name| name.ends_with(".rs") || name == "Cargo.toml");
    let text = |path: &str| files.iter().find(|file| file.path == path).map(|file| &file.text);
    let is_program = |program: &str| text(&format!("tests/{program}/main.rs")).is_some();
    let missing = files.iter().filter_map(|file| {
        let (place, line) = declaration(&file.path, is_program)?;
        let is_declared = text(&place).is_some_and(|text| text.lines().any(|l| l.trim() == line));
        (!is_declared).then(|| (file.path.clone(), format!("expected '{line}' in {place}")))
    });
    tree::expect_none("every file of a test program is compiled", &[], missing.collect());
}

#[test]
fn a_file_is_declared_by_the_one_above_it() {
    let declared = |path| declaration(path, |program| program == "sessions");
    let is = |path, place: &str, line: &str| {
        assert_eq!(declared(path), Some((place.to_owned(), line.to_owned())));
    };
    is("tests/late.rs", "tests/Cargo.toml", "path = \"late.rs\"");
    is("tests/sessions/main.rs", "tests/Cargo.toml", "path = \"sessions/main.rs\"");
    is("tests/sessions/knobs.rs", "tests/sessions/main.rs", "mod knobs;");
    is("tests/sessions/bad_input/feeds.rs", "tests/sessions/bad_input.rs", "mod feeds;");
    assert_eq!(declared("tests/support/zoo.rs"), None);
}
