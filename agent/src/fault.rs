//! Fault points: places between two writes where a test has the process killed, as by `kill -9`.
//!
//! `BERTH_FAULT=name` arms one, `name:3` its third passing. Called by whoever writes, right after a write; tests
//! (`tests/agents/faults`) arm each that [`all`] lists, and fail where one is never reached. Only in what is built for tests (the
//! feature `testing`): in a release nothing is left of it, neither a look at the environment nor the names. It must never do
//! anything but end the process. Cost: none in a release; otherwise a look at whether one is armed.

#[cfg(feature = "testing")]
pub use armed::all;
#[cfg(feature = "testing")]
pub(crate) use armed::{acted, journalled, point};
#[cfg(not(feature = "testing"))]
pub use released::all;
#[cfg(not(feature = "testing"))]
pub(crate) use released::{acted, journalled, point};

#[cfg(feature = "testing")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use policy::claim::{Action, Phase, Record};

    /// In the order of the story: a host appears, claims, applies; lets go; its Node is re-created; then the controller's,
    /// and those of a host on its own.
    const POINTS: [&str; 39] = [
        "node-made",
        "node-labelled",
        "state-made",
        "reported",
        "journal-asking",
        "enactment-made",
        "requested",
        "confirmed",
        "journal-holding",
        "holds-written",
        "progressing-said",
        "applied",
        "state-journalled",
        "available-said",
        "off-the-nic",
        "journal-releasing",
        "let-go",
        "slot-removed",
        "journal-gone",
        "finalizer-off",
        "enactment-dropped",
        "state-dropped",
        "journal-parked",
        "inherited",
        "pool-begun",
        "ledger-written",
        "rebuilt",
        "answered",
        "word-asked",
        "policy-written",
        "enactment-finished",
        "pool-ended",
        "slice-made",
        "slice-written",
        "slice-left",
        "slice-gone",
        "slice-set-aside",
        "manifest-put",
        "manifest-dropped",
    ];

    /// Every point there is.
    pub fn all() -> &'static [&'static str] {
        &POINTS
    }

    /// Ends this process here, if that is asked for.
    pub(crate) fn point(name: &str) {
        static ARMED: OnceLock<Option<(String, u32)>> = OnceLock::new();
        static PASSED: AtomicU32 = AtomicU32::new(0);
        let armed = ARMED.get_or_init(|| std::env::var("BERTH_FAULT").ok().map(|text| parse(&text)));
        let Some((armed, nth)) = armed else { return };
        assert!(POINTS.contains(&name), "fault point {name} is not listed");
        if armed == name && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *nth {
            crate::telemetry::say(&format!("fault point {name}"));
            let _ = kill(Pid::this(), Signal::SIGKILL);
            // The first process of a container is spared by that: no signal of its own can kill it. This does.
            std::process::abort();
        }
    }

    fn parse(text: &str) -> (String, u32) {
        match text.split_once(':') {
            Some((name, nth)) => (name.to_owned(), nth.parse().unwrap_or(1)),
            None => (text.to_owned(), 1),
        }
    }

    /// After an agent did what a claim needed.
    pub(crate) fn acted(action: &Action) {
        match action {
            Action::Report { .. } => point("reported"),
            Action::CreateEnactment { .. } => point("enactment-made"),
            Action::Confirm { .. } => point("confirmed"),
            Action::Inherit { .. } => point("inherited"),
            Action::RemoveFromNic { .. } => point("off-the-nic"),
            Action::RemoveSlot { .. } => point("slot-removed"),
            Action::DropEnactment { .. } => point("enactment-dropped"),
            Action::WriteRequests { requests, .. } => {
                let first = requests.values().next();
                match first.map(|request| (request.want, request.holds.is_some())) {
                    Some((false, _)) => point("let-go"),
                    Some((true, true)) => point("holds-written"),
                    _ => point("requested"),
                }
            }
            // Written down by whoever writes the journal, or not at all.
            Action::Journal { .. } | Action::Announce { .. } | Action::AddToNic { .. } => {}
        }
    }

    /// After a claim was journalled.
    pub(crate) fn journalled(record: Option<&Record>) {
        point(match record.map(|record| &record.phase) {
            Some(Phase::Asking { .. }) => "journal-asking",
            Some(Phase::Holding(_)) => "journal-holding",
            Some(Phase::Parked(_)) => "journal-parked",
            Some(Phase::Releasing) => "journal-releasing",
            None => "journal-gone",
        });
    }
}

#[cfg(not(feature = "testing"))]
mod released {
    use policy::claim::{Action, Record};

    /// None: this is for people.
    pub fn all() -> &'static [&'static str] {
        &[]
    }

    #[inline(always)]
    pub(crate) fn point(_: &str) {}

    #[inline(always)]
    pub(crate) fn acted(_: &Action) {}

    #[inline(always)]
    pub(crate) fn journalled(_: Option<&Record>) {}
}
