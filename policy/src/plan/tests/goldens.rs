//! A case is a folder of `goldens/plan`: `current.yaml`, `desired.yaml`, and the plan (`plan.txt`) or what is wrong
//! with it (`refused.txt`). Each is a test of its own; a folder that no test names fails one. Some have the plan as JSON
//! too (`plan.json`). `UPDATE_GOLDENS=1` writes them anew.
//!
//! Every plan is also applied in memory, verified, planned again and reverted.

use super::{applied, comparable, difference, observed, yaml};
use crate::plan::{plan, verify};
use crate::state::{Desired, Observed};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The plan as text, or every refusal.
fn answer(current: &Observed, document: &str) -> Result<String, String> {
    let desired = Desired::from_value(&yaml(document)).map_err(|e| e.to_string())?;
    let steps = plan(current, &desired).map_err(|e| e.to_string())?;
    let after = applied(current, &steps);
    assert_eq!(verify(&after, &desired), [], "unmet after\n{steps}");
    let again = plan(&after, &desired).map_err(|e| e.to_string())?;
    assert!(again.is_empty(), "a second plan has steps:\n{again}\nafter\n{steps}");
    let back = applied(&after, &steps.revert(current));
    let wrong = difference(&comparable(&back), &comparable(current));
    let known = |line: &&str| !line.starts_with("+ .links.") || !line.contains("options.");
    let wrong: Vec<&str> = wrong.lines().filter(known).collect();
    assert!(wrong.is_empty(), "not restored:\n{}\nby\n{}", wrong.join("\n"), steps.revert(current));
    let untidy = untidy(&serde_json::to_value(&steps).expect("prints"));
    assert!(untidy.is_empty(), "JSON has {untidy:?}\n{steps}");
    Ok(steps.to_string())
}

/// Where a plan's JSON is not as nmstate's YAML is: keys in kebab-case, nothing said of what isn't there. Options bear
/// the kernel's names, there as here; that there are no steps is an answer.
fn untidy(json: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    super::flatten(json, "", &mut lines);
    let words = |line: &str| line.split(" = ").next().unwrap_or_default().contains('_');
    lines.retain(|line| (!line.contains("options.") && words(line)) || line.ends_with("= null"));
    let empty = json.to_string().replace(r#""steps":[]"#, "");
    lines.extend(empty.contains("[]").then(|| "an empty list".to_owned()));
    lines
}

fn check_json(folder: &str) {
    let [current, document] = ["current.yaml", "desired.yaml"].map(|file| read(folder, file));
    let desired = Desired::from_value(&yaml(&document)).expect("is well-formed");
    let plan = plan(&observed(&current), &desired).expect("can be");
    compare(folder, "plan.json", &serde_json::to_string_pretty(&plan).expect("prints"));
}

fn check(folder: &str, expected: &str) {
    let [current, document] = ["current.yaml", "desired.yaml"].map(|file| read(folder, file));
    let (kind, found) = match answer(&observed(&current), &document) {
        Ok(plan) => ("plan", plan),
        Err(refused) => ("refused", refused),
    };
    assert_eq!(kind, expected, "{folder} is listed as {expected}, but is\n{found}");
    compare(folder, &format!("{kind}.txt"), &found);
    assert!(kind == "refused" || found.lines().all(|l| l.chars().count() <= 100), "{folder} is too wide");
}

fn path(folder: &str, file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/plan").join(folder).join(file)
}

#[expect(clippy::disallowed_methods, reason = "a test reads the files of its case")]
fn read(folder: &str, file: &str) -> String {
    std::fs::read_to_string(path(folder, file)).unwrap_or_else(|error| panic!("{folder}/{file}: {error}"))
}

#[expect(clippy::disallowed_methods, reason = "a test writes its goldens when asked to")]
fn compare(folder: &str, file: &str, found: &str) {
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        return std::fs::write(path(folder, file), format!("{}\n", found.trim_end()))
            .expect("can be written");
    }
    let wanted = read(folder, file);
    assert!(
        found.trim_end() == wanted.trim_end(),
        "{folder}/{file} should read\n{found}\n\nbut reads\n{wanted}"
    );
}

