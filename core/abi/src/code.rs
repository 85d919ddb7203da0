//! TensorFlow's canonical status codes.

use abi_stable::StableAbi;
use core::fmt;

/// A status code, numbered as TensorFlow's `error.Code`. Zero is success.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub i32);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl Code {
            $($(#[$doc])* pub const $name: Code = Code($value);)*

            /// The canonical name, such as `INVALID_ARGUMENT`; `UNKNOWN` for a number that has none.
            pub const fn name(self) -> &'static str {
                match self.0 {
                    $($value => stringify!($name),)*
                    _ => "UNKNOWN",
                }
            }

            /// The code with this canonical name, if there is one.
            pub fn from_name(name: &str) -> Option<Code> {
                match name {
                    $(stringify!($name) => Some(Code::$name),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// Returned by an asynchronous kernel that has not finished: completion follows by `complete`.
    PENDING = -1;
    /// Success.
    OK = 0;
    /// The step or call was cancelled.
    CANCELLED = 1;
    /// An error without a better code.
    UNKNOWN = 2;
    /// The caller gave something that is wrong whatever the state of the system.
    INVALID_ARGUMENT = 3;
    /// The deadline passed first.
    DEADLINE_EXCEEDED = 4;
    /// A thing that was named does not exist.
    NOT_FOUND = 5;
    /// A thing to be made exists already.
    ALREADY_EXISTS = 6;
    /// The caller may not do this.
    PERMISSION_DENIED = 7;
    /// Memory or another resource ran out.
    RESOURCE_EXHAUSTED = 8;
    /// The system is not in the state that the operation needs.
    FAILED_PRECONDITION = 9;
    /// The operation was given up, typically because of a conflict.
    ABORTED = 10;
    /// Past the valid range, such as the end of a sequence.
    OUT_OF_RANGE = 11;
    /// Not supported.
    UNIMPLEMENTED = 12;
    /// An invariant is broken: a bug in a kernel, a plugin or the runtime.
    INTERNAL = 13;
    /// A device or service is not there (any more).
    UNAVAILABLE = 14;
    /// Data is corrupt or lost.
    DATA_LOSS = 15;
    /// The caller has no valid credentials.
    UNAUTHENTICATED = 16;
}

impl Code {
    /// Whether the code says success.
    pub const fn is_ok(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn names_go_round() {
        for number in -1..=16 {
            let code = Code(number);
            assert_eq!(Code::from_name(code.name()), Some(code));
        }
    }

    #[test]
    fn a_number_without_a_name_is_unknown_and_stays_itself() {
        assert_eq!(Code(17).name(), "UNKNOWN");
        assert_eq!(format!("{:?}", Code(17)), "UNKNOWN(17)");
        assert_ne!(Code(17), Code::UNKNOWN);
        assert_eq!(Code::from_name("NO_SUCH_CODE"), None);
    }

    #[test]
    fn only_zero_is_success() {
        assert!(Code::OK.is_ok());
        assert!(!Code::PENDING.is_ok());
        assert!(!Code::CANCELLED.is_ok());
    }
}
