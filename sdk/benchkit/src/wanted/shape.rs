//! `x=64x64,y=[n,2*n]`

use std::collections::BTreeMap;

/// A size that may depend on symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Size {
    /// A number.
    Number(i64),
    /// The value of a symbol.
    Symbol(String),
    /// Two sizes, joined by one of `+`, `-`, `*`, `/` (rounded towards zero).
    Joined(char, Box<[Size; 2]>),
}

/// A shape whose sizes may depend on symbols.
pub type Dims = Vec<Size>;

/// Shapes of inputs, by the names of their arguments; several for an argument of several inputs. A shape without a
/// name stands for all inputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shapes {
    /// By name, in the order given.
    pub named: Vec<(String, Vec<Dims>)>,
    /// For all inputs that are not named.
    pub all: Option<Dims>,
}

const FORM: &str = "expected NAME=SHAPE, further ones after commas, such as x=64x64,y=[n,n]";

/// Whether a word names a symbol.
pub fn is_symbol(word: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().all(letters)
}

/// Whether a word names an input: that of an op, or a node of a graph.
fn is_name(word: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().all(letters)
}

impl Size {
    /// The size where symbols have these values.
    ///
    /// # Errors
    /// A symbol without a value, a division by zero, a number beyond 63 bits.
    pub fn with(&self, symbols: &BTreeMap<&str, i64>) -> Result<i64, String> {
        match self {
            Size::Number(number) => Ok(*number),
            Size::Symbol(name) => symbols.get(name.as_str()).copied().ok_or_else(|| {
                format!("'{name}' has no value: give it a range by --sweep {name}=FIRST..LAST")
            }),
            Size::Joined(operator, parts) => {
                let [a, b] = &**parts;
                let (a, b) = (a.with(symbols)?, b.with(symbols)?);
                let joined = match operator {
                    '+' => a.checked_add(b),
                    '-' => a.checked_sub(b),
                    '*' => a.checked_mul(b),
                    _ => a.checked_div(b),
                };
                joined.ok_or_else(|| format!("{a}{operator}{b} is not a size"))
            }
        }
    }

    fn symbols<'s>(&'s self, into: &mut Vec<&'s str>) {
        match self {
            Size::Number(_) => {}
            Size::Symbol(name) => into.push(name),
            Size::Joined(_, parts) => parts.iter().for_each(|part| part.symbols(into)),
        }
    }
}

/// The shape where symbols have these values.
///
/// # Errors
/// As [`Size::with`]; a size below zero.
pub fn dims_with(dims: &[Size], symbols: &BTreeMap<&str, i64>) -> Result<Vec<i64>, String> {
    let size = |size: &Size| match size.with(symbols)? {
        value if value < 0 => Err(format!("a size is at least 0, found {value}")),
        value => Ok(value),
    };
    dims.iter().map(size).collect()
}

impl Shapes {
    /// Reads shapes.
    ///
    /// # Errors
    /// The problem, and its place.
    pub fn parse(text: &str) -> Result<Shapes, String> {
        let mut cursor = Cursor { rest: text };
        let mut shapes = Shapes::default();
        loop {
            let name = cursor.name();
            let mut dims = vec![cursor.dims()?];
            while cursor.eat('+') {
                dims.push(cursor.dims()?);
            }
            match name {
                Some(name) if shapes.named.iter().any(|(known, _)| known == name) => {
                    return Err(format!(
                        "'{name}' has two shapes: join those of one argument by '+'"
                    ));
                }
                Some(name) => shapes.named.push((name.to_owned(), dims)),
                None if shapes.all.is_none() && dims.len() == 1 => shapes.all = dims.pop(),
                None => return Err(FORM.to_owned()),
            }
            if cursor.rest.is_empty() {
                return Ok(shapes);
            }
            if !cursor.eat(',') {
                return Err(cursor.expected("',', '+' or the end"));
            }
        }
    }

