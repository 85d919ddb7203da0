//! Parts of messages.

use std::fmt::Write as _;
use tenon_framework::{
    DType,
    device::DeviceName,
    text::{cut, cut_message},
};

pub(super) fn reference_note(expected: DType, found: DType) -> &'static str {
    let wants_reference = expected.is_ref() && !found.is_ref();
    let note = ": the op expects a reference, which only variables and ops that forward them give";
    if wants_reference { note } else { "" }
}

/// The cycle as `'a' -> 'b' -> 'a'`, shortened.
pub(super) fn chain(nodes: &[String]) -> String {
    const MAX_SHOWN: usize = 8;
    let mut text = String::new();
    for name in nodes.iter().take(MAX_SHOWN) {
        let _ = write!(text, "'{}' -> ", cut(name));
    }
    if nodes.len() > MAX_SHOWN {
        let _ = write!(text, "({} more) -> ", nodes.len() - MAX_SHOWN);
    }
    let first = nodes.first().map(String::as_str).unwrap_or_default();
    let _ = write!(text, "'{}'", cut(first));
    text
}

pub(super) fn asked(requested: &DeviceName, is_there: bool) -> String {
    let text = requested.to_string();
    match text.is_empty() {
        true => text,
        false if is_there => format!(" ({text} was asked for)"),
        false => format!(" ({text} was asked for, and there is no such device)"),
    }
}

pub(super) fn elsewhere(soft: &Option<String>) -> String {
    let Some(device) = soft else { return String::new() };
    format!(
        "\nwith soft placement it would run on {device}: enable it by the knob runtime.soft_placement \
         (--soft-placement on the command line), or name a device that can run it"
    )
}

pub(super) fn listed(candidates: &[String]) -> String {
    match candidates {
        [] => ": there are no devices".to_owned(),
        lines => format!(":\n  {}", cut_message(&lines.join("\n  "))),
    }
}
