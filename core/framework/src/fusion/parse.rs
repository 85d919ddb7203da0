//! Reading the texts of a fusion.

use super::{CONDITIONS, Call, Condition, Expr, Fused, FusionDef, FusionError, Term, Value};
use crate::op::SourceInfo;
use std::sync::Arc;

/// Deepest pattern: calls in calls.
const MAX_DEPTH: usize = 24;

/// Reads a fusion.
///
/// # Errors
/// A text that does not follow the grammar; a result or a condition that names what the pattern does not.
pub fn parse_fusion(
    name: &str,
    pattern: &str,
    result: &str,
    conditions: &[&str],
    source: SourceInfo,
) -> Result<FusionDef, FusionError> {
    let place = |what, text: &str, error: Wrong| FusionError {
        name: name.to_owned(),
        what,
        text: text.to_owned(),
        at: error.at,
        expected: error.expected,
        source_at: Box::new(source.clone()),
    };
    let whole = |what, text, parsed: Result<Expr, Wrong>| parsed.map_err(|e| place(what, text, e));
    let found = whole("pattern", pattern, Reader::new(pattern).whole())?;
    if !matches!(found.term, Term::Call(_)) {
        return Err(place("pattern", pattern, wrong(0, "expected an op with its inputs")));
    }
    if !rest_is_last(&found) {
        let error = wrong(0, "expected nothing after all inputs that are left");
        return Err(place("pattern", pattern, error));
    }
    let made = whole("result", result, Reader::new(result).whole())?;
    let made = fused(made, &found).map_err(|error| place("result", result, error))?;
    let mut checked = Vec::new();
    for text in conditions {
        let parsed = Reader::new(text).condition();
        let parsed = parsed.and_then(|condition| known(condition, &found));
        checked.push(parsed.map_err(|error| place("condition", text, error))?);
    }
    Ok(FusionDef {
        name: name.to_owned(),
        pattern: found,
        result: made,
        conditions: checked,
        source,
        plugin: Arc::from(""),
    })
}

/// Whether the term for all remaining inputs is the last argument in each call that has it.
fn rest_is_last(expr: &Expr) -> bool {
    let Term::Call(call) = &expr.term else { return true };
    let rest = call.args.iter().position(|arg| arg.term == Term::Rest);
    rest.is_none_or(|at| at + 1 == call.args.len()) && call.args.iter().all(rest_is_last)
}

struct Wrong {
    at: usize,
    expected: String,
}

fn wrong(at: usize, expected: impl Into<String>) -> Wrong {
    Wrong { at, expected: expected.into() }
}

/// The result, whose inputs and captures the pattern has.
fn fused(expr: Expr, pattern: &Expr) -> Result<Fused, Wrong> {
    let Term::Call(call) = expr.term else {
        return Err(wrong(0, "expected an op with its inputs"));
    };
    let [op] = &call.ops[..] else { return Err(wrong(0, "expected one op")) };
    let (names, captures) = (pattern.names(), pattern.captures());
    let mut inputs = Vec::new();
    for arg in call.args {
        match (arg.name, arg.term) {
            (Some(name), Term::Tensor | Term::Rest) if names.contains(&name.as_str()) => {
                inputs.push(name);
            }
            _ => return Err(wrong(0, format!("expected inputs among {}", names.join(", ")))),
        }
    }
    for (_, value) in &call.attrs {
        check_value(value, &names, &captures)?;
    }
    Ok(Fused { op: op.clone(), inputs, attrs: call.attrs })
}

fn check_value(value: &Value, names: &[&str], captures: &[&str]) -> Result<(), Wrong> {
    match value {
        Value::Capture(name) | Value::Splice(name) if !captures.contains(&name.as_str()) => {
            Err(wrong(0, format!("expected ${} to be taken by the pattern", name)))
        }
        Value::Number(name) if !names.contains(&name.as_str()) => {
            Err(wrong(0, format!("expected '{name}' among {}", names.join(", "))))
        }
        Value::List(items) => items.iter().try_for_each(|item| check_value(item, names, captures)),
        _ => Ok(()),
    }
}

fn known(condition: Condition, pattern: &Expr) -> Result<Condition, Wrong> {
    let (tensors, numbers) = (condition.tensors.len(), condition.numbers.len());
    let entry = CONDITIONS.iter().find(|(name, ..)| *name == condition.name);
    match entry {
        Some(&(_, a, b)) if (a, b) == (tensors, numbers) => {}
        _ => {
            let known: Vec<&str> = CONDITIONS.iter().map(|(name, ..)| *name).collect();
            return Err(wrong(
                0,
                format!("expected one of {} with its arguments", known.join(", ")),
            ));
        }
    }
    let names = pattern.names();
    match condition.tensors.iter().find(|name| !names.contains(&name.as_str())) {
        Some(name) => Err(wrong(0, format!("expected '{name}' among {}", names.join(", ")))),
        None => Ok(condition),
    }
}

