//! Modules of a crate import one way.
//!
//! Each crate of the core has its modules in rows, from the bottom to the top. A module imports from rows below its own
//! alone, so that a reader can take them in that order; the root of the crate, which only names them, is not a module.

use super::tree::{self, RustSource};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::OnceLock,
};
use syn::{
    Attribute, Expr, ExprLit, Item, ItemMod, Lit, UseTree,
    visit::{self, Visit},
};

/// Modules of one row, with blanks between their names.
struct Row {
    modules: &'static str,
    /// Why they import each other; empty where they do not.
    knot: &'static str,
}

const fn row(modules: &'static str) -> Row {
    Row { modules, knot: "" }
}

const fn knot(modules: &'static str, why: &'static str) -> Row {
    Row { modules, knot: why }
}

/// The crates of the core, each with its rows.
#[rustfmt::skip]
const CRATES: &[(&str, &[Row])] = &[
    ("core/abi", &[
        row("basic code dtype refusal"),
        row("ext"),
        row("facts"),
        knot(
            "call create device host shape state tensor",
            "tables of the boundary name each other: a call leads to tensors and devices, and those to the host",
        ),
        row("device_ext function op pass"),
        row("collective gradient plugin"),
        row("door layout"),
        row("links"),
    ]),
    ("core/framework", &[
        row("element linked resource shape sync text view"),
        row("error pages"),
        row("growth tensor"),
        row("attr plugin symbolic"),
        row("attr_view device"),
        row("op"),
        row("fusion infer knob pass"),
        row("gradient registry testing"),
    ]),
    ("core/author", &[
        row("attrs cells interned knobs links misuse slots"),
        knot(
            "compute kept resource state",
            "a call gives resources, variables and kept tensors, and each of them is taken from a call",
        ),
        row("call create device encoded gradient integers memory native parallel pass plain shape watch"),
        row("collective function kernel strings variant"),
        row("pieces reg variants"),
        row("testing"),
    ]),
    ("core/proto", &[
        row("checksum error messages"),
        row("codec event_file library records versions"),
        row("convert fuzzing stream"),
    ]),
    ("core/host", &[
        row("bools cache cancel clock collective context exit files fpu permissions record search settings sink"),
        row("digest memory pool trust"),
        row("devices error resources"),
        row("call manifest report"),
        row("instance kernels variants"),
        row("services"),
        row("entries"),
        row("registrar"),
        row("loader statics"),
        row("isolation"),
        row("plugins"),
        row("inspect"),
    ]),
    ("core/graph", &[
        row("control_flow names order required_ops strip"),
        row("error"),
        row("graph"),
        row("ignored import inferred prune traits"),
        row("builder frames missing placer shape_pass"),
        row("function memory partition"),
    ]),
    ("core/gradient", &[
        row("error known options"),
        row("region"),
        knot(
            "body calls edit engine frames reuse",
            "the walk runs the gradients of nodes, and those of calls and frames walk again",
        ),
        row("branches dense sum symbolic"),
        row("loops"),
    ]),
    ("core/optimize", &[
        row("attrs effects elements error limits report undo"),
        knot(
            "broadcast draft failures fallible spread",
            "a draft keeps the nodes that may fail, which depends on the shapes and values in the draft",
        ),
        row("gates pass"),
        row("common_subexpressions constant_folding control_edges dead_branches identity library remapping rewrites"),
        row("driver knobs"),
    ]),
    ("core/runtime", &[
        row("error isolate sampling tuning"),
        row("feeds"),
        row("rendezvous"),
        row("plan"),
        row("executor metrics"),
        row("options runtime"),
        row("kernels run_limits trace"),
        row("step_graph"),
        row("worker"),
        row("session"),
        row("any_session costs"),
    ]),
    ("core/geometry", &[
        row("counting error fixed_point fused"),
        row("format response size"),
        row("broadcast channel diag fft fractional image matrix offsets ranking segment stitch window"),
        row("conv dilation einsum matmul pad patches pool reduce slice"),
        row("attributes concat gather split transpose volume"),
        row("repeat reshape space"),
    ]),
    ("core/ops", &[
        row("gradients shape"),
        row("array audio checkpoint collective control_flow data_flow dataset fft functional image io linalg logging math_binary nn parsing ragged reader recurrent reduction sendrecv sparse speech string summary table training"),
        row("fused math_unary nn_grad quantization random state"),
    ]),
    ("core/isolate", &[
        row("descriptors extents limits listener protocol shared surroundings"),
        row("arena channel"),
        row("crash"),
        knot(
            "compute definition kernel outputs plugin process start talk values wire worker_call",
            "a kernel asks its plugin for the process, whose end the plugin hears of",
        ),
        row("arena_view shape"),
        row("load worker"),
    ]),
    ("core/train", &[
        row("error"),
        row("devices events nodes"),
        row("initial"),
        row("variables"),
        row("average global_step optimizer partition schedule"),
        row("all_reduce clip towers"),
        row("replicas"),
        row("coordinator saver target text"),
        row("queue_runner"),
        row("manager"),
        row("hooks"),
        row("monitored"),
    ]),
    ("core/cluster", &[
        row("clock error"),
        row("audit spec watched way"),
        row("launched tokens"),
        row("tls"),
        row("dial"),
        row("client codec handles placeholders refusal stats traffic"),
        row("health wire"),
        row("call keys limits options proxy records requests session transport"),
        row("plane"),
        row("rendezvous"),
        row("worker"),
        row("methods"),
        row("peers"),
        row("gate master turns"),
        row("admitted listener"),
        row("grpc"),
        row("server"),
        row("rogue"),
    ]),
    ("core/capi", &[
        row("fail"),
        row("raw"),
        row("status"),
        row("buffer process tstring"),
        row("tensor"),
        row("tensor_value"),
        row("shapes tensor_proto"),
        knot("graph operation", "a graph keeps its operations, and an operation finds its graph"),
        row("describe"),
        row("attr_set"),
        row("graph_queries queries attr_get"),
        row("attr_lists"),
        row("import_names"),
        row("import"),
        row("gradients while_loop function_def"),
        row("function"),
        row("session_options"),
        knot("session run partial", "a session keeps the steps that were prepared or are run in parts, and a step runs in a session"),
        row("constant devices load registry"),
        row("plugins serving"),
        row("client server"),
    ]),
    ("core/monitor", &[
        knot("pages prometheus", "a page has the figures of a program, which Prometheus's text has too"),
        row("error"),
        row("server"),
    ]),
    ("sdk/python", &[
        row("cancel fail"),
        row("blocking"),
        row("dtypes interrupt lend locked logs"),
        knot("arrays dlpack tensor", "a tensor is made of an array or a capsule, and becomes one"),
        row("attrs partial profile safetensors"),
        row("runtime"),
        row("graph"),
        row("custom functions"),
        knot("callable session", "a session prepares steps, and a prepared step runs in its session"),
        row("hooks saved_model serve variables"),
        row("training"),
    ]),
    ("core/quantize", &[
        row("error histogram step"),
        row("entropy fold"),
        row("layers"),
        row("between weights"),
        row("plan"),
        row("scales"),
        row("observe rewrite"),
        row("driver"),
    ]),
];

