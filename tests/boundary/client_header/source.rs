//! What the sources declare: functions, structs, handles and callbacks.

use super::types;
use std::{fs, path::Path};
use syn::{
    Attribute, Block, Expr, Ident, Item, Lit, LitStr, Meta, Token, Type, bracketed, parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};
use tenon_tests::build::files;

/// A function, in C's words.
pub struct Function {
    pub doc: Vec<String>,
    pub name: String,
    pub arguments: Vec<String>,
    pub result: String,
}

/// A field of a struct.
pub struct Field {
    pub doc: Vec<String>,
    pub declaration: String,
}

/// A struct of options or results.
pub struct Record {
    pub doc: Vec<String>,
    pub name: String,
    pub fields: Vec<Field>,
}

/// A type of functions that callers give.
pub struct Callback {
    pub doc: Vec<String>,
    pub name: String,
    pub arguments: Vec<String>,
}

/// All of it, in the order of the files.
#[derive(Default)]
pub struct Source {
    /// Name and description.
    pub handles: Vec<(String, String)>,
    pub records: Vec<Record>,
    pub callbacks: Vec<Callback>,
    /// Functions by the title of their file.
    pub functions: Vec<(String, Vec<Function>)>,
}

/// The text of documentation comments: a paragraph for each that begins a line after another one has ended, and one for threads.
fn doc(attributes: &[Attribute]) -> Vec<String> {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(it) => match &it.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    let mut paragraphs = vec![String::new()];
    for line in lines {
        if line.starts_with("Threads: ") {
            paragraphs.push(String::new());
        }
        let last = paragraphs.last_mut().expect("there is one");
        if !last.is_empty() {
            last.push(' ');
        }
        last.push_str(&line);
    }
    paragraphs
}

/// The functions of an `api!`.
struct Api(Vec<Function>);

impl Parse for Api {
    fn parse(input: ParseStream<'_>) -> syn::Result<Api> {
        let mut functions = Vec::new();
        while !input.is_empty() {
            let attributes = input.call(Attribute::parse_outer)?;
            input.parse::<Token![fn]>()?;
            let name: Ident = input.parse()?;
            let inside;
            parenthesized!(inside in input);
            let arguments = Punctuated::<Argument, Token![,]>::parse_terminated(&inside)?;
            let result = match input.peek(Token![->]) {
                true => {
                    input.parse::<Token![->]>()?;
                    types::c(&input.parse::<Type>()?)
                }
                false => "void".to_owned(),
            };
            if input.peek(syn::token::Bracket) {
                let status;
                bracketed!(status in input);
                status.parse::<Ident>()?;
            }
            input.parse::<Block>()?;
            functions.push(Function {
                doc: doc(&attributes),
                name: name.to_string(),
                arguments: arguments.into_iter().map(|argument| argument.0).collect(),
                result,
            });
        }
        Ok(Api(functions))
    }
}

struct Argument(String);

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> syn::Result<Argument> {
        let name: Ident = input.parse()?;
        input.parse::<Token![:]>()?;
        Ok(Argument(types::declaration(&input.parse()?, &name.to_string())))
    }
}

/// The kinds of a `kept!`.
struct Kinds(Vec<(String, String)>);

impl Parse for Kinds {
    fn parse(input: ParseStream<'_>) -> syn::Result<Kinds> {
        let mut kinds = Vec::new();
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            input.parse::<Token![=>]>()?;
            let text: LitStr = input.parse()?;
            if input.peek(Token![,]) {
                input.parse::<Token![,]>()?;
            }
            kinds.push((types::snake(&name.to_string()), text.value()));
        }
        Ok(Kinds(kinds))
    }
}

fn is_public_c(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_c = |list: &syn::MetaList| list.tokens.to_string() == "C";
        attribute.path().is_ident("repr")
            && matches!(&attribute.meta, Meta::List(list) if is_c(list))
    })
}

impl Source {
    /// Reads all files of a folder.
    pub fn read(folder: &Path) -> Source {
        let mut source = Source::default();
        let status = "What came of a call: a code, a message, and the node that failed.";
        source.handles.push(("tn_status".to_owned(), status.to_owned()));
        for file in files(folder, &[".rs"]) {
            let text = fs::read_to_string(&file).expect("a source");
            let parsed =
                syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            let title = doc(&parsed.attrs).concat();
            let title = title.split_inclusive('.').next().unwrap_or_default().to_owned();
            let mut functions = Vec::new();
            for item in &parsed.items {
                source.add(item, &mut functions);
            }
            if !functions.is_empty() {
                source.functions.push((title, functions));
            }
        }
        source
    }

    fn add(&mut self, item: &Item, functions: &mut Vec<Function>) {
        match item {
            Item::Macro(it) if it.mac.path.is_ident("api") => {
                functions.extend(it.mac.parse_body::<Api>().expect("functions").0);
            }
            Item::Macro(it) if it.mac.path.is_ident("kept") => {
                let kinds = it.mac.parse_body::<Kinds>().expect("kinds").0;
                self.handles.extend(kinds.into_iter().map(|(name, text)| {
                    let mut letters = text.chars();
                    let first: String =
                        letters.next().map(|c| c.to_ascii_uppercase()).into_iter().collect();
                    (name, format!("{first}{}.", letters.as_str()))
                }));
            }
            Item::Struct(it)
                if is_public_c(&it.attrs) && matches!(it.vis, syn::Visibility::Public(_)) =>
            {
                let name = it.ident.to_string();
                if name.starts_with("DL") {
                    return;
                }
                let fields = it.fields.iter().map(|field| Field {
                    doc: doc(&field.attrs),
                    declaration: types::declaration(
                        &field.ty,
                        &field.ident.as_ref().expect("a name").to_string(),
                    ),
                });
                self.records.push(Record {
                    doc: doc(&it.attrs),
                    name: types::snake(&name),
                    fields: fields.collect(),
                });
            }
            Item::Type(it) => self.add_callback(it),
            _ => {}
        }
    }

    fn add_callback(&mut self, item: &syn::ItemType) {
        let Type::FnPtr(function) = &*item.ty else { return };
        let arguments = function.inputs.iter().map(|argument| {
            let (name, _) = argument.name.as_ref().expect("a name");
            types::declaration(&argument.ty, &name.to_string())
        });
        self.callbacks.push(Callback {
            doc: doc(&item.attrs),
            name: types::snake(&item.ident.to_string()),
            arguments: arguments.collect(),
        });
    }
}
