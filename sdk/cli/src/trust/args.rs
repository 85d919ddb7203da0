//! The command line of `tenon trust`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

pub const ABOUT: &str = "\
Keep the list of plugin files that may be loaded, by digest.

The list is a file in TOML that can be read and edited by hand. Without --file it is the one that the knob
host.trust_file names, else trust.toml in $XDG_CONFIG_HOME/tenon or ~/.config/tenon. It has an effect only where the
knob names it: TENON_HOST_TRUST_FILE=/etc/tenon/trust.toml for every program, --set host.trust_file=FILE for one.
Then only files whose SHA-256 is on the list are loaded, and a list that is not there, malformed or writable by others
lets nothing in. Nothing of a plugin runs while it is added.";

pub const EXAMPLE: &str = "\
Example:
  tenon trust add libmy_ops.so --comment reviewed --file trust.toml
  tenon trust add --found --file trust.toml
  tenon trust list --file trust.toml
  tenon trust remove my-ops --file trust.toml";

#[derive(Debug, Args)]
pub struct TrustArgs {
    #[command(subcommand)]
    pub command: TrustCommand,
    /// The list
    #[arg(long, value_name = "FILE", global = true)]
    pub file: Option<PathBuf>,
}

/// What to do with the list.
#[derive(Debug, Subcommand)]
pub enum TrustCommand {
    /// Put plugin files on the list
    #[command(
        after_long_help = "Example:\n  tenon trust add libmy_ops.so --comment \"reviewed by Ada\""
    )]
    Add(AddArgs),
    /// Show the list, and what has changed since
    #[command(after_long_help = "Example:\n  tenon trust list --json")]
    List,
    /// Take plugin files off the list
    #[command(after_long_help = "Example:\n  tenon trust remove my-ops")]
    Remove(RemoveArgs),
}

#[derive(Debug, Args)]
pub struct AddArgs {
    /// A plugin's file, or a SHA-256 digest
    #[arg(value_name = "FILE|DIGEST", required_unless_present = "found")]
    pub what: Vec<String>,
    /// Put the plugins on the list that search finds, each the build that would be loaded
    #[arg(long)]
    pub found: bool,
    /// What the list says beside it: who looked at it, and why
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
}

#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// The beginning of a digest, a plugin's file, or a plugin's name
    #[arg(value_name = "DIGEST|FILE|NAME", required = true)]
    pub what: Vec<String>,
    /// Remove every entry that fits, not only a single one
    #[arg(long)]
    pub all: bool,
}
