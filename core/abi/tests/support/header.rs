//! The C header: cbindgen writes the structs and types; what it cannot see is added from `source`, and
//! all of it is put in the order of the files.

use super::comment::{self, WIDTH};
use super::names::{self, Names};
use super::source::{self, Constants, Item, Kind, Module};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::OnceLock;
use tenon_abi::{layout, links};

const BEGIN: &str = include_str!("header_begin.h");
const END: &str = include_str!("header_end.h");

/// The line before text that is not a declaration.
pub const MARK: &str = "/* Checks of the layout. */";

/// The whole header, made once in a process.
pub fn header() -> &'static str {
    static HEADER: OnceLock<String> = OnceLock::new();
    HEADER.get_or_init(make)
}

fn make() -> String {
    let modules = source::modules();
    let names = Names::new(&modules);
    let declarations = split(&cbindgen(&modules));
    let mut text = String::from(BEGIN);
    forward(&mut text, &modules);
    for module in &modules {
        section(&mut text, &names, module, &declarations);
    }
    let _ = write!(text, "\n{MARK}\n\n");
    checks(&mut text);
    text.push_str(END);
    text
}

/// What cbindgen makes of the sources.
fn cbindgen(modules: &[Module]) -> String {
    // A file of this process: tests run in several at once.
    let name = format!("tables-{}.rs", std::process::id());
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, flat(modules)).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let config = cbindgen::Config {
        language: cbindgen::Language::C,
        style: cbindgen::Style::Tag,
        usize_is_size_t: true,
        no_includes: true,
        line_length: WIDTH,
        tab_width: 4,
        documentation_style: cbindgen::DocumentationStyle::Doxy,
        export: cbindgen::ExportConfig {
            prefix: Some("Tenon".into()),
            include: exported(modules),
            item_types: vec![
                cbindgen::ItemType::Structs,
                cbindgen::ItemType::OpaqueItems,
                cbindgen::ItemType::Typedefs,
            ],
            ..Default::default()
        },
        ..Default::default()
    };
    let made = cbindgen::Builder::new().with_src(&file).with_config(config).generate();
    let _ = std::fs::remove_file(&file);
    let mut text = Vec::new();
    made.unwrap_or_else(|e| panic!("cbindgen: {e}")).write(&mut text);
    String::from_utf8(text).expect("cbindgen writes UTF-8")
}

fn exported(modules: &[Module]) -> Vec<String> {
    let items = modules.iter().flat_map(|module| &module.items);
    items
        .filter_map(|item| match item {
            Item::Struct(item) => Some(item.name.clone()),
            Item::Alias(name) => Some(name.clone()),
            Item::Constants(_) => None,
        })
        .collect()
}

/// The sources as one file, in words that cbindgen has: an opaque type is a struct without a body, an
/// atomic number is a number.
fn flat(modules: &[Module]) -> String {
    let mut text = String::new();
    for module in modules.iter().filter(|module| module.name != "lib") {
        let source = source::text(&module.name);
        let lines = source.lines().filter(|line| !line.starts_with("//!"));
        text.extend(lines.flat_map(|line| [line, "\n"]));
        for item in &module.items {
            if let Item::Struct(item) = item
                && item.kind == Kind::Opaque
            {
                let written = format!(
                    "#[repr(C)]\n#[derive(StableAbi)]\npub struct {} {{\n    _opaque: [u8; 0],\n}}\n",
                    item.name
                );
                let doc = item.doc.replace('\n', "\n/// ");
                let opaque = format!("pub struct {};\n", item.name);
                if text.contains(&written) {
                    text = text.replace(&written, &opaque);
                } else {
                    let _ = write!(text, "/// {doc}\n{opaque}");
                }
            }
        }
    }
    text.replace("*const AtomicU32", "*const u32")
}

/// cbindgen's output by the name of what is declared, without the word `struct` where it is used.
fn split(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut declarations = BTreeMap::new();
    let mut item: Vec<String> = Vec::new();
    let mut in_body = false;
    for line in text.lines() {
        let constant = !in_body && line.starts_with("#define");
        if constant || (item.is_empty() && line.is_empty()) {
            // The constants are written from the sources, with the names that C gives them.
            item.clear();
            continue;
        }
        let head = line.starts_with("struct ");
        let used = line.replace("struct Tenon", "Tenon");
        item.push(if head { format!("struct {}", &used) } else { used });
        in_body |= line.ends_with('{');
        let comment = line.trim_start().starts_with(['/', '*']);
        let ends = if in_body { line == "};" } else { !comment && line.ends_with(';') };
        if ends {
            let declared = declared(&item);
            declarations.insert(declared, std::mem::take(&mut item));
            in_body = false;
        }
    }
    declarations
}

/// The name that a declaration declares.
fn declared(item: &[String]) -> String {
    let at = item.iter().position(|line| !line.trim_start().starts_with(['/', '*'])).unwrap_or(0);
    let code = item[at..].join(" ");
    let code = code.trim_start_matches("struct struct ").trim_start_matches("struct ");
    let name = match code.split_once("(*") {
        Some((_, rest)) if code.starts_with("typedef") => rest.split(')').next(),
        _ if code.starts_with("typedef") => code.trim_end_matches(';').split(' ').next_back(),
        _ => code.split([' ', ';']).next(),
    };
    name.unwrap_or_default().to_owned()
}

/// Names of all structs, so that a table may point to a later one.
fn forward(text: &mut String, modules: &[Module]) {
    for item in modules.iter().flat_map(|module| &module.items) {
        if let Item::Struct(item) = item
            && item.kind != Kind::Transparent
        {
            let name = names::ty(&item.name);
            let _ = writeln!(text, "typedef struct {name} {name};");
        }
    }
}

