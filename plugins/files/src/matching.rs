//! The files that a pattern names.

use crate::{Access, glob, path_of};
use tenon_sdk::KernelError;

impl Access {
    /// The names of the files that match a pattern, which `what` names. Each component of it may have special
    /// characters, and these do not match a slash. Names of files in the current folder begin with `./`, as in
    /// TensorFlow. Unreadable folders match nothing.
    ///
    /// # Errors
    /// Files are off, or the pattern begins outside the folder of the knob.
    pub fn matching(&self, what: &str, pattern: &[u8]) -> Result<Vec<Vec<u8>>, KernelError> {
        if pattern.is_empty() {
            return Ok(Vec::new());
        }
        if glob::is_plain(pattern) {
            let path = path_of(pattern);
            self.may_look(what, &path)?;
            return Ok(if self.exists(&path) { vec![pattern.to_vec()] } else { Vec::new() });
        }
        let special = pattern.iter().position(|c| b"*?[\\".contains(c)).unwrap_or(0);
        let fixed = pattern[..special].iter().rposition(|c| *c == b'/').map_or(0, |at| at + 1);
        let first = if fixed == 0 { b"./".to_vec() } else { pattern[..fixed].to_vec() };
        self.may_look(what, &path_of(&first))?;
        let parts: Vec<&[u8]> =
            pattern[fixed..].split(|c| *c == b'/').filter(|p| !p.is_empty()).collect();
        let mut found = vec![first];
        for (at, part) in parts.iter().enumerate() {
            let last = at + 1 == parts.len();
            found = found.iter().flat_map(|folder| inside(folder, part, last, self)).collect();
        }
        Ok(found)
    }
}

/// The matches in a folder, whose name ends in a slash; folders among the results end in one unless
/// they are the last component.
fn inside(folder: &[u8], part: &[u8], last: bool, access: &Access) -> Vec<Vec<u8>> {
    let names = access.names(&path_of(folder)).into_iter().filter_map(|name| {
        let whole = || [folder, &name].concat();
        let wanted = glob::matches(part, &name) && (last || access.is_folder(&path_of(&whole())));
        wanted.then(|| [&whole()[..], if last { b"" } else { b"/" }].concat())
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use crate::Access;

    #[test]
    fn parts_of_a_path_match_apart() {
        let folder = std::env::temp_dir().join(format!("tenon-files-{}", std::process::id()));
        for name in ["a.txt", "b.txt", "s1/c.txt", "s2/d.txt", "s2/.e"] {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"x").unwrap();
        }
        let found = |pattern: &str| {
            let whole = format!("{}/{pattern}", folder.display());
            let mut names = Access::to_any().matching("pattern", whole.as_bytes()).unwrap();
            names.sort();
            let start = folder.as_os_str().len() + 1;
            names
                .iter()
                .map(|name| String::from_utf8_lossy(&name[start..]).into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(found("*.txt"), ["a.txt", "b.txt"]);
        assert_eq!(found("s?/*.txt"), ["s1/c.txt", "s2/d.txt"]);
        assert_eq!(found("*/d.txt"), ["s2/d.txt"]);
        assert_eq!(found("s2/*"), ["s2/.e", "s2/d.txt"]);
        assert_eq!(found("s*/"), ["s1", "s2"]);
        assert_eq!(found("a.txt"), ["a.txt"]);
        assert_eq!(found("none/*"), [""; 0]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
