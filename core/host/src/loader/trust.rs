//! Step 3, trust: decides by permissions and digest which files may be loaded.

use super::{
    find::{PluginFile, failed},
    open::{Copying, Openable, Source},
    probe::Probing,
};
use crate::{
    digest::FileId,
    error::{LoadError, Step},
    permissions::exposed,
    trust::{self, TrustError},
};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};
use tenon_framework::{
    knob::{KnobOrigin, Knobs},
    register_knob,
};

register_knob!(
    "allow_panic_abort": BOOL = "false",
    "Loads plugins built with panic = \"abort\", in which a panic ends the process."
);
register_knob!(
    "allowed_digests": STRING = "",
    "SHA-256 digests of the only plugin files to load, with commas between; none where it is set to nothing, any where it is not set."
);
register_knob!(
    "refuse_writable": BOOL = "false",
    "Refuses plugin files that others than this user and root can write or replace."
);

/// The policy on files that may be loaded. By default every file that the user can read, except
/// those built to abort on panics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Whether to load plugins in which a panic ends the process.
    pub allow_panic_abort: bool,
    /// The only digests that are accepted; `None` for any.
    pub allowed_digests: Option<BTreeSet<String>>,
    /// The trust file in force, and its error, if any: then nothing is accepted.
    pub trust_file: Option<(PathBuf, Result<(), TrustError>)>,
    /// Whether to refuse files that users other than this one and root can write or replace.
    pub refuse_writable: bool,
    /// The libraries that are tried in another process first.
    pub probing: Probing,
}

impl Policy {
    /// Refuses every file if the trust file in force is invalid.
    ///
    /// # Errors
    /// [`LoadError::TrustFile`].
    pub fn check_trust_file(&self, path: &Path, plugin: &str) -> Result<(), LoadError> {
        let Some((list, Err(error))) = &self.trust_file else { return Ok(()) };
        let (path, plugin) = (path.to_owned(), plugin.to_owned());
        Err(LoadError::TrustFile { path, plugin, file: list.clone(), error: error.clone() })
    }

    /// Refuses a digest that is not on the list, if there is a list.
    ///
    /// # Errors
    /// [`LoadError::Digest`].
    pub fn admit(&self, path: &Path, plugin: &str, digest: &str) -> Result<(), LoadError> {
        match &self.allowed_digests {
            Some(allowed) if !allowed.contains(digest) => Err(LoadError::Digest {
                path: path.to_owned(),
                plugin: plugin.to_owned(),
                digest: digest.to_owned(),
                allowed: allowed.len(),
                trust_file: self.trust_file.as_ref().map(|(file, _)| file.clone()),
            }),
            _ => Ok(()),
        }
    }

    /// The policy from the host's knobs and the trust file that they name, which is read now.
    pub fn from_knobs(knobs: &Knobs) -> Policy {
        let setting = knobs.get("host", "allowed_digests");
        // A list that is set but empty is in force.
        let is_set = setting.is_some_and(|setting| setting.origin != KnobOrigin::Default);
        let list = knobs.text("host", "allowed_digests").unwrap_or_default();
        let mut digests: BTreeSet<String> = list
            .split(',')
            .map(|digest| digest.trim().to_ascii_lowercase())
            .filter(|digest| !digest.is_empty())
            .collect();
        let trust_file = trust::named_by(knobs).map(|file| {
            let read = trust::digests(&file).map(|of_file| digests.extend(of_file));
            (file, read)
        });
        Policy {
            allow_panic_abort: knobs.bool("host", "allow_panic_abort").unwrap_or(false),
            allowed_digests: (is_set || trust_file.is_some()).then_some(digests),
            trust_file,
            refuse_writable: knobs.bool("host", "refuse_writable").unwrap_or(false),
            probing: Probing::from_knobs(knobs),
        }
    }
}

impl PluginFile {
    /// Refuses a file that users other than this one and root can write, or replace in its folder
    /// or behind a link.
    ///
    /// # Errors
    /// [`LoadError::Writable`].
    pub fn check_permissions(&self) -> Result<(), LoadError> {
        let looked = self.file.metadata().and_then(|meta| exposed(&self.asked, &meta));
        match looked.map_err(|error| failed(&self.path, &error, Step::Trust))? {
            Some(exposed) => Err(LoadError::Writable { path: self.path.clone(), exposed }),
            None => Ok(()),
        }
    }
}

