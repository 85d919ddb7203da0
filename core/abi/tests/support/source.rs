//! The declarations of `src/`, read with `syn`: what cbindgen does not see (macros, constants of types,
//! modules of flags) and the order in which they stand.

use super::path;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Expr, Fields, ImplItem, Item as SynItem, Lit, LitInt, LitStr, Token};
use tenon_abi::DType;

/// The files whose items cross the boundary, each after those it builds on, with the heading that the
/// header gives it when the file's own first line does not fit.
const FILES: &[(&str, &str)] = &[
    ("lib", "Version and limits."),
    ("basic", ""),
    ("code", "Status codes."),
    ("dtype", "Element types."),
    ("ext", ""),
    ("facts", ""),
    ("tensor", ""),
    ("create", ""),
    ("host", ""),
    ("call", ""),
    ("function", ""),
    ("collective", ""),
    ("shape", ""),
    ("state", ""),
    ("op", ""),
    ("device", ""),
    ("device_ext", ""),
    ("pass", ""),
    ("gradient", ""),
    ("plugin", ""),
];

/// One file.
pub struct Module {
    pub name: String,
    pub heading: String,
    pub items: Vec<Item>,
}

/// One declaration.
pub enum Item {
    Struct(Struct),
    Constants(Constants),
    Alias(String),
}

/// A struct that derives `StableAbi`.
pub struct Struct {
    pub name: String,
    pub doc: String,
    pub kind: Kind,
    pub fields: Vec<String>,
}

/// How a struct is seen from C.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Opaque,
    Transparent,
    Fields,
}

/// The constants of a type, of a module of flags, or (with an empty owner) of a file.
pub struct Constants {
    pub owner: String,
    pub doc: String,
    pub list: Vec<Constant>,
}

/// A named number.
pub struct Constant {
    pub name: String,
    pub value: i64,
    pub doc: String,
}

