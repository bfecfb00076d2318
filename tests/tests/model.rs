//! The claim protocol's model check (docs/claims.md, rules 1 to 7; R22 to R24, R27 to R30, R33 to R37, R40, R41,
//! R67 to R73, R97, R98, R111): every fault alone and every pair of faults, within the bounds printed.
//!
//! `make soak` goes further; docs/model-check.md says how far, and what came of it.

use std::cmp::Reverse;
use std::io::Write;
use std::sync::Mutex;

use berth_tests::model::{Bounds, Breach, Config, Fault, Likeness, Report, check, check_all, likeness};

/// Pairs with an old copy in them: so many states are visited in `make test`, nearest first, all of them in `make test-long`.
const PAIR_STATES: usize = 15_000;
/// But for those that take too long even then: so many, and all of them in `make soak`. Without the old copy these, too, are
/// visited whole.
const LONG_STATES: usize = 50_000;
const LONG: [[Fault; 2]; 10] = [
    [Fault::NodeDeleted, Fault::PolicyDeleted],
    [Fault::NodeDeleted, Fault::NodeDeleted],
    [Fault::NodeDeleted, Fault::PoolDeleted],
    [Fault::PoolDeleted, Fault::StoreRestored],
    [Fault::NodeDeleted, Fault::StoreRestored],
    [Fault::PolicyDeleted, Fault::StoreRestored],
    [Fault::NodeDeleted, Fault::HostReinstalled],
    [Fault::PolicyDeleted, Fault::HostReinstalled],
    [Fault::PoolDeleted, Fault::HostReinstalled],
    [Fault::StoreRestored, Fault::HostReinstalled],
];

/// So many where a policy is edited under way; a boot, which it is about, is searched whole.
const EDITED_STATES: usize = 20_000;

fn print(what: &str, config: &Config, report: &Report) {
    // Past the test harness's capture: the bounds and the numbers are part of the result.
    let line = format!("model: {what} {config}: {report}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("stderr takes a line");
}

/// Checks worlds side by side, the largest first; each to its bound, or whole.
fn hold(what: &str, worlds: &[(Config, Bounds)]) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let found = Mutex::new(None);
    check_all(worlds, threads, |config, report, _| {
        print(what, config, report);
        if let Some(violation) = &report.violation {
            *found.lock().expect("no panic") = Some(format!("{config}: {violation}"));
        }
        report.violation.is_none()
    });
    if let Some(violation) = found.into_inner().expect("no panic") {
        panic!("{violation}");
    }
}

const WHOLE: Bounds = Bounds { states: usize::MAX };

/// R84: all races. Each with a second controller that takes two old copies, with agents that serve themselves, with two
/// addresses (and an old copy), with two captures, with three hosts.
#[test]
fn every_fault_alone() {
    let worlds = Fault::ALL.iter().flat_map(|fault| {
        let faults = &[*fault];
        [
            Config::new(2, 1, faults).old_copies(2),
            Config::new(2, 1, faults).self_service(true),
            Config::new(2, 2, faults),
            Config::with_captures(2, 2, 2, faults).old_copies(0),
            Config::new(3, 1, faults).old_copies(0),
        ]
    });
    hold("alone", &worlds.map(|config| (config, WHOLE)).collect::<Vec<_>>());
}

/// Rule 11, each fault alone: a policy that names its address on both hosts, with an old copy; and on one, where the other's
/// asks for any.
#[test]
fn every_fault_where_a_policy_names_its_address() {
    let worlds = Fault::ALL.iter().flat_map(|fault| {
        let faults = &[*fault];
        [Config::new(2, 2, faults).naming(2), Config::new(2, 2, faults).naming(1).old_copies(0)]
    });
    hold("named", &worlds.map(|config| (config, WHOLE)).collect::<Vec<_>>());
}

/// Rule 1, each fault alone: a policy that has an address is edited to ask for a second, which not everybody can have. What is in
/// use stays so, after a boot too.
#[test]
fn every_fault_where_a_policy_is_edited_to_ask_for_more() {
    let worlds = Fault::ALL.map(|fault| {
        let config = Config::with_captures(2, 2, 2, &[fault]).growing().old_copies(0);
        (config, if fault == Fault::HostOff { WHOLE } else { Bounds { states: EDITED_STATES } })
    });
    hold("edited", &worlds);
}