/// What a crate's modules import from each other.
struct Imports {
    /// By module.
    of: BTreeMap<String, BTreeSet<String>>,
}

impl Imports {
    /// Of the crate in this folder.
    fn read(sources: &[RustSource], folder: &str) -> Imports {
        let root = format!("{folder}/src/");
        let files: Vec<(Vec<String>, &RustSource)> = sources
            .iter()
            .filter_map(|file| Some((path_of(file.path.strip_prefix(&root)?), file)))
            .collect();
        let tests: BTreeSet<Vec<String>> =
            files.iter().flat_map(|(path, file)| modules_of_tests(path, file)).collect();
        let is_test = |path: &[String]| (1..=path.len()).any(|to| tests.contains(&path[..to]));
        let lib = files.iter().find(|(path, _)| path.is_empty()).expect("a crate has lib.rs");
        let names = reexported(lib.1);
        let mut of: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (path, file) in files.iter().filter(|(path, _)| !is_test(path)) {
            let Some(own) = path.first() else { continue };
            let mut found = Found { module: path.clone(), paths: Vec::new() };
            found.visit_file(&file.syntax);
            let found = found.paths.into_iter().filter_map(|path| path.into_iter().next());
            let found = found.map(|name| names.get(&name).cloned().unwrap_or(name));
            let other = found.filter(|name| name != own);
            of.entry(own.clone()).or_default().extend(other);
        }
        let modules: BTreeSet<String> = of.keys().cloned().collect();
        of.values_mut().for_each(|imports| imports.retain(|name| modules.contains(name)));
        Imports { of }
    }
}

/// The module of a file, from the crate's root.
fn path_of(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs").split('/').map(str::to_owned);
    path.filter(|part| part != "lib").collect()
}

fn is_for_tests(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| {
        let tokens = || attr.meta.require_list().map(|list| list.tokens.to_string());
        attr.path().is_ident("cfg") && tokens().is_ok_and(|text| text.contains("test"))
    })
}

/// The file that a declaration names.
fn path_attribute(attrs: &[Attribute]) -> Option<String> {
    attrs.iter().find(|attr| attr.path().is_ident("path")).and_then(|attr| {
        match &attr.meta.require_name_value().ok()?.value {
            Expr::Lit(ExprLit { lit: Lit::Str(name), .. }) => Some(name.value()),
            _ => None,
        }
    })
}