/// The text of a source file.
pub fn text(name: &str) -> String {
    let file = path(&format!("src/{name}.rs"));
    std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// Every file of the boundary.
pub fn modules() -> Vec<Module> {
    FILES.iter().map(|&(name, heading)| module(name, heading)).collect()
}

fn module(name: &str, heading: &str) -> Module {
    let file = syn::parse_file(&text(name)).unwrap_or_else(|e| panic!("src/{name}.rs: {e}"));
    let own = doc(&file.attrs);
    let heading = if heading.is_empty() { own.lines().next().unwrap_or("") } else { heading };
    let mut items = Vec::new();
    let mut loose = Vec::new();
    for item in file.items {
        match item {
            SynItem::Const(item) => loose.push(constant(&item.attrs, &item.ident, &item.expr)),
            item => items.extend(declarations(item)),
        }
    }
    if !loose.is_empty() {
        items.insert(0, constants("", String::new(), loose));
    }
    Module { name: name.into(), heading: heading.into(), items }
}

fn declarations(item: SynItem) -> Vec<Item> {
    match item {
        SynItem::Struct(item) if lists(&item.attrs, "derive", "StableAbi") => {
            vec![Item::Struct(shared_struct(&item))]
        }
        SynItem::Type(item) => vec![Item::Alias(item.ident.to_string())],
        SynItem::Mod(item) if !lists(&item.attrs, "cfg", "test") => {
            flags(&item).into_iter().collect()
        }
        SynItem::Impl(item) if item.trait_.is_none() => type_constants(&item).into_iter().collect(),
        SynItem::Macro(item) if item.ident.is_none() => invocation(&item.mac),
        _ => Vec::new(),
    }
}

fn constants(owner: &str, doc: String, list: Vec<Constant>) -> Item {
    Item::Constants(Constants { owner: owner.into(), doc, list })
}

fn shared_struct(item: &syn::ItemStruct) -> Struct {
    let fields: Vec<String> =
        item.fields.iter().filter_map(|field| Some(field.ident.as_ref()?.to_string())).collect();
    let kind = if lists(&item.attrs, "repr", "transparent") {
        Kind::Transparent
    } else if fields == ["_opaque"] {
        Kind::Opaque
    } else {
        assert!(matches!(item.fields, Fields::Named(_)), "{}: name the fields", item.ident);
        Kind::Fields
    };
    Struct { name: item.ident.to_string(), doc: doc(&item.attrs), kind, fields }
}

/// A `pub mod x_flags { pub const .. }`.
fn flags(item: &syn::ItemMod) -> Option<Item> {
    let (_, items) = item.content.as_ref()?;
    let list: Vec<Constant> = items
        .iter()
        .filter_map(|item| match item {
            SynItem::Const(item) => Some(constant(&item.attrs, &item.ident, &item.expr)),
            _ => None,
        })
        .collect();
    let own = doc(&item.attrs);
    (!list.is_empty()).then(|| constants(&item.ident.to_string(), own, list))
}

/// The constants of an `impl` whose values are numbers in the type itself, such as `Support(1)`.
fn type_constants(item: &syn::ItemImpl) -> Option<Item> {
    let syn::Type::Path(owner) = &*item.self_ty else { return None };
    let owner = owner.path.get_ident()?.to_string();
    let list: Vec<Constant> = item
        .items
        .iter()
        .filter_map(|item| match item {
            ImplItem::Const(item) if matches!(item.expr, Expr::Call(_)) => {
                Some(constant(&item.attrs, &item.ident, &item.expr))
            }
            _ => None,
        })
        .collect();
    (!list.is_empty()).then(|| constants(&owner, String::new(), list))
}

/// The macros that declare: `codes!`, `dtypes!`, `opaque!`.
fn invocation(mac: &syn::Macro) -> Vec<Item> {
    let name = mac.path.get_ident().map(ToString::to_string).unwrap_or_default();
    let owner = match name.as_str() {
        "codes" => "Code",
        "dtypes" => "DType",
        "opaque" => "",
        _ => return Vec::new(),
    };
    let Entries(entries) = mac.parse_body().unwrap_or_else(|e| panic!("{name}!: {e}"));
    if owner.is_empty() {
        return entries.into_iter().map(opaque).collect();
    }
    vec![constants(owner, String::new(), entries)]
}

fn opaque(entry: Constant) -> Item {
    let fields = vec![String::from("_opaque")];
    Item::Struct(Struct { name: entry.name, doc: entry.doc, kind: Kind::Opaque, fields })
}

/// Lines `NAME;`, `NAME = 1;` or `NAME = 1, "text", 32;`, each with its doc.
struct Entries(Vec<Constant>);

impl Parse for Entries {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut entries = Vec::new();
        while !input.is_empty() {
            let mut entry = Constant {
                doc: doc(&input.call(Attribute::parse_outer)?),
                name: input.parse::<syn::Ident>()?.to_string(),
                value: 0,
            };
            if input.parse::<Option<Token![=]>>()?.is_some() {
                let negative = input.parse::<Option<Token![-]>>()?.is_some();
                let value = input.parse::<LitInt>()?.base10_parse::<i64>()?;
                entry.value = if negative { -value } else { value };
            }
            if input.parse::<Option<Token![,]>>()?.is_some() {
                let text = input.parse::<LitStr>()?.value();
                input.parse::<Token![,]>()?;
                let bits = input.parse::<LitInt>()?;
                let dtype = DType::from_name(&text).filter(|dtype| dtype.is_reserved());
                let reserved = dtype.map_or("", |_| "; a number only");
                entry.doc = format!("`{text}`, {bits} bits{reserved}.");
            }
            input.parse::<Token![;]>()?;
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

fn constant(attrs: &[Attribute], name: &syn::Ident, expr: &Expr) -> Constant {
    let value = number(expr).unwrap_or_else(|| panic!("{name}: not a plain number"));
    Constant { name: name.to_string(), value, doc: doc(attrs) }
}

fn number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Int(int) => int.base10_parse().ok(),
            _ => None,
        },
        Expr::Call(call) => number(call.args.first()?),
        Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Neg(_)) => Some(-number(&unary.expr)?),
        _ => None,
    }
}

/// Whether an attribute such as `#[derive(..)]` names a word.
fn lists(attrs: &[Attribute], attr: &str, word: &str) -> bool {
    attrs.iter().filter(|a| a.path().is_ident(attr)).any(|a| match &a.meta {
        syn::Meta::List(list) => list.tokens.to_string().split(", ").any(|w| w.trim() == word),
        _ => false,
    })
}

/// The doc comment, one line a line.
fn doc(attrs: &[Attribute]) -> String {
    let lines: Vec<String> = attrs
        .iter()
        .filter_map(|attr| match &attr.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                Expr::Lit(syn::ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        })
        .map(|line| line.trim().to_owned())
        .collect();
    lines.join("\n").trim().to_owned()
}
