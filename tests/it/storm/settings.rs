//! How large a storm is, and what is taken out of the product for it.

use std::{env, time::Duration};

use fastrand::Rng;

use super::without::Without;

/// A storm without any wish.
const USUAL: usize = 600;

/// Most senders of a process in a usual storm.
const SENDERS: usize = 3;

#[derive(Debug, Clone)]
pub struct Settings {
    pub seeds: Vec<u64>,
    /// Permits with a notice that is due, those included that turn up during the storm.
    pub notices: usize,
    pub length: Duration,
    /// Slow enough that the storm lasts, and finds most senders waiting for their last reply.
    pub reply: Duration,
    pub without: Vec<Without>,
}

impl Settings {
    pub fn read() -> Self {
        let notices = number("STORM_NOTICES", USUAL as u64) as usize;
        let usual_length = 15 + notices.saturating_sub(USUAL) as u64 / 220;
        let without = env::var("STORM_WITHOUT").unwrap_or_default();
        Self {
            seeds: seeds(),
            notices,
            length: Duration::from_secs(number("STORM_SECONDS", usual_length)),
            reply: Duration::from_millis(number("STORM_REPLY_MILLIS", 60)),
            without: without.split(',').filter(|word| !word.is_empty()).map(Without::named).collect(),
        }
    }

    /// Time between two things of a kind that happens so often in a usual storm.
    pub fn pause(&self, in_a_usual_storm: u32) -> Duration {
        self.length.mul_f64(USUAL as f64 / self.notices as f64) / in_a_usual_storm
    }

    /// Senders of one process.
    pub fn senders(&self, random: &mut Rng) -> usize {
        random.usize(1..=SENDERS) + self.more_senders()
    }

    fn more_senders(&self) -> usize {
        self.notices / 1500
    }

    /// Permits that turn up at once, for the next scan.
    pub fn wave(&self) -> usize {
        (self.notices / 100).max(1)
    }

    /// How long senders loiter at a seam at most.
    pub fn loiter(&self) -> Duration {
        Duration::from_millis(200).mul_f64((USUAL as f64 / self.notices as f64).min(1.0))
    }
}

/// `STORM_SEEDS` (`7` or `1..50`, both ends included), or the one of `STORM_SEED`.
fn seeds() -> Vec<u64> {
    let Ok(seeds) = env::var("STORM_SEEDS") else { return vec![number("STORM_SEED", 1)] };
    let parse = |text: &str| text.trim().parse::<u64>().expect("a seed");
    match seeds.split_once("..") {
        Some((first, last)) => (parse(first)..=parse(last)).collect(),
        None => seeds.split(',').map(parse).collect(),
    }
}

fn number(name: &str, usual: u64) -> u64 {
    env::var(name).map_or(usual, |value| value.parse().expect("a number"))
}