/// A text that is read from left to right.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Reader<'a> {
        Reader { text, at: 0 }
    }

    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn take(&mut self, token: char) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len_utf8();
        }
        found
    }

    fn expect(&mut self, token: char) -> Result<(), Wrong> {
        if self.take(token) { Ok(()) } else { Err(wrong(self.at, format!("expected '{token}'"))) }
    }

    fn end(&mut self) -> Result<(), Wrong> {
        if self.rest().is_empty() { Ok(()) } else { Err(wrong(self.at, "expected the end")) }
    }

    fn name(&mut self) -> Result<String, Wrong> {
        let rest = self.rest();
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = rest.find(|c: char| !letter(c)).unwrap_or(rest.len());
        if length == 0 || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(wrong(self.at, "expected a name"));
        }
        self.at += length;
        Ok(rest[..length].to_owned())
    }

    /// A number, and whether it is written as an integer.
    fn number(&mut self) -> Option<(f64, Option<i64>)> {
        let rest = self.rest();
        let part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let begins = rest.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
        let length = rest.find(|c: char| !part(c)).unwrap_or(rest.len());
        let value = rest[..length].parse::<f64>().ok().filter(|_| begins)?;
        self.at += length;
        Some((value, rest[..length].parse().ok()))
    }

    fn whole(mut self) -> Result<Expr, Wrong> {
        let expr = self.expr(0)?;
        self.end()?;
        Ok(expr)
    }

    fn expr(&mut self, depth: usize) -> Result<Expr, Wrong> {
        if depth > MAX_DEPTH {
            return Err(wrong(
                self.at,
                format!("expected at most {MAX_DEPTH} calls in each other"),
            ));
        }
        if self.take('*') {
            return Ok(Expr { name: Some(self.name()?), term: Term::Rest });
        }
        if let Some((value, _)) = self.number() {
            return Ok(Expr { name: None, term: Term::Number(value) });
        }
        let first = self.name()?;
        if self.take('@') {
            let inner = self.expr(depth + 1)?;
            return match inner.name {
                None => Ok(Expr { name: Some(first), term: inner.term }),
                Some(_) => Err(wrong(self.at, "expected one name for a value")),
            };
        }
        let (capture, op) =
            if self.take(':') { (Some(first), self.name()?) } else { (None, first) };
        let mut ops = vec![op];
        while self.take('|') {
            ops.push(self.name()?);
        }
        if self.take('(') {
            return self.call(capture, ops, depth);
        }
        match (capture, &ops[..]) {
            (None, [name]) => Ok(Expr { name: Some(name.clone()), term: Term::Tensor }),
            _ => Err(wrong(self.at, "expected '(' after the name of an op")),
        }
    }

    fn call(
        &mut self,
        capture: Option<String>,
        ops: Vec<String>,
        depth: usize,
    ) -> Result<Expr, Wrong> {
        let (mut args, mut attrs) = (Vec::new(), Vec::new());
        while !self.take(')') {
            if self.take(';') {
                attrs = self.attrs()?;
                break;
            }
            if !args.is_empty() {
                self.expect(',')?;
            }
            args.push(self.expr(depth + 1)?);
        }
        Ok(Expr { name: None, term: Term::Call(Call { capture, ops, args, attrs }) })
    }

    /// Attributes and the closing parenthesis.
    fn attrs(&mut self) -> Result<Vec<(String, Value)>, Wrong> {
        let mut attrs = Vec::new();
        loop {
            let name = self.name()?;
            self.expect('=')?;
            attrs.push((name, self.value(0)?));
            if self.take(')') {
                return Ok(attrs);
            }
            self.expect(',')?;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, Wrong> {
        if self.take('$') {
            return Ok(Value::Capture(self.name()?));
        }
        if self.take('*') {
            self.expect('$')?;
            return Ok(Value::Splice(self.name()?));
        }
        if self.take('\'') {
            let rest = &self.text[self.at..];
            let end = rest.find('\'').ok_or_else(|| wrong(self.at, "expected a closing quote"))?;
            self.at += end + 1;
            return Ok(Value::Text(rest[..end].to_owned()));
        }
        if self.take('[') {
            return self.list(depth);
        }
        if let Some((value, whole)) = self.number() {
            return Ok(whole.map_or(Value::Float(value), Value::Int));
        }
        match self.name()?.as_str() {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            "number" => {
                self.expect('(')?;
                let name = self.name()?;
                self.expect(')')?;
                Ok(Value::Number(name))
            }
            _ => Err(wrong(self.at, "expected a value")),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, Wrong> {
        if depth > 0 {
            return Err(wrong(self.at, "expected no list in a list"));
        }
        let mut items = Vec::new();
        while !self.take(']') {
            if !items.is_empty() {
                self.expect(',')?;
            }
            items.push(self.value(depth + 1)?);
        }
        Ok(Value::List(items))
    }

    fn condition(mut self) -> Result<Condition, Wrong> {
        let name = self.name()?;
        let (mut tensors, mut numbers) = (Vec::new(), Vec::new());
        self.expect('(')?;
        while !self.take(')') {
            if !tensors.is_empty() {
                self.expect(',')?;
            }
            match self.number() {
                Some((_, Some(whole))) => numbers.push(whole),
                Some(_) => return Err(wrong(self.at, "expected an integer")),
                None => tensors.push(self.name()?),
            }
        }
        self.end()?;
        Ok(Condition { name, tensors, numbers })
    }
}