/// Those with the most states first.
fn pairs() -> Vec<Vec<Fault>> {
    let mut pairs: Vec<Vec<Fault>> = Fault::sets().into_iter().filter(|set| set.len() == 2).collect();
    assert_eq!(pairs.len(), 171);
    let many_states = [Fault::NodeDeleted, Fault::StoreRestored, Fault::PolicyDeleted];
    pairs.sort_by_key(|pair| Reverse(pair.iter().filter(|fault| many_states.contains(fault)).count()));
    pairs
}

/// Is this `make test-long`?
fn is_long() -> bool {
    std::env::var_os("BERTH_MODEL_WHOLE").is_some()
}

/// Each beside a second controller that acts on an old copy.
#[test]
fn every_pair_of_faults() {
    let pairs = pairs();
    let (whole, long) = match is_long() {
        true => (WHOLE, Bounds { states: LONG_STATES }),
        false => (Bounds { states: PAIR_STATES }, Bounds { states: PAIR_STATES }),
    };
    let worlds = pairs.iter().flat_map(|pair| {
        let config = Config::new(2, 1, pair);
        // Two ranges are two addresses at least. Without the old copy, they are visited whole where agents serve themselves.
        if pair.contains(&Fault::RangeDrained) {
            return vec![(config, long)];
        }
        match LONG.iter().any(|long| long[..] == pair[..]) {
            false => vec![(config, whole)],
            true => vec![(Config::new(2, 1, pair).old_copies(0), WHOLE), (config, long)],
        }
    });
    hold("pair", &worlds.collect::<Vec<_>>());
}

#[test]
fn every_pair_of_faults_where_agents_serve_themselves() {
    let worlds = pairs().into_iter().map(|pair| Config::new(2, 1, &pair).old_copies(0).self_service(true));
    hold("self-service", &worlds.map(|config| (config, WHOLE)).collect::<Vec<_>>());
}

#[test]
fn no_fault() {
    let worlds = [Config::new(3, 1, &[]), Config::new(3, 2, &[]), Config::with_captures(2, 2, 3, &[])];
    hold("no fault", &worlds.map(|config| (config, WHOLE)));
}

/// The normal form leaves nothing out that matters: states that it takes for one behave as one.
#[test]
fn states_that_look_alike_are_alike() {
    let plain = Fault::ALL.map(|fault| Config::new(2, 1, &[fault]).old_copies(0));
    let copied = Fault::ALL.map(|fault| Config::new(2, 1, &[fault]));
    let more = [
        Config::new(2, 2, &[Fault::NodeDeleted]).old_copies(0),
        Config::with_captures(2, 2, 2, &[Fault::WireTaken]).old_copies(0),
        Config::new(3, 1, &[Fault::PoolDeleted]).old_copies(0),
        Config::new(2, 1, &[Fault::PoolDeleted, Fault::StoreRestored]).old_copies(0),
    ];
    for config in plain.into_iter().chain(copied).chain(more) {
        let Likeness { states, prints, violation } = likeness(&config, 20_000);
        let line = format!("model: alike {config}: {states} states in full, {prints} in normal form\n");
        std::io::stderr().write_all(line.as_bytes()).expect("stderr takes a line");
        assert_eq!(violation, None);
        assert!(prints < states);
    }
}

mod broken {
    use super::{Bounds, Breach, Config, Fault, check, print};

    /// With one rule broken the checker must find a schedule that shows why the rule is there.
    fn is_caught(breach: Breach, faults: &[Fault], sign: &str) {
        let config = Config::new(2, 1, faults).broken(breach);
        let report = check(&config, &Bounds { states: 1_000_000 });
        print(&format!("{breach:?}, caught"), &config, &report);
        let violation = report.violation.expect("a broken rule is caught");
        assert!(violation.what.contains(sign), "caught, but for another reason: {}", violation.what);
        assert!(violation.schedule.len() > 3, "the schedule that leads there is told");
    }

    const TWICE: &str = "on the NICs of";
    /// The step before it: the address is on a NIC, and the ledger, or the journal, knows nothing of it.
    const UNBACKED: &str = "on the NIC of";

    #[test]
    fn rule_1_ids_used_again() {
        is_caught(Breach::IdsUsedAgain, &[Fault::PolicyDeleted], UNBACKED);
    }

    #[test]
    fn rule_1_rekeyed_from_a_cache() {
        is_caught(Breach::RekeyedFromCache, &[Fault::PolicyDeleted], UNBACKED);
    }

    #[test]
    fn rule_2_grant_not_confirmed() {
        is_caught(Breach::Unconfirmed, &[Fault::PoolDeleted], TWICE);
    }

