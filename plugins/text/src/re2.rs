//! Translates RE2's syntax of regular expressions to that of the `regex` crate.
//!
//! Both match in linear time, leftmost-first, with the same operators. The differences are
//! (github.com/google/re2, file `doc/syntax.txt`): in RE2 `\d`, `\s`, `\w` and `\b` are ASCII; `\C`
//! is any byte and `\Q..\E` a literal; a brace that begins no repetition is a literal, and so are
//! `[`, `&&`, `--` and `~~` in a class; an operator must not follow a repetition; a repetition
//! counts to 1000. What RE2 refuses is refused here. The names of scripts and categories are those
//! of the crate, which has more.

/// A pattern, read from the front.
struct Reader<'a> {
    rest: &'a str,
    output: String,
}

/// The pattern in the crate's syntax; as an error, what is wrong with it.
pub fn translated(pattern: &str) -> Result<String, String> {
    let mut reader = Reader { rest: pattern, output: String::new() };
    let mut repeated = false;
    while let Some(c) = reader.rest.chars().next() {
        let operator = reader.repetition()?;
        match operator {
            Some(text) if repeated => return Err(format!("bad repetition operator: {text}")),
            Some(text) => reader.output += text,
            None => reader.atom(c)?,
        }
        repeated = operator.is_some();
    }
    Ok(reader.output)
}

