//! Reads the texts of cases.
//!
//! ```text
//! case    = name { ";" item }
//! item    = attribute "=" value
//!         | attribute "in" "{" value { "," value } "}"
//!         | symbol "in" ( int ".." [ "=" ] int | "{" int { "," int } "}" )
//!         | input ":" tensor { "," tensor }
//! tensor  = "[" [ term { "," term } ] "]" [ values ]
//! values  = "uniform" "(" number "," number ")"
//!         | ( "integers" | "distinct" ) "(" term ".." [ "=" ] term ")"
//!         | "permutation"
//!         | "values" "(" item { "," item } ")"
//!         | "strings" "(" quoted { "," quoted } ")"
//! item    = "true" | "false" | term | number
//! term    = [ "-" ] ( int | [ int "*" ] symbol [ ( "+" | "-" ) int ] )
//! ```

use super::{
    AttrChoice, Case, InputCase, Item, SizeChoice, Sizes, TensorCase, Term, TermRange, Values,
    check::Places,
};
use crate::op::{
    OpDef, OpError,
    attrs::check_value,
    spec::{Cursor, parse_items},
    value::parse_default,
};

const NAME: &str = "the name of the case: a letter, then letters, digits and '_'";
const ITEM: &str = "the name of an attribute, of a size or of an input";
const VALUES: &str =
    "uniform, integers, distinct, permutation, values, strings, ',', ';' or the end";
const TERM: &str = "an integer or the name of a size";

/// Words that are numbers, so that no size has such a name.
const NUMBERS: &[&str] = &["true", "false", "inf", "nan", "NaN"];

/// Reads the cases of an op.
///
/// # Errors
/// [`OpError::Case`]: a text that does not follow the grammar, or says what the op's definition forbids; two
/// cases of one name.
pub(in crate::op) fn parse_cases<S: AsRef<str>>(
    op: &OpDef,
    texts: &[S],
) -> Result<Vec<Case>, OpError> {
    let mut cases: Vec<Case> = Vec::with_capacity(texts.len());
    for (at, text) in texts.iter().enumerate() {
        let cursor = Cursor::new(&op.name, text.as_ref());
        let twice = cursor.fail("a name that no case before has");
        let parser = Parser { op, cursor, places: Places::default() };
        let known = |case: Case| match cases.iter().any(|other| other.name == case.name) {
            true => Err(twice),
            false => Ok(case),
        };
        let case = parser.case().and_then(known).map_err(|error| numbered(error, at + 1))?;
        cases.push(case);
    }
    Ok(cases)
}

/// The error with the number of its case, from 1.
fn numbered(error: OpError, number: usize) -> OpError {
    match error {
        OpError::Spec { op, text, position, expected, found } => {
            OpError::Case { op, number, text, position, expected, found }
        }
        other => other,
    }
}

struct Parser<'a> {
    op: &'a OpDef,
    cursor: Cursor<'a>,
    places: Places,
}

