//! The wire that an address is to be used on: who else answers for it there, and telling everybody who has it now.
//!
//! IPv4 by RFC 5227: before an address is used it is asked for by ARP probes, and announced once it is there. IPv6 has
//! the kernel's duplicate address detection, which doesn't say who the other one is: that is asked here afterwards. Called
//! by [`crate::transaction`] and the agent, on the thread that works inside the host's network namespace. Must never write
//! anything but these packets, and never decide what follows from an answer.
//!
//! Cost: the time of one probe ([`Timing`]) for all addresses of a change together, a packet socket for each of their
//! links meanwhile, and three broadcasts for each address; then two announcements. Nothing where nothing is new on a link. For the owner
//! of an IPv6 address that the kernel found taken, three multicasts at the most in a second and a half.

mod arp;
mod cards;
mod ndisc;
mod socket;
mod timing;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use policy::state::{IfName, Mac};

use crate::netlink::Placed;
use arp::Arp;
use cards::{Card, Cards};
use socket::{PacketSocket, Protocol};

pub use timing::{NoTiming, Timing};

/// How long a link that was just set up may take to have a carrier: cards negotiate for two or three seconds.
const CARRIER: Duration = Duration::from_secs(5);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(50);

/// Packets of a link that are taken in before the clock is looked at again: a storm must not keep the host.
const AT_ONCE: usize = 1000;

/// How often the owner of an IPv6 address is asked for, and how long it has each time to say that it is: a packet may be lost, and
/// whoever was given the address a moment ago may not be listening yet.
const SOLICITATIONS: u32 = 3;
const NEIGHBOUR: Duration = Duration::from_millis(500);

/// Why an address was not asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unasked {
    #[error("{} has no carrier", .0)]
    NoCarrier(IfName),
    #[error("there is no ARP on {}", .0)]
    NoArp(IfName),
    #[error("{link}: {why}")]
    Broken { link: IfName, why: String },
}

/// Who else has an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub at: Placed,
    /// Not known of an IPv6 address whose owner didn't answer.
    pub mac: Option<Mac>,
}

/// What the wire said of some addresses. Of those that are in neither list nobody answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    pub taken: Vec<Taken>,
    pub unasked: Vec<(Placed, Unasked)>,
}

/// Asks for these IPv4 addresses on their links, all at the same time. A link that is `fresh`, just set up, may have its
/// carrier in a moment and is waited for.
pub fn ask(
    places: &[Placed],
    timing: Timing,
    fresh: &dyn Fn(&IfName) -> bool,
    stop: &dyn Fn() -> bool,
) -> Answers {
    let mut answers = Answers::default();
    let Some(within) = timing.within() else { return answers };
    let asked: Vec<(&Placed, Ipv4Addr)> = places.iter().filter_map(|at| Some((at, v4(at)?))).collect();
    if asked.is_empty() {
        return answers;
    }
    let links: BTreeSet<&IfName> = asked.iter().map(|(at, _)| &at.link).collect();
    let cards = match settled(&links, fresh, stop) {
        Ok(cards) => cards,
        Err(error) => {
            let why = |at: &Placed| Unasked::Broken { link: at.link.clone(), why: error.to_string() };
            answers.unasked = asked.into_iter().map(|(at, _)| (at.clone(), why(at))).collect();
            return answers;
        }
    };
    let mut lines: BTreeMap<&IfName, Line> = BTreeMap::new();
    let mut mute: BTreeMap<&IfName, Unasked> = BTreeMap::new();
    for link in links {
        match Line::open(link, &cards) {
            Ok(line) => drop(lines.insert(link, line)),
            Err(why) => drop(mute.insert(link, why)),
        }
    }
    for (at, ip) in asked {
        match (lines.get_mut(&at.link), mute.get(&at.link)) {
            (Some(line), _) => line.asks.push((at.clone(), ip)),
            (None, Some(why)) => answers.unasked.push((at.clone(), why.clone())),
            (None, None) => {}
        }
    }
    let mut lines: Vec<Line> = lines.into_values().collect();
    hear(&mut lines, &cards.macs(), within, stop);
    for line in lines {
        answers.taken.extend(line.taken);
        if let Some(why) = line.broken {
            let unasked = |(at, _)| {
                let link = line.link.clone();
                (at, Unasked::Broken { link, why: why.clone() })
            };
            answers.unasked.extend(line.asks.into_iter().map(unasked));
        }
    }
    answers
}

/// Tells everybody on their links who has these addresses now; what could not be told.
pub fn announce(places: &[Placed]) -> Vec<(Placed, Unasked)> {
    let asked: Vec<(&Placed, Ipv4Addr)> = places.iter().filter_map(|at| Some((at, v4(at)?))).collect();
    if asked.is_empty() {
        return Vec::new();
    }
    let broken =
        |at: &Placed, error: &io::Error| Unasked::Broken { link: at.link.clone(), why: error.to_string() };
    let cards = match Cards::look() {
        Ok(cards) => cards,
        Err(error) => return asked.into_iter().map(|(at, _)| (at.clone(), broken(at, &error))).collect(),
    };
    let told = |at: &Placed, ip: Ipv4Addr| -> Result<(), Unasked> {
        let line = Line::open(&at.link, &cards)?;
        line.socket.send(&Arp::announcement(line.mac, ip).frame()).map_err(|error| broken(at, &error))
    };
    asked.into_iter().filter_map(|(at, ip)| Some((at.clone(), told(at, ip).err()?))).collect()
}

/// Who has this IPv6 address on this link, besides us: the kernel found out that somebody has, and not who.
pub fn neighbour(at: &Placed) -> Option<Mac> {
    let IpAddr::V6(ip) = at.ip else { return None };
    let cards = Cards::look().ok()?;
    let card = cards.get(&at.link)?;
    solicit(card, ip, &cards.macs()).ok().flatten()
}

