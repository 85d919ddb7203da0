//! Who is told how an examination goes.

use super::clause::{Clause, Finding};

/// Takes what an examination does and finds, while it does: a crash or an endless loop belongs to what was
/// begun last.
pub trait Progress {
    /// From here on this clause is looked at, on this case. The same pair may begin more than once.
    fn begin(&mut self, clause: Clause, case: &str);

    /// What was found, on the case that was begun last.
    fn found(&mut self, finding: Finding);
}
