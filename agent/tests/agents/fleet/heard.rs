//! What came to cards, whether there was an API to ask or not.

use std::collections::{BTreeMap, BTreeSet};

use super::Fleet;
use crate::listen::Listener;

impl Fleet {
    /// From now on every address that comes to a host that there is is heard of.
    pub(crate) async fn listen(&mut self) {
        for (host, machine) in &self.machines {
            let file = self.folder.path().join(format!("heard-{host}"));
            self.listeners.insert(host.clone(), Listener::new(&machine.netns, &file).await);
        }
    }

    /// R22: no address was on two hosts at any time. For tests in which nobody gives one back: there none may move either.
    pub(crate) async fn assert_never_twice(&self) {
        let mut hosts: BTreeMap<String, BTreeSet<&String>> = BTreeMap::new();
        for (host, listener) in &self.listeners {
            for line in listener.heard("eth0").await {
                let ip = line.split("inet ").nth(1).and_then(|rest| rest.split('/').next());
                hosts.entry(ip.unwrap_or(&line).to_owned()).or_default().insert(host);
            }
        }
        assert!(!hosts.is_empty(), "nothing was heard");
        let twice: Vec<_> = hosts.iter().filter(|(_, on)| on.len() > 1).collect();
        assert!(twice.is_empty(), "on more than one host: {twice:#?}");
    }
}
