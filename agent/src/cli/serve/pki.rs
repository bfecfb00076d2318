//! `berth serve pki`: certificates for people who have none.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::{date, now};
use crate::embedded::pki::{Authority, CA_DAYS, Client, DAYS, Keep, Made, ServerName, Term};

/// Make a CA, and certificates for the server, administrators, controllers and hosts
///
/// Keys are readable by their owner only. A host's kubeconfig is the one file to carry to that host. Nothing revokes a
/// certificate: a stolen key is good until it ends, or until you start again with a new CA in another directory.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
Examples:
  berth serve pki init --server-name 10.0.0.1 api.example.org
  berth serve pki host node01
  berth serve pki host node01 --force
  berth serve pki controller";

#[derive(Debug, Subcommand)]
enum What {
    /// Make the CA, the server's certificate, and an administrator's with its kubeconfig
    ///
    /// A CA that is there is kept, also with --force, which makes the other certificates anew.
    Init {
        #[command(flatten)]
        common: Common,
        /// Names and addresses that clients call the server by, the first in kubeconfigs; localhost goes without saying
        #[arg(long, value_name = "NAME|IP", num_args = 1.., value_parser = ServerName::parse)]
        server_name: Vec<ServerName>,
        /// The port in kubeconfigs
        #[arg(long, default_value_t = 6443)]
        port: u16,
    },
    /// Make a host's certificate and kubeconfig
    Host {
        /// The host's name: that of its Node
        name: String,
        #[command(flatten)]
        common: Common,
        /// Where the server is, if not as in the administrator's kubeconfig
        #[arg(long, value_name = "URL")]
        server: Option<String>,
    },
    /// Make a controller's certificate and kubeconfig
    Controller {
        #[command(flatten)]
        common: Common,
        /// Where the server is, if not as in the administrator's kubeconfig
        #[arg(long, value_name = "URL")]
        server: Option<String>,
    },
}

#[derive(Debug, clap::Args)]
struct Common {
    /// Where keys and certificates are
    #[arg(long, value_name = "DIR", default_value = "/etc/berth/pki")]
    dir: PathBuf,
    /// How many days certificates are good for
    #[arg(long, value_name = "DAYS", default_value_t = DAYS, value_parser = clap::value_parser!(u64).range(1..=CA_DAYS))]
    days: u64,
    /// Replace what is there
    #[arg(long)]
    force: bool,
}

impl Common {
    fn term(&self) -> Term {
        Term { now: now(), days: self.days }
    }

    fn keep(&self) -> Keep {
        if self.force { Keep::Nothing } else { Keep::What }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    match &args.what {
        What::Init { common, server_name, port } => init(common, server_name, *port),
        What::Host { name, common, server } => client(&Client::Host(name.clone()), common, server.as_ref()),
        What::Controller { common, server } => client(&Client::Controller, common, server.as_ref()),
    }
}

fn init(common: &Common, names: &[ServerName], port: u16) -> anyhow::Result<String> {
    let mut names = names.to_vec();
    if names.is_empty() {
        let host = nix::unistd::gethostname()?.to_string_lossy().into_owned();
        names.push(ServerName::parse(&host).map_err(|why| anyhow::anyhow!("--server-name {host}: {why}"))?);
    }
    let url = format!("https://{}:{port}", names[0].in_url());
    for local in ["localhost", "127.0.0.1", "::1"].iter().filter_map(|name| ServerName::parse(name).ok()) {
        if !names.contains(&local) {
            names.push(local);
        }
    }
    let (authority, made) = Authority::open_or_make(&common.dir, now())?;
    let mut text = String::new();
    made.iter().for_each(|made| shown(&mut text, made));
    shown(&mut text, &authority.server(&names, common.term(), common.keep())?);
    shown(&mut text, &authority.client(&Client::Administrator, &url, common.term(), common.keep())?);
    Ok(text)
}

fn client(client: &Client, common: &Common, server: Option<&String>) -> anyhow::Result<String> {
    let authority = Authority::open(&common.dir)?;
    let server = server.cloned().map_or_else(|| authority.server_url(), Ok)?;
    let mut text = String::new();
    shown(&mut text, &authority.client(client, &server, common.term(), common.keep())?);
    Ok(text)
}

/// A line per file; the day is the last on which it is of use.
fn shown(text: &mut String, made: &Made) {
    let until = date(i64::try_from(made.ends).unwrap_or(i64::MAX));
    let certificate = |path: &Path| path.extension().is_some_and(|ending| ending == "crt");
    for path in &made.files {
        let _ = match certificate(path) {
            true => writeln!(text, "{}  good until {until}", path.display()),
            false => writeln!(text, "{}", path.display()),
        };
    }
}
