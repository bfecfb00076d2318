//! Goldens of rendering: a case is a folder of `goldens/render`, and a test of its own.
//!
//! `policy.yaml` (a manifest or a bare document) and, where they matter, `current.yaml`, `captured.yaml` (what an
//! earlier rendering stored) and `grants.yaml` (what the pools gave) go in; `rendered.yaml` or `error.txt` comes out,
//! and `stored.yaml` where what is stored for the next time is the point. `UPDATE_GOLDENS=1` writes them anew.
// A test runner reads files and stops at what it can't read; the crate under test does neither.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use policy::capture::{Cached, Granted, GrantedAddress, Grants, read_cached};
use policy::template::{PolicyDoc, Rendered, render};
use serde::Deserialize;
use serde_json::Value;

#[macro_use]
#[path = "../../tests/shared/goldens.rs"]
mod shared;

goldens! {
    assign_types_values,
    bare_document,
    bond_ports_by_mac,
    bridge_on_default_gateway,
    cached_capture_is_kept,
    capture_cycle,
    capture_not_found,
    capture_syntax_errors,
    capture_unknown_name,
    capture_unsupported_keyword,
    dns_from_running,
    dual_stack_grant,
    empty_desired_state,
    full_state_capture,
    index_out_of_range,
    ipam_dual_stack,
    ipam_errors,
    ipam_shorthand,
    lone_braces,
    multibyte_carets,
    nested_pipes,
    not_equal,
    pool_attributes_choose_the_nic,
    pool_gateway_and_routes,
    pool_syntax,
    pool_without_grant,
    quoted_numbers,
    route_rules,
    single_quotes_and_multi_line,
    static_ip,
    template_errors,
    two_pools_one_nic,
    unsupported_kinds_render,
    value_and_pipe_together,
    value_from_current_state,
    vlan_prefix_and_suffix,
    whole_lists_and_maps,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/render")
}

fn check(case: &str) {
    let folder = root().join(case);
    let actual = run(&folder);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        return update(&folder, &actual);
    }
    match actual {
        Ok(rendered) => {
            assert!(!folder.join("error.txt").exists(), "rendered, where an error was expected");
            assert_eq!(
                rendered.desired,
                yaml(&folder, "rendered.yaml").expect("rendered.yaml"),
                "rendered.yaml"
            );
            if let Some(stored) = yaml(&folder, "stored.yaml") {
                assert_eq!(Value::Object(rendered.bindings.captured_states("now")), stored, "stored.yaml");
            }
        }
        Err(text) => {
            let expected = fs::read_to_string(folder.join("error.txt")).unwrap_or_default();
            assert_eq!(text, expected, "error.txt");
        }
    }
}

fn run(folder: &Path) -> Result<Rendered, String> {
    let text = |wrong: policy::capture::Diagnostics| format!("{wrong}\n");
    let document = yaml(folder, "policy.yaml").expect("policy.yaml");
    let policy = PolicyDoc::from_value(&document).map_err(text)?;
    let current = yaml(folder, "current.yaml").unwrap_or_default();
    let cached = yaml(folder, "captured.yaml")
        .map_or(Ok(Cached::new()), |stored| read_cached(&stored))
        .map_err(text)?;
    render(&policy, &current, &cached, &grants(folder)).map_err(text)
}

fn yaml(folder: &Path, file: &str) -> Option<Value> {
    let text = fs::read_to_string(folder.join(file)).ok()?;
    Some(serde_saphyr::from_str(&text).unwrap_or_else(|wrong| panic!("{file}: {wrong}")))
}

/// A grant as a case writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Grant {
    address: String,
    gateway: Option<String>,
    second: Option<String>,
    #[serde(default)]
    range: String,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
}

fn grants(folder: &Path) -> Grants {
    let Some(value) = yaml(folder, "grants.yaml") else {
        return Grants::new();
    };
    let grants: BTreeMap<String, Grant> = serde_json::from_value(value).unwrap();
    let granted = |grant: Grant| Granted {
        address: GrantedAddress {
            address: grant.address.parse().unwrap(),
            gateway: grant.gateway.map(|gateway| gateway.parse().unwrap()),
        },
        second: grant.second.map(|second| GrantedAddress { address: second.parse().unwrap(), gateway: None }),
        range: grant.range,
        attributes: grant.attributes,
    };
    grants.into_iter().map(|(name, grant)| (name, granted(grant))).collect()
}

fn update(folder: &Path, actual: &Result<Rendered, String>) {
    let write = |file: &str, text: String| fs::write(folder.join(file), text).unwrap();
    for stale in ["rendered.yaml", "error.txt"] {
        fs::remove_file(folder.join(stale)).ok();
    }
    match actual {
        Ok(rendered) => {
            write("rendered.yaml", serde_saphyr::to_string(&rendered.desired).unwrap());
            if folder.join("stored.yaml").exists() {
                write(
                    "stored.yaml",
                    serde_saphyr::to_string(&rendered.bindings.captured_states("now")).unwrap(),
                );
            }
        }
        Err(text) => write("error.txt", text.clone()),
    }
}
