//! Reading `dns-resolver` and `hostname`.

use super::super::Hostname;
use super::super::error::Reason;
use super::super::path::Path;
use super::super::scalar::{Reader, shown};
use super::DesiredDns;
use serde_json::Value;
use std::net::IpAddr;

pub(in crate::state) fn read(r: &mut Reader, path: &Path<'_>, value: &Value) -> DesiredDns {
    let mut dns = DesiredDns::default();
    for (key, value) in r.fields(path, value) {
        let at = path.key(key);
        match key {
            "server" => dns.servers = Some(read_texts(r, &at, value, "an IP address", is_server)),
            "search" => dns.search = Some(read_texts(r, &at, value, "a domain name", is_word)),
            "options" => dns.options = Some(read_texts(r, &at, value, "an option", is_word)),
            _ => r.unread(&at, false, value),
        }
    }
    if dns == DesiredDns::default() {
        // An empty `config` purges.
        dns = DesiredDns { servers: Some(vec![]), search: Some(vec![]), options: Some(vec![]) };
    }
    dns
}

fn read_texts(
    r: &mut Reader,
    path: &Path<'_>,
    value: &Value,
    wanted: &'static str,
    fits: fn(&str) -> bool,
) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for (i, item) in r.list(path, value).iter().enumerate() {
        let at = path.index(i);
        let Some(text) = r.text(&at, item) else { continue };
        if !fits(text) {
            r.find(&at, Reason::Expected { wanted, found: shown(item) });
        } else if !out.iter().any(|t| t == text) {
            out.push(text.to_owned());
        }
    }
    out
}

/// `192.0.2.1`, `2001:db8::1`, `fe80::1%eth0`.
fn is_server(text: &str) -> bool {
    let ip = text.split_once('%').map_or(text, |(ip, _)| ip);
    ip.parse::<IpAddr>().is_ok() && is_word(text)
}

/// One word: anything else would end up as another line or another field of resolv.conf.
fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

pub(in crate::state) fn read_hostname(r: &mut Reader, path: &Path<'_>, value: &Value) -> Option<Hostname> {
    let mut hostname = Hostname::default();
    for (key, value) in r.fields(path, value) {
        let at = path.key(key);
        let into = match key {
            "running" => &mut hostname.running,
            "config" => &mut hostname.config,
            _ => {
                r.unread(&at, false, value);
                continue;
            }
        };
        let name = r.text(&at, value)?;
        // 64 is the kernel's limit.
        if is_word(name) && name.len() <= 64 {
            *into = Some(name.to_owned());
        } else if !r.lenient {
            r.find(&at, Reason::Expected { wanted: "a host name", found: shown(value) });
        }
    }
    Some(hostname).filter(|hostname| !hostname.is_unknown())
}
