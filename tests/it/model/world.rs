//! What there is: the database's rows, two processes with one sender each, and the mail server.

use permit_notifier::domain::{
    attempt::{Outcome, Resolution},
    delivery::DeliveryState,
    notice::NoticeState,
};

/// Processes.
pub const WORKERS: usize = 2;
/// Lives that one process may have: the first, one after a crash, one after it was taken for dead.
pub const LIVES: usize = 3;
/// Attempts of one delivery that matter at the same time; those that are over and done with are forgotten.
pub const SLOTS: usize = 3;
/// Most copies of the notice.
pub const COPIES: usize = 2;

/// One life of a process; in the program a boot id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Life {
    pub worker: usize,
    pub number: usize,
}

/// The row of one life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Row {
    /// Not born yet.
    Unborn,
    /// Renewed less than half a lease ago.
    Young,
    /// Renewed more than half a lease ago: alive for the others, too old to write a dot.
    Old,
    /// Dead, and stays so; whether one of its attempts was found open.
    Dead { left_one: bool },
}

/// What the mail server knows of one attempt. `Accepted` is its ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seen {
    /// No dot, or what became of it can no longer reach anybody.
    Nothing,
    /// The dot is written; the server has not decided.
    UnderWay,
    Accepted,
    Deferred,
    Rejected,
}

/// What was true of a message when a person said that it had not been delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Truth {
    NeverSent,
    /// Its owner had seen the conversation end without a reply; the server was still at it.
    LeftBehind,
    /// Nobody had seen the conversation end: its owner was lost, and could still be waiting for the reply.
    Talking,
    Accepted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attempt {
    pub outcome: Outcome,
    /// The process that makes it, while it is open.
    pub owner: Option<Life>,
    /// Reason `owner_lost`.
    pub owner_lost: bool,
    pub resolution: Option<Resolution>,
    /// What was true when it was resolved.
    pub truth: Option<Truth>,
    /// Whether at its gate the notice was owed to this address and the message was made from the present permit.
    pub right: bool,
    /// Whether its process's row was alive then.
    pub begun_alive: bool,
    /// The mail server's side.
    pub seen: Seen,
}

impl Attempt {
    /// What the partial unique index counts.
    pub fn is_effective(&self) -> bool {
        match self.outcome {
            Outcome::Sending | Outcome::Accepted => true,
            Outcome::Ambiguous => self.resolution != Some(Resolution::NotDelivered),
            _ => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease {
    pub token: u8,
    pub owner: Life,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Delivery {
    pub state: DeliveryState,
    pub lease: Option<Lease>,
    pub attempt_count: u8,
    pub lost_owners: u8,
    pub attempts: [Option<Attempt>; SLOTS],
}

impl Delivery {
    pub const NEW: Self =
        Self { state: DeliveryState::Pending, lease: None, attempt_count: 0, lost_owners: 0, attempts: [None; SLOTS] };

    pub fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().flatten()
    }

    pub fn is_open(&self) -> bool {
        matches!(self.state, DeliveryState::Pending | DeliveryState::Held)
    }
}

/// A lease in a sender's hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Held {
    pub copy: usize,
    pub token: u8,
    pub life: Life,
}

/// An attempt in a sender's hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Try {
    pub copy: usize,
    pub slot: usize,
    pub life: Life,
}

/// Where a sender is. Making the offer touches nothing that others see, so an offered message is `Rendered`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Task {
    Crashed,
    Idle,
    Leased(Held),
    /// Made from this version of the permit, MAIL and RCPT taken.
    Rendered(Held, u8),
    /// The gate said that it must not go; that is not written yet.
    Ending(Held),
    /// To be given back.
    Returning(Held),
    /// Through the gate, the body under way.
    Gated(Try),
    /// The process row was young enough a moment ago (only where question and dot are two steps).
    Cleared(Try),
    /// The dot is written.
    Dotted(Try),
    /// How it ended is known here and not yet written down.
    Known(Try, Outcome),
}

impl Task {
    pub fn held(self) -> Option<Held> {
        match self {
            Self::Leased(held) | Self::Rendered(held, _) | Self::Ending(held) | Self::Returning(held) => Some(held),
            _ => None,
        }
    }