fn solicit(card: &Card, ip: Ipv6Addr, own: &BTreeSet<Mac>) -> io::Result<Option<Mac>> {
    let socket = PacketSocket::open(card.index, Protocol::Ipv6)?;
    for _ in 0..SOLICITATIONS {
        // Who owns it answers such a question to everybody, and everybody hears that.
        socket.send(&ndisc::solicitation(card.mac, ip))?;
        let until = Instant::now() + NEIGHBOUR;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !wait(&[&socket], left)? {
                break;
            }
            while let Some(frame) = socket.receive()? {
                let owner = ndisc::owner(&frame, ip).filter(|mac| !own.contains(mac));
                if owner.is_some() {
                    return Ok(owner);
                }
            }
        }
    }
    Ok(None)
}

/// The cards, once those of fresh links have a carrier, or have had all the time they may have.
fn settled(
    links: &BTreeSet<&IfName>,
    fresh: &dyn Fn(&IfName) -> bool,
    stop: &dyn Fn() -> bool,
) -> io::Result<Cards> {
    let until = Instant::now() + CARRIER;
    loop {
        let cards = Cards::look()?;
        let awaited = |link: &&IfName| {
            cards.get(link).is_some_and(|card| card.speaks_arp && !card.has_carrier) && fresh(link)
        };
        if !links.iter().any(awaited) || Instant::now() >= until || stop() {
            return Ok(cards);
        }
        std::thread::sleep(LOOK);
    }
}

/// One link that is being listened to.
struct Line {
    link: IfName,
    mac: Mac,
    socket: PacketSocket,
    asks: Vec<(Placed, Ipv4Addr)>,
    taken: Vec<Taken>,
    broken: Option<String>,
}

impl Line {
    fn open(link: &IfName, cards: &Cards) -> Result<Self, Unasked> {
        let broken = |why: String| Unasked::Broken { link: link.clone(), why };
        let card = cards.get(link).ok_or_else(|| broken("there is no such link".to_owned()))?;
        if !card.speaks_arp {
            return Err(Unasked::NoArp(link.clone()));
        }
        if !card.has_carrier {
            return Err(Unasked::NoCarrier(link.clone()));
        }
        let socket =
            PacketSocket::open(card.index, Protocol::Arp).map_err(|error| broken(error.to_string()))?;
        Ok(Self {
            link: link.clone(),
            mac: card.mac,
            socket,
            asks: Vec::new(),
            taken: Vec::new(),
            broken: None,
        })
    }

    /// Asks for whatever nobody has answered for yet.
    fn probe(&mut self) {
        for (_, ip) in &self.asks {
            if let Err(error) = self.socket.send(&Arp::probe(self.mac, *ip).frame()) {
                self.broken = Some(error.to_string());
            }
        }
    }

    fn listen(&mut self, own: &BTreeSet<Mac>) {
        for _ in 0..AT_ONCE {
            match self.socket.receive() {
                Ok(Some(frame)) => self.take_in(&frame, own),
                Ok(None) => return,
                Err(error) => {
                    self.broken = Some(error.to_string());
                    return;
                }
            }
        }
    }

    fn take_in(&mut self, frame: &[u8], own: &BTreeSet<Mac>) {
        let Some(packet) = Arp::read(frame) else { return };
        let (taken, free) = std::mem::take(&mut self.asks)
            .into_iter()
            .partition(|(_, ip)| packet.conflicts_with(*ip) && !own.contains(&packet.sender_mac));
        self.asks = free;
        let taken: Vec<(Placed, Ipv4Addr)> = taken;
        self.taken.extend(taken.into_iter().map(|(at, _)| Taken { at, mac: Some(packet.sender_mac) }));
    }
}

/// Probes at their times and listens in between, until the time is over or everything has an owner.
fn hear(lines: &mut [Line], own: &BTreeSet<Mac>, within: Duration, stop: &dyn Fn() -> bool) {
    let begin = Instant::now();
    let mut due = timing::probes(within).into_iter().peekable();
    loop {
        let passed = begin.elapsed();
        if due.next_if(|at| *at <= passed).is_some() {
            lines.iter_mut().for_each(Line::probe);
        }
        let open = |line: &&mut Line| line.broken.is_none() && !line.asks.is_empty();
        let waiting: Vec<&mut Line> = lines.iter_mut().filter(open).collect();
        let next = due.peek().copied().unwrap_or(within);
        if waiting.is_empty() || passed >= within || stop() {
            return;
        }
        let sockets: Vec<&PacketSocket> = waiting.iter().map(|line| &line.socket).collect();
        let waited = wait(&sockets, next.saturating_sub(begin.elapsed()));
        for line in waiting {
            match &waited {
                Ok(true) => line.listen(own),
                Ok(false) => {}
                Err(error) => line.broken = Some(error.to_string()),
            }
        }
    }
}

/// Whether one of them has something to read by then.
fn wait(sockets: &[&PacketSocket], at_most: Duration) -> io::Result<bool> {
    let mut polled: Vec<PollFd<'_>> =
        sockets.iter().map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
    // Whole milliseconds, and one more rather than one less: a wait that is too short is a loop.
    let milliseconds = u16::try_from(at_most.as_millis()).unwrap_or(u16::MAX).saturating_add(1);
    match poll(&mut polled, PollTimeout::from(milliseconds)) {
        Ok(count) => Ok(count > 0),
        Err(nix::errno::Errno::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn v4(at: &Placed) -> Option<Ipv4Addr> {
    match at.ip {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    }
}
