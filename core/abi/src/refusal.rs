//! One line out of the report with which `abi_stable` refuses a layout.
//!
//! The report holds one block for each type on the way in, hundreds to thousands of lines. A block is
//! headed `N error(s)inside:`; it lists the way as `field_name:` and `type:` lines, then both layouts, then
//! its errors.

/// The way through the fields to the first difference and what differs there, in one line.
///
/// The innermost block with errors has the reason, except if the crate's versions differ: then every type is
/// refused, and the outermost block has the reason.
pub(crate) fn layout_path(report: &str) -> String {
    let lines: Vec<&str> = report.lines().map(str::trim).collect();
    let blocks = failed_blocks(&lines);
    let of_versions = |block: &&&[&str]| block.contains(&"Error:incompatible package versions");
    let Some(block) = blocks.first().filter(of_versions).or(blocks.last()) else {
        return String::from("Root");
    };
    let way = way_in(block).join(" / ");
    let problems = problems(block);
    if problems.is_empty() { way } else { format!("{way}: {}", problems.join("; ")) }
}

/// The blocks that hold errors, in the report's order: from the root inwards.
fn failed_blocks<'a, 'b>(lines: &'a [&'b str]) -> Vec<&'a [&'b str]> {
    let heads: Vec<usize> =
        (0..lines.len()).filter(|&at| error_count(lines[at]).is_some()).collect();
    let ends = heads.iter().skip(1).copied().chain([lines.len()]);
    heads
        .iter()
        .zip(ends)
        .filter(|&(&head, _)| error_count(lines[head]) != Some(0))
        .map(|(&head, end)| &lines[head + 1..end])
        .collect()
}

/// The number at the head of a block.
fn error_count(line: &str) -> Option<usize> {
    let (count, rest) = line.split_once(' ')?;
    if !rest.starts_with("error(s)") {
        return None;
    }
    count.parse().ok()
}

/// The names of fields and structs from the root to the difference.
fn way_in(block: &[&str]) -> Vec<String> {
    let end = block.iter().position(|line| line.starts_with("Layout of ")).unwrap_or(block.len());
    let steps = steps(&block[..end]);
    let mut way = vec![String::from("Root")];
    for (at, &(name, kind)) in steps.iter().enumerate() {
        let last = at + 1 == steps.len();
        match parameter(name) {
            None if !is_position(name) => way.push(name.to_owned()),
            Some(number) if last => way.push(format!("parameter {number}")),
            _ => {}
        }
        // The kind of the last field is part of the problem, not of the way.
        let shown = is_struct(kind) && (!last || is_position(name));
        if shown && way.last().is_some_and(|before| before != kind) {
            way.push(kind.to_owned());
        }
    }
    way
}

/// The pairs of `field_name:` and `type:` lines.
fn steps<'a>(block: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    let mut steps = Vec::new();
    let mut name = None;
    for line in block {
        if let Some(text) = line.strip_prefix("field_name:") {
            name = Some(text.trim());
        } else if let Some(kind) = line.strip_prefix("type:")
            && let Some(name) = name.take()
        {
            steps.push((name, kind.trim()));
        }
    }
    steps
}

/// A step behind a pointer is named by a position instead of a field.
fn is_position(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

/// The number, from 1, of a function's parameter. The report names the first one by the list of all
/// names (`host,plugin,sink,`) and the others `param_1`, `param_2` and so on.
fn parameter(name: &str) -> Option<usize> {
    if name.ends_with(',') {
        return Some(1);
    }
    name.strip_prefix("param_")?.parse::<usize>().ok()?.checked_add(1)
}

/// Whether the type is a struct of this crate, and not a pointer, a reference or a function.
fn is_struct(kind: &str) -> bool {
    kind.starts_with(|first: char| first.is_ascii_uppercase()) && !kind.contains('<')
}

/// The first two errors of a block; further ones repeat them.
fn problems(block: &[&str]) -> Vec<String> {
    let mut errors = Vec::new();
    for (at, line) in block.iter().enumerate() {
        if let Some(name) = line.strip_prefix("Error:") {
            let rest = &block[at + 1..];
            let end = rest.iter().position(|line| line.starts_with("Error:"));
            errors.push(describe(name.trim(), &rest[..end.unwrap_or(rest.len())]));
        }
    }
    errors.truncate(2);
    errors
}

fn describe(name: &str, rest: &[&str]) -> String {
    let value_after = |label: &str| {
        let at = rest.iter().position(|line| line.starts_with(label))?;
        let inline = rest[at][label.len()..].trim();
        let text = if inline.is_empty() { rest.get(at + 1).copied().unwrap_or("") } else { inline };
        let text = text.strip_prefix("field_name:").unwrap_or(text);
        Some(text.trim_end_matches(',').to_owned())
    };
    match (value_after("Expected:"), value_after("Found:")) {
        (Some(expected), Some(found)) => format!("{name}, expected {expected}, found {found}"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::layout_path;

    // The reports are what `abi_stable` 0.11.3 said of plugins built against a tenon-abi with one change
    // each; blocks between the first and the last are left out.

    #[test]
    fn a_changed_type_is_found_behind_pointers() {
        assert_eq!(
            layout_path(include_str!("../testdata/refusal-changed-type.txt")),
            "Root / v1 / PluginV1 / open / Host / retain / Slot / flags: \
             mismatched type, expected u32, found i32"
        );
    }

    #[test]
    fn a_changed_type_is_found_in_a_struct_by_value() {
        assert_eq!(
            layout_path(include_str!("../testdata/refusal-changed-type-by-value.txt")),
            "Root / v1 / PluginV1 / register / RegistrarTable / kernel / KernelDef / numerics / \
             Numerics / ulps: mismatched type, expected f64, found i64"
        );
    }

    #[test]
    fn an_added_field_names_the_struct_and_two_problems() {
        assert_eq!(
            layout_path(include_str!("../testdata/refusal-added-field.txt")),
            "Root / v1 / PluginV1 / open / Host / retain / Slot: \
             incompatible type size, expected 64, found 80; too many fields, expected 11, found 12"
        );
    }

    #[test]
    fn a_renamed_parameter_names_the_function() {
        assert_eq!(
            layout_path(include_str!("../testdata/refusal-renamed-parameter.txt")),
            "Root / v1 / PluginV1 / open / Host / report: \
             unexpected field, expected sink,message, found sink,text"
        );
    }

    #[test]
    fn another_version_of_this_crate_is_named_once() {
        assert_eq!(
            layout_path(include_str!("../testdata/refusal-other-version.txt")),
            "Root: incompatible package versions, expected 0.1.0, found 0.2.0"
        );
    }

    #[test]
    fn a_report_of_another_form_still_gives_a_line() {
        assert_eq!(layout_path(""), "Root");
        assert_eq!(layout_path("1 error(s)inside:"), "Root");
        assert_eq!(layout_path("1 error(s)inside:\nError:odd\nExpected:"), "Root: odd");
        assert_eq!(layout_path("x error(s)\n2 things\nfield_name:a"), "Root");
    }
}
