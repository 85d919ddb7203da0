//! The receiver of an examination's progress.

use super::clause::{Clause, Finding};

/// Takes what an examination does and finds, while it does: a crash or an endless loop belongs to what was
/// begun last.
pub trait Progress {
    /// From here on this clause is looked at, on this case. The same pair may begin more than once.
    fn begin(&mut self, clause: Clause, case: &str);

    /// As [`Progress::begin`], of a call on inputs as no session gives them, aligned to their elements alone: of what
    /// ends the process only a read beside a buffer counts.
    fn begin_unpromised(&mut self, clause: Clause, case: &str) {
        self.begin(clause, case);
    }

    /// What was found, on the case that was begun last.
    fn found(&mut self, finding: Finding);
}
