//! Text that becomes part of a page.
//!
//! Names of ops, labels and messages come from plugins: nothing of them is ever markup. Everything goes through
//! [`Markup`], which escapes contents and values of attributes, and closes what it opens.

use std::fmt::{Display, Write};

/// A piece of a page.
#[derive(Debug, Default)]
pub struct Markup {
    text: String,
}

/// An attribute with its value.
pub type Attr<'a> = (&'static str, &'a dyn Display);

impl Markup {
    /// Nothing yet.
    pub fn new() -> Markup {
        Markup::default()
    }

    /// An element with what `inside` puts into it.
    pub fn element(
        &mut self,
        name: &'static str,
        attrs: &[Attr<'_>],
        inside: impl FnOnce(&mut Markup),
    ) -> &mut Markup {
        self.open(name, attrs);
        inside(self);
        self.text.push_str("</");
        self.text.push_str(name);
        self.text.push('>');
        self
    }

    /// An element with a text.
    pub fn leaf(
        &mut self,
        name: &'static str,
        attrs: &[Attr<'_>],
        text: impl Display,
    ) -> &mut Markup {
        self.element(name, attrs, |inside| {
            inside.text(text);
        })
    }

    /// A shape: an element of a drawing without contents.
    pub fn shape(&mut self, name: &'static str, attrs: &[Attr<'_>]) -> &mut Markup {
        self.element(name, attrs, |_| {})
    }

    /// A text.
    pub fn text(&mut self, text: impl Display) -> &mut Markup {
        escape(&mut self.text, &text.to_string());
        self
    }

    /// What was made so far.
    pub fn finish(self) -> String {
        self.text
    }

    fn open(&mut self, name: &str, attrs: &[Attr<'_>]) {
        self.text.push('<');
        self.text.push_str(name);
        for (name, value) in attrs {
            let _ = write!(self.text, " {name}=\"");
            escape(&mut self.text, &value.to_string());
            self.text.push('"');
        }
        self.text.push('>');
    }
}

/// Escapes for contents and quoted attributes. Control characters have no place in a page.
fn escape(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(character),
            _ if character.is_control() => out.push('\u{fffd}'),
            _ => out.push(character),
        }
    }
}

/// JSON for a script element: the same values without a character that could end it, or begin a comment.
pub fn script_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", character as u32);
            }
            _ => out.push(character),
        }
    }
    out
}

/// A figure for a drawing: a hundredth of a pixel is enough.
pub fn px(value: f64) -> String {
    let text = format!("{value:.2}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        let mut page = Markup::new();
        page.leaf("p", &[("title", &"\"><script>")], "a<b>&'\"\u{7}");
        assert_eq!(
            page.finish(),
            "<p title=\"&quot;&gt;&lt;script&gt;\">a&lt;b&gt;&amp;&#39;&quot;\u{fffd}</p>"
        );
    }

    #[test]
    fn json_in_a_script_cannot_end_it_and_keeps_its_values() {
        let nasty = "</script><!-- & \u{2028}";
        let json = serde_json::to_string(nasty).unwrap();
        let escaped = script_json(&json);
        assert!(!escaped.contains(['<', '>', '&', '\u{2028}']), "{escaped}");
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), nasty);
    }

    #[test]
    fn figures_are_short() {
        assert_eq!([px(1.0), px(0.126), px(-0.001), px(20.5)], ["1", "0.13", "0", "20.5"]);
    }
}
