//! The list as a document: what is not touched stays as it was written, comments and order included.

use super::error::ListError;
use crate::error::CliError;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};
use tenon_runtime::host::{
    files::write_whole,
    trust::{self, TrustEntry},
};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

/// What a new list begins with.
const HEAD: &str = "\
# Plugin files that may be loaded where the knob host.trust_file names this file; kept by `tenon trust`.
# Only sha256 counts, the rest is for people.
version = 1
";
const PLUGINS: &str = "plugin";
/// A shorter piece of a digest fits by chance.
const SHORTEST_PREFIX: usize = 4;

/// A list, read and held for a change.
pub struct List {
    file: PathBuf,
    document: DocumentMut,
    entries: Vec<TrustEntry>,
    /// Held until the list is dropped.
    _lock: Option<File>,
}

impl List {
    /// The list of a file; an empty one where there is no file.
    ///
    /// # Errors
    /// It cannot be read, or is malformed.
    pub fn read(file: &Path) -> Result<List, CliError> {
        let text = match fs::read_to_string(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => HEAD.to_owned(),
            read => read.map_err(|source| failed(file, "read", source))?,
        };
        let malformed = |source| ListError::Malformed { file: file.to_owned(), source };
        let entries = trust::parse(&text).map_err(malformed)?;
        let parsed = text.parse::<DocumentMut>();
        let document = parsed
            .map_err(|error| malformed(trust::TrustError::Malformed(error.message().to_owned())))?;
        Ok(List { file: file.to_owned(), document, entries, _lock: None })
    }

    /// As [`List::read`]; no other command can change the list until this is dropped. A link stays one.
    ///
    /// # Errors
    /// As [`List::read`]; its folder cannot be made, or the lock beside it not taken.
    pub fn locked(file: &Path) -> Result<List, CliError> {
        let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        if let Some(folder) = file.parent() {
            make_folder(folder).map_err(|source| failed(folder, "written", source))?;
        }
        let beside = beside(&file, "lock");
        let lock = OpenOptions::new().create(true).append(true).open(&beside);
        let lock = lock.and_then(|lock| lock.lock().map(|()| lock));
        let lock = lock.map_err(|source| failed(&beside, "written", source))?;
        Ok(List { _lock: Some(lock), ..List::read(&file)? })
    }

    /// What it holds.
    pub fn entries(&self) -> &[TrustEntry] {
        &self.entries
    }

    /// Puts an entry at the end. `false` where its digest is there already: then nothing changes.
    pub fn add(&mut self, entry: TrustEntry) -> bool {
        if self.entries.iter().any(|known| known.sha256 == entry.sha256) {
            return false;
        }
        let mut table = Table::new();
        let fields = [
            ("sha256", &entry.sha256),
            ("name", &entry.name),
            ("plugin_version", &entry.plugin_version),
            ("path", &entry.path),
            ("added", &entry.added),
            ("comment", &entry.comment),
        ];
        for (name, text) in fields.into_iter().filter(|(_, text)| !text.is_empty()) {
            table.insert(name, value(text));
        }
        table.decor_mut().set_prefix("\n");
        self.tables(|tables| tables.push(table));
        self.entries.push(entry);
        true
    }

    /// The places of the entries that a word stands for: the beginning of a digest, a name, a file that was
    /// added, or one of the same content.
    pub fn fitting(&self, what: &str, digest: Option<&str>) -> Vec<usize> {
        let prefix = what.to_ascii_lowercase();
        let is_prefix = prefix.len() >= SHORTEST_PREFIX;
        let real = fs::canonicalize(what).ok();
        let fits = |entry: &TrustEntry| {
            entry.name == what
                || is_prefix && entry.sha256.starts_with(&prefix)
                || digest == Some(&*entry.sha256)
                || !entry.path.is_empty()
                    && (entry.path == what || real.as_deref() == Some(Path::new(&entry.path)))
        };
        let entries = self.entries.iter().enumerate();
        entries.filter(|(_, entry)| fits(entry)).map(|(at, _)| at).collect()
    }

    /// Takes an entry off, with the comment above it.
    pub fn remove(&mut self, at: usize) -> TrustEntry {
        self.tables(|tables| drop(tables.remove(at)));
        self.entries.remove(at)
    }

