//! `tenon check`: what it generates, and what it finds of kernels, devices and plugins that are wrong or right.

mod check;
mod check_cases;
mod check_device;
mod check_guard;
