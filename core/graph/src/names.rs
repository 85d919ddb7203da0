//! Names of nodes, and of tensors as text.

use tenon_framework::text::edit_distance;

/// A parsed input name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParsedName<'a> {
    /// `node:output`, or `node` for its output 0.
    Data {
        /// The node.
        node: &'a str,
        /// The output.
        output: u32,
    },
    /// `^node`.
    Control {
        /// The node.
        node: &'a str,
    },
}

/// The rule for node names, as a regular expression.
pub(crate) const NODE_NAME_RULE: &str =
    "[A-Za-z0-9.][A-Za-z0-9_./-]*(>[A-Za-z0-9.][A-Za-z0-9_./-]*)*";

/// Whether TensorFlow accepts this node name (`IsValidNodeName`). Nodes of internal ops, whose
/// names begin with `_`, may have a name that begins with `_` too.
pub fn is_valid_node_name(name: &str, internal: bool) -> bool {
    let letter_digit_dot = |b: u8| b.is_ascii_alphanumeric() || b == b'.';
    let segment = |(at, text): (usize, &str)| {
        let Some((&first, rest)) = text.as_bytes().split_first() else { return false };
        let first_fits = letter_digit_dot(first) || (at == 0 && internal && first == b'_');
        first_fits && rest.iter().all(|&b| letter_digit_dot(b) || b"_/-".contains(&b))
    };
    name.split('>').enumerate().all(segment)
}

/// Parses `node`, `node:output` or `^node`; returns `None` for other text. An output number has no
/// sign and no leading zeros.
pub(crate) fn parse_tensor_name(text: &str) -> Option<ParsedName<'_>> {
    if let Some(node) = text.strip_prefix('^') {
        return is_valid_node_name(node, true).then_some(ParsedName::Control { node });
    }
    let (node, output) = match text.rsplit_once(':') {
        None => (text, 0),
        Some((node, digits)) => {
            let plain = digits.bytes().all(|b| b.is_ascii_digit())
                && (digits.len() == 1 || !digits.starts_with('0'));
            (node, digits.parse().ok().filter(|_| plain)?)
        }
    };
    is_valid_node_name(node, true).then_some(ParsedName::Data { node, output })
}

/// Suggests similar names: `; did you mean 'a' or 'b'?`, or an empty string.
pub(crate) fn near_names<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    const MAX_SUGGESTIONS: usize = 3;
    // The comparison takes time proportional to the product of the lengths, so very long names are
    // skipped.
    if name.len() > 64 {
        return String::new();
    }
    let limit = name.len().div_ceil(3).min(3);
    // Names that differ only in case count as equal.
    let lower = name.to_ascii_lowercase();
    let distance =
        |other: &str| edit_distance(lower.as_bytes(), other.to_ascii_lowercase().as_bytes());
    let mut near: Vec<(usize, &str)> = known
        .filter(|other| other.len().abs_diff(name.len()) <= limit)
        .map(|other| (distance(other), other))
        .filter(|&(distance, _)| distance <= limit && distance < name.len())
        .collect();
    near.sort_unstable();
    let near: Vec<String> =
        near.iter().take(MAX_SUGGESTIONS).map(|(_, other)| format!("'{other}'")).collect();
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_tensorflows_rule() {
        for name in ["x", "A/b-c_d.e", "0", ".x", "while/body>inner", "a>b>c"] {
            assert!(is_valid_node_name(name, false), "{name}");
        }
        for name in ["", "_x", "/x", "-x", "a b", "a:0", "^a", "a>", ">a", "a>_b", "é", "a\0"] {
            assert!(!is_valid_node_name(name, false), "{name}");
        }
        assert!(is_valid_node_name("_recv_x_0", true));
        assert!(!is_valid_node_name("a>_b", true));
    }

    #[test]
    fn tensor_names_are_read() {
        let data = |node, output| Some(ParsedName::Data { node, output });
        assert_eq!(parse_tensor_name("a"), data("a", 0));
        assert_eq!(parse_tensor_name("a:12"), data("a", 12));
        assert_eq!(parse_tensor_name("^a"), Some(ParsedName::Control { node: "a" }));
        for text in
            ["", "a:", "a:-1", "a:+1", "a:01", "a:4294967296", "^a:0", "^", "a:b", ":0", "^^a"]
        {
            assert_eq!(parse_tensor_name(text), None, "{text}");
        }
    }

    #[test]
    fn near_names_are_offered_nearest_first() {
        let known = ["MatMul", "Add", "AddV2", "AddN", "Relu"];
        let near = |name| near_names(name, known.into_iter());
        assert_eq!(near("Matmull"), "; did you mean 'MatMul'?");
        assert_eq!(near("add"), "; did you mean 'Add' or 'AddN'?");
        assert_eq!(near("Convolution"), "");
        assert_eq!(near("Realu"), "; did you mean 'Relu'?");
        assert_eq!(near("Rleu"), "; did you mean 'Relu'?");
        assert_eq!(near("x"), "", "one letter is like any other");
        assert_eq!(near(&"x".repeat(65)), "");
    }
}
