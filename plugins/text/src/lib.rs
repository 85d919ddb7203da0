//! Strings, messages and files on the CPU.
//!
//! What it is: a plugin with the kernels of TensorFlow's string, logging and file ops for device
//! type `CPU`. `value` reads an element of any type, `printf` and `summary` write elements, and
//! `number` parses them; `re2` translates patterns; `farmhash` is a fingerprint; `tenon-files`
//! decides which files graphs may use. The other modules are the ops. It is a plugin of its own so
//! that a build without strings does not compile regular expressions.
//!
//! What it is not: the device type, which plugins/cpu brings, or the ops, which `core/ops` defines.
//!
//! # Invariants
//! - Every access to a file goes through `tenon-files`, which asks the knob `text.files`.
//! - Only regular files are read and written, and none above `text.file_bytes` is read.
//! - Regular expressions match in linear time, in RE2's syntax.

mod as_string;
mod characters;
mod cross;
mod encode;
mod farmhash;
mod files;
mod format;
mod hash;
mod join;
mod logging;
mod ngrams;
mod number;
mod printf;
mod re2;
mod records;
mod regex;
mod scripts;
mod summary;
mod unicode;
mod value;

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();
tenon_files::register_file_knobs!();

use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext},
};

/// The name of this plugin, before those of its knobs.
const PLUGIN: &str = "text";

/// An attribute that is a number, such as the number of printed elements; a negative one means all.
fn count_attr(c: &CreateContext<'_>, name: &str) -> Result<Option<usize>, KernelError> {
    Ok(usize::try_from(c.attr::<i64>(name)?).ok())
}

/// The only string of an input; `name` is the argument's name.
fn text<'a>(c: &ComputeContext<'a>, input: usize, name: &str) -> Result<&'a [u8], KernelError> {
    match (&c.strings(input)?[..], c.dims(input)) {
        (&[text], []) => Ok(text),
        (_, dims) => Err(KernelError::invalid_argument(format!(
            "{name} must be a scalar, found shape {dims:?}"
        ))),
    }
}

/// Bytes as shown in a message.
fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