    #[test]
    fn rule_2_answers_land_on_any_grant() {
        is_caught(Breach::AnswersUnguarded, &[Fault::NodeDeleted, Fault::PoolDeleted], TWICE);
    }

    #[test]
    fn rule_3_released_before_off_the_nic() {
        is_caught(Breach::ReleasedBeforeOff, &[Fault::PolicyDeleted], UNBACKED);
    }

    #[test]
    fn rule_4_freed_without_the_agents_word() {
        is_caught(Breach::FreedWithoutWord, &[Fault::EnactmentDeleted], TWICE);
    }

    #[test]
    fn rule_4_quarantine_without_length() {
        is_caught(Breach::NoQuarantine, &[Fault::NodeDeleted], TWICE);
    }

    #[test]
    fn rule_5_new_pool_gives_before_it_is_rebuilt() {
        is_caught(Breach::GivesUnbuilt, &[Fault::PoolDeleted], TWICE);
    }

    #[test]
    fn rule_6_restored_store_not_on_hold() {
        is_caught(Breach::NoHold, &[Fault::StoreRestored], TWICE);
    }

    #[test]
    fn rule_6_hold_out_of_the_backup() {
        is_caught(Breach::HoldOfBackup, &[Fault::StoreRestored], TWICE);
    }

    #[test]
    fn rule_6_ledger_writes_test_no_sequence() {
        is_caught(Breach::SequenceUntested, &[Fault::StoreRestored], TWICE);
    }

    #[test]
    fn rule_7_inherits_by_name() {
        is_caught(Breach::InheritsByName, &[Fault::HostOff, Fault::NodeDeleted], TWICE);
    }

    #[test]
    fn rule_7_journal_applied_before_the_node_is_read() {
        is_caught(Breach::JournalFirst, &[Fault::HostOff, Fault::NodeDeleted], TWICE);
    }
}

/// The program that `make soak` runs.
mod by_hand {
    use std::process::Command;

    fn refusal(args: &[&str]) -> String {
        let ran = Command::new(env!("CARGO_BIN_EXE_model")).args(args).output().expect("the program runs");
        assert_eq!(ran.status.code(), Some(2), "{args:?} is refused");
        String::from_utf8(ran.stderr).expect("text")
    }

    #[test]
    fn a_misspelt_fault_is_refused() {
        let why = refusal(&["--only", "NodeDeletd"]);
        assert!(why.contains("NodeDeletd") && why.contains("NodeDeleted, "), "{why}");
    }

    #[test]
    fn nothing_to_check_is_refused() {
        let why = refusal(&["--faults", "1", "--only", "NodeDeleted,StoreRestored"]);
        assert!(why.contains("nothing to check"), "{why}");
    }
}

/// Sliced pools (R92, R112 to R119; rules 1 to 7): every fault alone and every pair, with one slice for two hosts and with two,
/// and where a host holds an address of before the pool was sliced.
mod slices {
    use std::sync::Mutex;

    use berth_tests::model::side_by_side;
    use berth_tests::model::sliced::{Breach, Config, Fault, Report, check};

    use std::io::Write;

    fn print(config: &Config, report: &Report) {
        let line = format!("model: slices {config}: {report}\n");
        std::io::stderr().write_all(line.as_bytes()).expect("stderr takes a line");
    }

