//! `berth pool hold` and `resume`: the way around a store that is restored from an older backup (docs/claims.md, rule 6).

use crds::names::annotation::{HOLD, RESTORED};
use crds::{NodeIPPool, NodeIPSlice};
use kube::api::{Api, Patch, PatchParams};
use kube::core::ClusterResourceScope;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use thiserror::Error;

use crate::cli::client::{self, Reach};
use crate::cli::cluster::{Cluster, PoolSeen, is_gone, time, told};
use crate::cli::output::{self, Listing};
use crate::cli::{UsageError, terminal};
use crate::records::pool::ENDLESS;

/// Stop pools from giving addresses, before a store is restored
///
/// On hold a pool gives nothing new. Who holds an address keeps it, and may let go of it. Hosts say again, from the journals
/// on their disks, what they hold, and the ledger takes it in: that is what makes a store from an older backup safe to use.
///
/// The order of a restore: hold the pools, restore, start the controller and the agents, resume. 'berth serve restore' puts
/// pools on hold by itself, for one quarantine; hold them by hand where hosts are off for longer.
#[derive(Debug, clap::Args)]
#[command(after_help = HOLD_EXAMPLES)]
pub(super) struct HoldArgs {
    #[command(flatten)]
    which: Which,
    /// Why, for whoever looks at the pool later
    #[arg(long, value_name = "TEXT", default_value = "by hand")]
    reason: String,
}

const HOLD_EXAMPLES: &str = "\
Examples:
  berth pool hold --all --reason 'restore of 2026-11-16'
  berth pool hold traffic-1";

/// Let pools that are on hold give addresses again
///
/// A hold lasts one quarantine at least, from when a controller first saw it, so that every host is heard; then the ledger's
/// sequence leaps above all that the lost history can have counted to, and the pool gives again.
#[derive(Debug, clap::Args)]
#[command(after_help = RESUME_EXAMPLES)]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    which: Which,
}

const RESUME_EXAMPLES: &str = "\
Examples:
  berth pool resume --all
  berth pool resume traffic-1";

#[derive(Debug, clap::Args)]
struct Which {
    /// The pools
    #[arg(value_name = "POOL")]
    pools: Vec<String>,
    /// All pools
    #[arg(long)]
    all: bool,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Listing,
}

/// Pools that were deleted between the look and the write.
#[derive(Debug, Error)]
#[error("{}", .0.iter().map(|name| format!("pool {name} was deleted meanwhile")).collect::<Vec<_>>().join("\n"))]
struct Gone(Vec<String>);

pub(super) fn hold(args: &HoldArgs, reach: &Reach) -> anyhow::Result<String> {
    let text = |name: &str, seen: &PoolSeen| {
        let seconds = seen.pool.quarantine();
        let word = seen.object.annotations().get(HOLD);
        match seen.ledger.hold {
            Some(_) if word.is_some_and(|why| why != RESTORED) => format!("{name}: was on hold already\n"),
            Some(_) => format!(
                "{name}: was on hold already, and that would have ended by itself. Now it lasts until 'berth pool resume {name}'\n"
            ),
            None => format!(
                "{name}: on hold; nothing new is given, what is held stays. It gives again {seconds} s after a controller saw \
                 it, and not before 'berth pool resume {name}'\n"
            ),
        }
    };
    change(&args.which, reach, &json!(args.reason), text)
}

pub(super) fn resume(args: &ResumeArgs, reach: &Reach) -> anyhow::Result<String> {
    let text = |name: &str, seen: &PoolSeen| match seen.ledger.hold {
        None => format!("{name}: was not on hold\n"),
        Some(hold) if hold.until == ENDLESS => {
            format!("{name}: resumed; no controller has seen the hold yet, so it gives as before\n")
        }
        Some(hold) => {
            let until = time(hold.until).map(|until| until.to_string()).unwrap_or_default();
            format!(
                "{name}: resumed; it gives again at {until}, once a controller has taken in what hosts say they hold\n"
            )
        }
    };
    change(&args.which, reach, &Value::Null, text)
}

/// Sets the annotation of the pools and of their slices; nothing removes it.
fn change(
    which: &Which,
    reach: &Reach,
    value: &Value,
    text: impl Fn(&str, &PoolSeen) -> String,
) -> anyhow::Result<String> {
    match (which.pools.is_empty(), which.all) {
        (true, false) => return Err(UsageError::PoolMissing.into()),
        (false, true) => return Err(UsageError::PoolAndAll.into()),
        _ => {}
    }
    client::block_on(async {
        let cluster = Cluster::reach(reach).await?;
        let pools = cluster.pools().await?;
        let (mut written, mut gone) = (Vec::new(), Vec::new());
        // Of a pool on hold no slice is cut: slices are looked for when all pools are.
        for (name, seen) in pools.chosen(&which.pools)? {
            match annotate::<NodeIPPool>(&cluster, name, value).await? {
                true => written.push((name, seen)),
                false => gone.push(name.clone()),
            }
        }
        let slices = cluster.list::<NodeIPSlice>().await?;
        let mut answer = String::new();
        let mut documents = Vec::new();
        for (name, seen) in written {
            let mut count = 0;
            for slice in slices.iter().filter(|slice| slice.spec.pool == *name) {
                // One that was given back meanwhile has nothing to give.
                count += usize::from(annotate::<NodeIPSlice>(&cluster, &slice.name_any(), value).await?);
            }
            answer += &text(name, seen);
            documents.push(json!({
                "pool": name, "hold": !value.is_null(), "was": seen.ledger.hold.is_some(), "slices": count,
            }));
        }
        if let Some(format) = which.output.format() {
            answer = output::document(&Value::Array(documents), format)?;
        }
        if gone.is_empty() {
            return Ok(answer);
        }
        output::answer(&answer)?;
        Err(Gone(gone).into())
    })
}

/// Whether it is there.
async fn annotate<K>(cluster: &Cluster, name: &str, value: &Value) -> anyhow::Result<bool>
where
    K: Resource<Scope = ClusterResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
    K::DynamicType: Default,
{
    let api: Api<K> = Api::all(cluster.client.clone());
    let patch = Patch::Merge(json!({"metadata": {"annotations": {HOLD: value}}}));
    let params = PatchParams::default();
    let write = api.patch(name, &params, &patch);
    match terminal::patiently(&format!("writing {name}"), write).await {
        Ok(_) => Ok(true),
        Err(error) if is_gone(&error) => Ok(false),
        Err(error) => Err(told(&format!("{name} can't be written"), &error)),
    }
}
