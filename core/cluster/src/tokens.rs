//! Bearer tokens: who may call which service.
//!
//! A file has a line for each token: `ROLE NAME TOKEN`, where ROLE is `client` or `worker`. A line with a single word is a
//! token of both roles. Empty lines and lines that begin with `#` are ignored. The file is read again when it changes.
//!
//! A token that comes is compared with all tokens of the file by digests, in a time that does not depend on their content.

use crate::{error::ClusterError, watched::Watched};
use http::HeaderValue;
use sha2::{Digest, Sha256};
use std::{fs::File, io::Read, path::Path, sync::Arc};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// The fewest characters of a token.
const SHORTEST: usize = 16;
/// The most bytes of a file of tokens.
const MOST_BYTES: u64 = 1 << 20;
/// The word before a token in the metadata `authorization`.
const SCHEME: &str = "Bearer ";

/// What a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Calls `MasterService`: opens sessions and runs graphs.
    Client,
    /// Calls `WorkerService`: is another task of the cluster.
    Worker,
}

impl Role {
    /// Its name in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Worker => "worker",
        }
    }
}

/// The roles of a token or a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Roles {
    pub client: bool,
    pub worker: bool,
}

impl Roles {
    pub const BOTH: Roles = Roles { client: true, worker: true };

    pub fn has(self, role: Role) -> bool {
        match role {
            Role::Client => self.client,
            Role::Worker => self.worker,
        }
    }
}

impl From<Role> for Roles {
    fn from(role: Role) -> Roles {
        Roles { client: role == Role::Client, worker: role == Role::Worker }
    }
}

struct Entry {
    roles: Roles,
    name: String,
    digest: [u8; 32],
    /// What a caller with this token sends.
    header: HeaderValue,
}

/// The tokens of a file.
pub(crate) struct Tokens(Watched<Vec<Entry>>);

/// Who has a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pub name: String,
    pub roles: Roles,
}

impl Tokens {
    /// Reads a file.
    pub fn open(file: &Path) -> Result<Arc<Tokens>, ClusterError> {
        let path = file.to_owned();
        let read = move || read(&path);
        Ok(Arc::new(Tokens(Watched::new(vec![file.to_owned()], read)?)))
    }

    /// Looks now whether the file has changed.
    pub fn reload(&self) {
        self.0.reload();
    }

    /// Who sends this header; `None` if no token of the file is in it.
    pub fn holder(&self, header: &HeaderValue) -> Option<Holder> {
        let entries = self.0.current();
        let bytes = header.as_bytes();
        let (scheme, token) = bytes.split_at_checked(SCHEME.len())?;
        if !scheme.eq_ignore_ascii_case(SCHEME.as_bytes()) {
            return None;
        }
        let digest = digest(token);
        // All entries are compared, so that the time does not tell which one is near.
        let mut found = u32::MAX;
        for (number, entry) in (0u32..).zip(entries.iter()) {
            let same: Choice = entry.digest.ct_eq(&digest);
            found = u32::conditional_select(&found, &number, same);
        }
        let entry = entries.get(usize::try_from(found).ok()?)?;
        Some(Holder { name: entry.name.clone(), roles: entry.roles })
    }

    /// The header that a caller of this role sends: the first token of the file with it.
    pub fn header(&self, role: Role) -> Option<HeaderValue> {
        let entries = self.0.current();
        entries.iter().find(|entry| entry.roles.has(role)).map(|entry| entry.header.clone())
    }
}

fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

fn read(file: &Path) -> Result<Vec<Entry>, ClusterError> {
    let wrong = |reason: String| ClusterError::Tokens { file: file.to_owned(), reason };
    let failed = |error: std::io::Error| wrong(error.to_string());
    let opened = File::open(file).map_err(failed)?;
    check_owner(file, &opened)?;
    let mut text = String::new();
    opened.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(wrong(format!("it has more than {MOST_BYTES} bytes")));
    }
    let mut entries = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            let entry = entry(line).map_err(|reason| wrong(format!("line {number}: {reason}")))?;
            entries.push(entry);
        }
    }
    if entries.is_empty() {
        return Err(wrong("it has no token".to_owned()));
    }
    Ok(entries)
}