    pub fn attempt(self) -> Option<Try> {
        match self {
            Self::Gated(attempt) | Self::Cleared(attempt) | Self::Dotted(attempt) | Self::Known(attempt, _) => {
                Some(attempt)
            }
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Worker {
    pub life: usize,
    pub task: Task,
}

/// The permit; the notice is that of the first period, its first copy goes to the first address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Permit {
    pub renewed: bool,
    pub moved: bool,
    pub version: u8,
}

/// How much may still go wrong or be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    pub renewals: u8,
    pub moves: u8,
    pub crashes: [u8; WORKERS],
    /// How often a process that runs may be taken for dead.
    pub lapses: [u8; WORKERS],
    /// 4xx, broken connections, commits without an answer, locks held by others.
    pub troubles: u8,
    /// Resolutions as not delivered, retries of what failed, releases.
    pub words: u8,
}

/// A rule about steps that was broken on the way here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    Move(DeliveryState, DeliveryState),
    OutcomeWrittenTwice,
    ResolvedTwice,
    TwoLeftByOneLife,
    IndexFired,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    pub permit: Permit,
    /// `superseded_at` of the notice is set.
    pub superseded: bool,
    pub copies: [Option<Delivery>; COPIES],
    pub rows: [[Row; LIVES]; WORKERS],
    pub workers: [Worker; WORKERS],
    pub budget: Budget,
    pub fault: Option<Fault>,
}

impl World {
    pub fn new(budget: Budget) -> Self {
        Self {
            permit: Permit { renewed: false, moved: false, version: 0 },
            superseded: false,
            copies: [Some(Delivery::NEW), None],
            rows: [[Row::Young, Row::Unborn, Row::Unborn]; WORKERS],
            workers: [Worker { life: 0, task: Task::Idle }; WORKERS],
            budget,
            fault: None,
        }
    }

    pub fn deliveries(&self) -> impl Iterator<Item = (usize, &Delivery)> {
        self.copies.iter().enumerate().filter_map(|(copy, delivery)| Some((copy, delivery.as_ref()?)))
    }

    pub fn delivery(&mut self, copy: usize) -> &mut Delivery {
        self.copies[copy].as_mut().expect("a delivery")
    }

    pub fn attempt(&mut self, attempt: Try) -> &mut Attempt {
        self.delivery(attempt.copy).attempts[attempt.slot].as_mut().expect("an attempt")
    }

    pub fn is_alive(&self, life: Life) -> bool {
        matches!(self.rows[life.worker][life.number], Row::Young | Row::Old)
    }

    pub fn on_permit(&self, copy: usize) -> bool {
        (copy == 1) == self.permit.moved
    }

    pub fn notice(&self) -> NoticeState {
        let states: Vec<DeliveryState> = self.deliveries().map(|(_, delivery)| delivery.state).collect();
        NoticeState::of(&states).expect("a notice with deliveries")
    }

    /// Lives that ended, by a crash or because they were taken for dead.
    pub fn deaths(&self) -> usize {
        self.rows.iter().flatten().filter(|row| matches!(row, Row::Dead { .. })).count()
    }

    pub fn blame(&mut self, fault: Fault) {
        self.fault = self.fault.or(Some(fault));
    }

    /// Every change of a delivery's state goes through here.
    pub fn become_(&mut self, copy: usize, next: DeliveryState) {
        let before = self.delivery(copy).state;
        if before != next && !before.may_become(next) {
            self.blame(Fault::Move(before, next));
        }
        let delivery = self.delivery(copy);
        delivery.state = next;
        if !matches!(next, DeliveryState::Pending | DeliveryState::Sending) {
            delivery.lease = None;
        }
    }

    /// Forgets what can make no difference any more, so that equal situations are equal states.
    pub fn tidy(&mut self) {
        let tasks = self.workers.map(|worker| worker.task);
        for (copy, delivery) in self.copies.iter_mut().enumerate() {
            let Some(delivery) = delivery else { continue };
            for (slot, place) in delivery.attempts.iter_mut().enumerate() {
                let Some(attempt) = place else { continue };
                let is_here = |task: &Task| task.attempt().is_some_and(|a| (a.copy, a.slot) == (copy, slot));
                let reply_awaited = tasks.iter().any(|task| is_here(task) && matches!(task, Task::Dotted(_)));
                if !reply_awaited && matches!(attempt.seen, Seen::Deferred | Seen::Rejected) {
                    attempt.seen = Seen::Nothing;
                }
                if attempt.outcome != Outcome::Sending {
                    attempt.owner = None;
                }
                if !attempt.is_effective() && attempt.seen == Seen::Nothing && !tasks.iter().any(is_here) {
                    *place = None;
                }
            }
        }
    }
}
