//! `berth serve pki`: certificates for people who have none.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::date;
use crate::clock::now;
use crate::embedded::pki::{Authority, CA_DAYS, Client, DAYS, Keep, Made, ServerName, Term};

/// Make a CA, and certificates for the server, administrators, controllers and hosts
///
/// Keys are readable by their owner only. A host's kubeconfig is the one file to carry to that host. If a key is stolen,
/// revoke its name and make another certificate.
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
  berth serve pki controller
  berth serve pki revoke node01
  berth serve pki revoke --common-name berth:admin";

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
    /// Refuse every certificate that was made for a name until now
    ///
    /// A running server with this directory's CA cuts its connections off within seconds, and at once on SIGHUP. A
    /// certificate that is made for the name afterwards is good.
    Revoke {
        /// The host's name
        #[arg(required_unless_present = "common_name")]
        name: Option<String>,
        /// Whoever is no host, by the certificate's common name: berth:admin, berth:controller
        #[arg(long, value_name = "CN", conflicts_with = "name")]
        common_name: Option<String>,
        /// Where keys and certificates are
        #[arg(long, value_name = "DIR", default_value = "/etc/berth/pki")]
        dir: PathBuf,
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
        What::Revoke { name, common_name, dir } => revoke(name.as_ref(), common_name.as_ref(), dir),
    }
}

fn revoke(host: Option<&String>, common_name: Option<&String>, dir: &Path) -> anyhow::Result<String> {
    let subject = host.map(|name| Client::Host(name.clone()).subject().0);
    let name = subject.or_else(|| common_name.cloned()).unwrap_or_default();
    let authority = Authority::open(dir)?;
    authority.revoke(&name, now())?;
    let mut text =
        format!("{}: certificates of {name} made until now are refused\n", authority.revoked().display());
    if let Some(host) = host.filter(|host| !dir.join(format!("hosts/{host}.crt")).exists()) {
        let _ = writeln!(text, "warning: none was made here for host {host}: is the name right?");
    }
    Ok(text)
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
