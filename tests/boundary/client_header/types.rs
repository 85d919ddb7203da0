//! Rust's types as C's.

use syn::{GenericArgument, PathArguments, PointerMutability, Type, TypePath};

/// A type and a name, as C declares them.
pub fn joined(ty: &str, name: &str) -> String {
    if ty.ends_with('*') { format!("{ty}{name}") } else { format!("{ty} {name}") }
}

/// A name of Rust in C's spelling.
pub fn snake(name: &str) -> String {
    let mut text = String::from("tn");
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// The last part of a path, and its first type argument.
fn parts(path: &TypePath) -> (String, Option<&Type>) {
    let last = path.path.segments.last().expect("a path has parts");
    let argument = match &last.arguments {
        PathArguments::AngleBracketed(all) => all.args.iter().find_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty),
            _ => None,
        }),
        _ => None,
    };
    (last.ident.to_string(), argument)
}

/// A pointer to constants of this type.
fn pointer_to_const(ty: &str) -> String {
    match ty.ends_with('*') {
        true => format!("{ty}const *"),
        false => format!("const {ty} *"),
    }
}

fn pointer(ty: &str) -> String {
    if ty.ends_with('*') { format!("{ty}*") } else { format!("{ty} *") }
}

fn is_bytes(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if parts(path).0 == "u8")
}

fn array(element: &Type) -> String {
    match element {
        _ if is_bytes(element) => "const void *".to_owned(),
        Type::Path(path) => match parts(path) {
            // Strings are written as texts, though no zero ends them.
            (name, Some(inner)) if name == "Array" && is_bytes(inner) => {
                "const char *const *".to_owned()
            }
            _ => pointer_to_const(&c(element)),
        },
        _ => pointer_to_const(&c(element)),
    }
}

/// The type of C.
pub fn c(ty: &Type) -> String {
    match ty {
        Type::Path(path) => of_path(path),
        Type::Ptr(it) if matches!(it.mutability, PointerMutability::Const(_)) => {
            pointer_to_const(&c(&it.elem))
        }
        Type::Ptr(it) => pointer(&c(&it.elem)),
        Type::Reference(it) if it.mutability.is_some() => pointer(&c(&it.elem)),
        Type::Reference(it) => pointer_to_const(&c(&it.elem)),
        _ => panic!("a type that is not known here: add it to types.rs"),
    }
}

fn of_path(path: &TypePath) -> String {
    let (name, argument) = parts(path);
    let inner = || argument.unwrap_or_else(|| panic!("{name} has no argument"));
    match name.as_str() {
        "Handle" => pointer(&c(inner())),
        "Option" => c(inner()),
        "Text" => "const char *".to_owned(),
        "Array" => array(inner()),
        "Out" | "Filled" => pointer(&c(inner())),
        "Options" => pointer_to_const(&c(inner())),
        "TypeNumber" => "tn_dtype".to_owned(),
        "CodeNumber" => "tn_code".to_owned(),
        "LogLevel" => "tn_log_level".to_owned(),
        "Flag" | "bool" => "bool".to_owned(),
        "c_int" => "int".to_owned(),
        "c_char" => "char".to_owned(),
        "c_void" => "void".to_owned(),
        "usize" => "size_t".to_owned(),
        "i32" | "i64" => format!("int{}_t", &name[1..]),
        "u32" | "u64" => format!("uint{}_t", &name[1..]),
        "f32" => "float".to_owned(),
        _ if name.starts_with("DLManaged") => format!("struct {name}"),
        _ => snake(&name),
    }
}

/// A field or an argument.
pub fn declaration(ty: &Type, name: &str) -> String {
    match ty {
        Type::Array(it) => format!("{}[TN_MAX_RANK]", joined(&c(&it.elem), name)),
        _ => joined(&c(ty), name),
    }
}
