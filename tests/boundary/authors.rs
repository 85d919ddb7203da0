//! What authors in C and C++ have: registrations, what `tenon.hpp` gives, the compilers that take it.

mod calls;
mod compilers;
mod nodes;
mod registrations;
mod shapes;
