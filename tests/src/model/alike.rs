//! Is the normal form honest? A search that tells states apart by all there is, and asks of those that the
//! normal form takes for one whether they behave as one: whether their moves lead to the same places.

use std::collections::{HashMap, HashSet, VecDeque};

use super::check::wrong_now;
use super::config::Config;
use super::moves::Move;
use super::print::Print;
use super::world::World;

/// What a search for states that only look alike saw.
pub struct Likeness {
    pub states: usize,
    /// How many remain in normal form.
    pub prints: usize,
    pub violation: Option<String>,
}

/// Where the moves of a state lead, in normal form and in some order; itself left out.
type Ways = Vec<Print>;

/// Visits every state in full, at most `states` of them.
pub fn likeness(config: &Config, states: usize) -> Likeness {
    let first = World::first(config);
    let mut visited = HashSet::from([first.full_print(config)]);
    let mut ways: HashMap<Print, (Ways, World)> = HashMap::new();
    let mut queue = VecDeque::from([first]);
    while let Some(world) = queue.pop_front() {
        let here = world.print(config);
        let next: Vec<(Move, World)> = world
            .moves(config)
            .into_iter()
            .filter_map(|step| Some((step, world.after(step, config)?)))
            .collect();
        let mut lead: Ways =
            next.iter().map(|(_, next)| next.print(config)).filter(|to| *to != here).collect();
        lead.sort_unstable();
        lead.dedup();
        let (others, other) = ways.entry(here).or_insert_with(|| (lead.clone(), world.clone()));
        if *others != lead || wrong_now(other, config) != wrong_now(&world, config) {
            let violation = Some(format!("these two only look alike:\n{other:#?}\n{world:#?}"));
            return Likeness { states: visited.len(), prints: ways.len(), violation };
        }
        for (_, next) in next {
            if visited.len() < states && visited.insert(next.full_print(config)) {
                queue.push_back(next);
            }
        }
    }
    Likeness { states: visited.len(), prints: ways.len(), violation: None }
}