    /// The symbols that the shapes depend on.
    pub fn symbols(&self) -> Vec<&str> {
        let mut names = Vec::new();
        let named = self.named.iter().flat_map(|(_, dims)| dims);
        named.chain(&self.all).flatten().for_each(|size| size.symbols(&mut names));
        names.sort_unstable();
        names.dedup();
        names
    }
}

struct Cursor<'t> {
    rest: &'t str,
}

impl<'t> Cursor<'t> {
    fn eat(&mut self, token: char) -> bool {
        let found = self.rest.strip_prefix(token);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn take(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn expected(&self, what: &str) -> String {
        match self.rest {
            "" => format!("expected {what} at the end; {FORM}"),
            rest => format!("expected {what} before '{rest}'; {FORM}"),
        }
    }

    /// A name before `=`; nothing is consumed without one.
    fn name(&mut self) -> Option<&'t str> {
        let (name, rest) = self.rest.split_once('=')?;
        if !is_name(name) {
            return None;
        }
        self.rest = rest;
        Some(name)
    }

    fn number(&mut self) -> Result<i64, String> {
        let before = self.rest;
        let digits = self.take(|c| c.is_ascii_digit());
        digits.parse().map_err(|_| Cursor { rest: before }.no_number())
    }

    /// What is said where a number is expected: a letter is a size elsewhere.
    fn no_number(&self) -> String {
        let word: String = self.rest.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
        match is_symbol(&word) {
            true => format!(
                "expected a number as the size, found '{word}': a letter stands for a size in brackets, as in \
                 [n] or [n,2*n], and --sweep n=64..4096 gives it its values"
            ),
            false => self.expected("a size"),
        }
    }

    fn dims(&mut self) -> Result<Dims, String> {
        if self.eat('[') {
            return self.listed();
        }
        let mut dims = vec![Size::Number(self.number()?)];
        while self.eat('x') {
            dims.push(Size::Number(self.number()?));
        }
        Ok(dims)
    }

    fn listed(&mut self) -> Result<Dims, String> {
        let mut dims = Vec::new();
        if self.eat(']') {
            return Ok(dims);
        }
        loop {
            dims.push(self.sum()?);
            if self.eat(']') {
                return Ok(dims);
            }
            if !self.eat(',') {
                return Err(self.expected("',' or ']'"));
            }
        }
    }

    fn sum(&mut self) -> Result<Size, String> {
        self.joined(&['+', '-'], Cursor::product)
    }

    fn product(&mut self) -> Result<Size, String> {
        self.joined(&['*', '/'], Cursor::atom)
    }

    fn joined(
        &mut self,
        operators: &[char],
        part: fn(&mut Cursor<'t>) -> Result<Size, String>,
    ) -> Result<Size, String> {
        let mut all = part(self)?;
        while let Some(operator) = operators.iter().copied().find(|&operator| self.eat(operator)) {
            all = Size::Joined(operator, Box::new([all, part(self)?]));
        }
        Ok(all)
    }

    fn atom(&mut self) -> Result<Size, String> {
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            return self.number().map(Size::Number);
        }
        let word = self.take(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_symbol(word) {
            Ok(Size::Symbol(word.to_owned()))
        } else {
            Err(self.expected("a size or a symbol"))
        }
    }
}

/// Reads `NAME=[1,2]` or `NAME=3`: integers that an input holds. `true` for a scalar.
///
/// # Errors
/// The problem.
pub fn value(text: &str) -> Result<(String, Vec<i64>, bool), String> {
    let form = || format!("expected NAME=INTEGER or NAME=[INTEGER,...], found '{text}'");
    let (name, list) = text.split_once('=').filter(|(name, _)| is_symbol(name)).ok_or_else(form)?;
    let inner = list.strip_prefix('[').and_then(|list| list.strip_suffix(']'));
    let items = match inner {
        Some("") => Vec::new(),
        inner => inner
            .unwrap_or(list)
            .split(',')
            .map(|item| item.trim().parse::<i64>())
            .collect::<Vec<_>>(),
    };
    let items: Vec<i64> = items.into_iter().collect::<Result<_, _>>().map_err(|_| form())?;
    match (inner, items.len()) {
        (None, 1) => Ok((name.to_owned(), items, true)),
        (Some(_), _) => Ok((name.to_owned(), items, false)),
        _ => Err(form()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(text: &str, n: i64) -> Vec<Vec<i64>> {
        let shapes = Shapes::parse(text).unwrap();
        let symbols = BTreeMap::from([("n", n)]);
        let all = shapes.named.iter().flat_map(|(_, dims)| dims).chain(&shapes.all);
        all.map(|dims| dims_with(dims, &symbols).unwrap()).collect()
    }

    #[test]
    fn shapes_are_read_in_both_forms() {
        assert_eq!(dims("x=64x32,y=7", 0), [vec![64, 32], vec![7]]);
        assert_eq!(dims("x=[n,2*n],y=[]", 5), [vec![5, 10], vec![]]);
        assert_eq!(dims("x=[n+1,n-1,n/2,3*n+2]", 8), [vec![9, 7, 4, 26]]);
        assert_eq!(dims("values=2x3+2x5", 0), [vec![2, 3], vec![2, 5]]);
        assert_eq!(dims("1024x2", 0), [vec![1024, 2]]);
        assert_eq!(dims("tower.1/in-put=3", 0), [vec![3]]);
        assert_eq!(dims("[n,n]", 3), [vec![3, 3]]);
        assert_eq!(Shapes::parse("a=[n,k],b=[k,m]").unwrap().symbols(), ["k", "m", "n"]);
    }

    #[test]
    fn what_is_no_shape_is_said() {
        let wrong = |text: &str| Shapes::parse(text).unwrap_err();
        assert!(wrong("").contains("a size at the end"));
        assert!(wrong("x=").contains("a size at the end"), "{}", wrong("x="));
        assert!(wrong("x=64x").contains("a size"));
        for (text, word) in [("x=n", "n"), ("x=nxn", "nxn"), ("x=64xn,y=2", "n"), ("n", "n")] {
            let expected =
                format!("expected a number as the size, found '{word}': a letter stands for");
            assert!(wrong(text).starts_with(&expected), "{}", wrong(text));
        }
        assert!(wrong("x=[n").contains("',' or ']' at the end"));
        assert!(wrong("x=[n;m]").contains("before ';m]'"));
        assert!(wrong("x=2 y=3").contains("',', '+' or the end before ' y=3'"));
        assert!(wrong("x=2,x=3").contains("'x' has two shapes"));
        assert!(wrong("2,3").contains("expected NAME=SHAPE"));
        assert!(wrong("x=99999999999999999999").contains("a size"));
    }

    #[test]
    fn sizes_that_cannot_be_are_said() {
        let with = |text: &str, n: i64| {
            let shapes = Shapes::parse(text).unwrap();
            dims_with(&shapes.named[0].1[0], &BTreeMap::from([("n", n)])).unwrap_err()
        };
        assert!(with("x=[m]", 1).contains("--sweep m="));
        assert!(with("x=[n-5]", 1).contains("found -4"));
        assert!(with("x=[4/n]", 0).contains("4/0 is not a size"));
        assert!(with("x=[n*n]", i64::MAX).contains("is not a size"));
    }

    #[test]
    fn values_are_scalars_or_vectors() {
        assert_eq!(value("axis=-1"), Ok(("axis".into(), vec![-1], true)));
        assert_eq!(value("perm=[1,0]"), Ok(("perm".into(), vec![1, 0], false)));
        assert_eq!(value("axes=[]"), Ok(("axes".into(), vec![], false)));
        for text in ["axis", "axis=", "axis=1,2", "axis=[1", "axis=[a]", "=3"] {
            assert!(value(text).is_err(), "{text}");
        }
    }
}
