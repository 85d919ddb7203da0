//! The files of the repository, and the parts of them that several rules read.

use proc_macro2::{Ident, TokenStream, TokenTree};
use std::{
    cell::LazyCell,
    env, fs,
    path::{Path, PathBuf},
    rc::Rc,
};

/// What no rule reads: build outputs, version control (a file, in a further work tree), what is laid beside a checkout.
const SKIPPED: [&str; 6] = ["target", ".git", ".venv", "__pycache__", "corpus", "artifacts"];

/// A file: its path from the root, with `/` between folders, and its text.
pub struct Source {
    pub path: String,
    pub text: String,
}

/// What is made of a file's text when a rule first looks at it.
type Parsed<T> = LazyCell<T, Box<dyn FnOnce() -> T>>;

/// A Rust file. Parsing takes nearly all of the time of these tests: a rule looks at the text first, where that can tell
/// that the file does not concern it.
pub struct RustSource {
    pub path: String,
    pub text: Rc<str>,
    pub tokens: Parsed<TokenStream>,
    pub syntax: Parsed<syn::File>,
}

/// A row that excuses one file, or one module with its folder (then it ends in `/`), or one function (`file: name`).
pub struct Exception {
    pub place: &'static str,
    pub reason: &'static str,
}

impl Exception {
    pub fn covers(&self, place: &str) -> bool {
        let folder = self.place.strip_suffix('/');
        self.place == place
            || folder.is_some_and(|module| {
                place.starts_with(self.place) || place.strip_suffix(".rs") == Some(module)
            })
    }
}

/// The root of the repository, from the folder of this package. Cargo and nextest set it when they run a test.
pub fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let package = package.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    package.parent().expect("the tests' package lies in a folder of the repository").to_owned()
}

/// Every readable text file whose name `wanted` accepts, in the order of the paths.
pub fn sources(wanted: impl Fn(&str) -> bool) -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
        for entry in entries {
            let entry = entry.expect("an entry of a folder");
            let kind = entry.file_type().expect("the type of an entry");
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if SKIPPED.contains(&&*name) || path == root.join("shared") {
                continue;
            } else if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && wanted(&name) {
                found.extend(read(&root, &path));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// `None` for a file that is not text.
fn read(root: &Path, path: &Path) -> Option<Source> {
    let bytes =
        fs::read(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let text = String::from_utf8(bytes).ok()?;
    let inside = path.strip_prefix(root).expect("the file lies under the root");
    Some(Source { path: inside.to_string_lossy().replace('\\', "/"), text })
}

/// Every Rust file of the repository.
pub fn rust_sources() -> Vec<RustSource> {
    let files = sources(|name| name.ends_with(".rs"));
    assert!(files.len() > 100, "found only {} Rust files: is the root right?", files.len());
    files.into_iter().map(RustSource::new).collect()
}

impl RustSource {
    fn new(Source { path, text }: Source) -> RustSource {
        let text: Rc<str> = text.into();
        let (place, words) = (path.clone(), Rc::clone(&text));
        let tokens = move || {
            words.parse::<TokenStream>().unwrap_or_else(|error| panic!("{place}: tokens: {error}"))
        };
        let (place, words) = (path.clone(), Rc::clone(&text));
        let syntax =
            move || syn::parse_file(&words).unwrap_or_else(|error| panic!("{place}: {error}"));
        RustSource {
            path,
            text,
            tokens: LazyCell::new(Box::new(tokens)),
            syntax: LazyCell::new(Box::new(syntax)),
        }
    }
}

/// Calls `visit` for every identifier, those inside macros included, with the tokens that follow it in its group.
pub fn identifiers(tokens: &TokenStream, visit: &mut impl FnMut(&Ident, &[TokenTree])) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for (index, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Ident(ident) => visit(ident, &trees[index + 1..]),
            TokenTree::Group(group) => identifiers(&group.stream(), visit),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Takes out of `found` what `exceptions` excuse; the rest, and rows that excuse nothing, fail the test.
/// `found` holds (place, what is wrong there).
pub fn expect_none(rule: &str, exceptions: &[Exception], found: Vec<(String, String)>) {
    let mut wrong: Vec<String> = Vec::new();
    for row in exceptions {
        assert!(!row.reason.is_empty(), "{}: an exception needs a reason", row.place);
        if !found.iter().any(|(place, _)| row.covers(place)) {
            wrong.push(format!("{}: nothing left to excuse here, remove the row", row.place));
        }
    }
    for (place, what) in &found {
        if !exceptions.iter().any(|row| row.covers(place)) {
            wrong.push(format!("{place}: {what}"));
        }
    }
    assert!(wrong.is_empty(), "{rule}; found {}:\n  {}", wrong.len(), wrong.join("\n  "));
}
