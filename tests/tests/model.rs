//! The claim protocol's model check (DESIGN 4, rules 1 to 7; R22 to R24, R27 to R30, R33 to R35, R40, R41,
//! R67 to R73, R97, R98, R111): every fault alone and every pair of faults, within the bounds printed.
//!
//! `make soak` goes further: the second controller's old caches in the pairs too, two addresses, three hosts,
//! and no bound that CI's time sets.

use std::io::Write;

use berth_tests::model::{Bounds, Breach, Config, Fault, Report, check};

/// A run that grows beyond this is left to `make soak`; what was visited until then counts, and the line
/// printed says so.
const STATES: usize = 60_000;

/// The pairs with more states than that. All others are visited whole.
const LONG: [(Fault, Fault); 17] = [
    (Fault::AgentCrash, Fault::NodeDeleted),
    (Fault::AgentPause, Fault::NodeDeleted),
    (Fault::Partition, Fault::NodeDeleted),
    (Fault::HostOff, Fault::NodeDeleted),
    (Fault::NodeDeleted, Fault::NodeDeleted),
    (Fault::NodeDeleted, Fault::JournalLost),
    (Fault::NodeDeleted, Fault::PolicyDeleted),
    (Fault::NodeDeleted, Fault::PoolDeleted),
    (Fault::NodeDeleted, Fault::Reset),
    (Fault::NodeDeleted, Fault::EnactmentDeleted),
    (Fault::NodeDeleted, Fault::StoreRestored),
    (Fault::JournalLost, Fault::PolicyDeleted),
    (Fault::JournalLost, Fault::PoolDeleted),
    (Fault::JournalLost, Fault::EnactmentDeleted),
    (Fault::PolicyDeleted, Fault::PoolDeleted),
    (Fault::PolicyDeleted, Fault::StoreRestored),
    (Fault::PoolDeleted, Fault::StoreRestored),
];

fn print(what: &str, config: &Config, report: &Report) {
    let faults: Vec<String> = config.faults.iter().map(Fault::to_string).collect();
    let reach = if report.complete {
        "all"
    } else {
        "bounded, the rest in `make soak`"
    };
    // Past the test harness's capture: the bounds and the numbers are part of the result.
    let line = format!(
        "model: {what} [{}]: {} hosts, {} addresses, {} old copies: {} states, {} moves, depth {}: {reach}\n",
        faults.join(" + "),
        config.hosts,
        config.addresses,
        config.peeks,
        report.states,
        report.moves,
        report.depth,
    );
    std::io::stderr()
        .write_all(line.as_bytes())
        .expect("stderr takes a line");
}

fn holds(what: &str, config: &Config, states: usize) -> Report {
    let report = check(config, &Bounds { states });
    print(what, config, &report);
    if let Some(violation) = &report.violation {
        panic!("{:?}: {violation}", config.faults);
    }
    report
}

/// A fault alone, with a second controller that acts on old caches: every state.
fn alone(fault: Fault) {
    let report = holds("alone", &Config::new(2, 1, &[fault]), usize::MAX);
    assert!(report.complete, "every state is visited");
}

/// A fault with each of those after it, itself included.
fn with_each(first: Fault) {
    for second in Fault::ALL.into_iter().filter(|second| *second >= first) {
        let mut config = Config::new(2, 1, &[first, second]);
        config.peeks = 0;
        let report = holds("pair", &config, STATES);
        let long = LONG.contains(&(first, second));
        assert_eq!(
            report.complete, !long,
            "{first} + {second}: every state, or else named in LONG"
        );
    }
}

macro_rules! faults {
    ($($name:ident: $fault:ident;)*) => {
        mod alone {
            $(#[test] fn $name() { super::alone(super::Fault::$fault); })*
        }

        mod pairs {
            $(#[test] fn $name() { super::with_each(super::Fault::$fault); })*
        }

        #[test]
        fn every_fault_has_its_tests() {
            assert_eq!(vec![$(Fault::$fault),*], Fault::ALL.to_vec());
        }
    };
}

faults! {
    agent_crash: AgentCrash;
    agent_pause: AgentPause;
    partition: Partition;
    host_off: HostOff;
    node_deleted: NodeDeleted;
    journal_lost: JournalLost;
    policy_deleted: PolicyDeleted;
    pool_deleted: PoolDeleted;
    reset: Reset;
    enactment_deleted: EnactmentDeleted;
    store_restored: StoreRestored;
    wire_taken: WireTaken;
}

#[test]
fn no_fault_two_addresses() {
    let report = holds("no fault", &Config::new(2, 2, &[]), usize::MAX);
    assert!(report.complete);
}

#[test]
fn no_fault_three_hosts() {
    let mut config = Config::new(3, 2, &[]);
    config.peeks = 0;
    assert!(holds("no fault", &config, usize::MAX).complete);
}

#[test]
fn agents_serve_themselves() {
    for fault in Fault::ALL {
        let mut config = Config::new(2, 1, &[fault]);
        config.peeks = 0;
        config.self_service = true;
        holds("self-service", &config, STATES);
    }
}

mod broken {
    use super::{Bounds, Breach, Config, Fault, check, print};

    /// With one rule broken the checker must find a schedule that shows why the rule is there.
    fn is_caught(breach: Breach, faults: &[Fault], sign: &str) {
        let mut config = Config::new(2, 1, faults);
        config.breach = Some(breach);
        let report = check(&config, &Bounds { states: 1_000_000 });
        print(&format!("{breach:?}, caught"), &config, &report);
        let violation = report.violation.expect("a broken rule is caught");
        assert!(
            violation.what.contains(sign),
            "caught, but for another reason: {}",
            violation.what
        );
        assert!(
            violation.schedule.len() > 3,
            "the schedule that leads there is told"
        );
    }

    const TWICE: &str = "on the NICs of";
    /// The step before it: the address is on a NIC, and the ledger, or the journal, knows nothing of it.
    const UNBACKED: &str = "on the NIC of";

    #[test]
    fn rule_1_ids_used_again() {
        is_caught(Breach::IdsUsedAgain, &[Fault::PolicyDeleted], UNBACKED);
    }

    #[test]
    fn rule_2_grant_not_confirmed() {
        is_caught(Breach::Unconfirmed, &[Fault::PoolDeleted], TWICE);
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
    fn rule_5_new_pool_gives_before_it_is_rebuilt() {
        is_caught(Breach::GivesUnbuilt, &[Fault::PoolDeleted], TWICE);
    }

    #[test]
    fn rule_6_restored_store_not_on_hold() {
        is_caught(Breach::NoHold, &[Fault::StoreRestored], TWICE);
    }

    #[test]
    fn rule_7_inherits_by_name() {
        is_caught(
            Breach::InheritsByName,
            &[Fault::HostOff, Fault::NodeDeleted],
            TWICE,
        );
    }
}
