//! `ReadFile`, `WriteFile`, `MatchingFiles`, `ShardedFilename` and `ShardedFilespec`.

use crate::{PLUGIN, text};
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
        names.extend(access.matching("pattern", pattern)?);
    }
    names.sort();
    c.set_strings(0, &[names.len() as i64], names.into_iter())
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
    use super::padded;

    #[test]
    fn a_minus_sign_counts_as_a_digit() {
        assert_eq!([padded(-3), padded(7), padded(123_456)], ["-0003", "00007", "123456"]);
    }
}
