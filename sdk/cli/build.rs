//! Tells the command of which commit and for which target it is built.

use std::{env, path::Path, process::Command};

/// What git says of the folder of this crate.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The log of HEAD grows with every commit, also where HEAD goes on naming the same branch.
    for name in ["HEAD", "logs/HEAD"] {
        let place = git(&["rev-parse", "--git-path", name]);
        if let Some(place) = place.filter(|place| Path::new(place).exists()) {
            println!("cargo::rerun-if-changed={place}");
        }
    }
    // Source that lies in another project's repository is not of that project's commit.
    let tracked = git(&["ls-files", "--error-unmatch", "Cargo.toml"]);
    let commit = tracked.and_then(|_| git(&["rev-parse", "--short=12", "HEAD"]));
    println!("cargo::rustc-env=TENON_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    println!(
        "cargo::rustc-env=TENON_TARGET={}",
        env::var("TARGET").as_deref().unwrap_or("unknown")
    );
}
