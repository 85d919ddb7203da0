//! Files and functions that a reader can take in at once.

use super::tree::{self, Exception};
use std::sync::OnceLock;
use syn::{
    Block, ImplItemFn, ItemFn, Signature, TraitItemFn,
    spanned::Spanned,
    visit::{self, Visit},
};

const LINES_PER_FILE: usize = 500;
const LINES_PER_FUNCTION: usize = 60;
/// Nine functions in ten are under this.
const LINES_PER_ORDINARY_FUNCTION: usize = 25;

const LANGUAGES: [&str; 6] = [".rs", ".c", ".cpp", ".h", ".cu", ".py"];

const LONG_FILES: &[Exception] = &[
    Exception {
        place: "core/abi/include/tenon.h",
        reason: "generated from core/abi/src, one file so that a C author includes one file",
    },
    Exception {
        place: "core/capi/include/tenon_client.h",
        reason: "generated from core/capi/src/client, one file so that a C program includes one file",
    },
];

const LONG_FUNCTIONS: &[Exception] = &[];

#[test]
fn files_are_short() {
    let files = tree::sources(|name| LANGUAGES.iter().any(|ending| name.ends_with(ending)));
    let long = files.iter().filter_map(|file| {
        let lines = file.text.lines().count();
        (lines > LINES_PER_FILE).then(|| (file.path.clone(), format!("{lines} lines")))
    });
    let rule = format!("a file has at most {LINES_PER_FILE} lines");
    tree::expect_none(&rule, LONG_FILES, long.collect());
}

/// The functions of a file, nested ones included, with their lines from the signature to the closing brace.
#[derive(Default)]
struct Functions(Vec<(String, usize)>);

impl Functions {
    fn add(&mut self, signature: &Signature, body: &Block) {
        let first = signature.span().start().line;
        let last = body.brace_token.span.close().end().line;
        self.0.push((signature.ident.to_string(), last + 1 - first));
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(body) = &item.default {
            self.add(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

/// (path, name, lines) of every function of the repository. They are found once for all tests.
fn functions() -> &'static [(String, String, usize)] {
    static FOUND: OnceLock<Vec<(String, String, usize)>> = OnceLock::new();
    FOUND.get_or_init(find_functions)
}

fn find_functions() -> Vec<(String, String, usize)> {
    let mut all = Vec::new();
    for source in tree::rust_sources() {
        let mut found = Functions::default();
        found.visit_file(&source.syntax);
        let named = found.0.into_iter().map(|(name, lines)| (source.path.clone(), name, lines));
        all.extend(named);
    }
    assert!(all.len() > 1000, "found only {} functions", all.len());
    all
}

#[test]
fn functions_are_short() {
    let functions = functions();
    let long = functions.iter().filter(|(.., lines)| *lines > LINES_PER_FUNCTION);
    let found =
        long.map(|(path, name, lines)| (format!("{path}: {name}"), format!("{lines} lines")));
    let rule = format!("a function has at most {LINES_PER_FUNCTION} lines");
    tree::expect_none(&rule, LONG_FUNCTIONS, found.collect());
}

#[test]
fn nine_functions_in_ten_are_shorter_still() {
    let functions = functions();
    let ordinary =
        functions.iter().filter(|(.., lines)| *lines < LINES_PER_ORDINARY_FUNCTION).count();
    assert!(
        ordinary * 10 >= functions.len() * 9,
        "{ordinary} of {} functions are under {LINES_PER_ORDINARY_FUNCTION} lines, less than nine in ten",
        functions.len(),
    );
}
