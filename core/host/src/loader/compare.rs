//! Step 9, compare: manifest and registrations must agree.

use crate::error::LoadError;
use std::path::Path;

/// Step 9: compares the manifest with the registrations; both are sorted and must be equal.
///
/// # Errors
/// [`LoadError::Differs`].
pub fn compare(
    path: &Path,
    plugin: &str,
    manifest: Vec<String>,
    registered: Vec<String>,
) -> Result<(), LoadError> {
    let (missing, surplus) = differences(manifest, registered);
    if missing.is_empty() && surplus.is_empty() {
        return Ok(());
    }
    let (path, plugin) = (path.to_owned(), plugin.to_owned());
    Err(LoadError::Differs { path, plugin, missing, surplus })
}

/// The entries that are in only one of two sorted lists. Duplicate entries are counted.
fn differences(manifest: Vec<String>, registered: Vec<String>) -> (Vec<String>, Vec<String>) {
    let (mut missing, mut surplus) = (Vec::new(), Vec::new());
    let (mut left, mut right) =
        (manifest.into_iter().peekable(), registered.into_iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return (missing, surplus),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.cmp(b),
        };
        if order.is_le() {
            let entry = left.next();
            missing.extend(entry.filter(|_| order.is_lt()));
        }
        if order.is_ge() {
            let entry = right.next();
            surplus.extend(entry.filter(|_| order.is_gt()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_counted_on_both_sides() {
        let list = |items: &[&str]| items.iter().map(|&i| i.to_owned()).collect::<Vec<_>>();
        let (missing, surplus) =
            differences(list(&["a", "b", "b", "d"]), list(&["b", "c", "d", "e"]));
        assert_eq!((missing, surplus), (list(&["a", "b"]), list(&["c", "e"])));
        assert_eq!(differences(list(&["a"]), list(&["a"])), (vec![], vec![]));
    }
}
