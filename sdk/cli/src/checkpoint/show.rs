//! Values of tensors as text.

use super::{
    CheckpointError,
    args::ShowArgs,
    diff::number,
    open::{Checkpoint, Value},
    shape,
};
use crate::{
    args::Global,
    error::CliError,
    output::{print, print_json},
};
use serde_json::{Value as Json, json};
use tenon_bundle::{Files, stored_size};
use tenon_runtime::framework::DType;
use tenon_testkit::exceptions::matches;

/// Prints the first elements of tensors.
///
/// # Errors
/// There is no tensor of a name; a file cannot be read.
pub fn show(global: &Global, files: Files<'_>, args: &ShowArgs) -> Result<(), CliError> {
    let mut checkpoint = Checkpoint::open(files, &args.file)?;
    let infos = checkpoint.infos().to_vec();
    for name in &args.names {
        if !infos.iter().any(|info| matches(name, &info.name)) {
            let (file, name) = (args.file.clone(), name.clone());
            return Err(CheckpointError::NoTensor { file, name }.into());
        }
    }
    let is_wanted = |name: &str| args.names.iter().any(|pattern| matches(pattern, name));
    let (mut text, mut rows) = (String::new(), Vec::new());
    for (at, info) in infos.iter().enumerate().filter(|(_, info)| is_wanted(&info.name)) {
        let (values, count) = elements(info.dtype, &checkpoint.read(at)?, args.max);
        let dims = shape(&info.dims);
        let more =
            if count > values.len() { format!(", … ({count} elements)") } else { String::new() };
        let shown: Vec<String> = values.iter().map(as_text).collect();
        text.push_str(&format!(
            "{} {} {dims}\n  {}{more}\n",
            info.name,
            info.dtype.name(),
            shown.join(", ")
        ));
        rows.push(json!({
            "name": info.name, "dtype": info.dtype.name(), "shape": info.dims, "elements": count,
            "values": values,
        }));
    }
    if global.json { print_json(&Json::Array(rows)) } else { print(&text) }
}

/// Numbers that JSON does not have are texts.
fn as_text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// The first `most` elements, and the number of all.
fn elements(dtype: DType, value: &Value, most: usize) -> (Vec<Json>, usize) {
    match value {
        Value::Strings(strings) => {
            let shown =
                strings.iter().take(most).map(|text| json!(format!("'{}'", text.escape_ascii())));
            (shown.collect(), strings.len())
        }
        Value::Bytes(bytes) => {
            let each = stored_size(dtype).unwrap_or(1);
            let elements = bytes.chunks_exact(each);
            let count = elements.len();
            (elements.take(most).map(|element| one(dtype, element)).collect(), count)
        }
    }
}

fn one(dtype: DType, element: &[u8]) -> Json {
    let part = match dtype {
        DType::BOOL => return json!(element.iter().any(|&byte| byte != 0)),
        DType::INT64 => {
            return element.try_into().map_or(Json::Null, |bytes| json!(i64::from_le_bytes(bytes)));
        }
        DType::UINT64 => {
            return element.try_into().map_or(Json::Null, |bytes| json!(u64::from_le_bytes(bytes)));
        }
        DType::COMPLEX64 => DType::FLOAT,
        DType::COMPLEX128 => DType::DOUBLE,
        dtype => dtype,
    };
    if dtype.is_complex() {
        let (real, imaginary) = element.split_at(element.len() / 2);
        let text =
            |bytes| number(part, bytes).map_or_else(String::new, |number| number.to_string());
        let (real, imaginary) = (text(real), text(imaginary));
        let sign = if imaginary.starts_with('-') { "" } else { "+" };
        return json!(format!("{real}{sign}{imaginary}i"));
    }
    match number(dtype, element) {
        // As many digits as the type has.
        Some(value) if dtype == DType::FLOAT && value.is_finite() => {
            serde_json::from_str(&format!("{:?}", value as f32)).unwrap_or(Json::Null)
        }
        Some(value) if value.is_finite() && dtype.is_floating() => json!(value),
        Some(value) if value.is_finite() => json!(value as i64),
        Some(value) => json!(value.to_string()),
        None => json!(element.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}