/// Performs the checks before anything is opened: permissions, and the digest against the list.
/// Returns what the dynamic linker is to open.
///
/// # Errors
/// The trust file is invalid, the file is writable for others, its digest is not on the list, or it
/// cannot be read or copied.
pub fn admit(
    file: PluginFile,
    plugin: &str,
    policy: &Policy,
    source: Source,
    own_symbols: bool,
    opened_before: impl Fn(FileId, &str) -> bool,
) -> Result<Openable, LoadError> {
    let path = file.path.clone();
    policy.check_trust_file(&path, plugin)?;
    if policy.refuse_writable {
        file.check_permissions()?;
    }
    let openable = match &policy.allowed_digests {
        Some(_) => file.openable(String::new(), Some(Copying { sealed: true, own_symbols }))?,
        None => {
            let digest = file.digest()?;
            let asked = source == Source::PrivateCopy || own_symbols;
            let copy = asked || opened_before(file.id, &digest);
            file.openable(digest, copy.then_some(Copying { sealed: false, own_symbols }))?
        }
    };
    policy.admit(&path, plugin, &openable.digest)?;
    Ok(openable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::{self, File, OpenOptions},
        io::{self, Read},
    };

    /// Another process of this user changes the file between its digest and its opening.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_trusted_copy_takes_no_other_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "abc").unwrap();
        let digest = PluginFile::find(&path).unwrap().digest().unwrap();
        let policy = Policy { allowed_digests: Some([digest].into()), ..Policy::default() };
        let file = PluginFile::find(&path).unwrap();
        let trusted = admit(file, "p", &policy, Source::File, false, |_, _| false).unwrap();
        assert!(fs::write(&trusted.name, "evil").is_err());
        let changed = OpenOptions::new().write(true).open(&trusted.name);
        let written = changed.and_then(|mut file| io::Write::write_all(&mut file, b"evil"));
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(fs::read(&trusted.name).unwrap(), b"abc");
    }

    #[test]
    fn a_trust_file_of_no_use_lets_nothing_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "abc").unwrap();
        let digest = PluginFile::find(&path).unwrap().digest().unwrap();
        let policy = Policy {
            allowed_digests: Some([digest].into()),
            trust_file: Some(("/etc/trust.toml".into(), Err(TrustError::NotAFile))),
            ..Policy::default()
        };
        let file = PluginFile::find(&path).unwrap();
        let error = admit(file, "p", &policy, Source::File, false, |_, _| false).err().unwrap();
        assert_eq!((error.step(), error.code()), (Step::Trust, tenon_abi::Code::PERMISSION_DENIED));
        let said = "host.trust_file is /etc/trust.toml, and nothing is loaded: expected a regular";
        assert!(error.to_string().contains(said), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_write_is_refused_when_asked() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "abc").unwrap();
        let check = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            PluginFile::find(&path).unwrap().check_permissions()
        };
        assert!(check(0o755).is_ok());
        for mode in [0o775, 0o757] {
            let error = check(mode).unwrap_err();
            assert_eq!(error.step(), Step::Trust);
            assert!(error.to_string().contains(&format!("has mode {mode:o}")), "{error}");
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = check(0o755).unwrap_err();
        assert!(error.to_string().contains("has mode 777"), "{error}");
    }

    /// Between the digest and the opening, in place or by a rename.
    #[test]
    fn what_is_put_into_a_trusted_files_place_does_not_get_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "abc").unwrap();
        let digest = PluginFile::find(&path).unwrap().digest().unwrap();
        let policy = Policy { allowed_digests: Some([digest.clone()].into()), ..Policy::default() };
        let trusted = |file| admit(file, "p", &policy, Source::File, false, |_, _| false);
        let opened = trusted(PluginFile::find(&path).unwrap()).unwrap();
        fs::write(&path, "evil").unwrap();
        let mut text = String::new();
        File::open(&opened.name).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), &opened.digest), ("abc", &digest));

        fs::write(&path, "abc").unwrap();
        let file = PluginFile::find(&path).unwrap();
        assert_eq!(file.digest().unwrap(), digest);
        fs::write(&path, "xyz").unwrap();
        let error = trusted(file).err().unwrap();
        assert!(matches!(error, LoadError::Digest { .. }), "no remembered digest is believed");
    }

    #[test]
    fn only_digests_on_the_list_are_let_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "abc").unwrap();
        let digest = PluginFile::find(&path).unwrap().digest().unwrap();
        let trust_with = |list: &[&str]| {
            let allowed = list.iter().map(|digest| (*digest).to_owned()).collect();
            let policy = Policy { allowed_digests: Some(allowed), ..Policy::default() };
            let file = PluginFile::find(&path).unwrap();
            admit(file, "p", &policy, Source::File, false, |_, _| false)
        };
        let trusted = trust_with(&["00", &digest]).unwrap();
        assert_eq!(trusted.digest, digest);
        assert!(trusted.private, "a trusted file is opened from a private copy");
        let error = trust_with(&["00"]).err().unwrap();
        assert!(error.to_string().contains(&digest));
        assert_eq!(error.code(), tenon_abi::Code::PERMISSION_DENIED);
    }
}
