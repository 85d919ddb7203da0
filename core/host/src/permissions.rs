//! Who can write or replace a file.
//!
//! A file is private if it and every folder on its path belong to the user of this process or to
//! root, and neither group nor others may write them; the folders on its path are those above it
//! and those above every symbolic link that the path goes through. A folder in which only the owner
//! of an entry may rename it (the sticky bit, as on `/tmp`) may be writable for all. Access control
//! lists are covered: if one lets a user write, the mode has the group's bit.

use std::{fmt, fs::Metadata, io, path::Path, path::PathBuf};

/// How another user can change a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exposed {
    /// Group or others may write.
    Mode {
        /// The file, or a folder above it.
        path: PathBuf,
        /// Permission bits.
        mode: u32,
    },
    /// It belongs to another user.
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

/// Most symbolic links that are followed.
#[cfg(unix)]
const LINKS: u32 = 40;

/// Whether others can change an open file, or change which file its absolute path leads to: a user
/// who may write a folder that contains a symbolic link can redirect the link.
///
/// # Errors
/// A folder or a link on the path cannot be examined.
#[cfg(unix)]
pub fn exposed(path: &Path, meta: &Metadata) -> io::Result<Option<Exposed>> {
    // SAFETY: the function has no preconditions and cannot fail.
    let user = unsafe { libc::geteuid() };
    match look(path, meta, user) {
        Some(found) => Ok(Some(found)),
        None => exposed_way(path, user),
    }
}

/// Resolves an absolute path as the system does, and checks every folder and every link on it.
#[cfg(unix)]
fn exposed_way(path: &Path, user: u32) -> io::Result<Option<Exposed>> {
    use std::{ffi::OsString, path::Component};
    let steps = |path: &Path| -> Vec<OsString> {
        let named = path.components().filter(|step| !matches!(step, Component::RootDir));
        named.map(|step| step.as_os_str().to_owned()).rev().collect()
    };
    let (mut at, mut left, mut links) = (PathBuf::from("/"), steps(path), 0);
    let mut found = look(&at, &std::fs::metadata(&at)?, user);
    while let (None, Some(step)) = (&found, left.pop()) {
        if step == ".." {
            at.pop();
            continue;
        }
        let next = at.join(step);
        let meta = std::fs::symlink_metadata(&next)?;
        if meta.is_symlink() {
            links += 1;
            if links > LINKS {
                return Err(io::Error::other("too many symbolic links on the way"));
            }
            found = owned_by_another(&next, &meta, user);
            let target = std::fs::read_link(&next)?;
            left.extend(steps(&target));
            at = if target.is_absolute() { "/".into() } else { at };
        } else {
            found = meta.is_dir().then(|| look(&next, &meta, user)).flatten();
            at = next;
        }
    }
    Ok(found)
}

/// Such permissions exist only on Unix.
#[cfg(not(unix))]
pub fn exposed(_path: &Path, _meta: &Metadata) -> io::Result<Option<Exposed>> {
    Ok(None)
}

#[cfg(unix)]
fn look(path: &Path, meta: &Metadata, user: u32) -> Option<Exposed> {
    use std::os::unix::fs::MetadataExt;
    const OTHERS_WRITE: u32 = 0o022;
    const STICKY: u32 = 0o1000;
    let mode = meta.mode() & 0o7777;
    let shared = meta.is_dir() && mode & STICKY != 0;
    let open = mode & OTHERS_WRITE != 0 && !shared;
    let by_mode = || open.then(|| Exposed::Mode { path: path.to_owned(), mode });
    owned_by_another(path, meta, user).or_else(by_mode)
}

#[cfg(unix)]
fn owned_by_another(path: &Path, meta: &Metadata, user: u32) -> Option<Exposed> {
    let owner = std::os::unix::fs::MetadataExt::uid(meta);
    let path = path.to_owned();
    (owner != user && owner != 0).then_some(Exposed::Owner { path, owner, user })
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
    fn every_folder_with_a_link_on_the_way_counts() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for folder in ["own", "shared", "links"] {
            fs::create_dir(root.join(folder)).unwrap();
            chmod(&root.join(folder), 0o755);
        }
        let file = root.join("own/file");
        fs::write(&file, "abc").unwrap();
        chmod(&file, 0o644);
        symlink("../own/file", root.join("shared/file")).unwrap();
        symlink(root.join("shared"), root.join("links/folder")).unwrap();
        let ways = [root.join("shared/file"), root.join("links/folder/file")];
        ways.iter().for_each(|way| assert_eq!(found(way), None));
        chmod(&root.join("shared"), 0o777);
        let open = Exposed::Mode { path: root.join("shared"), mode: 0o777 };
        ways.iter().for_each(|way| assert_eq!(found(way), Some(open.clone())));
        assert_eq!(found(&file), None, "the file itself is elsewhere");
        chmod(&root.join("shared"), 0o1777);
        ways.iter().for_each(|way| assert_eq!(found(way), None, "links of one's own stay"));
        symlink("circle", root.join("links/circle")).unwrap();
        let meta = fs::metadata(&file).unwrap();
        assert!(exposed(&root.join("links/circle"), &meta).is_err());
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
