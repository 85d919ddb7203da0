//! Doc comments as C comments.

use super::names::Names;

/// Columns of a line.
pub const WIDTH: usize = 100;

/// The comment above a declaration, indented by `indent`; empty for an empty doc.
pub fn above(names: &Names, module: &str, doc: &str, indent: usize) -> String {
    let pad = " ".repeat(indent);
    let paragraphs = paragraphs(&words_of_c(names, module, doc));
    let [first, rest @ ..] = paragraphs.as_slice() else { return String::new() };
    if rest.is_empty() && indent + first.len() + 7 <= WIDTH {
        return format!("{pad}/** {first} */\n");
    }
    let mut text = format!("{pad}/**\n");
    for (at, paragraph) in paragraphs.iter().enumerate() {
        if at > 0 {
            text.push_str(&format!("{pad} *\n"));
        }
        for line in wrap(paragraph, WIDTH - indent - 3) {
            text.push_str(&format!("{pad} * {line}\n"));
        }
    }
    text.push_str(&format!("{pad} */\n"));
    text
}

/// The doc on one line.
pub fn line(names: &Names, module: &str, doc: &str) -> String {
    paragraphs(&words_of_c(names, module, doc)).join(" ")
}

/// Replaces links and names in backticks by what C calls them.
fn words_of_c(names: &Names, module: &str, doc: &str) -> String {
    let mut text = String::new();
    for (at, part) in doc.replace("[`", "`").replace("`]", "`").split('`').enumerate() {
        if at % 2 == 0 {
            text.push_str(part);
            continue;
        }
        let word = names.resolve(module, part).unwrap_or_else(|| part.to_owned());
        assert!(!word.contains("::"), "`{part}` in {module}.rs has no name in C");
        text.push_str(&format!("`{word}`"));
    }
    text
}

fn paragraphs(doc: &str) -> Vec<String> {
    doc.split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|paragraph| !paragraph.is_empty())
        .collect()
}

fn wrap(paragraph: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in paragraph.split(' ') {
        let line = lines.last_mut().expect("never empty");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
