//! Loads plugins, lends them services, and calls their kernels.
