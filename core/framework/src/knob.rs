//! Knobs: declared settings of plugins and crates.
//!
//! A value comes from the default, over that the environment (`TENON_<SCOPE>_<NAME>`), over that a session
//! option, over that `--set scope.name=value`. [`KnobStore`] holds the declarations; [`KnobStore::snapshot`]
//! reads the layers once into immutable [`Knobs`].

use crate::op::{RawError, SourceInfo, raw};
use crate::text::{cut, cut_text, edit_distance};
use std::{collections::BTreeMap, fmt, sync::Arc};
use tenon_abi::{Code, KnobKind};
use thiserror::Error;

mod value;

pub use value::{KnobValue, kind_name};

/// Environment variables of Tenon that are not knobs.
pub const RESERVED_VARIABLES: &[&str] = &["TENON_PLUGIN_PATH"];

/// A declared setting.
#[derive(Debug, Clone, PartialEq)]
pub struct KnobDef {
    /// Plugin or crate, such as `cpu`: snake_case.
    pub scope: String,
    /// Name within the scope: snake_case.
    pub name: String,
    /// Type of the value.
    pub kind: KnobKind,
    /// Value when nothing sets it.
    pub default: KnobValue,
    /// One sentence.
    pub help: String,
    /// Where it is registered.
    pub source: SourceInfo,
}

/// What is wrong with a knob or a setting of one.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum KnobError {
    /// A plugin handed over a malformed struct.
    #[error(transparent)]
    Raw(#[from] RawError),
    /// A name that is not in snake_case.
    #[error(
        "scopes and names of knobs follow [a-z][a-z0-9_]*, found '{name}' ({source_at})",
        name = cut(.name)
    )]
    Name {
        /// What was found.
        name: String,
        /// Where it is declared.
        source_at: SourceInfo,
    },
    /// A kind that this host does not know.
    #[error(
        "knob '{knob}' is of kind {found}, expected 1 (bool), 2 (int), 3 (float) or 4 (string)",
        knob = cut(.knob)
    )]
    Kind {
        /// `scope.name`.
        knob: String,
        /// What was found.
        found: u32,
    },
    /// Two knobs of one name, or of one environment variable.
    #[error(
        "knob '{knob}' is declared twice as {variable}: at {first} and at {second}",
        knob = cut(.knob), variable = cut(.variable)
    )]
    Duplicate {
        /// `scope.name` of the second.
        knob: String,
        /// The environment variable.
        variable: String,
        /// Where it was declared first.
        first: Box<SourceInfo>,
        /// Where it was declared again.
        second: Box<SourceInfo>,
    },
    /// A setting that no plugin or crate declared.
    #[error("unknown knob '{knob}' ({origin}){}", suggestion(.nearest), knob = cut(.knob))]
    Unknown {
        /// As it was written.
        knob: String,
        /// The source of the setting.
        origin: KnobOrigin,
        /// The nearest declared names.
        nearest: Vec<String>,
    },
    /// A value that is not of the knob's kind.
    #[error(
        "knob '{knob}' ({origin}) is of type {expected}, found '{found}'",
        knob = cut(.knob), found = cut_text(.found)
    )]
    Value {
        /// `scope.name`.
        knob: String,
        /// The source of the setting.
        origin: KnobOrigin,
        /// Its type.
        expected: &'static str,
        /// The text.
        found: String,
    },
    /// A session option for a knob that is read before there are sessions.
    #[error(
        "knob '{knob}' (session option) is read when plugins are loaded: set it for the runtime, by its settings, \
         --set or the environment",
        knob = cut(.knob)
    )]
    NotOfSessions {
        /// `scope.name`.
        knob: String,
    },
    /// A `--set` without `=`.
    #[error("expected scope.name=value, found '{found}'", found = cut_text(.found))]
    Setting {
        /// The text.
        found: String,
    },
}

impl KnobError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            KnobError::Unknown { .. } => Code::NOT_FOUND,
            KnobError::Duplicate { .. } => Code::ALREADY_EXISTS,
            _ => Code::INVALID_ARGUMENT,
        }
    }
}

fn suggestion(nearest: &[String]) -> String {
    match nearest {
        [] => ": no knob is declared".to_owned(),
        names => format!(": did you mean {}?", cut_text(&names.join(" or "))),
    }
}

/// The source of a knob's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KnobOrigin {
    /// Its declaration.
    Default,
    /// An environment variable.
    Environment,
    /// A session option.
    Option,
    /// `--set`.
    Set,
}

impl fmt::Display for KnobOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KnobOrigin::Default => "default",
            KnobOrigin::Environment => "environment",
            KnobOrigin::Option => "session option",
            KnobOrigin::Set => "--set",
        })
    }
}

