//! Strings, messages and files on the CPU, as a separate plugin so that programs without them do
//! not compile regular expressions.
//!
//! Its kernels are for device type `CPU`, which plugins/cpu registers. `value` reads an element of
//! any type, `printf` and `summary` write them, `number` parses them; `re2` and `glob` translate
//! patterns; `farmhash` is a fingerprint; `access` controls which files graphs may use. The other
//! modules are the ops.

mod access;
mod as_string;
mod characters;
mod encode;
mod farmhash;
mod files;
mod format;
mod glob;
mod join;
mod logging;
mod number;
mod printf;
mod re2;
mod records;
mod regex;
mod summary;
mod value;

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();

use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext},
};

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
