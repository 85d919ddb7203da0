//! Which argument or attribute an error is about: the inputs are appended to a message that does not name one.

use super::def::{ArgDef, ArgType, OpDef};
use crate::KernelError;
use tenon_abi::{Code, Range};

/// The largest number of inputs that are appended to a message.
const MOST_NAMED: usize = 6;

/// Codes of what a caller does wrong with an argument.
const OF_ARGUMENTS: [Code; 3] = [Code::INVALID_ARGUMENT, Code::OUT_OF_RANGE, Code::UNIMPLEMENTED];

/// What may follow an argument that is named `a`, which is an article too.
const AFTER_A: [&str; 7] = [" must ", " and ", " has ", " is ", " holds ", ",", "["];

impl OpDef {
    /// Whether a message names an input, an output or an attribute, as a word of its own.
    pub fn is_named_in(&self, message: &str) -> bool {
        self.outputs.iter().any(|arg| stands_in(message, &arg.name)) || self.given_in(message)
    }

    /// Whether a message names what a node is given: an input or an attribute.
    fn given_in(&self, message: &str) -> bool {
        let inputs = self.inputs.iter().map(|arg| &arg.name);
        inputs.chain(self.attrs.iter().map(|attr| &attr.name)).any(|name| stands_in(message, name))
    }

    /// The error of a node, with the name of what it is about: if its message names no input and no attribute, the
    /// inputs follow with their shapes.
    ///
    /// `ranges` are the positions of the inputs of each argument.
    pub fn naming_inputs(
        &self,
        mut error: KernelError,
        ranges: &[Range],
        shape: impl Fn(usize) -> String,
    ) -> KernelError {
        if !OF_ARGUMENTS.contains(&error.code) || self.given_in(&error.message) {
            return error;
        }
        let inputs: Vec<(String, usize)> = self.inputs.iter().zip(ranges).flat_map(flat).collect();
        let named = inputs.iter().take(MOST_NAMED);
        let mut named: Vec<_> =
            named.map(|(name, at)| format!("{name} is {}", shape(*at))).collect();
        let count: usize = ranges.iter().map(|range| range.len as usize).sum();
        if count > MOST_NAMED {
            named.push(format!("and {} more", count - MOST_NAMED));
        }
        if !named.is_empty() {
            error.message = format!("{}: {}", error.message, named.join(", "));
        }
        error
    }
}

/// The first inputs of an argument, each with its name and position.
fn flat((arg, range): (&ArgDef, &Range)) -> Vec<(String, usize)> {
    let start = range.start as usize;
    let is_list = arg.number_attr.is_some() || matches!(arg.ty, ArgType::ListAttr(_));
    (0..(range.len as usize).min(MOST_NAMED))
        .map(|at| {
            (if is_list { format!("{}[{at}]", arg.name) } else { arg.name.clone() }, start + at)
        })
        .collect()
}

fn stands_in(message: &str, name: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    // At the beginning of a sentence a name may have a capital, as in TensorFlow's own words.
    let capital = name.get(..1).filter(|_| name.len() > 1).map(str::to_uppercase);
    let capital = capital.map(|first| first + &name[1..]).unwrap_or_default();
    let found = message.match_indices(name).chain(message.match_indices(&*capital));
    let mut found = found.filter(|(_, word)| !word.is_empty());
    found.any(|(at, _)| {
        let (before, after) = (&message[..at], &message[at + name.len()..]);
        !before.ends_with(part_of_word)
            && !after.starts_with(part_of_word)
            && (name != "a" || AFTER_A.iter().any(|next| after.starts_with(next)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_word() {
        let op = OpDef::from_spec("Cross", &["a: T", "b: T"], &["product: T"], &["T: type"]);
        let op = op.unwrap();
        assert!(op.is_named_in("a and b must be of one shape, found [2] and [3]"));
        assert!(op.is_named_in("a must have 2 dimensions, found 3"));
        assert!(op.is_named_in("attribute 'T' is a type"));
        assert!(!op.is_named_in("a tensor has at most 16 dimensions, found 17"));
        assert!(!op.is_named_in("products and about"));
    }

    fn told(op: &OpDef, code: Code, message: &str, ranges: &[Range]) -> String {
        let error = KernelError::new(code, message);
        op.naming_inputs(error, ranges, |at| format!("[{at}]")).message
    }

    #[test]
    fn inputs_follow_a_message_that_names_none() {
        let op = OpDef::from_spec("Add", &["x: T", "y: N * T"], &["z: T"], &["T: type", "N: int"]);
        let op = op.unwrap();
        let ranges = |len| [Range { start: 0, len: 1 }, Range { start: 1, len }];
        let refused = Code::INVALID_ARGUMENT;
        assert_eq!(
            told(&op, refused, "[2] and [3] differ", &ranges(2)),
            "[2] and [3] differ: x is [0], y[0] is [1], y[1] is [2]"
        );
        let many = told(&op, refused, "shapes differ", &ranges(9));
        assert!(many.ends_with("y[4] is [5], and 4 more"), "{many}");
        assert_eq!(told(&op, refused, "x is odd", &ranges(2)), "x is odd");
        assert_eq!(told(&op, Code::CANCELLED, "stopped", &ranges(2)), "stopped");
    }
}
