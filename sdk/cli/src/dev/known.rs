//! What failed last, kept between rounds and between runs: it is looked at first.
//!
//! A file in Tenon's cache folder for each folder with a plugin's source, a name a line. One that cannot be read says
//! that nothing is known to fail, and one that cannot be written is done without: every kernel is called in any case.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};
use tenon_runtime::host::{
    digest::{cache_folder, short_digest},
    files::write_bytes,
};

/// The most that is read: a file that is longer is none of these.
const MOST: u64 = 1 << 20;

/// The failures that are known.
#[derive(Debug, Default)]
pub struct Known {
    file: Option<PathBuf>,
    names: BTreeSet<String>,
}

impl Known {
    /// Those of the plugin whose source is in this folder.
    pub fn of(source: &Path) -> Known {
        cache_folder().map_or_else(Known::default, |cache| Known::in_cache(&cache, source))
    }

    fn in_cache(cache: &Path, source: &Path) -> Known {
        let bytes = source.as_os_str().as_encoded_bytes();
        let file = cache.join("dev").join(format!("{}.failed", short_digest(bytes)));
        let is_short = fs::metadata(&file).is_ok_and(|meta| meta.is_file() && meta.len() <= MOST);
        let text =
            if is_short { fs::read_to_string(&file).unwrap_or_default() } else { String::new() };
        let names = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
        Known { file: Some(file), names }
    }

    /// Their names.
    pub fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// These are known from now on.
    pub fn set(&mut self, names: BTreeSet<String>) {
        if names == self.names {
            return;
        }
        self.names = names;
        let Some(file) = &self.file else { return };
        let text: String = self.names.iter().map(|name| format!("{name}\n")).collect();
        // What cannot be kept is known in this run alone.
        let _ = match self.names.is_empty() {
            true => fs::remove_file(file),
            false => {
                let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
                folder.and_then(|()| write_bytes(file, text))
            }
        };
    }

    /// These are known too.
    pub fn add<'a>(&mut self, names: impl IntoIterator<Item = &'a String>) {
        let mut all = self.names.clone();
        all.extend(names.into_iter().cloned());
        self.set(all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_known_in_the_next_run_until_it_is_right() {
        let cache = tempfile::tempdir().unwrap();
        let known = || Known::in_cache(cache.path(), Path::new("/src/my-ops"));
        assert!(known().names().is_empty());
        let names = BTreeSet::from(["A[T=float] on CPU 'avx2'".to_owned(), "B on CPU".to_owned()]);
        known().set(names.clone());
        assert_eq!(known().names(), &names);
        known().add([&"C on CPU".to_owned()]);
        assert_eq!(known().names().len(), 3);
        let other = Known::in_cache(cache.path(), Path::new("/src/other"));
        assert!(other.names().is_empty(), "another plugin has its own");
        known().set(BTreeSet::new());
        assert!(known().names().is_empty());
    }

    #[test]
    fn a_file_that_is_none_of_these_is_no_harm() {
        let cache = tempfile::tempdir().unwrap();
        let source = Path::new("/src/my-ops");
        Known::in_cache(cache.path(), source).set(BTreeSet::from(["A on CPU".to_owned()]));
        let file = Known::in_cache(cache.path(), source).file.unwrap();
        fs::write(&file, [0xff, 0xfe]).unwrap();
        assert!(Known::in_cache(cache.path(), source).names().is_empty());
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        let mut known = Known::in_cache(cache.path(), source);
        known.add([&"A on CPU".to_owned()]);
        assert_eq!(known.names().len(), 1, "it cannot be kept, and is known all the same");
    }
}