impl Parser<'_> {
    fn case(mut self) -> Result<Case, OpError> {
        let name = self.cursor.word(NAME)?.to_owned();
        let mut case = Case { name, attrs: vec![], symbols: vec![], inputs: vec![] };
        while self.cursor.eat(";") {
            self.item(&mut case)?;
        }
        self.cursor.end("';' or the end of the case")?;
        self.places.check(self.op, &case, &self.cursor)?;
        Ok(case)
    }

    fn item(&mut self, case: &mut Case) -> Result<(), OpError> {
        let place = self.cursor.position();
        let name = self.cursor.word(ITEM)?.to_owned();
        if self.cursor.eat(":") {
            self.places.inputs.push(place);
            let input = self.input(case, name, place)?;
            case.inputs.push(input);
        } else if self.op.attr(&name).is_some() {
            let attr = self.attr(case, name, place)?;
            case.attrs.push(attr);
        } else {
            self.places.symbols.push(place);
            let size = self.size(case, name, place)?;
            case.symbols.push(size);
        }
        Ok(())
    }

    fn input(&mut self, case: &Case, name: String, place: usize) -> Result<InputCase, OpError> {
        if self.op.input_index(&name).is_none() {
            return Err(self.cursor.fail_at(place, "the name of an input of the op before ':'"));
        }
        if case.input(&name).is_some() {
            return Err(self.cursor.fail_at(place, "an input that is not described yet"));
        }
        let mut tensors = vec![self.tensor()?];
        while self.cursor.eat(",") {
            tensors.push(self.tensor()?);
        }
        Ok(InputCase { name, tensors })
    }

    fn attr(&mut self, case: &Case, name: String, place: usize) -> Result<AttrChoice, OpError> {
        if case.attr(&name).is_some() {
            return Err(self.cursor.fail_at(place, "an attribute that is not set yet"));
        }
        let (op, mut values) = (self.op, Vec::new());
        let def = op.attr(&name).ok_or_else(|| self.cursor.fail_at(place, "an attribute"))?;
        let mut value = |cursor: &mut Cursor<'_>| {
            let place = cursor.position();
            let value = parse_default(cursor, def.ty)?;
            check_value(op, def, &value).map_err(|error| {
                cursor.fail_at(place, &format!("a value that the op allows ({error})"))
            })?;
            values.push(value);
            Ok(())
        };
        if self.cursor.eat("=") {
            value(&mut self.cursor)?;
        } else {
            let expected = "'=' and a value, or 'in {' and values, after the name of an attribute";
            eat_in(&mut self.cursor, expected)?;
            self.cursor.expect("{", expected)?;
            parse_items(&mut self.cursor, "}", value)?;
        }
        Ok(AttrChoice { name, values })
    }

    fn size(&mut self, case: &Case, symbol: String, place: usize) -> Result<SizeChoice, OpError> {
        let cursor = &mut self.cursor;
        if cursor.rest().starts_with('=') {
            return Err(cursor.fail_at(place, "the name of an attribute of the op before '='"));
        }
        eat_in(cursor, "':' after an input, 'in' after a size, '=' or 'in' after an attribute")?;
        if case.symbols.iter().any(|known| known.symbol == symbol) {
            return Err(cursor.fail_at(place, "a size that is not limited yet"));
        }
        let at_least_0 = |cursor: &mut Cursor<'_>| {
            let place = cursor.position();
            let size = cursor.int("an integer, or '{' and integers")?;
            if size < 0 { Err(cursor.fail_at(place, "a size of at least 0")) } else { Ok(size) }
        };
        if cursor.eat("{") {
            let mut sizes = Vec::new();
            parse_items(cursor, "}", |cursor| {
                sizes.push(at_least_0(cursor)?);
                Ok(())
            })?;
            return Ok(SizeChoice { symbol, sizes: Sizes::List(sizes) });
        }
        let begin = cursor.position();
        let first = at_least_0(cursor)?;
        cursor.expect("..", "'..' and the end of the range")?;
        let inclusive = cursor.eat("=");
        let last = at_least_0(cursor)?;
        let end = last.checked_add(i64::from(inclusive)).filter(|end| *end > first);
        let end = end.ok_or_else(|| cursor.fail_at(begin, "a range with a size in it"))?;
        Ok(SizeChoice { symbol, sizes: Sizes::Range(first, end) })
    }

    fn tensor(&mut self) -> Result<TensorCase, OpError> {
        self.cursor.expect("[", "'[' and the dimensions of the input")?;
        let mut dims = Vec::new();
        if !self.cursor.eat("]") {
            parse_items(&mut self.cursor, "]", |cursor| {
                let place = cursor.position();
                let dim = term(cursor)?;
                if dim.constant().is_some_and(|dim| dim < 0) {
                    return Err(cursor.fail_at(place, "a dimension of at least 0"));
                }
                dims.push(dim);
                Ok(())
            })?;
        }
        self.places.values.push(self.cursor.position());
        Ok(TensorCase { dims, values: values(&mut self.cursor)? })
    }
}

fn eat_in(cursor: &mut Cursor<'_>, expected: &str) -> Result<(), OpError> {
    if cursor.peek_word() != "in" {
        return Err(cursor.fail(expected));
    }
    cursor.advance(2);
    Ok(())
}

fn values(cursor: &mut Cursor<'_>) -> Result<Values, OpError> {
    let word = cursor.peek_word();
    if word.is_empty() {
        return Ok(Values::Any);
    }
    let unknown = cursor.fail(VALUES);
    cursor.advance(word.len());
    if word == "permutation" {
        return Ok(Values::Permutation);
    }
    if !["uniform", "integers", "distinct", "values", "strings"].contains(&word) {
        return Err(unknown);
    }
    cursor.expect("(", &format!("'(' after {word}"))?;
    let values = match word {
        "uniform" => uniform(cursor)?,
        "integers" => Values::Integers(range(cursor)?),
        "distinct" => Values::Distinct(range(cursor)?),
        "values" => return list(cursor),
        _ => return strings(cursor),
    };
    cursor.expect(")", &format!("')' to close '{word}('"))?;
    Ok(values)
}

