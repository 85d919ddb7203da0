//! Gives the crate the plugin name of the crate that it is a later build of, and a version of its own.

fn main() {
    println!("cargo::rustc-env=CARGO_PKG_NAME=zoo-second");
    println!("cargo::rustc-env=CARGO_PKG_VERSION=0.2.0");
    println!("cargo::rerun-if-changed=build.rs");
}
