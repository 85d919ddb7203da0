//! Trial of a library: a library with an unknown digest is first opened in a process that it may
//! crash.
//!
//! Opening a library runs some of its code (constructors of static objects), and the dynamic linker
//! follows tables that may be damaged. A failure there, by throwing, crashing, exiting or hanging,
//! would take the host down, whatever the manifest says. So the running program is started once
//! more, as a *probe* (`child`): before `main` it opens the library, reports success, and ends. A
//! library that ends its probe, or blocks it, is refused at step open, with the reason.
//!
//! The verdict is kept by digest (`verdicts`), in memory and in the cache folder, so that a library
//! is tried once. A refusal by the linker is not a verdict: a missing dependency may exist the next
//! time, and none of the library's code ran.
//!
//! # Invariants
//! - A probe ends with its host, and so do processes that it started; its time is limited by
//!   [`Probing::patience`].
//! - Only a limited number of bytes of its output is kept.
//! - A probe starts no other probe.
//!
//! This is a protection against faults. A malicious library can do harm in the probe, or later in
//! the host.

#[cfg(all(target_os = "linux", not(miri)))]
mod child;
#[cfg(all(target_os = "linux", not(miri)))]
mod run;
#[cfg(all(target_os = "linux", not(miri)))]
mod verdicts;

use super::handshake::Who;
use crate::error::LoadError;
use std::{fs::File, path::PathBuf, time::Duration};
use tenon_framework::{
    knob::{KnobError, Knobs},
    register_knob,
};

register_knob!(
    "probe_libraries": STRING = "unknown",
    "Opens a plugin's library in another process first: unknown (one that was not tried before), always or never."
);
register_knob!(
    "probe_timeout_ms": INT = "10000",
    "Milliseconds after which a library that is tried in another process and is still not open is refused; at least 1."
);

/// The choice of libraries that are tried in a probe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum When {
    /// Libraries whose digest was not tried before.
    #[default]
    Unknown,
    /// All libraries, each time one is opened.
    Always,
    /// None.
    Never,
}

/// How libraries are tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probing {
    /// The libraries that are tried.
    pub when: When,
    /// How long opening a library may take.
    pub patience: Duration,
    /// A program that can be a probe if the running one cannot: `tenon`, or another program with
    /// the host linked in.
    pub worker: Option<PathBuf>,
}

impl Default for Probing {
    fn default() -> Probing {
        Probing { when: When::Unknown, patience: Duration::from_secs(10), worker: None }
    }
}

const KNOB: (&str, &str) = ("host", "probe_libraries");

impl Probing {
    /// The values from the host's knobs.
    pub fn from_knobs(knobs: &Knobs) -> Probing {
        let usual = Probing::default();
        let worker = knobs.text("host", "isolate_worker").filter(|path| !path.is_empty());
        let patience = knobs.int("host", "probe_timeout_ms").and_then(|ms| u64::try_from(ms).ok());
        Probing {
            when: knobs.text(KNOB.0, KNOB.1).and_then(when).unwrap_or_default(),
            patience: patience.map_or(usual.patience, |ms| Duration::from_millis(ms.max(1))),
            worker: worker.map(PathBuf::from),
        }
    }
}

fn when(text: &str) -> Option<When> {
    match text {
        "unknown" => Some(When::Unknown),
        "always" => Some(When::Always),
        "never" => Some(When::Never),
        _ => None,
    }
}

/// The error of an invalid knob value.
pub(crate) fn wrong_knob(knobs: &Knobs) -> Option<KnobError> {
    let setting = knobs.get(KNOB.0, KNOB.1)?;
    let found = knobs.text(KNOB.0, KNOB.1)?;
    when(found).is_none().then(|| KnobError::Value {
        knob: setting.def.full_name(),
        origin: setting.origin,
        expected: "'unknown', 'always' or 'never'",
        found: found.to_owned(),
    })
}

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The library opens.
    Opens,
    /// The library ends the process that opens it, or blocks it; says how.
    Refused(String),
}

/// Refuses a library that ends the process that opens it. `digest` is the digest of `library`.
///
/// # Errors
/// [`LoadError::Probe`].
pub fn check(
    library: &File,
    digest: &str,
    who: Who<'_>,
    probing: &Probing,
) -> Result<(), LoadError> {
    let verdict = match probing.when {
        When::Never => None,
        When::Always | When::Unknown => verdict(library, digest, who, probing),
    };
    match verdict {
        Some(Verdict::Refused(how)) => {
            let (path, plugin) = (who.path.to_owned(), who.plugin.to_owned());
            Err(LoadError::Probe { path, plugin, how })
        }
        Some(Verdict::Opens) | None => Ok(()),
    }
}

/// The verdict on a library, which is tried if its verdict is unknown; `None` if the trial is
/// inconclusive.
#[cfg(all(target_os = "linux", not(miri)))]
fn verdict(library: &File, digest: &str, who: Who<'_>, probing: &Probing) -> Option<Verdict> {
    use run::Tried;
    let plugin = who.plugin;
    let known = (probing.when == When::Unknown).then(|| verdicts::recall(digest)).flatten();
    if known.is_some() {
        return known;
    }
    match run::open(library, probing) {
        Ok(Tried { verdict, lasting }) => {
            if let Some(verdict) = verdict.as_ref().filter(|_| lasting) {
                verdicts::keep(digest, verdict);
            }
            verdict
        }
        Err(error) => {
            tracing::warn!(plugin, "its library is opened without being tried first: {error}");
            None
        }
    }
}

/// On other systems no library is tried.
#[cfg(not(all(target_os = "linux", not(miri))))]
fn verdict(_library: &File, _digest: &str, _who: Who<'_>, _probing: &Probing) -> Option<Verdict> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plugins, Settings, StartError};

    fn with(name: &str, value: &str) -> Result<Probing, StartError> {
        let set = vec![(name.to_owned(), value.to_owned())];
        let settings = Settings { set, ..Settings::default() };
        Plugins::with_settings(settings).map(|plugins| Probing::from_knobs(&plugins.knobs()))
    }

    #[test]
    fn the_knobs_say_which_libraries_are_tried_and_for_how_long() {
        assert_eq!(with("host.probe_timeout_ms", "10000").unwrap(), Probing::default());
        assert_eq!(with("host.probe_libraries", "always").unwrap().when, When::Always);
        assert_eq!(with("host.probe_libraries", "never").unwrap().when, When::Never);
        for (text, ms) in [("0", 1), ("-1", 10_000), ("250", 250)] {
            let patience = with("host.probe_timeout_ms", text).unwrap().patience;
            assert_eq!(patience, Duration::from_millis(ms), "{text}");
        }
        let worker = with("host.isolate_worker", "/bin/tenon").unwrap().worker;
        assert_eq!(worker, Some("/bin/tenon".into()));
    }

    #[test]
    fn another_value_of_the_knob_is_an_error() {
        let error = with("host.probe_libraries", "sometimes").unwrap_err().to_string();
        let expected = "knob 'host.probe_libraries' (--set) is of type 'unknown', 'always' or 'never', \
                        found 'sometimes'";
        assert_eq!(error, expected);
    }
}
