//! Tenon's standard op set: definitions and shape functions.
