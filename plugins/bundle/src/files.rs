//! Files as this crate reads and writes them: every access goes through [`tenon_files::Access`], and every change of the
//! file system can be observed.

use crate::BundleError;
use std::{
    fs::File,
    hash::{BuildHasher, RandomState},
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use tenon_files::{Access, Folder, Identity, Purpose, failed, identity};

/// A change of the file system, which an observer is told before it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A temporary file is created.
    Create,
    /// Bytes are appended to it.
    Write,
    /// Its bytes are made durable.
    Sync,
    /// It gets its name.
    Rename,
    /// The names in its folder are made durable.
    SyncFolder,
    /// A file that is no longer used is removed.
    Remove,
}

/// Is called before each change of the file system. Tests end the process in it.
pub type Observer<'a> = &'a (dyn Fn(Operation) + Sync);

/// The files that may be used, and how messages name the argument that names them.
#[derive(Clone, Copy)]
pub struct Files<'a> {
    access: &'a Access,
    what: &'a str,
    observer: Option<Observer<'a>>,
}

/// How long a writer waits for another one in the same folder, which holds the lock for some renames.
const PATIENCE: Duration = Duration::from_secs(60);

impl<'a> Files<'a> {
    /// Files that `access` permits; `what` names the argument in messages.
    pub fn new(access: &'a Access, what: &'a str) -> Files<'a> {
        Files { access, what, observer: None }
    }

    /// The same files, with an observer.
    pub fn observed(self, observer: Observer<'a>) -> Files<'a> {
        Files { observer: Some(observer), ..self }
    }

    /// The permitted access.
    pub fn access(&self) -> &'a Access {
        self.access
    }

    fn tell(&self, operation: Operation) {
        if let Some(observer) = self.observer {
            observer(operation);
        }
    }

    pub(crate) fn failed(&self, path: &Path, error: &io::Error) -> BundleError {
        failed(self.what, path, error).into()
    }

    pub(crate) fn exists(&self, path: &Path) -> Result<bool, BundleError> {
        self.access.may_look(self.what, path)?;
        Ok(self.access.exists(path))
    }

    /// What distinguishes the file that has a name now from every other one, where the system tells it.
    pub(crate) fn identity(&self, path: &Path) -> Result<Option<Identity>, BundleError> {
        Ok(Source::open(*self, path)?.identity())
    }

    pub(crate) fn matching(&self, pattern: &[u8]) -> Result<Vec<Vec<u8>>, BundleError> {
        Ok(self.access.matching(self.what, pattern)?)
    }

    pub(crate) fn create_folders(&self, file: &Path) -> Result<(), BundleError> {
        Ok(self.access.create_folders(self.what, file)?)
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), BundleError> {
        self.tell(Operation::Rename);
        Ok(self.access.rename(self.what, from, to)?)
    }

    /// Removes a file that may be gone already. An error is not one of the caller, whose work is done.
    pub(crate) fn discard(&self, path: &Path) {
        self.tell(Operation::Remove);
        let _ = self.access.remove(self.what, path);
    }

    /// Removes a folder if it is empty.
    pub(crate) fn discard_folder(&self, path: &Path) {
        self.tell(Operation::Remove);
        let _ = self.access.remove_folder(self.what, path);
    }

    /// The folder of a file, locked against other writers of this crate.
    pub(crate) fn lock(&self, file: &Path) -> Result<Publishing<'a>, BundleError> {
        let folder = self.access.folder_of(self.what, file)?;
        let begin = Instant::now();
        let mut pause = Duration::from_micros(200);
        while !folder.try_lock(self.what)? {
            if begin.elapsed() > PATIENCE {
                return Err(BundleError::Busy(file.display().to_string(), PATIENCE.as_secs()));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
        Ok(Publishing { files: *self, folder })
    }
}

/// A folder in which one writer gives files their names.
pub(crate) struct Publishing<'a> {
    files: Files<'a>,
    folder: Folder,
}

impl Publishing<'_> {
    /// Makes the names durable.
    pub fn sync(&self) -> Result<(), BundleError> {
        self.files.tell(Operation::SyncFolder);
        Ok(self.folder.sync(self.files.what)?)
    }
}

