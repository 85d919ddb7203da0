//! What differs between two builds: registrations, from their manifests, and verdicts of checks.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tenon_runtime::host::manifest::{KernelLine, Manifest};
use tenon_testkit::check::{Clause, report::Mark};

/// What a plugin registers: each thing with what is said of it.
pub type Registrations = BTreeMap<String, String>;

/// The registrations of a manifest.
pub fn registrations(manifest: &Manifest) -> Registrations {
    let mut all = Registrations::new();
    for op in &manifest.ops {
        let signature = format!(
            "({}) -> ({}) with ({}){}",
            op.inputs.join(", "),
            op.outputs.join(", "),
            op.attrs.join(", "),
            op.cases.iter().map(|case| format!("; case {case}")).collect::<String>()
        );
        all.insert(format!("op {}", op.name), signature);
    }
    for kernel in &manifest.kernels {
        let on_request = if kernel.on_request { ", on request" } else { "" };
        let needs = kernel.features.iter().map(|feature| format!(", needs {feature}"));
        let facts =
            format!("priority {}{on_request}{}", kernel.priority, needs.collect::<String>());
        all.insert(format!("kernel {}", name(kernel)), facts);
    }
    for device in &manifest.devices {
        all.insert(format!("device {}", device.name), format!("priority {}", device.priority));
    }
    for knob in &manifest.knobs {
        all.insert(format!("knob {}", knob.name), format!("default {:?}", knob.default));
    }
    all
}

fn name(kernel: &KernelLine) -> String {
    let types = kernel.types.iter().map(|(attr, types)| format!("{attr}={}", types.join("|")));
    let types = types.collect::<Vec<_>>().join(", ");
    let types = if types.is_empty() { types } else { format!("[{types}]") };
    let label =
        if kernel.label.is_empty() { String::new() } else { format!(" '{}'", kernel.label) };
    format!("{}{types} on {}{label}", kernel.op, kernel.device)
}

/// The difference of two sets of registrations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Only the new build has them.
    pub added: Vec<String>,
    /// Only the old build has them.
    pub removed: Vec<String>,
    /// Both have them: what is said of them, before and now.
    pub changed: Vec<(String, String, String)>,
}

impl Difference {
    /// From an old build to a new one.
    pub fn between(old: &Registrations, new: &Registrations) -> Difference {
        let only = |a: &Registrations, b: &Registrations| {
            a.keys().filter(|key| !b.contains_key(*key)).cloned().collect()
        };
        let changed = old.iter().filter_map(|(key, before)| {
            let now = new.get(key).filter(|now| *now != before)?;
            Some((key.clone(), before.clone(), now.clone()))
        });
        Difference { added: only(new, old), removed: only(old, new), changed: changed.collect() }
    }

    /// Whether there is no difference.
    pub fn is_empty(&self) -> bool {
        self == &Difference::default()
    }

    /// The ops whose registrations, or those of whose kernels, differ.
    pub fn ops(&self) -> BTreeSet<String> {
        let names =
            self.added.iter().chain(&self.removed).chain(self.changed.iter().map(|(n, ..)| n));
        let op = |name: &String| {
            let rest = name.strip_prefix("op ").or_else(|| name.strip_prefix("kernel "))?;
            rest.split(['[', ' ']).next().map(str::to_owned)
        };
        names.filter_map(op).collect()
    }

    /// As lines.
    pub fn text(&self) -> String {
        let added = self.added.iter().map(|name| format!("  + {name}\n"));
        let removed = self.removed.iter().map(|name| format!("  - {name}\n"));
        let changed = self
            .changed
            .iter()
            .map(|(name, before, now)| format!("  ~ {name}\n      {before}\n      {now}\n"));
        added.chain(removed).chain(changed).collect()
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let changed = self
            .changed
            .iter()
            .map(|(name, before, now)| json!({ "name": name, "before": before, "now": now }));
        let changed: Vec<Value> = changed.collect();
        json!({ "added": self.added, "removed": self.removed, "changed": changed })
    }
}