/// An entry of a line. Reasons do not contain the line, which may be a secret.
fn entry(line: &str) -> Result<Entry, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (roles, name, token) = match words[..] {
        [token] => (Roles::BOTH, "shared", token),
        ["client", name, token] => (Role::Client.into(), name, token),
        ["worker", name, token] => (Role::Worker.into(), name, token),
        _ => return Err("expected ROLE NAME TOKEN, where ROLE is client or worker".to_owned()),
    };
    if token.len() < SHORTEST {
        return Err(format!(
            "the token has {} characters, expected {SHORTEST} at least, such as those of `openssl rand -hex 32`",
            token.len()
        ));
    }
    let mut header = HeaderValue::try_from(format!("{SCHEME}{token}"))
        .map_err(|_| "the token has a character that a header cannot have".to_owned())?;
    header.set_sensitive(true);
    Ok(Entry { roles, name: name.to_owned(), digest: digest(token.as_bytes()), header })
}

/// Refuses a file that other users can write, and warns of one that they can read.
#[cfg(unix)]
fn check_owner(file: &Path, opened: &File) -> Result<(), ClusterError> {
    use std::os::unix::fs::PermissionsExt;
    let wrong = |reason: String| ClusterError::Tokens { file: file.to_owned(), reason };
    let found = opened.metadata().map_err(|error| wrong(error.to_string()))?;
    let mode = found.permissions().mode();
    if mode & 0o022 != 0 {
        return Err(wrong("other users can write it: `chmod 600` it".to_owned()));
    }
    if mode & 0o004 != 0 {
        tracing::warn!("{}: all users can read the tokens: `chmod 600` it", file.display());
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_owner(_: &Path, _: &File) -> Result<(), ClusterError> {
    Ok(())
}

/// Reads a file of tokens once, to say early what is wrong with it.
///
/// # Errors
/// The file cannot be read, other users can write it, or it has a line of another form.
pub fn check_tokens(file: &Path) -> Result<(), ClusterError> {
    read(file).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::PathBuf};

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        fs::write(&file, text).unwrap();
        private(&file);
        (folder, file)
    }

    #[cfg(unix)]
    fn private(file: &Path) {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    }

    #[cfg(not(unix))]
    fn private(_: &Path) {}

    const ADA: &str = "ada-ada-ada-ada-ada";
    const TASKS: &str = "tasks-tasks-tasks-tasks";

    fn header(text: &str) -> HeaderValue {
        HeaderValue::try_from(text).unwrap()
    }

    #[test]
    fn a_token_has_a_name_and_a_role() {
        let (_folder, file) =
            file(&format!("# people\nclient ada {ADA}\n\nworker tasks {TASKS}\n"));
        let tokens = Tokens::open(&file).unwrap();
        let ada = tokens.holder(&header(&format!("Bearer {ADA}"))).unwrap();
        assert_eq!((ada.name.as_str(), ada.roles), ("ada", Role::Client.into()));
        let tasks = tokens.holder(&header(&format!("bearer {TASKS}"))).unwrap();
        assert!(tasks.roles.has(Role::Worker) && !tasks.roles.has(Role::Client));
        for wrong in
            [ADA.to_owned(), format!("Basic {ADA}"), format!("Bearer {ADA}x"), "Bearer ".into()]
        {
            assert_eq!(tokens.holder(&header(&wrong)), None, "{wrong}");
        }
        assert_eq!(tokens.header(Role::Worker).unwrap(), header(&format!("Bearer {TASKS}")));
        fs::write(&file, "a-single-word-is-both-roles").unwrap();
        tokens.reload();
        assert_eq!(tokens.holder(&header(&format!("Bearer {ADA}"))), None, "it was removed");
        let shared = tokens.holder(&header("Bearer a-single-word-is-both-roles")).unwrap();
        assert_eq!(shared.roles, Roles::BOTH);
    }

    #[test]
    fn wrong_files_are_named_and_secrets_are_not_shown() {
        let said = [
            ("", "no token"),
            ("client ada short-secret", "line 1: the token has 12 characters"),
            ("# x\nadmin ada secret-secret-secret", "line 2: expected ROLE NAME TOKEN"),
            ("client ada b secret-secret-secret", "line 1: expected ROLE NAME TOKEN"),
        ];
        for (text, what) in said {
            let (_folder, file) = file(text);
            let error = check_tokens(&file).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains("tokens"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_write_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let (_folder, file) = file("client ada 0123456789abcdef");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o622)).unwrap();
        let error = check_tokens(&file).unwrap_err().to_string();
        assert!(error.contains("other users can write it"), "{error}");
    }
}