impl KnobDef {
    /// Declares a knob; `default` is read as a value of `kind`.
    ///
    /// # Errors
    /// A name that is not in snake_case, an unknown kind, a default of another kind.
    pub fn new(
        scope: &str,
        name: &str,
        kind: KnobKind,
        default: &str,
        help: &str,
        source: SourceInfo,
    ) -> Result<KnobDef, KnobError> {
        for part in [scope, name] {
            let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
            if !part.starts_with(|c: char| c.is_ascii_lowercase()) || !part.bytes().all(letters) {
                return Err(KnobError::Name { name: part.to_owned(), source_at: source });
            }
        }
        let knob = format!("{scope}.{name}");
        if !(KnobKind::BOOL.0..=KnobKind::STRING.0).contains(&kind.0) {
            return Err(KnobError::Kind { knob, found: kind.0 });
        }
        let default = parse_value(&knob, kind, default, KnobOrigin::Default)?;
        let (scope, name, help) = (scope.to_owned(), name.to_owned(), help.to_owned());
        Ok(KnobDef { scope, name, kind, default, help, source })
    }

    /// Copies and checks what a plugin handed over.
    ///
    /// # Errors
    /// As [`KnobDef::new`]; a struct that is too small, null pointers, text that is not UTF-8.
    ///
    /// # Safety
    /// `knob` is null or points to a struct that begins with its size and whose texts are readable.
    pub unsafe fn from_abi(
        scope: &str,
        knob: *const tenon_abi::KnobDef,
    ) -> Result<KnobDef, KnobError> {
        const WHAT: &str = "knob definition";
        // SAFETY: the caller gives null or a struct that begins with its size, with readable texts. Nothing else is
        // read.
        unsafe {
            let knob = raw::sized(knob, WHAT)?;
            let name = raw::text(knob.name, WHAT, "name")?;
            let default = raw::text(knob.default_value, WHAT, "default")?;
            let help = raw::text(knob.help, WHAT, "help")?;
            let source = SourceInfo::from_abi(&knob.source)?;
            KnobDef::new(scope, &name, knob.kind, &default, &help, source)
        }
    }

    /// `scope.name`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.scope, self.name)
    }

    /// Its environment variable.
    pub fn variable(&self) -> String {
        format!("TENON_{}_{}", self.scope, self.name).to_ascii_uppercase()
    }

    /// Its environment variable without the scope, as users may write it by mistake.
    fn variable_without_scope(&self) -> String {
        format!("TENON_{}", self.name).to_ascii_uppercase()
    }
}

fn parse_value(
    knob: &str,
    kind: KnobKind,
    text: &str,
    origin: KnobOrigin,
) -> Result<KnobValue, KnobError> {
    KnobValue::parse(kind, text).ok_or_else(|| KnobError::Value {
        knob: knob.to_owned(),
        origin,
        expected: kind_name(kind),
        found: text.to_owned(),
    })
}

/// Splits `scope.name=value`.
///
/// # Errors
/// There is no `=`.
pub fn parse_setting(text: &str) -> Result<(String, String), KnobError> {
    match text.split_once('=') {
        Some((knob, value)) => Ok((knob.trim().to_owned(), value.to_owned())),
        None => Err(KnobError::Setting { found: text.to_owned() }),
    }
}

/// The declared knobs, by `scope.name`.
#[derive(Debug, Clone, Default)]
pub struct KnobStore {
    defs: BTreeMap<String, Arc<KnobDef>>,
    /// By environment variable: `a_b.c` and `a.b_c` share one.
    variables: BTreeMap<String, Arc<KnobDef>>,
}

impl KnobStore {
    /// Adds a declaration; the same one again is harmless.
    ///
    /// # Errors
    /// Another knob of this name or environment variable.
    pub fn declare(&mut self, def: Arc<KnobDef>) -> Result<(), KnobError> {
        let variable = def.variable();
        if let Some(first) = self.variables.get(&variable) {
            if **first == *def {
                return Ok(());
            }
            return Err(KnobError::Duplicate {
                knob: def.full_name(),
                variable,
                first: Box::new(first.source.clone()),
                second: Box::new(def.source.clone()),
            });
        }
        self.variables.insert(variable, def.clone());
        self.defs.insert(def.full_name(), def);
        Ok(())
    }

    /// The declarations, in the order of their names.
    pub fn defs(&self) -> impl Iterator<Item = &Arc<KnobDef>> {
        self.defs.values()
    }

    /// The declaration of `scope.name`.
    pub fn get(&self, full_name: &str) -> Option<&Arc<KnobDef>> {
        self.defs.get(full_name)
    }

