//! `berth pool release`: takes an address from a holder that is gone.
//!
//! Decided by `policy::claim::release`, which is tending for one holder: quarantined first, never free at once (rule 4).
//! Written as every ledger is, guarded by all that it was decided on; when somebody writes first, it is read, decided and
//! asked again.

use std::net::IpAddr;

use crds::NodeIPPoolStatus;
use crds::names::annotation::CONFIRM_RELEASE;
use kube::ResourceExt;
use policy::claim::{
    Brake, EntryState, Fate, Ledger, NodeSlice, NotReleased, Quarantine, Released, Time, release, tend_slices,
};
use policy::pool::Barred;
use serde_json::json;

use crate::cli::client::{self, Reach};
use crate::cli::cluster::{Cluster, PoolSeen, time, told};
use crate::cli::output::{self, Listing};
use crate::cli::terminal;
use crate::clock::now;
use crate::controller::ledger::{self, Written};
use crate::controller::reading::Reading;
use crate::events::Heard;
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

/// The Event of a controller that waits for an administrator's word (docs/operations.md).
const STOPPED: &str = "ReleaseStopped";

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
    let ledger: Ledger = records::pool::read(&seen.object, &seen.pool)?;
    let reading = cluster.facts().await?;
    if let Some(slice) = seen.slices.iter().find(|slice| slice.cidr.contains(&ip)) {
        if reading.facts(None).is_live(&slice.node, &slice.node_uid) {
            anyhow::bail!(
                "{ip} is in slice {} of node {}: a slice is released as a whole, when its Node is gone",
                slice.name,
                slice.node
            );
        }
        let stopped = stopped(cluster, seen, &ledger, &reading).await;
        anyhow::bail!("{}{}", of_a_gone_node(ip, slice, seen.pool.quarantine()), stopped.unwrap_or_default());
    }
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

/// What the controller does about an address in a slice: by itself, and the slice as a whole.
fn of_a_gone_node(ip: IpAddr, slice: &NodeSlice, quarantine: Time) -> String {
    let NodeSlice { name, node, .. } = slice;
    let whose = format!("{ip} is in slice {name} of node {node}, which is gone");
    match slice.ledger.allocations.get(&ip).map(|entry| &entry.state) {
        Some(EntryState::Quarantined(Quarantine { until, .. })) => {
            let until = time(*until).map(|until| until.to_string()).unwrap_or_default();
            format!(
                "{whose}: it is quarantined until {until}; then the controller frees it, and the slice, by itself"
            )
        }
        Some(EntryState::Held) => format!(
            "{whose}: the controller sets it aside, and after a quarantine of {quarantine} s frees it, and the slice, by \
             itself"
        ),
        None => format!("{whose}: held by nobody; the controller frees the slice by itself"),
    }
}

/// Whether so many holders of slices vanished that the controller stops, and what it then waits for. How many of them it saw
/// going it alone knows, so the number to confirm is the one that its Event names.
async fn stopped(cluster: &Cluster, seen: &PoolSeen, ledger: &Ledger, reading: &Reading) -> Option<String> {
    let annotated = seen.object.annotations().get(CONFIRM_RELEASE);
    let confirmed = annotated.and_then(|count| count.parse().ok());
    let facts = reading.facts(confirmed);
    let tended = tend_slices(&seen.slices, Some(ledger), &facts, seen.pool.quarantine(), now());
    let Brake { vanished, allowed } = tended.braked?;
    let name = seen.pool.name();
    let events = cluster.events(Some(("NodeIPPool", name))).await.unwrap_or_default();
    let said = events.iter().map(Heard::of).filter(|heard| heard.what == STOPPED);
    let said = said.max_by_key(|heard| heard.at);
    let why = match said {
        Some(Heard { message, .. }) => format!("it stopped: {message}"),
        None => format!(
            "{vanished} holders are gone, more than {allowed}: where it didn't see them go it stops, and an Event {STOPPED} of \
             the pool says how many to confirm"
        ),
    };
    Some(format!(
        "\n{why}\nif their nodes are gone for good: kubectl annotate nodeippool {name} {CONFIRM_RELEASE}=N --overwrite, with the \
         number that the Event names; if not, bring them back"
    ))
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
