//! The promises that kernels must make, so that policy `measured` chooses among them.

use super::{kernel_def::KernelDef, numerics};
use std::str::FromStr;
use tenon_abi::{Numerics, ToleranceKind};

/// The requested numerics contract.
#[derive(Clone, Copy, Default)]
pub enum Contract {
    /// At least that of the kernel which policy `priority` chooses.
    #[default]
    OfFirst,
    /// At least this one; a kernel with the promises of the kernel by priority may run too.
    AtLeast(Numerics),
    /// Any.
    Any,
}

/// Whether the contract `own` promises at least what `other` does.
fn is_not_weaker(own: &Numerics, other: &Numerics) -> bool {
    let tolerance = match (own.tolerance, other.tolerance) {
        (_, ToleranceKind::UNSPECIFIED) | (ToleranceKind::EXACT, _) => true,
        (ToleranceKind::ULPS, ToleranceKind::ULPS) => own.ulps <= other.ulps,
        (ToleranceKind::ABSOLUTE_RELATIVE, ToleranceKind::ABSOLUTE_RELATIVE) => {
            own.absolute <= other.absolute && own.relative <= other.relative
        }
        // Figures of different kinds cannot be compared.
        _ => false,
    };
    tolerance && own.determinism.0 >= other.determinism.0
}

impl Contract {
    /// What the contract of `kernel` is weaker than, where `first` is the kernel by priority; `None` if it is strong
    /// enough.
    pub(super) fn missed(&self, kernel: &KernelDef, first: &KernelDef) -> Option<String> {
        let as_first = is_not_weaker(&kernel.numerics, &first.numerics);
        match self {
            Contract::OfFirst => (!as_first).then(|| format!("that of {first}")),
            Contract::AtLeast(asked) => (!as_first && !is_not_weaker(&kernel.numerics, asked))
                .then(|| "the one that is asked for".to_owned()),
            Contract::Any => None,
        }
    }
}

/// `priority`, `any`, `exact`, `ulps:N` or `relative:ABSOLUTE,RELATIVE`: the last three as authors state them with
/// [`numerics::Numerics`], with the determinism that comes with each.
impl FromStr for Contract {
    type Err = String;

    fn from_str(text: &str) -> Result<Contract, String> {
        let wrong = || {
            format!(
                "'{text}' is not a numerics contract: expected priority, any, exact, ulps:N, or relative:ABSOLUTE,RELATIVE with figures from 0 up"
            )
        };
        let figure = |text: &str| {
            let figure = text.trim().parse().ok();
            figure.filter(|figure: &f64| figure.is_finite() && *figure >= 0.0).ok_or_else(wrong)
        };
        let asked = match text.split_once(':') {
            None => match text {
                "priority" => return Ok(Contract::OfFirst),
                "any" => return Ok(Contract::Any),
                "exact" => numerics::Numerics::EXACT,
                _ => return Err(wrong()),
            },
            Some(("ulps", ulps)) => numerics::Numerics::ulps(figure(ulps)?),
            Some(("relative", figures)) => {
                let (absolute, relative) = figures.split_once(',').ok_or_else(wrong)?;
                numerics::Numerics::relative(figure(absolute)?, figure(relative)?)
            }
            Some(_) => return Err(wrong()),
        };
        Ok(Contract::AtLeast(asked.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_abi::{DType, Determinism};

    fn numerics(tolerance: ToleranceKind, figure: f64, determinism: Determinism) -> Numerics {
        let (ulps, absolute, relative) = (figure, figure, figure);
        let accumulation = DType::INVALID;
        Numerics { tolerance, determinism, ulps, absolute, relative, accumulation, reserved: 0 }
    }

    #[test]
    fn a_contract_is_weaker_when_it_promises_less() {
        let exact = numerics(ToleranceKind::EXACT, 0.0, Determinism::BITWISE);
        let two = numerics(ToleranceKind::ULPS, 2.0, Determinism::BITWISE);
        let four = numerics(ToleranceKind::ULPS, 4.0, Determinism::BITWISE);
        let loose = numerics(ToleranceKind::ABSOLUTE_RELATIVE, 1e-3, Determinism::BITWISE);
        let none = numerics(ToleranceKind::UNSPECIFIED, 0.0, Determinism::BITWISE);
        let varying = numerics(ToleranceKind::EXACT, 0.0, Determinism::NONE);
        for (strong, weak) in [(&exact, &two), (&two, &four), (&four, &none), (&exact, &varying)] {
            assert!(is_not_weaker(strong, weak) && !is_not_weaker(weak, strong));
        }
        assert!(!is_not_weaker(&two, &loose) && !is_not_weaker(&loose, &two), "not to be compared");
        assert!(is_not_weaker(&two, &two));
    }

    #[test]
    fn a_contract_is_written_as_authors_state_it() {
        let parsed = |text: &str| text.parse::<Contract>();
        let asked = |text: &str| match parsed(text) {
            Ok(Contract::AtLeast(asked)) => asked,
            _ => panic!("{text} is a contract with figures"),
        };
        assert!(matches!(parsed("priority"), Ok(Contract::OfFirst)));
        assert!(matches!(parsed("any"), Ok(Contract::Any)));
        assert_eq!(asked("exact").determinism, Determinism::BITWISE);
        assert_eq!(asked("ulps:4").ulps, 4.0);
        let loose = asked("relative:1e-30, 8e-6");
        assert_eq!((loose.absolute, loose.relative), (1e-30, 8e-6));
        assert_eq!(loose.determinism, Determinism::RUN_TO_RUN);
        let wrong = [
            "",
            "Exact",
            "ulps",
            "ulps:",
            "ulps:-1",
            "ulps:nan",
            "relative:1",
            "relative:1,inf",
            "bits:3",
        ];
        for text in wrong {
            let error = parsed(text).err().unwrap_or_else(|| panic!("'{text}' is refused"));
            assert!(error.contains(&format!("'{text}'")) && error.contains("ulps:N"), "{error}");
        }
    }
}