fn section(
    text: &mut String,
    names: &Names,
    module: &Module,
    declarations: &BTreeMap<String, Vec<String>>,
) {
    let heading = comment::line(names, &module.name, module.heading.trim_end_matches('.'));
    let rule = "-".repeat(WIDTH - 6);
    let _ = write!(text, "\n/* {rule} */\n/* {heading:<width$} */\n", width = WIDTH - 6);
    let _ = writeln!(text, "/* {rule} */");
    for item in &module.items {
        text.push('\n');
        match item {
            Item::Constants(group) => constants(text, names, module, group),
            Item::Alias(name) => declaration(text, names, module, &names::ty(name), declarations),
            Item::Struct(item) if item.kind == Kind::Opaque => {
                let name = names::ty(&item.name);
                text.push_str(&comment::above(names, &module.name, &item.doc, 0));
                let _ = writeln!(text, "struct {name};");
            }
            Item::Struct(item) => {
                declaration(text, names, module, &names::ty(&item.name), declarations);
            }
        }
    }
}

/// One declaration of cbindgen's, its comments written anew.
fn declaration(
    text: &mut String,
    names: &Names,
    module: &Module,
    name: &str,
    declarations: &BTreeMap<String, Vec<String>>,
) {
    let lines = declarations.get(name).unwrap_or_else(|| panic!("cbindgen left {name} out"));
    let mut doc: Option<String> = None;
    for line in lines {
        let trimmed = line.trim();
        match doc.as_mut() {
            None if trimmed == "/**" => doc = Some(String::new()),
            None => {
                text.push_str(line);
                text.push('\n');
            }
            Some(body) if trimmed == "*/" => {
                let indent = (line.len() - line.trim_start().len()) / 4 * 4;
                text.push_str(&comment::above(names, &module.name, body, indent));
                doc = None;
            }
            Some(body) => {
                body.push_str(trimmed.trim_start_matches('*').trim());
                body.push('\n');
            }
        }
    }
}

/// `#define`s: their comments beside them where all fit, else above each.
fn constants(text: &mut String, names: &Names, module: &Module, group: &Constants) {
    if !group.doc.is_empty() {
        let of_group = comment::above(names, &module.name, &group.doc, 0);
        let _ = writeln!(text, "{}", of_group.replacen("/**", "/*", 1));
    }
    let typed = group.owner.chars().next().is_some_and(char::is_uppercase);
    let rows: Vec<(String, &str)> = group
        .list
        .iter()
        .map(|one| {
            let name = names::constant(&group.owner, &one.name);
            let value = if typed {
                format!("(({}){})", names::ty(&group.owner), one.value)
            } else if one.value < 0 {
                format!("({})", one.value)
            } else {
                format!("{}u", one.value)
            };
            (format!("#define {name} {value}"), one.doc.as_str())
        })
        .collect();
    let widest = rows.iter().map(|row| row.0.len()).max().unwrap_or(0);
    let beside = |doc: &str| widest + comment::line(names, &module.name, doc).len() + 11 <= WIDTH;
    let all_fit = rows.iter().all(|row| beside(row.1));
    for (define, doc) in rows {
        if all_fit {
            let doc = comment::line(names, &module.name, doc);
            let _ = writeln!(text, "{define:<widest$} /**< {doc} */");
        } else {
            text.push_str(&comment::above(names, &module.name, doc, 0));
            let _ = writeln!(text, "{define}");
        }
    }
}

/// The layout that the compiler of this crate found, for the compiler of the plugin to compare, and the
/// hashes of links.
fn checks(text: &mut String) {
    text.push_str(
        "#if defined(__cplusplus)\n\
         #define TENON_STATIC_ASSERT(condition, message) static_assert(condition, message)\n\
         #elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L\n\
         #define TENON_STATIC_ASSERT(condition, message) _Static_assert(condition, message)\n\
         #else\n\
         #define TENON_STATIC_ASSERT(condition, message) extern int tenon_unchecked_layout\n\
         #endif\n\
         #define TENON_SIZE(type, size) \\\n    \
             TENON_STATIC_ASSERT(sizeof(type) == (size), #type \" has another size\")\n\
         #define TENON_FIELD(type, field, offset) \\\n    \
             TENON_STATIC_ASSERT(offsetof(type, field) == (offset), #type \".\" #field \" has moved\")\n",
    );
    for one in layout::LAYOUTS {
        let name = names::ty(one.name);
        let _ = writeln!(text, "\nTENON_SIZE({name}, {});", one.size);
        for field in one.fields {
            let _ = writeln!(
                text,
                "TENON_FIELD({name}, {}, {});",
                names::field(field.name),
                field.offset
            );
        }
    }
    text.push_str("\n#undef TENON_SIZE\n#undef TENON_FIELD\n#undef TENON_STATIC_ASSERT\n");
    links(text);
}

/// Initialisers of the links' headers.
fn links(text: &mut String) {
    let mut done = Vec::new();
    for link in links::EXTS {
        let newest = link.versions.last().expect("a link has a version");
        // Links of one struct have one initialiser, whose tag is written over.
        if done.contains(&newest.name) {
            continue;
        }
        done.push(newest.name);
        let name = newest.name.strip_prefix("Ext").unwrap_or(newest.name).to_uppercase();
        let _ = write!(
            text,
            "\n/** Initialiser of the header of a `{ty}`, before the link `next` (or null). */\n\
             #define TENON_EXT_{name}_HEADER(next) \\\n    \
                 {{ {tag}u, {version}u, sizeof({ty}), UINT64_C(0x{hash:016x}), (next) }}\n",
            ty = names::ty(newest.name),
            tag = link.tag,
            version = link.versions.len(),
            hash = layout::ext_hash(newest),
        );
    }
}
