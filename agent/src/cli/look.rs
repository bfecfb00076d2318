//! The page to look at, as a setting of the verbs that offer it.

use anyhow::bail;
use ipnet::IpNet;
use kube::Client;

use crate::http::{Address, Server};
use crate::page;
use crate::telemetry::{say, warn};

/// Where the page is, if not told otherwise.
const USUAL: &str = "127.0.0.1:9467";

#[derive(Debug, clap::Args)]
pub(super) struct Look {
    /// Where to offer a page to look at pools and policies, over plain HTTP; 'none' for nowhere
    ///
    /// It only reads. On loopback everybody may look who reaches it. Elsewhere a token of the cluster is asked for, whose
    /// owner may read pools. Default: 127.0.0.1:9467, if that is free.
    #[arg(long, value_name = "ADDRESS", env = "BERTH_PAGE_ADDRESS")]
    page_address: Option<Address>,
}

impl Look {
    /// For an API that knows no tokens: nobody elsewhere could be asked who they are.
    pub(super) fn on_loopback_only(&self) -> anyhow::Result<()> {
        match self.page_address {
            Some(Address::At(address)) if !address.ip().is_loopback() => bail!(
                "--page-address {address}: this API knows no tokens, so the page is offered on loopback only; \
                 look at it from elsewhere through 'ssh -L {}:127.0.0.1:{}'",
                address.port(),
                address.port()
            ),
            _ => Ok(()),
        }
    }

    /// An address that was asked for must be free; the usual one may be another's. `exclude`: networks that the verb's settings
    /// keep free.
    pub(super) async fn offer(&self, client: Client, exclude: &[IpNet]) -> anyhow::Result<Option<Server>> {
        let usual = USUAL.parse().unwrap_or(Address::Nowhere);
        let Address::At(address) = self.page_address.unwrap_or(usual) else { return Ok(None) };
        match page::start(address, client, exclude.to_vec()).await {
            Ok(server) => {
                say(&format!("a page to look at on http://{}", server.address));
                Ok(Some(server))
            }
            Err(error) if self.page_address.is_none() => {
                let error = anyhow::Error::from(error);
                warn(&format!("warning: {error:#}; going on without"));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}
