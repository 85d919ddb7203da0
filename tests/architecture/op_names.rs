//! Graph, optimiser and runtime ask an op for its facts, not for its name: a name in a list is a fact that the ops of plugins
//! cannot state.

use super::tree::{self, Exception, RustSource};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;

/// Where names of ops may not be.
const ROOMS: [&str; 3] = ["core/graph/src/", "core/optimize/src/", "core/runtime/src/"];

/// Where they may, since the code makes or rewrites these very ops.
const EXCEPTIONS: [Exception; 6] = [
    Exception {
        place: "core/graph/src/required_ops.rs",
        reason: "the ops of which graph and passes make nodes themselves, each under one constant",
    },
    Exception {
        place: "core/optimize/src/rewrites/",
        reason: "rules that put one op in the place of others, by the mathematics of both",
    },
    Exception {
        place: "core/optimize/src/remapping/backward/",
        reason: "which nodes compute the gradient of a function, by the mathematics of each",
    },
    Exception {
        place: "core/optimize/src/failures.rs",
        reason: "when an op fails beyond what it declares, by its mathematics",
    },
    Exception {
        place: "core/optimize/src/spread.rs",
        reason: "what is certain of the results of `BroadcastGradientArgs`, by its mathematics",
    },
    Exception {
        place: "core/graph/src/import/nodes.rs",
        reason: "what older writers meant by an attribute of `Placeholder`",
    },
];

/// The names that the core registers.
fn registered(sources: &[RustSource]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for source in sources.iter().filter(|source| source.path.starts_with("core/ops/src/")) {
        tree::identifiers(&source.tokens, &mut |ident, rest| {
            if let (true, [TokenTree::Punct(_), TokenTree::Group(group), ..]) =
                (ident == "register_op", rest)
            {
                names.extend(group.stream().into_iter().next().and_then(|name| text(&name)));
            }
        });
    }
    names
}

/// The text of a string literal.
fn text(tree: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = tree else { return None };
    syn::parse_str::<syn::LitStr>(&literal.to_string()).ok().map(|text| text.value())
}

/// Calls `visit` for every string literal, those of items that only tests have left out.
fn literals(tokens: &TokenStream, visit: &mut impl FnMut(&str)) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut is_test = false;
    for tree in &trees {
        match tree {
            TokenTree::Group(group) => {
                let inside = group.stream().to_string().replace(' ', "");
                if inside == "cfg(test)" || inside.starts_with("cfg(all(test,") {
                    is_test = true;
                } else if !is_test {
                    literals(&group.stream(), visit);
                } else if group.delimiter() == proc_macro2::Delimiter::Brace {
                    is_test = false;
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => is_test = false,
            _ => {
                if let Some(text) = text(tree).filter(|_| !is_test) {
                    visit(&text);
                }
            }
        }
    }
}

/// Whether a text is the name of an op, or a list of such names.
fn names_ops(text: &str, names: &BTreeSet<String>) -> bool {
    let mut words = text.split_whitespace().peekable();
    words.peek().is_some() && words.all(|word| names.contains(word))
}

/// Whether a file has nothing but tests.
fn is_of_tests(path: &str) -> bool {
    path.ends_with("tests.rs") || path.contains("/tests/")
}

#[test]
fn graph_optimiser_and_runtime_name_no_op() {
    let sources = tree::rust_sources();
    let names = registered(&sources);
    assert!(names.len() > 300, "found only {} ops: are they registered elsewhere?", names.len());
    let mut found = Vec::new();
    let rooms = sources.iter().filter(|source| {
        ROOMS.iter().any(|room| source.path.starts_with(room)) && !is_of_tests(&source.path)
    });
    for source in rooms {
        literals(&source.tokens, &mut |text| {
            if names_ops(text, &names) {
                found.push((source.path.clone(), format!("{text:?} names an op")));
            }
        });
    }
    tree::expect_none(
        "graph, optimiser and runtime ask for an op's facts (tenon_framework::op::OpFacts) and name no op",
        &EXCEPTIONS,
        found,
    );
}

#[test]
fn a_name_is_found_outside_of_tests_alone() {
    let names = ["Relu", "Add"].map(str::to_owned).into();
    let seen = |code: &str| {
        let mut seen = Vec::new();
        let tokens: TokenStream = code.parse().expect("tokens");
        literals(&tokens, &mut |text| {
            seen.extend(names_ops(text, &names).then(|| text.to_owned()))
        });
        seen
    };
    assert_eq!(seen("fn f(op: &str) -> bool { matches!(op, \"Relu\" | \"Tanhh\") }"), ["Relu"]);
    assert_eq!(
        seen("const LIST: &str = \"Relu Add\"; const OTHER: &str = \"Relu it\";"),
        ["Relu Add"]
    );
    assert!(seen("#[cfg(test)] mod tests { fn f() { g(\"Relu\") } }").is_empty());
    assert!(seen("#[cfg(all(test, not(loom)))] mod tests { const A: &str = \"Add\"; }").is_empty());
    assert_eq!(seen("#[cfg(test)] mod tests; const ADD: &str = \"Add\";"), ["Add"]);
}
