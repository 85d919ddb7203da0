//! `RegexReplace`, `RegexFullMatch`, and both with expressions that are attributes.

use crate::{re2::translated, shown, text};
use regex::bytes::{Captures, Regex};
use std::sync::{Arc, Mutex};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    growth,
    reg::Numerics,
    register_kernel,
};

/// A cache of the most recent compiled expression: most nodes have only one.
struct Compiled(Mutex<Option<(Vec<u8>, Arc<Regex>)>>);

impl Compiled {
    fn new() -> Compiled {
        Compiled(Mutex::new(None))
    }

    fn get(&self, pattern: &[u8], whole: bool) -> Result<Arc<Regex>, KernelError> {
        let mut last = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
        if let Some((_, regex)) = last.as_ref().filter(|(known, _)| known == pattern) {
            return Ok(Arc::clone(regex));
        }
        let regex = Arc::new(compiled(pattern, whole)?);
        *last = Some((pattern.to_vec(), Arc::clone(&regex)));
        Ok(regex)
    }
}

/// Compiles a pattern in RE2's syntax; with `whole` it must match the whole text.
fn compiled(pattern: &[u8], whole: bool) -> Result<Regex, KernelError> {
    let invalid = |why: String| {
        let pattern = shown(pattern);
        KernelError::invalid_argument(format!("pattern '{pattern}' is not valid: {why}"))
    };
    let utf8 = std::str::from_utf8(pattern).map_err(|_| invalid("invalid UTF-8".to_owned()))?;
    let inner = translated(utf8).map_err(invalid)?;
    let text = if whole { format!("\\A(?:{inner})\\z") } else { inner };
    Regex::new(&text).map_err(|error| {
        let message = error.to_string();
        invalid(message.lines().last().unwrap_or_default().to_owned())
    })
}

struct FullMatch {
    compiled: Compiled,
}

impl Kernel for FullMatch {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(FullMatch { compiled: Compiled::new() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let regex = self.compiled.get(text(c, 1, "pattern")?, true)?;
        full_matches(c, &regex)
    }
}

/// Whether an expression, which is of whole texts, matches each string of the first input.
fn full_matches(c: &ComputeContext<'_>, regex: &Regex) -> Result<(), KernelError> {
    let y = c.output::<bool>(0, c.dims(0))?.data;
    let watch = c.watch();
    for (at, (y, x)) in y.iter_mut().zip(c.strings(0)?).enumerate() {
        if at % 64 == 0 {
            watch.check()?;
        }
        *y = regex.is_match(x);
    }
    Ok(())
}

/// A pattern that is an attribute is compiled once.
struct StaticFullMatch(Regex);

impl Kernel for StaticFullMatch {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        compiled(c.attr::<&str>("pattern")?.as_bytes(), true).map(StaticFullMatch)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        full_matches(c, &self.0)
    }
}

register_kernel!("StaticRegexFullMatch" on "CPU": StaticFullMatch, numerics = Numerics::EXACT);

struct Replace {
    global: bool,
    compiled: Compiled,
}

impl Kernel for Replace {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Replace { global: c.attr("replace_global")?, compiled: Compiled::new() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let regex = self.compiled.get(text(c, 1, "pattern")?, false)?;
        replaced(c, &regex, text(c, 2, "rewrite")?, self.global)
    }
}

/// Each string of the first input, rewritten.
fn replaced(
    c: &ComputeContext<'_>,
    regex: &Regex,
    rewrite: &[u8],
    is_global: bool,
) -> Result<(), KernelError> {
    let inputs = c.strings(0)?;
    // The rewriting refers to a group that the expression does not have: nothing is rewritten.
    if highest_group(rewrite) >= regex.captures_len() {
        return c.set_strings(0, c.dims(0), inputs.into_iter());
    }
    let replace = if is_global { replace_all } else { replace_first };
    c.write_texts(0, c.dims(0), |at, to| replace(regex, inputs[at], rewrite, to))
}

