//! `ReadFile`, `WriteFile`, `MatchingFiles`, `ShardedFilename` and `ShardedFilespec`.

use crate::{PLUGIN, glob, text};
use tenon_files::{Access, path_of};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel, Mode},
    reg::Numerics,
    register_kernel,
};

/// Declares a kernel that may wait for a disk, and has access to files.
macro_rules! on_disk {
    ($($op:literal, $kernel:ident, $compute:ident;)*) => {$(
        struct $kernel(Access);

        impl Kernel for $kernel {
            const MODE: Mode = Mode::Blocking;

            fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
                Access::read(PLUGIN, c.knobs()).map($kernel)
            }

            fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
                $compute(c, &self.0)
            }
        }

        register_kernel!($op on "CPU": $kernel, numerics = Numerics::EXACT);
    )*};
}

on_disk! {
    "ReadFile", ReadFile, read_file;
    "WriteFile", WriteFile, write_file;
    "MatchingFiles", MatchingFiles, matching_files;
}

fn read_file(c: &ComputeContext<'_>, access: &Access) -> Result<(), KernelError> {
    let path = path_of(text(c, 0, "filename")?);
    let contents = access.contents("filename", &path)?;
    c.set_strings(0, &[], [contents].into_iter())
}

fn write_file(c: &ComputeContext<'_>, access: &Access) -> Result<(), KernelError> {
    let path = path_of(text(c, 0, "filename")?);
    access.write("filename", &path, text(c, 1, "contents")?)
}

fn matching_files(c: &ComputeContext<'_>, access: &Access) -> Result<(), KernelError> {
    if c.dims(0).len() > 1 {
        return Err(KernelError::invalid_argument(format!(
            "pattern must be a scalar or a vector, found shape {:?}",
            c.dims(0)
        )));
    }
    let mut names = Vec::new();
    for pattern in c.strings(0)? {
        names.extend(matching(pattern, access)?);
    }
    names.sort();
    c.set_strings(0, &[names.len() as i64], names.into_iter())
}

/// The files that match a pattern, whose components may have special characters; these do not match
/// a slash. Names of files in the current folder begin with `./`, as in TensorFlow. Unreadable
/// folders match nothing.
fn matching(pattern: &[u8], access: &Access) -> Result<Vec<Vec<u8>>, KernelError> {
    if pattern.is_empty() {
        return Ok(Vec::new());
    }
    if glob::is_plain(pattern) {
        let path = path_of(pattern);
        access.may_look("pattern", &path)?;
        return Ok(if access.exists(&path) { vec![pattern.to_vec()] } else { Vec::new() });
    }
    let special = pattern.iter().position(|c| b"*?[\\".contains(c)).unwrap_or(0);
    let fixed = pattern[..special].iter().rposition(|c| *c == b'/').map_or(0, |at| at + 1);
    let first = if fixed == 0 { b"./".to_vec() } else { pattern[..fixed].to_vec() };
    access.may_look("pattern", &path_of(&first))?;
    let parts: Vec<&[u8]> =
        pattern[fixed..].split(|c| *c == b'/').filter(|p| !p.is_empty()).collect();
    let mut found = vec![first];
    for (at, part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        found = found.iter().flat_map(|folder| inside(folder, part, last, access)).collect();
    }
    Ok(found)
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

/// A number with at least five digits, including a minus sign.
fn padded(number: i64) -> String {
    format!("{number:05}")
}

fn sharded_filename(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let base = text(c, 0, "basename")?;
    let shard = padded(c.integer(1, "shard")?);
    let count = padded(c.integer(2, "num_shards")?);
    let name = [base, format!("-{shard}-of-{count}").as_bytes()].concat();
    c.set_strings(0, &[], [name].into_iter())
}

fn sharded_filespec(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let base = text(c, 0, "basename")?;
    let count = padded(c.integer(1, "num_shards")?);
    let name = [base, format!("-?????-of-{count}").as_bytes()].concat();
    c.set_strings(0, &[], [name].into_iter())
}

register_kernel!("ShardedFilename" on "CPU": fn sharded_filename,
    host_memory = &["shard", "num_shards"], numerics = Numerics::EXACT);
register_kernel!("ShardedFilespec" on "CPU": fn sharded_filespec,
    host_memory = &["num_shards"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::{matching, padded};
    use tenon_files::Access;

    #[test]
    fn parts_of_a_path_match_apart() {
        let folder = std::env::temp_dir().join(format!("tenon-text-{}", std::process::id()));
        for name in ["a.txt", "b.txt", "s1/c.txt", "s2/d.txt", "s2/.e"] {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"x").unwrap();
        }
        let found = |pattern: &str| {
            let whole = format!("{}/{pattern}", folder.display());
            let mut names = matching(whole.as_bytes(), &Access::to_any()).unwrap();
            names.sort();
            let start = folder.as_os_str().len() + 1;
            names.iter().map(|name| crate::shown(&name[start..])).collect::<Vec<_>>()
        };
        assert_eq!(found("*.txt"), ["a.txt", "b.txt"]);
        assert_eq!(found("s?/*.txt"), ["s1/c.txt", "s2/d.txt"]);
        assert_eq!(found("*/d.txt"), ["s2/d.txt"]);
        assert_eq!(found("s2/*"), ["s2/.e", "s2/d.txt"]);
        assert_eq!(found("s*/"), ["s1", "s2"]);
        assert_eq!(found("a.txt"), ["a.txt"]);
        assert_eq!(found("none/*"), [""; 0]);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(padded(-3), "-0003");
    }
}
