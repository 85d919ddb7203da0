//! A simulated accelerator: the reference for a new device type.
