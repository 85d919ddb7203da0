//! A reader of pages that knows just enough to find what is not closed, or not quoted.

/// Elements without an end.
const VOID: [&str; 2] = ["meta", "br"];

/// Whether each element is closed in order, each attribute quoted and each `&` the begin of a reference.
pub fn check(page: &str) -> Result<(), String> {
    let mut rest = page.strip_prefix("<!doctype html>").ok_or("no document type")?;
    let mut open: Vec<String> = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    while let Some((text, after)) = rest.split_once('<') {
        references(text)?;
        let (tag, after) = tag(after)?;
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            let expected = open.pop().ok_or(format!("</{name}> closes nothing"))?;
            if name != expected {
                return Err(format!("expected </{expected}>, found </{name}> in {open:?}"));
            }
            continue;
        }
        let name = tag.split_whitespace().next().unwrap_or_default().to_owned();
        for (key, value) in attributes(&tag[name.len()..])? {
            references(&value)?;
            if key == "id" && ids.contains(&value) {
                return Err(format!("two elements with the id {value}"));
            }
            if key == "id" {
                ids.push(value);
            }
        }
        if name == "script" || name == "style" {
            let end = format!("</{name}>");
            rest = rest.split_once(&end).ok_or(format!("{end} is missing"))?.1;
        } else if !VOID.contains(&name.as_str()) {
            open.push(name);
        }
    }
    references(rest)?;
    if open.is_empty() { Ok(()) } else { Err(format!("not closed: {open:?}")) }
}

/// The text before the `>` that ends a tag, quotes considered, and what follows it.
fn tag(text: &str) -> Result<(&str, &str), String> {
    let mut quoted = false;
    for (at, character) in text.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '<' => {
                return Err(format!("'<' in a tag: {}", text.chars().take(60).collect::<String>()));
            }
            '>' if !quoted => return Ok((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    Err("a tag without an end".into())
}

fn attributes(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if name.is_empty() || found.iter().any(|(known, _)| known == name) {
            return Err(format!("attribute '{name}' twice or without a name: {text}"));
        }
        let (value, after) = match after.strip_prefix("=\"") {
            Some(after) => after.split_once('"').ok_or(format!("a quote is not closed: {text}"))?,
            None if after.starts_with('=') => return Err(format!("'{name}' is not quoted")),
            None => ("", after),
        };
        found.push((name.to_owned(), value.to_owned()));
        rest = after.trim_start();
    }
    Ok(found)
}

fn references(text: &str) -> Result<(), String> {
    const KNOWN: [&str; 5] = ["amp;", "lt;", "gt;", "quot;", "#39;"];
    for after in text.split('&').skip(1) {
        if !KNOWN.iter().any(|known| after.starts_with(known)) {
            return Err(format!(
                "a bare '&' before '{}'",
                after.chars().take(20).collect::<String>()
            ));
        }
    }
    if text.contains('>') && !text.contains('"') {
        return Err(format!("a bare '>' in '{text}'"));
    }
    Ok(())
}

#[test]
fn what_is_wrong_is_found() {
    let wrong = |body: &str| check(&format!("<!doctype html>{body}")).is_err();
    assert!(!wrong("<p class=\"a\">x &amp; y</p><meta charset=\"utf-8\">"));
    for body in
        ["<p>", "<p></a>", "</p>", "<p a=b></p>", "<p a=\"1\" a=\"2\"></p>", "a & b", "<p <b></p>"]
    {
        assert!(wrong(body), "{body}");
    }
    assert!(wrong("<p id=\"a\"></p><b id=\"a\"></b>"));
}
