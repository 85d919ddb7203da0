//! The layers from which knobs get their values.

use std::{collections::BTreeMap, env};
use tenon_framework::knob::{KnobError, KnobStore, Knobs};

/// Prefix of the host's own knobs. All of them are read when plugins are loaded.
const HOST_SCOPE: &str = "host.";

/// Settings by layer, from the weakest to the strongest. Names are `scope.name`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Environment variables.
    pub environment: Vec<(String, String)>,
    /// Options of the program that embeds the host.
    pub options: Vec<(String, String)>,
    /// `--set`.
    pub set: Vec<(String, String)>,
}

impl Settings {
    /// Settings from this process's environment alone.
    pub fn of_process() -> Settings {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let environment = env::vars_os()
            .filter_map(text)
            .filter(|(name, _)| name.starts_with("TENON_"))
            .collect();
        Settings { environment, ..Settings::default() }
    }

    /// The values for a session: its options override those of the program, and `--set` overrides
    /// both.
    ///
    /// # Errors
    /// A knob that is undeclared or cannot be set by a session, a value of the wrong type.
    pub fn for_session(
        &self,
        store: &KnobStore,
        session: &BTreeMap<String, String>,
    ) -> Result<Knobs, KnobError> {
        let own: Vec<(String, String)> =
            session.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        if let Err(errors) = store.snapshot([], &own, &[])
            && let Some(error) = errors.into_iter().next()
        {
            return Err(error);
        }
        if let Some((knob, _)) = own.iter().find(|(knob, _)| knob.starts_with(HOST_SCOPE)) {
            return Err(KnobError::NotOfSessions { knob: knob.clone() });
        }
        let options = self.options.iter().cloned().chain(own).collect();
        // Errors in the runtime's own settings were reported when it started.
        Ok(Settings { options, ..self.clone() }.apply(store).0)
    }

    /// The values of all declared knobs, and the errors in the settings. An invalid setting has no
    /// effect. A program checks the errors once all plugins are loaded, since their knobs are
    /// unknown before.
    pub fn apply(&self, store: &KnobStore) -> (Knobs, Vec<KnobError>) {
        let (environment, options, set) = (&self.environment, &self.options, &self.set);
        let errors = match store.snapshot(environment.iter().cloned(), options, set) {
            Ok(knobs) => return (knobs, Vec::new()),
            Err(errors) => errors,
        };
        let fine = |pairs: &[(String, String)], alone: &dyn Fn(&(String, String)) -> bool| {
            pairs.iter().filter(|pair| alone(pair)).cloned().collect::<Vec<_>>()
        };
        let environment =
            fine(environment, &|pair| store.snapshot([pair.clone()], &[], &[]).is_ok());
        let named =
            |pair: &(String, String)| store.snapshot([], std::slice::from_ref(pair), &[]).is_ok();
        let (options, set) = (fine(options, &named), fine(set, &named));
        // The remaining settings are valid individually, and layers do not contradict each other.
        let knobs = store.snapshot(environment, &options, &set).unwrap_or_default();
        (knobs, errors)
    }
}

/// Whether an error concerns one of the host's own knobs, which are known from the start.
pub(crate) fn of_the_host(error: &KnobError) -> bool {
    match error {
        KnobError::Unknown { knob, .. } | KnobError::Value { knob, .. } => {
            knob.starts_with(HOST_SCOPE) || knob.starts_with("TENON_HOST_")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tenon_abi::KnobKind;
    use tenon_framework::{knob::KnobDef, op::SourceInfo};

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_wrong_setting_has_no_effect_on_the_others_and_is_reported() {
        let mut store = KnobStore::default();
        let def = |name| KnobDef::new("p", name, KnobKind::INT, "1", "", SourceInfo::default());
        store.declare(Arc::new(def("a").unwrap())).unwrap();
        store.declare(Arc::new(def("b").unwrap())).unwrap();
        let settings = Settings {
            environment: pairs(&[("TENON_P_A", "2"), ("TENON_P_X", "3"), ("TENON_Q_Y", "4")]),
            options: pairs(&[("p.b", "many")]),
            set: pairs(&[("p.b", "5"), ("q.y", "6")]),
        };
        let (knobs, errors) = settings.apply(&store);
        assert_eq!((knobs.int("p", "a"), knobs.int("p", "b")), (Some(2), Some(5)));
        let texts: Vec<String> = errors.iter().map(KnobError::to_string).collect();
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(texts[0].contains("TENON_P_X") && texts[1].contains("many"), "{texts:?}");
        assert!(texts[2].contains("q.y"), "{texts:?}");
        assert!(!errors.iter().any(of_the_host));
    }
}
