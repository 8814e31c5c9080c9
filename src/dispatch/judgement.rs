//! What the outcomes of one message say about the transport and the recipient, beyond the message itself.

use std::time::Duration;

use uuid::Uuid;

use super::{DispatchRules, TransportState};
use crate::{
    domain::attempt::{Outcome, Phase},
    mail::{
        Ended, Envelope,
        smtp::{CONNECTION_LOST, TIMED_OUT},
    },
    store::{
        PgConnection, Result,
        connect::in_time,
        leases::Leased,
        transport::{
            BREAKS_ALONE, breaks_alone, close_breaker, forgot_policy_refusal, note_policy_refusal, open_breaker,
            take_turn,
        },
    },
    telemetry::mask_addresses,
};

/// So many different addresses refused by policy, with nothing accepted between, speak against us and not them.
const POLICY_REFUSALS_MAX: i32 = 5;
/// A turn missed by more than this is taken anew. Less than ten seconds' turns leave over.
const TURN_MISSED: Duration = Duration::from_millis(500);

/// What the end of an attempt means after a look at the others. A refusal of the recipient by policy (5.7.x) is for
/// now only, until the server has accepted another message since; for many addresses in a row it is the transport's
/// fault. A fault that one message meets for the third time while others pass is its own.
pub(super) async fn reconsider(connection: &mut PgConnection, leased: &Leased, ended: Ended) -> Result<Ended> {
    let may_be_its_own = matches!(ended.phase, Phase::Rcpt | Phase::Data | Phase::Body | Phase::Dot);
    let broke_off =
        ended.outcome == Outcome::NotSent && matches!(ended.reason.as_deref(), Some(CONNECTION_LOST | TIMED_OUT));
    let fault = ended.transport_fault || broke_off;
    if fault && may_be_its_own && breaks_alone(connection, leased.delivery_id).await? {
        let ended = ended.because(BREAKS_ALONE);
        return Ok(Ended { outcome: Outcome::Deferred, transport_fault: false, ..ended });
    }
    let by_policy = ended.enhanced_code.as_deref().is_some_and(|code| code.starts_with("5.7."));
    if ended.outcome != Outcome::Rejected || ended.phase != Phase::Rcpt || !by_policy {
        return Ok(ended);
    }
    let key = leased.recipient.address.key();
    if forgot_policy_refusal(connection, leased.delivery_id, &key).await? {
        return Ok(ended);
    }
    if note_policy_refusal(connection, &key).await? >= POLICY_REFUSALS_MAX {
        return Ok(Ended { outcome: Outcome::NotSent, transport_fault: true, ..ended });
    }
    Ok(Ended { outcome: Outcome::Deferred, ..ended })
}

/// A fault is told to our own senders at once; the others learn of it when it is recorded.
pub(super) fn seen_before(seen: &TransportState, ended: &Ended) {
    if ended.transport_fault {
        seen.broke();
        let fault = ended.response.as_deref().or(ended.reason.as_deref()).unwrap_or(ended.phase.as_str());
        let fault = mask_addresses(fault);
        tracing::warn!(phase = ended.phase.as_str(), smtp_code = ended.smtp_code, "the transport failed: {fault}");
    }
}

/// That the transport works is told once it is recorded, for until then the gate stays shut.
pub(super) fn seen_after(seen: &TransportState, ended: &Ended, probe: Option<Uuid>) {
    let answered = probe.is_some() && ended.outcome != Outcome::NotSent && !ended.transport_fault;
    if answered {
        tracing::info!("the transport works again");
    }
    if answered || (ended.outcome == Outcome::Accepted && !ended.transport_fault) {
        seen.works();
    }
}

/// Whether the server said that there is no such address.
pub(super) fn nowhere(ended: &Ended) -> bool {
    let code = ended.enhanced_code.as_deref();
    let no_such_address = matches!(code, Some("5.1.1" | "5.1.2" | "5.1.3" | "5.1.6" | "5.1.10"));
    ended.outcome == Outcome::Rejected && ended.phase == Phase::Rcpt && no_such_address
}

/// Probes the transport while nothing is due: names our own address as sender and recipient, and takes that back.
pub(super) async fn probe_without_message(rules: &DispatchRules, seen: &TransportState, probe: Uuid) -> Result<()> {
    let sender = rules.office.bounce_address.clone();
    let envelope = Envelope { sender, recipient: rules.office.from.address().clone(), size: None };
    let mut session = rules.mailer.session();
    let offered = session.offer(&envelope).await;
    if offered.is_ok() {
        session.withdraw().await;
    }
    session.close().await;
    in_time(record_probe(rules, seen, probe, offered)).await
}

async fn record_probe(
    rules: &DispatchRules,
    seen: &TransportState,
    probe: Uuid,
    offered: std::result::Result<(), Ended>,
) -> Result<()> {
    let mut connection = rules.pool.acquire().await?;
    match offered {
        Err(ended) if ended.transport_fault => {
            seen.broke();
            let fault = ended.response.as_deref().or(ended.reason.as_deref()).unwrap_or(ended.phase.as_str());
            open_breaker(&mut connection, fault, None, Some(probe)).await
        }
        // A refusal of the recipient is an answer too.
        _ => {
            close_breaker(&mut connection, probe).await?;
            seen.works();
            tracing::info!("the transport works again");
            Ok(())
        }
    }
}

/// Waits for this message's turn under `MAIL_RATE_PER_SECOND`; the turns are shared by all replicas.
pub(super) async fn wait_for_turn(rules: &DispatchRules) -> Result<()> {
    if rules.rate == 0 {
        return Ok(());
    }
    loop {
        let turn = async { take_turn(&mut *rules.pool.acquire().await?, rules.rate).await };
        let wait = in_time(turn).await?;
        let due = tokio::time::Instant::now() + wait;
        tokio::time::sleep_until(due).await;
        if due.elapsed() <= TURN_MISSED {
            return Ok(());
        }
    }
}
