//! How often a token may ask, and the headers that tell it.

use std::num::NonZeroU32;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use super::problem::{Kind, Problem};

const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The requests of one token in this process.
#[derive(Debug)]
pub struct Pace {
    per_minute: NonZeroU32,
    limiter: RateLimiter<NotKeyed, InMemoryState, DefaultClock, StateInformationMiddleware>,
}

/// What is left after a request.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    per_minute: u32,
    left: u32,
}

impl Pace {
    /// So many requests a minute; those not used are left for later, up to one minute's.
    pub fn new(per_minute: NonZeroU32) -> Self {
        let limiter = RateLimiter::direct(Quota::per_minute(per_minute));
        Self { per_minute, limiter: limiter.with_middleware::<StateInformationMiddleware>() }
    }

    /// Takes one request.
    pub fn take(&self) -> Result<Turn, Problem> {
        match self.limiter.check() {
            Ok(state) => Ok(Turn { per_minute: self.per_minute.get(), left: state.remaining_burst_capacity() }),
            Err(refused) => {
                let wait = refused.wait_time_from(DefaultClock::default().now());
                let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                let turn = Turn { per_minute: self.per_minute.get(), left: 0 };
                let mut problem = Problem::new(
                    Kind::RateLimited,
                    format!("the token may ask {} times a minute; go on in {seconds} s", self.per_minute),
                )
                .header(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
                for (name, value) in turn.pairs() {
                    problem = problem.header(name, value);
                }
                Err(problem)
            }
        }
    }
}

impl Turn {
    /// `RateLimit` and `RateLimit-Policy`.
    pub fn headers(self) -> HeaderMap {
        self.pairs().into_iter().collect()
    }

    /// Times are seconds; `t` is when all requests of a minute are there again.
    fn pairs(self) -> Vec<(HeaderName, HeaderValue)> {
        let used = u64::from(self.per_minute.saturating_sub(self.left));
        let full = (used * 60).div_ceil(u64::from(self.per_minute));
        let limit = format!("\"token\";r={};t={full}", self.left);
        let policy = format!("\"token\";q={};w=60", self.per_minute);
        let pairs = [(LIMIT, limit), (POLICY, policy)];
        pairs.into_iter().filter_map(|(name, value)| Some((name, HeaderValue::try_from(value).ok()?))).collect()
    }
}
