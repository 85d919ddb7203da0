//! What a server or a proxy shows, trusts and allows: certificates, tokens, limits and files.

use crate::error::CliError;
use clap::Args;
use std::{fs, path::PathBuf};
use tenon_cluster::{Access, AuditOptions, ClientLimits, ClientTls, Identity, ServerTls};
use tenon_runtime::{
    Runtime, RuntimeError, RuntimeOptions, framework::knob::KnobOrigin, host::trust::usual_file,
};

/// The plugins whose ops name files.
const WITH_FILES: [&str; 4] = ["text", "data", "checkpoint", "train"];
/// The knob of the list of trusted plugins.
const TRUST_FILE: &str = "host.trust_file";
/// The variables that say which plugins are trusted.
const TRUST_VARIABLES: [&str; 2] = ["TENON_HOST_TRUST_FILE", "TENON_HOST_ALLOWED_DIGESTS"];

/// Certificates and tokens.
#[derive(Debug, Args)]
pub struct AccessArgs {
    /// This side's certificate, in PEM, with those between it and its authority
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// The authorities that sign the certificates of the other side, in PEM
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Tokens, one a line: ROLE NAME TOKEN, where ROLE is client or worker, or a single TOKEN for both
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Work without encryption, or without knowing callers, where other machines can reach this one
    #[arg(long)]
    pub insecure: bool,
}

impl AccessArgs {
    fn identity(&self) -> Option<Identity> {
        let (cert, key) = self.tls_cert.clone().zip(self.tls_key.clone())?;
        Some(Identity { cert, key })
    }

    /// TLS of a server.
    ///
    /// # Errors
    /// There is an authority for clients, and no certificate of the server.
    pub fn of_server(&self) -> Result<Option<ServerTls>, CliError> {
        match self.identity() {
            Some(identity) => Ok(Some(ServerTls { identity, ca: self.tls_ca.clone() })),
            None if self.tls_ca.is_none() => Ok(None),
            None => Err(CliError::Usage(
                "--tls-ca: a server with TLS needs a certificate of its own: expected --tls-cert and --tls-key too"
                    .to_owned(),
            )),
        }
    }

    /// Certificates and tokens of a client.
    pub fn of_client(&self) -> Access {
        let tls = self.tls_ca.clone().map(|ca| ClientTls { ca, identity: self.identity() });
        Access { tls, token_file: self.token_file.clone(), insecure: self.insecure }
    }
}

/// What clients and their graphs may use.
#[derive(Debug, Args)]
pub struct ClientArgs {
    /// Sessions that one client has open at the same time, at most
    #[arg(long, value_name = "N", default_value = "1000")]
    pub client_sessions: usize,
    /// Nodes of a session's graph, at most
    #[arg(long, value_name = "N", default_value = "10000000")]
    pub client_graph_nodes: usize,
    /// Bytes of one client's requests that are handled at the same time, at most
    #[arg(long, value_name = "BYTES", default_value = "8589934592")]
    pub client_bytes: usize,
    /// Steps of one client that run at the same time, at most
    #[arg(long, value_name = "N", default_value = "1000")]
    pub client_steps: usize,
    /// The folder whose files graphs may read and write, or 'any' for all files; without this, none
    #[arg(long, value_name = "DIR")]
    pub allow_files: Option<PathBuf>,
    /// Write sessions, steps and refusals to this file, a line of JSON for each
    #[arg(long, value_name = "FILE")]
    pub audit: Option<PathBuf>,
    /// MiB after which a new file of --audit is begun; four former ones are kept
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub audit_mib: u64,
}

impl ClientArgs {
    /// The limits of one client.
    pub fn limits(&self) -> ClientLimits {
        ClientLimits {
            sessions: self.client_sessions,
            graph_nodes: self.client_graph_nodes,
            request_bytes: self.client_bytes,
            steps: self.client_steps,
        }
    }

    /// The audit log.
    pub fn audit(&self) -> Option<AuditOptions> {
        let options = AuditOptions::in_file(self.audit.clone()?);
        Some(AuditOptions { bytes: self.audit_mib << 20, ..options })
    }

    /// What `--allow-files` says, as a value of the plugins' knobs.
    ///
    /// # Errors
    /// It is not a folder.
    fn files(&self) -> Result<Option<String>, CliError> {
        let Some(folder) = &self.allow_files else { return Ok(None) };
        if folder.as_os_str() == "any" {
            return Ok(Some("any".to_owned()));
        }
        let failed = |source| CliError::File { file: folder.clone(), done: "read", source };
        let real = fs::canonicalize(folder).map_err(failed)?;
        fs::read_dir(&real).map_err(failed)?;
        Ok(Some(real.display().to_string()))
    }

    /// Confines the files of graphs: to the folder of `--allow-files`, and without it to none. A knob that the environment or
    /// `--set` sets stays as it is, unless the option is given.
    ///
    /// # Errors
    /// The option does not name a folder.
    pub fn confine_files(&self, runtime: &Runtime) -> Result<(), CliError> {
        let asked = self.files()?;
        let knobs = runtime.plugins().knobs();
        for plugin in WITH_FILES {
            let Some(setting) = knobs.get(plugin, "files") else { continue };
            let is_set = setting.origin != KnobOrigin::Default;
            let value = match &asked {
                Some(value) => value.as_str(),
                None if is_set => continue,
                None => "off",
            };
            let set = runtime.plugins().set_knob(&format!("{plugin}.files"), value);
            set.map_err(RuntimeError::Setting)?;
        }
        Ok(())
    }
}

/// Puts the usual list of trusted plugins in force, if there is one and no setting names another.
pub fn trust_list(options: &mut RuntimeOptions, set: &[(String, String)]) {
    let names_one = |knob: &str| knob == TRUST_FILE || knob == "host.allowed_digests";
    let is_set = set.iter().any(|(knob, _)| names_one(knob))
        || TRUST_VARIABLES.iter().any(|name| std::env::var_os(name).is_some());
    if !is_set && let Some(list) = usual_file().filter(|list| list.exists()) {
        options.settings.options.push((TRUST_FILE.to_owned(), list.display().to_string()));
    }
}
