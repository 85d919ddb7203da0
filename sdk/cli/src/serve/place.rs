//! The place of a server in its cluster: by options, or by what a launcher says in the environment.

use super::ServeArgs;
use crate::error::CliError;
use clap::{Args, ValueEnum};
use std::{fs, net::SocketAddr, path::PathBuf};
use tenon_cluster::{ClusterSpec, Launched, Launcher, Wishes};

/// The address without a cluster and `--listen`.
const USUAL: ([u8; 4], u16) = ([127, 0, 0, 1], 2222);

/// What says the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum From {
    /// TF_CONFIG, which has the cluster and the place
    TfConfig,
    /// The variables of a step of SLURM
    Slurm,
    /// The variables of torchrun
    Torchrun,
    /// The first of these that is there
    Env,
}

/// Options of the place.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// Take the cluster, the job and the number of this server from the environment, as a launcher sets it
    #[arg(long, value_name = "LAUNCHER", value_enum, conflicts_with_all = ["cluster", "job", "task"])]
    pub from: Option<From>,
    /// With --from: how many of the processes are tasks of job ps; the others are those of job worker
    #[arg(long, value_name = "N", default_value = "0", requires = "from")]
    pub ps: u32,
    /// With --from: the port of the first task of each machine; 8888 for SLURM, the one after MASTER_PORT for torchrun
    #[arg(long, value_name = "PORT", requires = "from")]
    pub port_base: Option<u16>,
    /// With --from torchrun: the machines in the order of their ranks, separated by commas
    #[arg(long, value_name = "HOST,...", value_delimiter = ',', requires = "from")]
    pub hosts: Vec<String>,
}

/// Where a server is.
#[derive(Debug)]
pub struct Place {
    pub cluster: Option<ClusterSpec>,
    pub job: String,
    pub task: u32,
    pub listen: SocketAddr,
}

impl Place {
    /// The place that the options say.
    ///
    /// # Errors
    /// The cluster cannot be read, does not have the task, or its host is unknown; the environment says no place.
    pub fn of(args: &ServeArgs) -> Result<Place, CliError> {
        let (cluster, job, task) = match launched(&args.place)? {
            Some(Launched { cluster, job, task }) => (Some(cluster), job, task),
            None => {
                let cluster = args.cluster.as_deref().map(read_cluster).transpose()?;
                (cluster, args.job.clone(), args.task)
            }
        };
        let own = match &cluster {
            Some(cluster) => Some(cluster.socket_address(&job, task)?),
            None => None,
        };
        let listen = args.listen.or(own).unwrap_or_else(|| SocketAddr::from(USUAL));
        Ok(Place { cluster, job, task, listen })
    }
}

/// What the environment says, if it is asked.
fn launched(args: &PlaceArgs) -> Result<Option<Launched>, CliError> {
    let Some(from) = args.from else { return Ok(None) };
    let get = |name: &str| std::env::var(name).ok();
    let launcher = match from {
        From::TfConfig => Launcher::TfConfig,
        From::Slurm => Launcher::Slurm,
        From::Torchrun => Launcher::Torchrun,
        From::Env => Launcher::found(&get).ok_or_else(|| {
            CliError::Usage(
                "--from env: expected TF_CONFIG, or the variables of SLURM or torchrun, and found none of them"
                    .to_owned(),
            )
        })?,
    };
    let wishes = Wishes { ps: args.ps, port: args.port_base, hosts: args.hosts.clone() };
    Ok(Some(launcher.read(&wishes, &get)?))
}

/// A cluster, from JSON or a file.
///
/// # Errors
/// The file cannot be read; the text is not a cluster.
pub fn read_cluster(text: &str) -> Result<ClusterSpec, CliError> {
    Ok(ClusterSpec::parse(&json_of(text)?)?)
}

/// JSON as it is, or that of a file.
///
/// # Errors
/// The file cannot be read.
pub fn json_of(text: &str) -> Result<String, CliError> {
    if text.trim_start().starts_with('{') {
        return Ok(text.to_owned());
    }
    let file = PathBuf::from(text);
    let read = fs::read_to_string(&file);
    read.map_err(|source| CliError::File { file, done: "read", source })
}
