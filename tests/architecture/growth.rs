//! Kernels take memory that grows with their inputs fallibly: `growth`, or scratch of the call.
//!
//! What ends the process where there is no memory (`vec![x; n]`, `collect`, `to_vec`, `with_capacity` and the like) stands
//! in the CPU's kernels only where something small bounds it, or a library's memory was foreseen. A row says how often
//! a file does so at most, and what bounds it. Tests, and macros' own tokens, are not looked at.

use super::tree;
use syn::{
    Attribute, Expr, ExprCall, ExprMacro, ExprMethodCall, ImplItemFn, ItemFn, ItemMod,
    visit::{self, Visit},
};

/// A file, how often it may, and what bounds each.
struct Bounded(&'static str, usize, &'static str);

const PLUGINS: [&str; 8] = ["cpu", "fft", "files", "image", "int8", "linalg", "text", "train"];

const METHODS: [&str; 4] = ["collect", "to_vec", "concat", "repeat"];

const BOUNDED: &[Bounded] = &[
    Bounded("cpu/src/kernels/array/concat.rs", 5, "the number of inputs"),
    Bounded("cpu/src/kernels/array/mirror.rs", 1, "the rank"),
    Bounded("cpu/src/kernels/array/moves.rs", 5, "the number of inputs, the rank"),
    Bounded("cpu/src/kernels/fused/attention.rs", 1, "the number of inputs"),
    Bounded("cpu/src/kernels/fused/elementwise.rs", 2, "the rank"),
    Bounded("cpu/src/kernels/fused/heads.rs", 6, "the rank"),
    Bounded("cpu/src/kernels/fused/mask.rs", 1, "the number of inputs"),
    Bounded("cpu/src/kernels/fused/program.rs", 3, "the program of a fused chain"),
    Bounded("cpu/src/kernels/fused/softmax_scale.rs", 2, "the rank"),
    Bounded("cpu/src/kernels/linalg/einsum.rs", 4, "the number of inputs, and of dimensions"),
    Bounded("cpu/src/kernels/math_binary/complex.rs", 1, "the number of inputs"),
    Bounded("cpu/src/kernels/math_binary/selection.rs", 1, "the rank"),
    Bounded("cpu/src/kernels/reference/array.rs", 3, "the number of inputs"),
    Bounded("cpu/src/stream.rs", 1, "a row of at most 128 KiB"),
    Bounded("files/src/lib.rs", 2, "names of files"),
    Bounded("files/src/matching.rs", 7, "names of files"),
    Bounded("files/src/unix.rs", 1, "names of files"),
    Bounded("image/src/bicubic.rs", 1, "a table of 1024 steps"),
    Bounded("image/src/encode.rs", 1, "an attribute of at most 64 KiB"),
    Bounded("image/src/jpeg/bits.rs", 2, "a table of 256 codes, symbols of at most 256"),
    Bounded("image/src/jpeg/header.rs", 1, "at most four components"),
    Bounded("int8/src/kernels/concat.rs", 3, "the number of inputs"),
    Bounded("int8/src/isa.rs", 1, "the instruction sets"),
    Bounded("cpu/src/kernels/linalg/gemm/isa.rs", 1, "the instruction sets"),
    Bounded("linalg/src/complex.rs", 4, "a side of a matrix, foreseen when it is read"),
    Bounded("linalg/src/lu.rs", 1, "a side of a matrix, foreseen when it is read"),
    Bounded("linalg/src/plain.rs", 1, "a side of a matrix, foreseen when it is read"),
    Bounded("linalg/src/range.rs", 2, "a side of a matrix, foreseen when it is read"),
    Bounded("linalg/src/small.rs", 2, "at most four values"),
    Bounded("linalg/src/svd.rs", 2, "a side of a matrix, foreseen when it is read"),
    Bounded("text/src/characters.rs", 1, "the rank"),
    Bounded("text/src/files.rs", 2, "names of files"),
    Bounded("text/src/format.rs", 2, "an attribute"),
    Bounded("text/src/join.rs", 3, "attributes, the number of inputs"),
    Bounded("text/src/logging.rs", 3, "attributes"),
    Bounded("text/src/records.rs", 3, "attributes"),
    Bounded(
        "text/src/regex.rs",
        2,
        "a pattern, which is compiled, and a rewriting, which is an attribute",
    ),
    Bounded("text/src/summary.rs", 2, "the rank"),
    Bounded("text/src/unicode.rs", 1, "the name of an encoding"),
    Bounded("train/src/checks.rs", 1, "three names"),
    Bounded("train/src/summary/histogram.rs", 1, "a table of limits"),
    Bounded("train/src/variables.rs", 2, "the number of inputs"),
];

/// What takes memory without an answer where there is none.
#[derive(Default)]
struct Infallible(Vec<String>);

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        attribute.path().is_ident("test")
            || (is_cfg
                && attribute
                    .meta
                    .require_list()
                    .is_ok_and(|list| list.tokens.to_string() == "test"))
    })
}

impl<'ast> Visit<'ast> for Infallible {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if METHODS.iter().any(|method| call.method == method) {
            self.0.push(call.method.to_string());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(path) = &*call.func
            && path.path.segments.last().is_some_and(|last| last.ident == "with_capacity")
        {
            self.0.push("with_capacity".to_owned());
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_macro(&mut self, item: &'ast ExprMacro) {
        let tokens = item.mac.tokens.to_string();
        if item.mac.path.is_ident("vec") && tokens.contains(';') {
            self.0.push(format!("vec![{tokens}]"));
        }
    }
}

fn found(file: &syn::File) -> Vec<String> {
    let mut infallible = Infallible::default();
    infallible.visit_file(file);
    infallible.0
}

fn is_kernels(path: &str) -> bool {
    let is_of = |plugin: &str| path.starts_with(&format!("plugins/{plugin}/src/"));
    PLUGINS.iter().any(|plugin| is_of(plugin)) && !path.contains("test")
}

#[test]
fn memory_of_kernels_grows_fallibly() {
    let mut wrong = Vec::new();
    let mut used = vec![false; BOUNDED.len()];
    for source in tree::rust_sources().into_iter().filter(|source| is_kernels(&source.path)) {
        let all = found(&source.syntax);
        let name = source.path.trim_start_matches("plugins/");
        let row = BOUNDED.iter().position(|row| row.0 == name);
        let most = row.map_or(0, |row| BOUNDED[row].1);
        if let Some(row) = row.filter(|_| !all.is_empty()) {
            used[row] = true;
        }
        if all.len() > most {
            wrong.push(format!("{}: expected {most} at most, found {all:?}", source.path));
        }
    }
    let idle = BOUNDED.iter().zip(used).filter(|(_, used)| !used);
    wrong.extend(idle.map(|(Bounded(file, _, bound), _)| {
        format!("{file}: a row that excuses nothing ({bound}): take it away")
    }));
    assert!(
        wrong.is_empty(),
        "kernels end the process without memory: use tenon_sdk::growth or scratch of the call, or say in \
         tests/architecture/growth.rs what bounds it:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn growth_is_found_outside_of_tests() {
    let file = syn::parse_str(
        "fn f() { let a = vec![0; n]; let b = x.iter().collect::<Vec<_>>(); y.to_vec(); \
         Vec::<u8>::with_capacity(3); vec![1, 2]; }\n#[cfg(test)] mod tests { fn g() { x.to_vec(); } }",
    );
    let expected = ["vec![0 ; n]", "collect", "to_vec", "with_capacity"];
    assert_eq!(found(&file.expect("it is Rust")), expected);
}