/// The outcome of each clause of each kernel.
pub type Verdicts = BTreeMap<(String, Clause), Mark>;

/// A verdict that is another than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turned {
    /// The kernel with its types.
    pub kernel: String,
    /// The clause.
    pub clause: Clause,
    /// What it was, and is.
    pub marks: [&'static str; 2],
}

fn word(mark: Mark) -> &'static str {
    match mark {
        Mark::Nothing | Mark::Skipped => "not looked at",
        Mark::Kept => "passes",
        Mark::Broken => "fails",
    }
}

/// Verdicts that turned from passing to failing, or back.
pub fn turned(before: &Verdicts, now: &Verdicts) -> Vec<Turned> {
    let judged = |mark: &Mark| matches!(mark, Mark::Kept | Mark::Broken);
    let turned = now.iter().filter_map(|((kernel, clause), mark)| {
        let earlier = before.get(&(kernel.clone(), *clause)).filter(|earlier| *earlier != mark)?;
        let marks = [word(*earlier), word(*mark)];
        (judged(mark) && judged(earlier)).then(|| Turned {
            kernel: kernel.clone(),
            clause: *clause,
            marks,
        })
    });
    turned.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(lines: &[&str]) -> Manifest {
        let head = r#"{"kind":"plugin","name":"p","version":"1","abi":[0,1]}"#;
        Manifest::parse([&[head], lines].concat().join("\n").as_bytes()).unwrap()
    }

    #[test]
    fn registrations_are_compared_one_by_one() {
        let old = registrations(&manifest(&[
            r#"{"kind":"op","name":"Gone"}"#,
            r#"{"kind":"op","name":"Kept","attrs":["a: int = 1"]}"#,
            r#"{"kind":"kernel","op":"Kept","device":"CPU","types":{"T":["float"]}}"#,
            r#"{"kind":"knob","name":"size","default":"1"}"#,
        ]));
        let new = registrations(&manifest(&[
            r#"{"kind":"op","name":"Kept","attrs":["a: int = 2"]}"#,
            r#"{"kind":"kernel","op":"Kept","device":"CPU","types":{"T":["float"]},"priority":2}"#,
            r#"{"kind":"kernel","op":"Kept","device":"CPU","label":"fast"}"#,
            r#"{"kind":"knob","name":"size","default":"1"}"#,
        ]));
        let difference = Difference::between(&old, &new);
        assert_eq!(difference.added, ["kernel Kept on CPU 'fast'"]);
        assert_eq!(difference.removed, ["op Gone"]);
        let changed: Vec<&str> = difference.changed.iter().map(|(name, ..)| &**name).collect();
        assert_eq!(changed, ["kernel Kept[T=float] on CPU", "op Kept"]);
        assert_eq!(difference.ops().into_iter().collect::<Vec<_>>(), ["Gone", "Kept"]);
        assert!(difference.text().contains("  + kernel Kept on CPU 'fast'\n  - op Gone\n  ~ "));
        assert!(Difference::between(&new, &new).is_empty());
    }

    #[test]
    fn only_verdicts_that_were_given_twice_turn() {
        let verdicts = |marks: &[(&str, Mark)]| -> Verdicts {
            marks.iter().map(|(name, mark)| (((*name).to_owned(), Clause::Values), *mark)).collect()
        };
        let before = verdicts(&[("a", Mark::Kept), ("b", Mark::Kept), ("c", Mark::Broken)]);
        let now = verdicts(&[
            ("a", Mark::Broken),
            ("b", Mark::Skipped),
            ("c", Mark::Kept),
            ("d", Mark::Broken),
        ]);
        let turned: Vec<(String, [&str; 2])> =
            turned(&before, &now).into_iter().map(|turned| (turned.kernel, turned.marks)).collect();
        let expected = [("a", ["passes", "fails"]), ("c", ["fails", "passes"])];
        assert_eq!(turned, expected.map(|(name, marks)| (name.to_owned(), marks)));
    }
}
