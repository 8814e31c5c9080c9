//! The whole graph: which moves deliveries make, and from where a good end cannot be reached any more.

use std::collections::{BTreeSet, HashMap};

use permit_notifier::domain::delivery::DeliveryState;
use stateright::Model as _;

use super::{
    laws,
    steps::{Sending, Step},
    world::World,
};

pub struct Graph {
    pub worlds: Vec<World>,
    /// How each world was reached first.
    from: Vec<Option<(u32, Step)>>,
    /// For each world, those that lead to it by a step that happens when nothing goes wrong any more.
    healing: Vec<Vec<u32>>,
    /// From state to state.
    pub moves: BTreeSet<(DeliveryState, DeliveryState)>,
}

impl Graph {
    pub fn of(model: &Sending) -> Self {
        let mut graph = Self { worlds: Vec::new(), from: Vec::new(), healing: Vec::new(), moves: BTreeSet::new() };
        let mut known: HashMap<World, u32> = HashMap::new();
        for world in model.init_states() {
            graph.add(&mut known, &world, None);
        }
        let mut steps = Vec::new();
        let mut at = 0;
        while at < graph.worlds.len() {
            let world = graph.worlds[at];
            model.actions(&world, &mut steps);
            for step in steps.drain(..) {
                let Some(next) = model.next_state(&world, step) else { continue };
                graph.note_moves(&world, &next);
                let to = graph.add(&mut known, &next, Some((at as u32, step)));
                if step.heals() {
                    graph.healing[to as usize].push(at as u32);
                }
            }
            at += 1;
        }
        graph
    }

    fn add(&mut self, known: &mut HashMap<World, u32>, world: &World, from: Option<(u32, Step)>) -> u32 {
        *known.entry(*world).or_insert_with(|| {
            self.worlds.push(*world);
            self.from.push(from);
            self.healing.push(Vec::new());
            self.worlds.len() as u32 - 1
        })
    }

    fn note_moves(&mut self, before: &World, after: &World) {
        for (copy, delivery) in before.deliveries() {
            let next = after.copies[copy].map_or(delivery.state, |next| next.state);
            if next != delivery.state {
                self.moves.insert((delivery.state, next));
            }
        }
    }

    /// The first world from which no good end can be reached although nothing goes wrong any more.
    pub fn first_lost(&self) -> Option<usize> {
        let mut saved = vec![false; self.worlds.len()];
        let mut todo: Vec<u32> =
            (0..self.worlds.len() as u32).filter(|at| laws::is_drained(&self.worlds[*at as usize])).collect();
        while let Some(at) = todo.pop() {
            if !std::mem::replace(&mut saved[at as usize], true) {
                todo.extend(&self.healing[at as usize]);
            }
        }
        saved.iter().position(|saved| !saved)
    }

    /// The steps to a world, the fewest that lead there.
    pub fn way_to(&self, mut at: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some((before, step)) = self.from[at] {
            steps.push(step);
            at = before as usize;
        }
        steps.reverse();
        steps
    }
}