    /// The entries of the document, also where they are written in one line.
    fn tables(&mut self, change: impl FnOnce(&mut ArrayOfTables)) {
        let item = self.document.entry(PLUGINS).or_insert(Item::ArrayOfTables(Default::default()));
        let mut tables = std::mem::take(item).into_array_of_tables().unwrap_or_default();
        change(&mut tables);
        *item = Item::ArrayOfTables(tables);
    }

    /// Writes it aside and renames it, so that a reader sees the old list or the new one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self) -> Result<(), CliError> {
        let text = self.document.to_string();
        let malformed = |source| ListError::Malformed { file: self.file.clone(), source };
        trust::parse(&text).map_err(malformed)?;
        let written = write_whole(&self.file, |out| {
            private(out.get_ref())?;
            out.write_all(text.as_bytes())?;
            out.flush()?;
            out.get_ref().sync_all()
        });
        written.map_err(|source| failed(&self.file, "written", source))
    }
}

fn failed(file: &Path, done: &'static str, source: io::Error) -> CliError {
    CliError::File { file: file.to_owned(), done, source }
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    file.with_file_name(name)
}

/// Others can read a new list and cannot write it, whatever the umask says.
#[cfg(unix)]
fn private(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

/// Permissions of this kind exist on Unix only.
#[cfg(not(unix))]
fn private(_file: &File) -> io::Result<()> {
    Ok(())
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o755);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(digit: char, name: &str) -> TrustEntry {
        let sha256 = digit.to_string().repeat(64);
        TrustEntry { sha256, name: name.to_owned(), ..TrustEntry::default() }
    }

    #[test]
    fn what_is_not_touched_stays_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trust.toml");
        let [a, b] = ['a', 'b'].map(|digit| digit.to_string().repeat(64));
        let kept = format!(
            "# ours\nversion = 1 # of the format\n\n# the first\n[[plugin]]\nname = 'one'   # odd\nsha256 = '{a}'\n"
        );
        fs::write(&file, format!("{kept}\n# the second\n[[plugin]]\nsha256 = '{b}'\n")).unwrap();
        let mut list = List::locked(&file).unwrap();
        assert!(!list.add(entry('a', "again")), "its digest is there");
        assert!(list.add(entry('c', "three")));
        assert_eq!(list.remove(1).sha256, b);
        list.write().unwrap();
        let c = "c".repeat(64);
        let expected = format!("{kept}\n[[plugin]]\nsha256 = \"{c}\"\nname = \"three\"\n");
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
        let names: Vec<String> =
            List::read(&file).unwrap().entries.into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["one", "three"]);
    }

    #[test]
    fn entries_in_one_line_can_be_changed_too() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trust.toml");
        let a = "a".repeat(64);
        fs::write(&file, format!("version = 1\nplugin = [{{ sha256 = '{a}' }}]\n")).unwrap();
        let mut list = List::locked(&file).unwrap();
        list.add(entry('b', "two"));
        list.write().unwrap();
        assert_eq!(List::read(&file).unwrap().entries().len(), 2);
    }

    #[test]
    fn changes_at_the_same_time_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/trust.toml");
        std::thread::scope(|scope| {
            for digit in "01234567".chars() {
                let file = &file;
                scope.spawn(move || {
                    let mut list = List::locked(file).unwrap();
                    assert!(list.add(entry(digit, "p")));
                    list.write().unwrap();
                });
            }
        });
        assert_eq!(List::read(&file).unwrap().entries().len(), 8);
    }

    #[test]
    fn a_word_fits_by_digest_name_and_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut list = List::read(&folder.path().join("none")).unwrap();
        let path = "/srv/lib.so".to_owned();
        list.add(TrustEntry { path, ..entry('a', "one") });
        list.add(entry('b', "aaaa"));
        assert_eq!(list.fitting("AAAAA", None), [0]);
        assert_eq!(list.fitting("aaaa", None), [0, 1], "a digest and a name");
        assert!(list.fitting("aaa", None).is_empty(), "too short for a digest");
        assert_eq!(list.fitting("/srv/lib.so", None), [0]);
        assert_eq!(list.fitting("other.so", Some(&"b".repeat(64))), [1]);
        assert!(list.fitting("", None).is_empty());
    }
}