impl<'a> Reader<'a> {
    fn skip(&mut self, bytes: usize) -> &'a str {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        skipped
    }

    /// Copies the next bytes unchanged.
    fn keep(&mut self, bytes: usize) {
        let text = self.skip(bytes);
        self.output += text;
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.skip(c.len_utf8());
        Some(c)
    }

    /// The next repetition operator with its question mark, if there is one.
    fn repetition(&mut self) -> Result<Option<&'a str>, String> {
        let len = match self.rest.as_bytes().first() {
            Some(b'*' | b'+' | b'?') => 1,
            Some(b'{') => braces(self.rest)?.unwrap_or(0),
            _ => 0,
        };
        if len == 0 {
            return Ok(None);
        }
        let lazy = usize::from(self.rest[len..].starts_with('?'));
        Ok(Some(self.skip(len + lazy)))
    }

    fn atom(&mut self, c: char) -> Result<(), String> {
        match c {
            '[' => self.class(),
            '\\' => self.escape(),
            '(' => self.group(),
            '{' => {
                self.skip(1);
                self.output += "\\{";
                Ok(())
            }
            _ => {
                let next = self.next();
                self.output.extend(next);
                Ok(())
            }
        }
    }

    fn group(&mut self) -> Result<(), String> {
        let Some(inner) = self.rest.strip_prefix("(?") else {
            self.keep(1);
            return Ok(());
        };
        let named = inner.starts_with("P<") || inner.starts_with('<');
        let looks = inner.starts_with("<=") || inner.starts_with("<!");
        let flags = inner.find([':', ')']).is_some_and(|end| {
            !inner[..end].is_empty() && inner[..end].chars().all(|c| "imsU-".contains(c))
        });
        if (named && !looks) || flags || inner.starts_with(':') {
            self.keep(2);
            return Ok(());
        }
        Err(format!("invalid perl operator: (?{}", inner.chars().next().unwrap_or(' ')))
    }

    /// Translates what follows a backslash, outside a class.
    fn escape(&mut self) -> Result<(), String> {
        let text = match self.rest[1..].chars().next() {
            None => return Err("trailing \\".to_owned()),
            Some('b') => "(?-u:\\b)",
            Some('B') => "(?-u:\\B)",
            Some('C') => "(?s-u:.)",
            Some('A') => "\\A",
            Some('z') => "\\z",
            Some('d') => "[0-9]",
            Some('D') => "[^0-9]",
            Some('s') => "[\\t\\n\\x0C\\r ]",
            Some('S') => "[^\\t\\n\\x0C\\r ]",
            Some('w') => "[0-9A-Za-z_]",
            Some('W') => "[^0-9A-Za-z_]",
            Some('Q') => {
                self.skip(2);
                let len = self.rest.find("\\E").unwrap_or(self.rest.len());
                let literal = self.skip(len);
                literal.chars().for_each(|c| self.literal(c));
                self.skip(self.rest.len().min(2));
                return Ok(());
            }
            Some('p' | 'P') => return self.property(),
            Some(_) => {
                let c = self.escaped_char()?;
                self.literal(c);
                return Ok(());
            }
        };
        self.skip(2);
        self.output += text;
        Ok(())
    }

    /// Translates a category or script: `\pL`, `\p{Greek}`, `\p{^Greek}`.
    fn property(&mut self) -> Result<(), String> {
        let inner = &self.rest[2..];
        let len = match inner.chars().next() {
            Some('{') => inner.find('}').map(|end| end + 1),
            other => other.map(char::len_utf8),
        };
        let Some(len) = len else {
            return Err(format!("invalid character class range: {}", self.rest));
        };
        let text = self.skip(2 + len);
        self.output += text;
        Ok(())
    }

    /// The single character that an escape represents.
    fn escaped_char(&mut self) -> Result<char, String> {
        let whole = self.rest;
        let wrong = |len: usize| {
            let end = whole.char_indices().map(|(at, _)| at).nth(len).unwrap_or(whole.len());
            format!("invalid escape sequence: {}", &whole[..end])
        };
        self.skip(1);
        let c = self.next().ok_or_else(|| "trailing \\".to_owned())?;
        match c {
            'a' => Ok('\x07'),
            'f' => Ok('\x0c'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'v' => Ok('\x0b'),
            'x' => self.hexadecimal().ok_or_else(|| wrong(2)),
            '0' => Ok(self.octal(0)),
            // A single octal digit would be a reference to a group, which RE2 does not have.
            '1'..='7' if self.rest.starts_with(|c: char| c.is_digit(8)) => {
                Ok(self.octal(c as u32 - '0' as u32))
            }
            c if c.is_ascii_punctuation() || c == '_' || c == ' ' => Ok(c),
            c if c.is_ascii_control() => Ok(c),
            _ => Err(wrong(2)),
        }
    }

    /// Parses at most two more octal digits.
    fn octal(&mut self, mut value: u32) -> char {
        for _ in 0..2 {
            let Some(digit) = self.rest.chars().next().and_then(|c| c.to_digit(8)) else { break };
            value = value * 8 + digit;
            self.skip(1);
        }
        char::from_u32(value).unwrap_or('\0')
    }

    fn hexadecimal(&mut self) -> Option<char> {
        let (digits, len) = match self.rest.strip_prefix('{') {
            Some(inner) => {
                let end = inner.find('}')?;
                (&inner[..end], end + 2)
            }
            None => (self.rest.get(..2)?, 2),
        };
        if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
            return None;
        }
        let value = u32::from_str_radix(digits, 16).ok()?;
        self.skip(len);
        char::from_u32(value)
    }

    /// Translates a literal character, inside or outside a class.
    fn literal(&mut self, c: char) {
        if c.is_ascii_alphanumeric() || !c.is_ascii() {
            self.output.push(c);
        } else {
            self.output += &format!("\\x{:02X}", c as u32);
        }
    }

    fn class(&mut self) -> Result<(), String> {
        let whole = self.rest;
        let missing = || format!("missing ]: {whole}");
        self.keep(1);
        if self.rest.starts_with('^') {
            self.keep(1);
        }
        let mut first = true;
        loop {
            let c = self.rest.chars().next().ok_or_else(missing)?;
            if c == ']' && !first {
                self.keep(1);
                return Ok(());
            }
            first = false;
            self.class_item()?;
        }
    }

    /// Translates a named class, an escape for several characters, a character or a range.
    fn class_item(&mut self) -> Result<(), String> {
        let named = self.rest.find(":]").filter(|_| self.rest.starts_with("[:"));
        if let Some(end) = named {
            self.keep(end + 2);
            return Ok(());
        }
        if let Some(escaped) = self.rest.strip_prefix('\\') {
            match escaped.chars().next() {
                Some('d' | 'D' | 's' | 'S' | 'w' | 'W') => return self.escape(),
                Some('p' | 'P') => return self.property(),
                _ => {}
            }
        }
        let whole = self.rest;
        let low = self.class_char()?;
        let ranges =
            self.rest.starts_with('-') && !self.rest.starts_with("-]") && self.rest.len() > 1;
        self.literal(low);
        if ranges {
            self.skip(1);
            let high = self.class_char()?;
            if high < low {
                let text = &whole[..whole.len() - self.rest.len()];
                return Err(format!("invalid character class range: {text}"));
            }
            self.output.push('-');
            self.literal(high);
        }
        Ok(())
    }

    fn class_char(&mut self) -> Result<char, String> {
        if self.rest.starts_with('\\') {
            return self.escaped_char();
        }
        self.next().ok_or_else(|| "missing ]".to_owned())
    }
}