macro_rules! cases {
    ($($test:ident: $folder:literal $kind:ident,)*) => {
        const FOLDERS: &[&str] = &[$($folder),*];
        $(
            #[test]
            fn $test() {
                check($folder, stringify!($kind));
            }
        )*
    };
}

cases! {
    absent_controller_keeps_ports_orphans_go: "absent-controller-keeps-ports-orphans-go" plan,
    absent_of_missing_is_fine: "absent-of-missing-is-fine" plan,
    address_added_last_stays_secondary: "address-added-last-stays-secondary" plan,
    address_moves_between_links: "address-moves-between-links" plan,
    address_order: "address-order" plan,
    address_swap_keeps_routes: "address-swap-keeps-routes" plan,
    bond_mode_change_rebuilds: "bond-mode-change-rebuilds" plan,
    bond_option_needs_link_down: "bond-option-needs-link-down" plan,
    bridge_over_nic: "bridge-over-nic" plan,
    bridge_over_nic_new_gateway: "bridge-over-nic-new-gateway" plan,
    bridge_ports_and_vlans_change: "bridge-ports-and-vlans-change" plan,
    bridge_vlans_off: "bridge-vlans-off" plan,
    cycle: "cycle" refused,
    dhcp_beside_static: "dhcp-beside-static" plan,
    dhcp_cannot_be_started: "dhcp-cannot-be-started" refused,
    dhcp_lease_on_a_bridge_port: "dhcp-lease-on-a-bridge-port" refused,
    dhcp_left_alone: "dhcp-left-alone" plan,
    dhcp_off_becomes_static: "dhcp-off-becomes-static" plan,
    dns_and_hostname: "dns-and-hostname" plan,
    ecmp: "ecmp" plan,
    identifier_mac: "identifier-mac" plan,
    ipv6_keeps_link_local: "ipv6-keeps-link-local" plan,
    ipv6_off: "ipv6-off" plan,
    link_down_takes_its_routes: "link-down-takes-its-routes" plan,
    losses: "losses" plan,
    mac_and_mtu_keep_routes: "mac-and-mtu-keep-routes" plan,
    metric_change: "metric-change" plan,
    mtu_too_small_for_ipv6: "mtu-too-small-for-ipv6" refused,
    next_hop_change: "next-hop-change" plan,
    next_hop_change_absent_and_add: "next-hop-change-absent-and-add" plan,
    prefix_change: "prefix-change" plan,
    problems_all_at_once: "problems-all-at-once" refused,
    refusals_all_at_once: "refusals-all-at-once" refused,
    route_types_source_mtu: "route-types-source-mtu" plan,
    rules: "rules" plan,
    show_into_apply: "show-into-apply" plan,
    veth_dummy_vxlan_macvlan: "veth-dummy-vxlan-macvlan" plan,
    vlan_on_bond: "vlan-on-bond" plan,
    vrf_keeps_addresses_of_its_ports: "vrf-keeps-addresses-of-its-ports" plan,
}

macro_rules! json_cases {
    ($($test:ident: $folder:literal,)*) => {
        $(
            #[test]
            fn $test() {
                check_json($folder);
            }
        )*
    };
}

json_cases! {
    json_of_ecmp: "ecmp",
    json_of_losses: "losses",
    json_of_port_vlans: "bridge-ports-and-vlans-change",
    json_of_rules: "rules",
    json_of_veth_dummy_vxlan_macvlan: "veth-dummy-vxlan-macvlan",
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test looks at the folders it tests")]
fn no_folder_is_forgotten() {
    let folders =
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/goldens/plan")).expect("goldens are there");
    let names = folders.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned());
    let forgotten: Vec<String> = names.filter(|name| !FOLDERS.contains(&name.as_str())).collect();
    assert!(forgotten.is_empty(), "no test for {forgotten:?}");
}
