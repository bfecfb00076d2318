//! `berth pool release`: takes an address from a holder that is gone.
//!
//! Decided by `policy::claim::release`, which is tending for one holder: quarantined first, never free at once (rule 4).
//! Written as every ledger is, guarded by all that it was decided on; when somebody writes first, it is read, decided and
//! asked again.

use std::net::IpAddr;

use crds::NodeIPPoolStatus;
use policy::claim::{Fate, Ledger, NotReleased, Released, release};
use policy::pool::Barred;
use serde_json::json;

use crate::cli::client::{self, Reach};
use crate::cli::cluster::{Cluster, PoolSeen, time, told};
use crate::cli::output::{self, Listing};
use crate::cli::terminal;
use crate::clock::now;
use crate::controller::ledger::{self, Written};
use crate::ledger::claims::NotGiving;
use crate::records;
use crate::records::pool::reason_word;

/// Take an address from a holder that is gone
///
/// For what is left over: the controller does the same by itself, unless so many holders vanished at once that it stopped, or
/// there is none. Who holds it is said first, and asked whether that is meant. A live holder is refused: its Node is there,
/// and its enactment or its NodeNetworkState lists the address.
///
/// The address is not free at once. It is quarantined for as long as the pool says, since its host may be on without being
/// heard of; then the controller frees it. An address whose quarantine is over, and whose holder is still gone, is freed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The pool
    #[arg(value_name = "POOL")]
    pool: String,
    /// The address; the other one of a holder with two families goes with it
    #[arg(value_name = "ADDRESS")]
    ip: IpAddr,
    /// Don't ask
    #[arg(short, long)]
    yes: bool,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Listing,
}

const EXAMPLES: &str = "\
Examples:
  berth pool release traffic-1 10.10.10.8
  berth pool release traffic-1 10.10.10.8 --yes";

/// Others may write first this often.
const TRIES: usize = 5;

pub(super) fn run(args: &Args, reach: &Reach) -> anyhow::Result<String> {
    client::block_on(async {
        let cluster = Cluster::reach(reach).await?;
        let services = cluster.services().await?;
        let mut meant: Option<Released> = None;
        for _ in 0..TRIES {
            let pools = cluster.pools().await?;
            let seen = pools.get(&args.pool)?;
            let released = decide(args, &cluster, seen).await?;
            // What was said yes to is not asked again.
            if meant.as_ref().is_none_or(|meant| meant.was != released.was || meant.ips != released.ips) {
                output::note(&question(args, &released));
                terminal::confirm("Release?", args.yes)?;
            }
            let barred = pools.barred_for(&args.pool, &services);
            let written = write(&cluster, seen, &barred, &released.ledger).await?;
            meant = Some(released.clone());
            match written {
                Written::Done(_) => return answer(args, &released),
                Written::Overtaken(Some(_)) => {}
                Written::Overtaken(None) => anyhow::bail!("pool {} was deleted meanwhile", args.pool),
                Written::Refused(why) => anyhow::bail!("the API refuses it: {why}"),
            }
        }
        anyhow::bail!("others kept writing pool {} first: nothing was done; try again", args.pool)
    })
}

/// What would become of it, by what the API says now.
async fn decide(args: &Args, cluster: &Cluster, seen: &PoolSeen) -> anyhow::Result<Released> {
    let ip = args.ip.to_canonical();
    if let Some(slice) = seen.slices.iter().find(|slice| slice.cidr.contains(&ip)) {
        anyhow::bail!(
            "{ip} is in slice {} of node {}: a slice is released as a whole, when its Node is gone",
            slice.name,
            slice.node
        );
    }
    let ledger: Ledger = records::pool::read(&seen.object, &seen.pool)?;
    let reading = cluster.facts().await?;
    if let Some(what) = reading.hidden(&args.pool.as_str().into()).first() {
        anyhow::bail!("nothing is taken from anybody while something can't be read\n{what}");
    }
    let refused = |why: NotReleased| match why {
        NotReleased::Unsettled => {
            anyhow::anyhow!("{}\npool {} now: {}", why, args.pool, NotGiving::of(&ledger))
        }
        NotReleased::Waits { ip, until } => {
            let until = time(until).map(|until| until.to_string()).unwrap_or_default();
            anyhow::anyhow!("{ip} is quarantined already, until {until}; the controller frees it then")
        }
        why => why.into(),
    };
    release(&ledger, ip, &reading.facts(None), seen.pool.quarantine(), now()).map_err(refused)
}

fn question(args: &Args, released: &Released) -> String {
    let Released { ips, was, fate, .. } = released;
    let ips: Vec<String> = ips.iter().map(ToString::to_string).collect();
    let since = time(was.since).map(|since| format!(" since {since}")).unwrap_or_default();
    let next = match fate {
        Fate::Freed => "its quarantine is over: it becomes free".to_owned(),
        Fate::Quarantined { until, reason } => {
            let until = time(*until).map(|until| until.to_string()).unwrap_or_default();
            format!("it is quarantined until {until} ({}), and then free", reason_word(reason))
        }
    };
    format!(
        "{} of pool {}: node {}, policy {}, capture {}{since}; {next}",
        ips.join(" and "),
        args.pool,
        was.node,
        was.policy,
        was.capture
    )
}

async fn write(
    cluster: &Cluster,
    seen: &PoolSeen,
    barred: &Barred,
    next: &Ledger,
) -> anyhow::Result<Written> {
    // What the pool says of itself is the controller's to say.
    let counted = |_: &NodeIPPoolStatus, status: &mut NodeIPPoolStatus| {
        if seen.pool.is_sliced() {
            records::pool::count_slices(status, next, &seen.pool, barred, &seen.slices);
        }
    };
    let write = ledger::write(&cluster.client, &seen.object, &seen.pool, barred, next, counted);
    let written = terminal::patiently("writing the pool", write).await;
    written.map_err(|error| told("the pool can't be written", &error))
}

fn answer(args: &Args, released: &Released) -> anyhow::Result<String> {
    let Released { ips, was, fate, .. } = released;
    let (state, until) = match fate {
        Fate::Freed => ("Free", None),
        Fate::Quarantined { until, .. } => ("Quarantined", time(*until).map(|until| until.to_string())),
    };
    if let Some(format) = args.output.format() {
        let node = was.node.as_str();
        let document = json!({"pool": args.pool, "ips": ips, "node": node, "state": state, "until": until});
        return output::document(&document, format);
    }
    let ips: Vec<String> = ips.iter().map(ToString::to_string).collect();
    let ips = ips.join(" and ");
    Ok(match until {
        None => format!("{ips} of pool {}: free\n", args.pool),
        Some(until) => format!("{ips} of pool {}: quarantined until {until}\n", args.pool),
    })
}