/// A file that is read.
#[derive(Debug)]
pub(crate) struct Source {
    file: File,
    path: PathBuf,
    len: u64,
    identity: Option<Identity>,
}

impl Source {
    pub fn open(files: Files<'_>, path: &Path) -> Result<Source, BundleError> {
        let file = files.access.open(files.what, path, Purpose::Read)?;
        let len = file.metadata().map_err(|error| files.failed(path, &error))?.len();
        let identity = identity(&file).map_err(|error| files.failed(path, &error))?;
        Ok(Source { file, path: path.to_owned(), len, identity })
    }

    /// What distinguishes the file from every other one, where the system tells it.
    pub fn identity(&self) -> Option<Identity> {
        self.identity
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    pub fn damaged(&self, offset: u64, what: impl Into<String>) -> BundleError {
        BundleError::Damaged { file: self.name(), offset, what: what.into() }
    }

    /// Fails if the file ends before a range does.
    pub fn check(&self, offset: u64, len: u64) -> Result<(), BundleError> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(BundleError::Short {
                file: self.name(),
                offset,
                expected: len,
                found: self.len,
            }),
        }
    }

    /// Fills `out` with the bytes from `offset` on.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), BundleError> {
        self.check(offset, out.len() as u64)?;
        let mut file = &self.file;
        let done = file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(out));
        done.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => BundleError::Short {
                file: self.name(),
                offset,
                expected: out.len() as u64,
                found: self.len,
            },
            _ => failed("checkpoint", &self.path, &error).into(),
        })
    }
}

/// Size of the buffer before a file that is written.
const BUFFER: usize = 1 << 18;

/// What comes before the name of a temporary file ends.
const TEMPORARY: &str = ".tempstate";

/// A file under a temporary name, which is removed unless it gets its own.
pub(crate) struct Temporary<'a> {
    files: Files<'a>,
    path: PathBuf,
    writer: Option<BufWriter<Told<'a>>>,
    written: u64,
}

/// A file whose observer is told of every write.
struct Told<'a> {
    files: Files<'a>,
    file: File,
}

impl Write for Told<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.files.tell(Operation::Write);
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A path with more text at its end.
pub(crate) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

impl<'a> Temporary<'a> {
    /// Creates a file beside `path`, and missing folders above it.
    pub fn create(files: Files<'a>, path: &Path) -> Result<Temporary<'a>, BundleError> {
        // The keys of a hasher of the standard library differ for each, and between processes.
        let number = RandomState::new().hash_one(std::process::id());
        let path = with_end(path, &format!("{TEMPORARY}{number}"));
        files.access.create_folders(files.what, &path)?;
        files.tell(Operation::Create);
        let file = files.access.open(files.what, &path, Purpose::Write)?;
        let writer = Some(BufWriter::with_capacity(BUFFER, Told { files, file }));
        Ok(Temporary { files, path, writer, written: 0 })
    }

    /// Number of bytes that were written.
    pub fn written(&self) -> u64 {
        self.written
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), BundleError> {
        if let Some(writer) = &mut self.writer {
            writer.write_all(bytes).map_err(|error| self.files.failed(&self.path, &error))?;
            self.written += bytes.len() as u64;
        }
        Ok(())
    }

    /// Makes all bytes durable.
    pub fn sync(&mut self) -> Result<(), BundleError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let mut done = writer.flush();
        if done.is_ok() {
            self.files.tell(Operation::Sync);
            done = writer.get_ref().file.sync_all();
        }
        done.map_err(|error| self.files.failed(&self.path, &error))
    }

    /// Gives the file its name.
    pub fn publish(mut self, path: &Path) -> Result<(), BundleError> {
        self.files.rename(&self.path, path)?;
        self.close();
        Ok(())
    }

    /// Forgets buffered bytes: dropping the buffer would write them.
    fn close(&mut self) {
        if let Some(writer) = self.writer.take() {
            let _ = writer.into_parts();
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if self.writer.is_some() {
            self.close();
            self.files.discard(&self.path);
        }
    }
}