/// An expression and a rewriting that are attributes.
struct StaticReplace {
    regex: Regex,
    rewrite: Vec<u8>,
    is_global: bool,
}

impl Kernel for StaticReplace {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(StaticReplace {
            regex: compiled(c.attr::<&[u8]>("pattern")?, false)?,
            rewrite: c.attr::<&[u8]>("rewrite")?.to_vec(),
            is_global: c.attr("replace_global")?,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        replaced(c, &self.regex, &self.rewrite, self.is_global)
    }
}

/// The highest group that a rewriting refers to.
fn highest_group(rewrite: &[u8]) -> usize {
    let mut highest = 0;
    let mut bytes = rewrite.iter();
    while let Some(&byte) = bytes.next() {
        if byte == b'\\' {
            let group = bytes.next().filter(|next| next.is_ascii_digit());
            highest = highest.max(group.map_or(0, |digit| usize::from(digit - b'0')));
        }
    }
    highest
}

/// Appends the rewriting of a match; stops at an invalid backslash escape and returns false.
fn rewritten(found: &Captures<'_>, rewrite: &[u8], to: &mut Vec<u8>) -> Result<bool, KernelError> {
    let mut bytes = rewrite.iter();
    while let Some(&byte) = bytes.next() {
        match (byte, bytes.as_slice().first()) {
            (b'\\', Some(b'\\')) => growth::push(to, b'\\')?,
            (b'\\', Some(digit)) if digit.is_ascii_digit() => {
                let group = found.get(usize::from(digit - b'0'));
                growth::append(to, group.map_or(b"", |group| group.as_bytes()))?;
            }
            (b'\\', _) => return Ok(false),
            _ => {
                growth::push(to, byte)?;
                continue;
            }
        }
        bytes.next();
    }
    Ok(true)
}

fn replace_first(
    regex: &Regex,
    text: &[u8],
    rewrite: &[u8],
    to: &mut Vec<u8>,
) -> Result<(), KernelError> {
    let Some(found) = regex.captures(text) else { return growth::append(to, text) };
    let place = found.get_match();
    growth::append(to, &text[..place.start()])?;
    if !rewritten(&found, rewrite, to)? {
        to.clear();
        return growth::append(to, text);
    }
    growth::append(to, &text[place.end()..])
}

/// Like RE2's `GlobalReplace`: an empty match must not immediately follow a match, and is not
/// looked for inside a character.
fn replace_all(
    regex: &Regex,
    text: &[u8],
    rewrite: &[u8],
    to: &mut Vec<u8>,
) -> Result<(), KernelError> {
    let (mut at, mut last_end) = (0, None);
    while at <= text.len() {
        let Some(found) = regex.captures_at(text, at) else { break };
        let place = found.get_match();
        growth::append(to, &text[at..place.start()])?;
        at = place.start();
        if place.is_empty() && last_end == Some(at) {
            let next = (at + character_len(&text[at..])).min(text.len());
            growth::append(to, &text[at..next])?;
            at = next.max(at + 1);
            continue;
        }
        rewritten(&found, rewrite, to)?;
        at = place.end();
        last_end = Some(at);
    }
    growth::append(to, text.get(at..).unwrap_or_default())
}

/// Length of the first character; 1 for invalid UTF-8.
fn character_len(text: &[u8]) -> usize {
    let first = text.utf8_chunks().next();
    first.and_then(|chunk| chunk.valid().chars().next()).map_or(1, char::len_utf8)
}

register_kernel!("StaticRegexReplace" on "CPU": StaticReplace, numerics = Numerics::EXACT);
register_kernel!("RegexFullMatch" on "CPU": FullMatch, host_memory = &["pattern"], numerics = Numerics::EXACT);
register_kernel!("RegexReplace" on "CPU": Replace, host_memory = &["pattern", "rewrite"], numerics = Numerics::EXACT);