    /// Reads the layers. Options and settings are pairs of `scope.name` and text; a later pair wins within
    /// its layer. A variable `TENON_<SCOPE>_...` is an unknown knob when the scope has any knob, and so is
    /// `TENON_<NAME>` with the name of a knob whose scope is left out; any other one belongs to a plugin that is not
    /// loaded and is passed over.
    ///
    /// # Errors
    /// All unknown knobs and all values of the wrong type.
    pub fn snapshot(
        &self,
        environment: impl IntoIterator<Item = (String, String)>,
        options: &[(String, String)],
        set: &[(String, String)],
    ) -> Result<Knobs, Vec<KnobError>> {
        let default = |def: &Arc<KnobDef>| KnobSetting {
            def: def.clone(),
            value: def.default.clone(),
            origin: KnobOrigin::Default,
        };
        let mut values: BTreeMap<String, KnobSetting> =
            self.defs.iter().map(|(name, def)| (name.clone(), default(def))).collect();
        let mut errors = Vec::new();
        let mut apply = |def: Option<&Arc<KnobDef>>, written: &str, text: &str, origin| {
            let parsed = match def {
                Some(def) => parse_value(&def.full_name(), def.kind, text, origin)
                    .map(|value| KnobSetting { def: def.clone(), value, origin }),
                None => Err(self.unknown(written, origin)),
            };
            match parsed {
                Ok(setting) => drop(values.insert(setting.def.full_name(), setting)),
                Err(error) => errors.push(error),
            }
        };
        for (variable, text) in environment {
            let def = self.variables.get(&variable);
            if def.is_some() || self.claims(&variable) {
                apply(def, &variable, &text, KnobOrigin::Environment);
            }
        }
        for (layer, origin) in [(options, KnobOrigin::Option), (set, KnobOrigin::Set)] {
            for (name, text) in layer {
                apply(self.defs.get(name), name, text, origin);
            }
        }
        if errors.is_empty() { Ok(Knobs { values }) } else { Err(errors) }
    }

    /// Whether an environment variable has the form of a knob of a scope that is there, or the name of a knob without
    /// its scope.
    fn claims(&self, variable: &str) -> bool {
        !RESERVED_VARIABLES.contains(&variable)
            && self.defs().any(|def| {
                let prefix = format!("TENON_{}_", def.scope).to_ascii_uppercase();
                variable.starts_with(&prefix) || variable == def.variable_without_scope()
            })
    }

    /// The error for an undeclared knob, with the nearest names. A name without its scope, or with another scope, is
    /// near.
    fn unknown(&self, written: &str, origin: KnobOrigin) -> KnobError {
        let distance = |name: &str| edit_distance(written.as_bytes(), name.as_bytes());
        let name = |def: &KnobDef| match origin {
            KnobOrigin::Environment => (def.variable(), def.variable_without_scope()),
            _ => (def.full_name(), def.name.clone()),
        };
        let near = |def: &Arc<KnobDef>| {
            let (whole, without_scope) = name(def);
            (distance(&whole).min(distance(&without_scope)), whole)
        };
        let mut ranked: Vec<(usize, String)> = self.defs().map(near).collect();
        ranked.sort();
        let limit = ranked.first().map_or(0, |(distance, _)| distance + 1);
        let nearest = ranked.iter().take(3).filter(|(distance, _)| *distance <= limit);
        KnobError::Unknown {
            knob: written.to_owned(),
            origin,
            nearest: nearest.map(|(_, name)| format!("'{name}'")).collect(),
        }
    }
}

/// A knob with its value.
#[derive(Debug, Clone)]
pub struct KnobSetting {
    /// The declaration.
    pub def: Arc<KnobDef>,
    /// The value.
    pub value: KnobValue,
    /// The source of the value.
    pub origin: KnobOrigin,
}

/// The values of all knobs: an immutable snapshot.
#[derive(Debug, Clone, Default)]
pub struct Knobs {
    values: BTreeMap<String, KnobSetting>,
}

impl Knobs {
    /// The knob of this scope and name.
    pub fn get(&self, scope: &str, name: &str) -> Option<&KnobSetting> {
        self.values.get(&format!("{scope}.{name}"))
    }

    /// All knobs, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &KnobSetting> {
        self.values.values()
    }

    /// The value of a knob of type bool.
    pub fn bool(&self, scope: &str, name: &str) -> Option<bool> {
        if let KnobValue::Bool(value) = self.get(scope, name)?.value { Some(value) } else { None }
    }

    /// The value of a knob of type int.
    pub fn int(&self, scope: &str, name: &str) -> Option<i64> {
        if let KnobValue::Int(value) = self.get(scope, name)?.value { Some(value) } else { None }
    }

    /// The value of a knob of type float.
    pub fn float(&self, scope: &str, name: &str) -> Option<f64> {
        if let KnobValue::Float(value) = self.get(scope, name)?.value { Some(value) } else { None }
    }

    /// The value of a knob of type string.
    pub fn text(&self, scope: &str, name: &str) -> Option<&str> {
        if let KnobValue::String(value) = &self.get(scope, name)?.value {
            Some(value)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests;
