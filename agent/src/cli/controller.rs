//! `berth controller`: serve claims and lead rollouts, one at a time among those that run.

use super::client::{self, Connect};
use crate::api::lease::Election;
use crate::telemetry::say;
use crate::{api, controller};

/// Serve claims, take back what nobody holds, lead rollouts
///
/// Any number may run; one leads, by a Lease, and another takes over when it is gone. Everything it knows it reads from
/// the API: it keeps nothing on disk and never touches a host. SIGTERM and Ctrl-C end it, and leave the Lease to the next.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    connect: Connect,
    /// The namespace of the Lease
    #[arg(long, value_name = "NAMESPACE", env = "POD_NAMESPACE", default_value = "default")]
    namespace: String,
}

const EXAMPLES: &str = "\
Examples:
  berth controller --kubeconfig /etc/berth/kubeconfig
  berth controller                     # in a pod: by its service account";

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    client::runtime()?.block_on(async {
        let mut asked = client::Stop::new()?;
        let client = args.connect.client().await?;
        let identity = format!("{}-{}", client::hostname(), &api::random::id()[..8]);
        let (name, namespace) = (crds::names::lease::CONTROLLER, args.namespace.as_str());
        let election = Election::new(&client, namespace, name, &identity);
        say(&format!("{identity}: waiting for Lease {namespace}/{name}"));
        let lead = || {
            say(&format!("{identity}: leads"));
            controller::lead(client.clone())
        };
        tokio::select! {
            () = election.lead(lead) => {}
            () = asked.asked() => {}
        }
        say("stopping");
        Election::release(&client, namespace, name, &identity).await;
        Ok(String::new())
    })
}
