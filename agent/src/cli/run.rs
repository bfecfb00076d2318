//! What the verbs that run on have in common: their settings, how they answer for themselves, how they end.

use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::BoolishValueParser;
use ipnet::IpNet;

use crate::health::Health;
use crate::health::serve;
use crate::http::{Address, Server};
use crate::telemetry::{self, Form, Level, say, warn};

/// How a flag that is on or off takes its value: `--flag`, `--flag=false`, `true` or `false` elsewhere.
pub(super) fn boolean() -> BoolishValueParser {
    BoolishValueParser::new()
}

/// A network, with or without host bits.
pub(super) fn network(text: &str) -> Result<IpNet, String> {
    text.parse().map_err(|_| "a network such as 10.96.0.0/12 is wanted".to_owned())
}

/// Settings of every verb that runs on.
#[derive(Debug, clap::Args)]
pub(super) struct Running {
    /// Settings from this YAML file: the names of these flags, without '--', as keys
    ///
    /// A flag counts before the environment, the environment before the file.
    #[arg(long, value_name = "FILE", env = "BERTH_CONFIG")]
    config: Option<PathBuf>,
    /// Where to answer /healthz, /readyz and /metrics, over plain HTTP; 'none' for nowhere
    #[arg(long, value_name = "ADDRESS", env = "BERTH_HEALTH_ADDRESS")]
    health_address: Option<Address>,
    /// How much is said
    #[arg(long, value_name = "LEVEL", env = "BERTH_LOG_LEVEL", default_value = "info")]
    log_level: Level,
    /// For whom it is said
    #[arg(long, value_name = "FORM", env = "BERTH_LOG_FORMAT", default_value = "human")]
    log_format: Form,
}

impl Running {
    /// From now on it is said as asked for.
    pub(super) fn speak(&self) {
        telemetry::set(self.log_level, self.log_format);
    }

    /// Answers for this process. An address that was asked for must be free; the usual one may be another's, such as a
    /// second agent's for another network namespace.
    pub(super) async fn answer(
        &self,
        usual: Option<&str>,
        health: &Arc<Health>,
    ) -> anyhow::Result<Option<Server>> {
        let asked = self.health_address;
        let usual = usual.and_then(|usual| usual.parse().ok()).unwrap_or(Address::Nowhere);
        let Address::At(address) = asked.unwrap_or(usual) else { return Ok(None) };
        match serve::start(address, health.clone()).await {
            Ok(server) => {
                say(&format!("health and metrics on http://{}", server.address));
                Ok(Some(server))
            }
            Err(error) if asked.is_none() => {
                let error = anyhow::Error::from(error);
                warn(&format!("warning: {error:#}; going on without"));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}
