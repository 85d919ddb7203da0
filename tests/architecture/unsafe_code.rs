//! Unsafe code stands in named places. A new place is a new row, with its reason, for a reviewer to see.

use super::tree::{self, Exception};
use proc_macro2::{Delimiter, TokenTree};

const fn place(place: &'static str, reason: &'static str) -> Exception {
    Exception { place, reason }
}

#[rustfmt::skip]
const PLACES: &[Exception] = &[
];

/// What kind of unsafe code the keyword opens, from the tokens that follow it; `None` where it only writes a
/// type, as in `unsafe extern "C" fn(*const u8)`. Code inside macros counts: it becomes somebody's code.
fn kind(following: &[TokenTree]) -> Option<&'static str> {
    let word = |index: usize| match following.get(index) {
        Some(TokenTree::Ident(ident)) => ident.to_string(),
        _ => String::new(),
    };
    let opens = |index: usize, delimiter: Delimiter| match following.get(index) {
        Some(TokenTree::Group(group)) => group.delimiter() == delimiter,
        _ => false,
    };
    match word(0).as_str() {
        "impl" => Some("unsafe impl"),
        "trait" => Some("unsafe trait"),
        "extern" => {
            let function = (1..=2).find(|&index| word(index) == "fn");
            match function {
                Some(index) if opens(index + 1, Delimiter::Parenthesis) => None,
                Some(_) => Some("unsafe fn"),
                None => Some("unsafe extern"),
            }
        }
        "fn" if opens(1, Delimiter::Parenthesis) => None,
        "fn" => Some("unsafe fn"),
        "" if opens(0, Delimiter::Brace) => Some("unsafe block"),
        "" if opens(0, Delimiter::Parenthesis) => Some("unsafe attribute"),
        _ => Some("unsafe"),
    }
}

#[test]
fn unsafe_code_stands_in_named_places() {
    let mut found = Vec::new();
    for source in tree::rust_sources() {
        tree::identifiers(&source.tokens, &mut |ident, following| {
            if ident != "unsafe" {
                return;
            }
            if let Some(kind) = kind(following) {
                let line = ident.span().start().line;
                found.push((source.path.clone(), format!("line {line}: {kind}")));
            }
        });
    }
    tree::expect_none("unsafe code stands in named places", PLACES, found);
}

#[test]
fn a_type_is_told_from_code() {
    let kinds = |text: &str| {
        let mut kinds = Vec::new();
        let tokens = text.parse().expect("tokens");
        tree::identifiers(&tokens, &mut |ident, following| {
            kinds.extend((ident == "unsafe").then(|| kind(following)).flatten());
        });
        kinds
    };
    assert_eq!(kinds("struct T { f: unsafe extern \"C\" fn(*const u8), g: unsafe fn() }"), [""; 0]);
    assert_eq!(kinds("unsafe extern \"C\" fn f() {}"), ["unsafe fn"]);
    assert_eq!(kinds("unsafe extern \"C\" { fn f(); }"), ["unsafe extern"]);
    assert_eq!(kinds("fn f() { m!(unsafe { g() }) }"), ["unsafe block"]);
    assert_eq!(kinds("#[unsafe(no_mangle)] fn f() {}"), ["unsafe attribute"]);
    assert_eq!(kinds("unsafe impl Send for T {}"), ["unsafe impl"]);
}
