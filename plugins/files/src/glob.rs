//! Patterns of file names, as in POSIX's `fnmatch`: `*`, `?`, `[a-c]`, `[!a-c]`, and a backslash
//! before a literal character.

/// Whether a name matches a pattern as a whole.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    // Where to continue after the last star when what follows it does not match.
    let mut star: Option<(usize, usize)> = None;
    while p < pattern.len() || n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p + 1, n));
            p += 1;
            continue;
        }
        if let Some(len) = name.get(n).and_then(|&c| one(&pattern[p..], c)) {
            (p, n) = (p + len, n + 1);
            continue;
        }
        match star {
            Some((after, from)) if from < name.len() => {
                star = Some((after, from + 1));
                (p, n) = (after, from + 1);
            }
            _ => return false,
        }
    }
    true
}

/// Whether a pattern has no special characters.
pub fn is_plain(pattern: &[u8]) -> bool {
    !pattern.iter().any(|c| b"*?[\\".contains(c))
}

/// Length of the pattern's first item if it matches a byte.
fn one(pattern: &[u8], c: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', inner @ ..] => {
            let (len, within) = class(inner, c)?;
            within.then_some(1 + len)
        }
        [b'\\', escaped, ..] => (*escaped == c).then_some(2),
        [first, ..] => (*first == c).then_some(1),
        [] => None,
    }
}

/// Length of a class after its bracket, and whether it contains a byte; `None` if it does not end.
fn class(inner: &[u8], c: u8) -> Option<(usize, bool)> {
    let negated = matches!(inner.first(), Some(b'!' | b'^'));
    let (mut at, mut found) = (usize::from(negated), false);
    let first = at;
    loop {
        match inner.get(at)? {
            b']' if at > first => return Some((at + 1, found != negated)),
            _ => {}
        }
        let (low, next) = member(inner, at)?;
        at = next;
        let ranges = inner.get(at) == Some(&b'-') && inner.get(at + 1).is_some_and(|&c| c != b']');
        let high = if ranges {
            let (high, next) = member(inner, at + 1)?;
            at = next;
            high
        } else {
            low
        };
        found |= (low..=high).contains(&c);
    }
}

fn member(inner: &[u8], at: usize) -> Option<(u8, usize)> {
    match *inner.get(at)? {
        b'\\' => Some((*inner.get(at + 1)?, at + 2)),
        c => Some((c, at + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_plain, matches};

    #[test]
    fn names_match_as_posix_says() {
        let cases = [
            ("*.txt", "a.txt", true),
            ("*.txt", ".txt", true),
            ("*a*b*", "xaybzb", true),
            ("*a*b", "ab c", false),
            ("?.txt", "ab.txt", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[^a]x", "bx", true),
            ("[]a]", "]", true),
            ("[a-]", "-", true),
            ("w\\[1\\]", "w[1]", true),
            ("[\\]]", "]", true),
            ("[", "[", false),
            ("**", "", true),
            ("", "a", false),
            ("a", "", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
        assert!(is_plain(b"a.txt") && !is_plain(b"a\\*"));
    }
}