fn uniform(cursor: &mut Cursor<'_>) -> Result<Values, OpError> {
    let place = cursor.position();
    let low = number(cursor)?;
    cursor.expect(",", "',' and the upper bound")?;
    let high = number(cursor)?;
    if low.is_finite() && high.is_finite() && low <= high {
        return Ok(Values::Uniform(low, high));
    }
    Err(cursor.fail_at(place, "two finite numbers, the lower one first"))
}

fn range(cursor: &mut Cursor<'_>) -> Result<TermRange, OpError> {
    let place = cursor.position();
    let start = term(cursor)?;
    cursor.expect("..", "'..' and the end of the range")?;
    let inclusive = cursor.eat("=");
    let mut end = term(cursor)?;
    let empty = || cursor.fail_at(place, "a range with an integer in it");
    end.offset = end.offset.checked_add(i64::from(inclusive)).ok_or_else(empty)?;
    let range = TermRange { start, end };
    match range.bounds(|_| None) {
        Some((start, end)) if start >= end => Err(empty()),
        _ => Ok(range),
    }
}

fn list(cursor: &mut Cursor<'_>) -> Result<Values, OpError> {
    let mut items = Vec::new();
    parse_items(cursor, ")", |cursor| {
        items.push(item(cursor)?);
        Ok(())
    })?;
    Ok(Values::List(items))
}

fn strings(cursor: &mut Cursor<'_>) -> Result<Values, OpError> {
    let mut texts = Vec::new();
    parse_items(cursor, ")", |cursor| {
        texts.push(cursor.quoted()?);
        Ok(())
    })?;
    Ok(Values::Strings(texts))
}

fn item(cursor: &mut Cursor<'_>) -> Result<Item, OpError> {
    let word = cursor.peek_word();
    if let "true" | "false" = word {
        cursor.advance(word.len());
        return Ok(Item::Bool(word == "true"));
    }
    let unsigned = unsigned(cursor);
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let fraction = digits > 0 && unsigned[digits..].starts_with(['.', 'e', 'E']);
    let end = unsigned.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    if fraction || NUMBERS.contains(&&unsigned[..end.unwrap_or(unsigned.len())]) {
        return number(cursor).map(Item::Float);
    }
    term(cursor).map(Item::Term)
}

/// What follows, without its sign.
fn unsigned<'a>(cursor: &Cursor<'a>) -> &'a str {
    cursor.rest().strip_prefix('-').unwrap_or(cursor.rest())
}

fn number(cursor: &mut Cursor<'_>) -> Result<f64, OpError> {
    let rest = cursor.rest();
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c));
    let text = &rest[..end.unwrap_or(rest.len())];
    let value = text.parse().map_err(|_| cursor.fail("a number"))?;
    cursor.advance(text.len());
    Ok(value)
}

fn term(cursor: &mut Cursor<'_>) -> Result<Term, OpError> {
    let mut factor = 1;
    if unsigned(cursor).starts_with(|c: char| c.is_ascii_digit()) {
        let place = cursor.position();
        factor = cursor.int("an integer that fits 64 bits")?;
        if !cursor.eat("*") {
            return Ok(Term::number(factor));
        }
        if factor == 0 {
            return Err(cursor.fail_at(place, "a factor other than 0"));
        }
    } else if cursor.eat("-") {
        factor = -1;
    }
    let symbol = cursor.peek_word();
    if symbol.is_empty() || NUMBERS.contains(&symbol) {
        return Err(cursor.fail(TERM));
    }
    cursor.advance(symbol.len());
    let sign = if cursor.eat("+") { 1 } else { -i64::from(cursor.eat("-")) };
    let mut offset = 0;
    if sign != 0 {
        let expected = "an integer that fits 64 bits after '+' or '-'";
        if !cursor.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return Err(cursor.fail(expected));
        }
        offset = sign * cursor.int(expected)?;
    }
    Ok(Term { symbol: Some((factor, symbol.to_owned())), offset })
}
