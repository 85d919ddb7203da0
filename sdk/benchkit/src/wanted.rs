//! What the user wants to be called: the texts of the command line.
//!
//! ```text
//! target = FILE.pb | FILE of a plugin | OP [ ":" LABEL ]
//! shape  = [ NAME "=" ] dims { "+" dims } { "," NAME "=" dims { "+" dims } }
//! dims   = INTEGER { "x" INTEGER } | "[" [ size { "," size } ] "]"
//! size   = term { ( "+" | "-" ) term }      term = atom { ( "*" | "/" ) atom }      atom = INTEGER | SYMBOL
//! sweep  = SYMBOL "=" FIRST ".." LAST [ ":" ( "*" | "+" ) STEP ]
//! value  = NAME "=" ( INTEGER | "[" [ INTEGER { "," INTEGER } ] "]" )
//! ```

mod shape;
mod sweep;
mod target;

pub use shape::{Dims, Shapes, Size, dims_with, value};
pub use sweep::sweep;
pub use target::{Target, TargetError, closest};