    fn hold(worlds: &[Config]) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let found = Mutex::new(None);
        side_by_side(worlds, threads, check, |config, report, _| {
            print(config, report);
            if let Some(violation) = &report.violation {
                *found.lock().expect("no panic") = Some(format!("{config}: {violation}"));
            }
            report.violation.is_none()
        });
        if let Some(violation) = found.into_inner().expect("no panic") {
            panic!("{violation}");
        }
    }

    /// All but those with a slice in use that an administrator has deleted by force, and confirmed it: docs/claims.md names
    /// that.
    fn sets(faults: usize) -> impl Iterator<Item = Vec<Fault>> {
        let unconfirmed = |set: &Vec<Fault>| !set.contains(&Fault::SliceConfirmed);
        Fault::sets().into_iter().filter(move |set| set.len() == faults).filter(unconfirmed)
    }

    /// With one slice for two hosts and with two, and where a host holds an address of before the pool was sliced.
    #[test]
    fn every_fault_alone() {
        let worlds = sets(1).flat_map(|set| {
            [1, 2].into_iter().flat_map(move |blocks| {
                let config = Config { states: ALONE, ..Config::new(2, blocks, &set) };
                [config.clone(), Config { unsliced_before: true, ..config }]
            })
        });
        hold(&worlds.filter(Config::may_happen).collect::<Vec<_>>());
    }

    /// With one slice where that can be.
    fn tight(set: &[Fault], states: usize) -> Config {
        let [one, two] = [1, 2].map(|blocks| Config { states, ..Config::new(2, blocks, set) });
        if one.may_happen() { one } else { two }
    }

    #[test]
    fn every_pair_of_faults() {
        let worlds = sets(2).map(|set| tight(&set, PAIR));
        hold(&worlds.collect::<Vec<_>>());
    }

    /// A host whose Node is gone holds an address of before the pool was sliced, and the store goes back: what it then holds is in a
    /// slice of its own, and the address of before is free again.
    #[test]
    fn nothing_of_before_is_left_in_the_pools_ledger() {
        let set = [Fault::NodeDeleted, Fault::StoreRestored];
        hold(&[1, 2].map(|blocks| Config {
            unsliced_before: true,
            states: 20_000,
            ..Config::new(2, blocks, &set)
        }));
    }

    /// A host that has an address of before the pool was sliced is selected no more, and then again: what it is then given in a slice of
    /// its own, the pool's own ledger may still keep for what it had.
    #[test]
    fn what_is_set_aside_in_the_pools_ledger_does_not_hide_what_is_held() {
        let set = [Fault::Unselected; 2];
        hold(&[1, 2].map(|blocks| Config {
            unsliced_before: true,
            states: 20_000,
            ..Config::new(2, blocks, &set)
        }));
    }

    /// A stranger takes what a host has of before the pool was sliced. Its agent says so in the slice; the pool's own ledger, which has it
    /// as the host's still, does not count more.
    #[test]
    fn what_a_stranger_has_is_not_held_again_by_the_pools_ledger() {
        let beside = [(Fault::SliceDeleted, 1), (Fault::RangeDrained, 2), (Fault::Reset, 1)];
        hold(&beside.map(|(fault, blocks)| Config {
            unsliced_before: true,
            states: 20_000,
            ..Config::new(2, blocks, &[fault, Fault::WireTaken])
        }));
    }

    /// What an administrator confirms is done, though another node may then be given what this one uses: were that mended,
    /// this would say so.
    #[test]
    fn a_slice_in_use_deleted_by_force_is_found_out() {
        let report = check(&Config { states: 20_000, ..Config::new(2, 1, &[Fault::SliceConfirmed]) });
        let violation = report.violation.expect("an address on two NICs");
        assert!(violation.contains("is on the NICs of"), "{violation}");
    }

    /// Of a host that is selected no more while its pool is made anew nothing is left.
    #[test]
    fn no_empty_slice_is_left() {
        hold(&[Config { states: 20_000, ..Config::new(2, 1, &[Fault::PoolRecreated, Fault::Unselected]) }]);
    }

    /// R41: one host, and strangers have all of a slice: another slice is taken, and nothing is left of the first.
    #[test]
    fn a_slice_of_strangers_is_given_back() {
        hold(&[Config { states: 20_000, ..Config::new(1, 2, &[Fault::WireTaken; 2]) }]);
    }

    /// A checker that finds nothing proves little: each breach, where a fault that breaks nothing by itself shows it soonest, and
    /// whether a host held an address before the pool was sliced.
    const SHOWN: [(Breach, Fault, bool); 6] = [
        (Breach::NoLock, Fault::PoolRecreated, true),
        (Breach::PoolUnread, Fault::StoreRestored, false),
        (Breach::Unproven, Fault::StoreRestored, false),
        (Breach::NoQuarantine, Fault::NodeDeleted, true),
        (Breach::Unconfirmed, Fault::SliceDeleted, false),
        (Breach::AllCovered, Fault::PoolRecreated, true),
    ];

    #[test]
    fn every_breach_is_found() {
        for breach in Breach::ALL {
            assert!(SHOWN.iter().any(|(shown, ..)| *shown == breach), "{breach:?} is not looked for");
        }
        for (breach, fault, unsliced_before) in SHOWN {
            let config = Config { breach: Some(breach), unsliced_before, ..Config::new(2, 1, &[fault]) };
            let report = check(&Config { states: 100_000, ..config.clone() });
            print(&config, &report);
            let violation = report.violation.unwrap_or_else(|| panic!("{breach:?} is not found"));
            assert!(violation.contains("is on the NICs of"), "{breach:?}, for another reason: {violation}");
        }
    }

    /// So many states of each world, in CI; `make soak` goes further.
    const ALONE: usize = 6_000;
    const PAIR: usize = 4_000;
}