/// Length of a repetition `{n}`, `{n,}` or `{n,m}` at the front; `None` if the brace is a literal.
fn braces(text: &str) -> Result<Option<usize>, String> {
    let Some(end) = text.find('}') else { return Ok(None) };
    let inner = &text[1..end];
    let (low, high) = inner.split_once(',').unwrap_or((inner, inner));
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    if low.is_empty() || !digits(low) || !digits(high) {
        return Ok(None);
    }
    let invalid = || format!("invalid repetition size: {}", &text[..=end]);
    let number = |text: &str| text.parse().ok().filter(|&n: &u32| n <= 1000).ok_or_else(invalid);
    let low = number(low)?;
    if !high.is_empty() && number(high)? < low {
        return Err(invalid());
    }
    Ok(Some(end + 1))
}

#[cfg(test)]
mod tests {
    use super::translated;

    #[test]
    fn what_means_something_else_is_translated() {
        let cases = [
            (r"\d+\b", r"[0-9]+(?-u:\b)"),
            (r"\Qa.b\Ec", r"a\x2Ebc"),
            (r"\Qa.", r"a\x2E"),
            (r"a{,3}", r"a\{,3}"),
            (r"a{2,3}?", r"a{2,3}?"),
            (r"[[&&a]", r"[\x5B\x26\x26a]"),
            (r"[]a-c\n]", r"[\x5Da-c\x0A]"),
            (r"[^[:alpha:]\d-]", r"[^[:alpha:][0-9]\x2D]"),
            (r"\x{3b1}\012\<", "\u{3b1}\\x0A\\x3C"),
            (r"(?P<n>a)(?i:b)(?:c)", r"(?P<n>a)(?i:b)(?:c)"),
        ];
        for (pattern, expected) in cases {
            assert_eq!(translated(pattern).as_deref(), Ok(expected), "{pattern}");
        }
    }

    #[test]
    fn what_is_refused_there_is_refused_here() {
        let cases = [
            ("a**", "bad repetition operator: *"),
            ("a{1001}", "invalid repetition size: {1001}"),
            ("a{3,2}", "invalid repetition size: {3,2}"),
            (r"\1", r"invalid escape sequence: \1"),
            (r"\Z", r"invalid escape sequence: \Z"),
            ("(?=a)", "invalid perl operator: (?="),
            ("(?<=a)", "invalid perl operator: (?<"),
            ("(?x)a", "invalid perl operator: (?x"),
            ("[a--b]", "invalid character class range: a--"),
            ("[a", "missing ]: [a"),
            ("a\\", "trailing \\"),
        ];
        for (pattern, expected) in cases {
            assert_eq!(translated(pattern), Err(expected.to_owned()), "{pattern}");
        }
    }
}
