//! `berth crds`: the CustomResourceDefinitions, ready for `kubectl apply`.

use ::crds::{Kind, yaml};

use super::UsageError;

/// Print the CustomResourceDefinitions as YAML
///
/// Prints the definitions of all five kinds, one document each, as they are generated from the types this binary uses.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Only the definition of this kind, by its name in manifests
    #[arg(long = "name", value_name = "KIND")]
    name: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  berth crds | kubectl apply -f -
  berth crds --name NodeIPPool";

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    let kinds = match &args.name {
        None => Kind::ALL.to_vec(),
        Some(name) => vec![named(name)?],
    };
    let documents = kinds.into_iter().map(yaml).collect::<Result<Vec<_>, _>>()?;
    Ok(documents.join("---\n"))
}

fn named(name: &str) -> Result<Kind, UsageError> {
    Kind::from_name(name).ok_or_else(|| UsageError::NoSuchKind {
        name: name.to_owned(),
        known: Kind::ALL.iter().map(|kind| kind.name()).collect(),
    })
}