/// The modules in files of their own that this one declares for tests.
fn modules_of_tests(path: &[String], file: &RustSource) -> Vec<Vec<String>> {
    let declared = file.syntax.items.iter().filter_map(|item| match item {
        Item::Mod(module) if module.content.is_none() && is_for_tests(&module.attrs) => {
            let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let inside = folder.split_once("/src").map_or("", |(_, inside)| inside);
            Some(match path_attribute(&module.attrs) {
                Some(name) => path_of(format!("{inside}/{name}").trim_start_matches('/')),
                None => [path, &[module.ident.to_string()]].concat(),
            })
        }
        _ => None,
    });
    declared.collect()
}

/// The names that the crate's root has from its modules.
fn reexported(lib: &RustSource) -> HashMap<String, String> {
    let mut names = HashMap::new();
    for item in &lib.syntax.items {
        let Item::Use(item) = item else { continue };
        let mut paths = Vec::new();
        paths_of_use(&item.tree, &mut Vec::new(), &mut paths);
        for (path, name) in paths {
            if let [module, _, ..] = &path[..] {
                names.insert(name, module.clone());
            }
        }
    }
    names
}

/// The paths of a `use`, each with the name that it gives.
fn paths_of_use(tree: &UseTree, before: &mut Vec<String>, paths: &mut Vec<(Vec<String>, String)>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            paths_of_use(&path.tree, before, paths);
            before.pop();
        }
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| paths_of_use(tree, before, paths));
        }
        UseTree::Name(name) => {
            let name = name.ident.to_string();
            let path = [before, std::slice::from_ref(&name)].concat();
            paths.push((path, name));
        }
        UseTree::Rename(name) => {
            let path = [&before[..], &[name.ident.to_string()]].concat();
            paths.push((path, name.rename.to_string()));
        }
        UseTree::Glob(_) => paths.push((before.clone(), String::new())),
    }
}

/// Paths that begin at the crate or at a module above, from the crate's root.
struct Found {
    module: Vec<String>,
    paths: Vec<Vec<String>>,
}

impl Found {
    fn note(&mut self, path: &[String]) {
        let supers = path.iter().take_while(|part| *part == "super").count();
        let rest = match path.first().map(String::as_str) {
            Some("crate") => path[1..].to_vec(),
            Some("super") if supers <= self.module.len() => {
                [&self.module[..self.module.len() - supers], &path[supers..]].concat()
            }
            _ => return,
        };
        self.paths.push(rest);
    }
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item(&mut self, item: &'ast Item) {
        let attrs = match item {
            Item::Mod(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_for_tests(attrs) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        self.module.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut paths = Vec::new();
        paths_of_use(&item.tree, &mut Vec::new(), &mut paths);
        paths.iter().for_each(|(path, _)| self.note(path));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        self.note(&parts);
        visit::visit_path(self, path);
    }
}

/// The imports of every crate with rows, in their order. They are read once for all tests: that takes most of the time.
fn all_imports() -> &'static [Imports] {
    static ALL: OnceLock<Vec<Imports>> = OnceLock::new();
    ALL.get_or_init(|| {
        let sources = tree::rust_sources();
        CRATES.iter().map(|(folder, _)| Imports::read(&sources, folder)).collect()
    })
}

#[test]
fn modules_import_from_rows_below_their_own() {
    let mut wrong = Vec::new();
    for ((folder, rows), imports) in CRATES.iter().zip(all_imports()) {
        let place = |name: &str| {
            rows.iter().position(|row| row.modules.split_whitespace().any(|known| known == name))
        };
        for known in rows.iter().flat_map(|row| row.modules.split_whitespace()) {
            if !imports.of.contains_key(known) {
                wrong.push(format!("{folder}: there is no module {known}: remove it from its row"));
            }
        }
        for (name, imported) in &imports.of {
            let Some(own) = place(name) else {
                wrong.push(format!("{folder}: module {name} has no row"));
                continue;
            };
            for other in imported {
                let is_below = place(other)
                    .is_some_and(|at| at < own || (at == own && !rows[own].knot.is_empty()));
                if !is_below {
                    wrong.push(format!("{folder}: {name} imports {other}, which is not below it"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "modules import one way; found:\n  {}", wrong.join("\n  "));
}

#[test]
fn the_knots_that_are_excused_are_knots() {
    for ((folder, rows), imports) in CRATES.iter().zip(all_imports()) {
        for row in rows.iter().filter(|row| !row.knot.is_empty()) {
            let members: Vec<&str> = row.modules.split_whitespace().collect();
            for name in &members {
                let inside = |of: &str, other: &str| imports.of[of].contains(other);
                let others = || members.iter().filter(|other| *other != name);
                let gives = others().any(|other| inside(other, name));
                let takes = others().any(|other| inside(name, other));
                assert!(gives && takes, "{folder}: {name} is not part of the knot: give it a row");
            }
        }
    }
}
