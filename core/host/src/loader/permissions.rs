//! Who can write a file, or put another in its place.
//!
//! A file is one's own where it and every folder above it belong to the user of this process or to root, and
//! neither group nor others may write them. A folder in which only the owner of an entry may rename it (the
//! sticky bit, as on `/tmp`) may be open to all. Access lists count: where one lets somebody write, the mode
//! has the group's bit.

use std::{fmt, fs::Metadata, io, path::Path, path::PathBuf};

/// Who else can change a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exposed {
    /// Group or others may write.
    Mode {
        /// The file, or a folder above it.
        path: PathBuf,
        /// Permission bits.
        mode: u32,
    },
    /// It is another user's.
    Owner {
        /// The file, or a folder above it.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user of this process.
        user: u32,
    },
}

impl fmt::Display for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exposed::Mode { path, mode } => write!(
                f,
                "{} has mode {mode:o}, expected one that group and others cannot write: chmod go-w it",
                path.display()
            ),
            Exposed::Owner { path, owner, user } => write!(
                f,
                "{} belongs to user {owner}, expected user {user}, who runs this process, or root: chown it",
                path.display()
            ),
        }
    }
}

/// Whether others can change an open file, whose path has no symbolic links.
///
/// # Errors
/// A folder above it cannot be looked at.
#[cfg(unix)]
pub fn exposed(path: &Path, meta: &Metadata) -> io::Result<Option<Exposed>> {
    // SAFETY: it has no preconditions and cannot fail.
    let user = unsafe { libc::geteuid() };
    let found = look(path, meta, user);
    if found.is_some() {
        return Ok(found);
    }
    for folder in path.ancestors().skip(1) {
        let found = look(folder, &std::fs::metadata(folder)?, user);
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Permissions of this kind exist on Unix only.
#[cfg(not(unix))]
pub fn exposed(_path: &Path, _meta: &Metadata) -> io::Result<Option<Exposed>> {
    Ok(None)
}

#[cfg(unix)]
fn look(path: &Path, meta: &Metadata, user: u32) -> Option<Exposed> {
    use std::os::unix::fs::MetadataExt;
    const OTHERS_WRITE: u32 = 0o022;
    const STICKY: u32 = 0o1000;
    let (mode, owner) = (meta.mode() & 0o7777, meta.uid());
    let path = path.to_owned();
    if owner != user && owner != 0 {
        return Some(Exposed::Owner { path, owner, user });
    }
    let shared = meta.is_dir() && mode & STICKY != 0;
    (mode & OTHERS_WRITE != 0 && !shared).then_some(Exposed::Mode { path, mode })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt};

    fn found(path: &Path) -> Option<Exposed> {
        exposed(path, &fs::metadata(path).unwrap()).unwrap()
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn every_folder_above_a_file_counts() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let folder = root.join("a/b");
        fs::create_dir_all(&folder).unwrap();
        [root.join("a"), folder.clone()].iter().for_each(|folder| chmod(folder, 0o755));
        let file = folder.join("file");
        fs::write(&file, "abc").unwrap();
        chmod(&file, 0o644);
        assert_eq!(found(&file), None);
        chmod(&root.join("a"), 0o775);
        let above = Exposed::Mode { path: root.join("a"), mode: 0o775 };
        assert_eq!(found(&file), Some(above), "who may write a/ can put another b/ there");
        chmod(&root.join("a"), 0o1777);
        assert_eq!(found(&file), None, "nobody but its owner renames b/");
        chmod(&file, 0o1664);
        assert!(matches!(found(&file), Some(Exposed::Mode { mode: 0o1664, .. })));
    }

    #[test]
    fn another_users_file_is_not_ones_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "abc").unwrap();
        chmod(&file, 0o644);
        let meta = fs::metadata(&file).unwrap();
        let owner = std::os::unix::fs::MetadataExt::uid(&meta);
        assert_eq!(look(&file, &meta, owner), None);
        let found = look(&file, &meta, owner + 1);
        match (owner, found) {
            (0, found) => assert_eq!(found, None, "root may write everything anyway"),
            (_, Some(exposed)) => {
                let said = format!("belongs to user {owner}, expected user {}", owner + 1);
                assert!(exposed.to_string().contains(&said), "{exposed}");
            }
            (_, None) => panic!("a file of user {owner} was taken for one of {}", owner + 1),
        }
    }
}
