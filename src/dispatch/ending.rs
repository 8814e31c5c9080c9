//! How a letter ends: recorded, given back, or told why it must not go.

use std::sync::Arc;

use uuid::Uuid;

use super::{
    DispatchRules, Tally, TransportState,
    feeder::Work,
    judgement::{nowhere, seen_after, seen_before},
    letter::Letter,
};
use crate::{
    domain::{delivery::DeliveryState, notice::ReasonCode},
    mail::Ended,
    store::{
        Result,
        connect::in_time,
        leases::{Leased, give_back},
        recovery::{end_unsent, serve_missing_copies},
        refused::{Refusal, Refused, record_refused},
        settle::Settled,
        transport::return_probe,
    },
    telemetry::metrics,
};

/// Ends letters for one sender. The leases of what cannot be ended, because the database is away, are freed later as
/// leases that no task holds.
pub(super) struct Endings {
    pub(super) rules: DispatchRules,
    pub(super) transport: Arc<TransportState>,
    pub(super) tally: Arc<Tally>,
}

impl Endings {
    /// An attempt is over, and is about to be recorded.
    pub(super) fn over(&self, letter: &Letter, ended: &Ended) {
        seen_before(&self.transport, ended);
        metrics::attempt_ended(ended.outcome.as_str(), letter.started.elapsed());
        self.tally.ended(ended.outcome);
    }

    /// An attempt is over and recorded.
    pub(super) async fn recorded(&self, letter: &Letter, number: i32, ended: &Ended, settled: Option<Settled>) {
        let leased = &letter.work.leased;
        log(leased, number, ended, settled.as_ref().and_then(|settled| settled.state));
        seen_after(&self.transport, ended, letter.work.probe_token());
        if let Some(permit) = settled.and_then(|settled| settled.unserved) {
            tell_apart(leased, in_time(self.serve(permit)).await);
        }
    }

    /// The transport refused before the gate: the attempt is recorded already finished.
    pub(super) async fn refused(&self, letter: &Letter, ended: &Ended) {
        self.over(letter, ended);
        match in_time(self.record_refused(letter, ended)).await {
            Ok(refused) => log(&letter.work.leased, refused.number, ended, refused.state),
            failed => tell_apart(&letter.work.leased, failed.map(|_| ())),
        }
        seen_after(&self.transport, ended, letter.work.probe_token());
    }

    async fn record_refused(&self, letter: &Letter, ended: &Ended) -> Result<Refused> {
        let work = &letter.work;
        let key = work.leased.recipient.address.key();
        let suppress = nowhere(ended).then_some(key.as_str());
        let refusal = Refusal {
            settlement: &letter.settlement(ended),
            lease: work.lease(),
            boot_id: work.boot_id,
            transport: self.rules.mailer.transport(),
            message_id: &letter.message.message_id,
            payload_sha256: &letter.message.sha256,
            suppress,
        };
        let now = self.rules.moment().await?.now;
        let mut connection = self.rules.pool.acquire().await?;
        let refused = record_refused(&mut connection, &refusal, self.rules.max_attempts, now).await?;
        drop(connection);
        if suppress.is_some() {
            self.serve(work.leased.key.permit_id).await?;
        }
        Ok(refused)
    }

    /// It must not go, for this reason.
    pub(super) async fn must_not_go(&self, work: Work, reason: ReasonCode, fault: Option<&str>) {
        self.tally.refused(reason);
        tracing::info!(notice_key = %work.leased.key, state = reason.as_str(), "not sent: {}", reason.sentence());
        let ended = async {
            let now = self.rules.moment().await?.now;
            let mut connection = self.rules.pool.acquire().await?;
            end_unsent(&mut connection, &[(work.lease(), reason)], fault, now).await?;
            drop(connection);
            if matches!(reason, ReasonCode::AddressChanged | ReasonCode::Suppressed) {
                self.serve(work.leased.key.permit_id).await?;
            }
            self.free_probe(work.probe_token()).await
        };
        tell_apart(&work.leased, in_time(ended).await);
    }

    /// What we held is not ours any more.
    pub(super) async fn not_ours(&self, work: Work) {
        self.tally.refused(ReasonCode::NotOwed);
        tell_apart(&work.leased, in_time(self.free_probe(work.probe_token())).await);
    }

    /// It goes back untouched, to be tried again at once or a little `later`.
    pub(super) async fn give_back(&self, work: Work, later: bool) {
        let given = async {
            self.free_probe(work.probe_token()).await?;
            let pause = chrono::TimeDelta::seconds(1);
            let not_before = if later { Some(self.rules.moment().await?.now + pause) } else { None };
            give_back(&mut *self.rules.pool.acquire().await?, &[work.lease()], not_before).await
        };
        tell_apart(&work.leased, in_time(given).await);
    }

    async fn free_probe(&self, probe: Option<Uuid>) -> Result<()> {
        if let Some(token) = probe {
            return_probe(&mut *self.rules.pool.acquire().await?, token).await?;
        }
        Ok(())
    }

    async fn serve(&self, permit: Uuid) -> Result<()> {
        let moment = self.rules.moment().await?;
        serve_missing_copies(&mut *self.rules.pool.acquire().await?, &[permit], moment).await
    }
}

fn log(leased: &Leased, attempt: i32, ended: &Ended, state: Option<DeliveryState>) {
    let outcome = ended.outcome.as_str();
    tracing::info!(
        notice_key = %leased.key,
        attempt,
        outcome,
        smtp_code = ended.smtp_code,
        state = state.map(DeliveryState::as_str),
        "attempt ended: {outcome}"
    );
}

/// Says it, where the database was away.
fn tell_apart(leased: &Leased, result: Result<()>) {
    if let Err(error) = result {
        tracing::warn!(notice_key = %leased.key, "a delivery was left to be tried again: {error}");
    }
}
