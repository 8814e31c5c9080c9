//! The database refuses to hold a lie, whoever writes it: plain SQL, and the constraint that says no.

use permit_notifier::store::connect::violated;

use crate::support::office::TestOffice;

/// A permit with one notice, its delivery, and an attempt that ended as `outcome` (none for an empty word).
async fn office_with(outcome: &str) -> TestOffice {
    let office = TestOffice::new().await;
    let permit = office.create_permit(|p| p.expires_on = office.in_days(90)).await;
    if !outcome.is_empty() {
        office.transport(permit, outcome).await;
    }
    office
}

async fn refused(office: &TestOffice, constraint: &str, lie: &str) {
    match office.try_sql(lie).await {
        Ok(()) => panic!("{constraint} let pass: {lie}"),
        Err(error) => assert_eq!(violated(&error), Some(constraint), "{error}: {lie}"),
    }
}

/// A second attempt of the one delivery.
fn attempt(outcome: &str, rest: &str) -> String {
    let finished = if outcome == "sending" { "NULL" } else { "now()" };
    format!(
        "INSERT INTO attempts (id, delivery_id, number, notice_key, boot_id, transport, outcome, started_at, finished_at,
                               phase, smtp_code, response, payload_sha256)
         SELECT gen_random_uuid(), id, 2, 'key', gen_random_uuid(), {rest} FROM deliveries"
    )
    .replace("$OUTCOME", &format!("'{outcome}', now(), {finished}"))
}

#[tokio::test]
async fn a_key_equals_its_parts_and_stands_once() {
    let office = office_with("").await;
    for lie in [
        "UPDATE notices SET expires_on = expires_on + 1",
        "UPDATE notices SET notice_type = 'expires-60d'",
        "UPDATE notices SET notice_key = upper(notice_key)",
        "SET DateStyle = 'German'; UPDATE notices SET expires_on = expires_on - 1",
    ] {
        refused(&office, "notices_key_equals_parts", lie).await;
    }
    let copy = "INSERT INTO notices SELECT (jsonb_populate_record(n, jsonb_build_object('id', gen_random_uuid()))).* FROM notices n";
    refused(&office, "notices_notice_key_key", copy).await;
    let copy = copy.replace("notices n", "deliveries n").replace("INTO notices", "INTO deliveries");
    refused(&office, "deliveries_address_once", &copy).await;
    office.sql("SET DateStyle = 'German'; UPDATE notices SET state = state").await;
    office.close().await;
}

#[tokio::test]
async fn what_ended_unsent_says_why() {
    let office = office_with("").await;
    for state in ["superseded", "skipped", "cancelled"] {
        let lie = format!("UPDATE notices SET superseded_at = now(), state = '{state}'");
        refused(&office, "notices_ended_unsent_says_why", &lie).await;
    }
    let lie = "UPDATE notices SET state = 'superseded', reason_code = 'paused'";
    refused(&office, "notices_superseded_says_when", lie).await;
    refused(&office, "notices_state_known", "UPDATE notices SET state = 'sending'").await;
    office.close().await;
}

#[tokio::test]
async fn sent_needs_an_accepted_attempt_or_a_resolution() {
    for outcome in ["", "rejected", "not_sent", "deferred", "ambiguous", "sending"] {
        let office = TestOffice::new().await;
        let permit = office.create_permit(|p| p.expires_on = office.in_days(90)).await;
        if !outcome.is_empty() {
            let ended = if outcome == "sending" { "NULL" } else { "now()" };
            let made = attempt(outcome, "'smtp', $OUTCOME, 'dot', 250, 'no', sha256('mail')");
            assert!(made.contains(ended));
            office.sql(&made).await;
        }
        refused(&office, "deliveries_sent_has_proof", "UPDATE deliveries SET state = 'sent'").await;
        let copy = "INSERT INTO deliveries SELECT (jsonb_populate_record(d, jsonb_build_object(
                        'id', gen_random_uuid(), 'copy', 2, 'state', 'sent'))).* FROM deliveries d";
        refused(&office, "deliveries_sent_has_proof", copy).await;
        assert_eq!(office.open(permit).await, ["expires-90d"]);
        office.close().await;
    }
    let office = office_with("ambiguous").await;
    let resolved =
        "UPDATE attempts SET resolution = 'delivered', resolved_by = 'Ada', resolution_reason = 'she said so',
                           resolved_at = now();
         UPDATE deliveries SET state = 'sent'; UPDATE notices SET state = 'sent'";
    office.sql(resolved).await;
    office.close().await;
}

#[tokio::test]
async fn accepted_needs_the_proof_of_its_transport() {
    let office = office_with("").await;
    for rest in [
        "'smtp', $OUTCOME, 'dot', 250, 'ok', NULL",
        "'smtp', $OUTCOME, 'dot', NULL, 'ok', sha256('mail')",
        "'smtp', $OUTCOME, 'dot', 354, 'ok', sha256('mail')",
        "'smtp', $OUTCOME, 'data', 250, 'ok', sha256('mail')",
        "'smtp', $OUTCOME, NULL, 250, 'ok', sha256('mail')",
        "'file', $OUTCOME, NULL, NULL, NULL, sha256('mail')",
        "'file', $OUTCOME, NULL, NULL, 'name.eml', NULL",
        "'http', $OUTCOME, NULL, NULL, NULL, sha256('mail')",
        "'letter', $OUTCOME, NULL, NULL, NULL, NULL",
    ] {
        refused(&office, "attempts_accepted_has_proof", &attempt("accepted", rest)).await;
    }
    let short = attempt("accepted", "'smtp', $OUTCOME, 'dot', 250, 'ok', '\\x00'");
    refused(&office, "attempts_payload_sha256_length", &short).await;
    office.sql(&attempt("accepted", "'smtp', $OUTCOME, 'dot', 250, 'ok', sha256('mail')")).await;
    office.close().await;
}

#[tokio::test]
async fn a_delivery_has_at_most_one_attempt_that_may_have_reached_somebody() {
    for first in ["sending", "accepted", "ambiguous"] {
        let office = office_with(first).await;
        for second in ["sending", "accepted", "ambiguous"] {
            let second = attempt(second, "'smtp', $OUTCOME, 'dot', 250, 'ok', sha256('mail')");
            refused(&office, "attempts_one_effective_idx", &second).await;
        }
        for harmless in ["rejected", "deferred", "not_sent"] {
            office.sql(&attempt(harmless, "'smtp', $OUTCOME, 'rcpt', 450, 'no', NULL")).await;
            office.sql("DELETE FROM attempts WHERE number = 2").await;
        }
        office.close().await;
    }
    let office = office_with("ambiguous").await;
    let second = attempt("sending", "'smtp', $OUTCOME, NULL, NULL, NULL, NULL");
    resolve(&office, "not_delivered").await.expect("a resolution");
    office.sql(&second).await;
    // What was sent again cannot be found to have been delivered after all.
    refused(
        &office,
        "attempts_resolution_written_once",
        "UPDATE attempts SET resolution = 'delivered' WHERE number = 1",
    )
    .await;
    office.sql("UPDATE attempts SET outcome = 'not_sent', finished_at = now() WHERE number = 2").await;
    office.close().await;
}

async fn resolve(office: &TestOffice, resolution: &str) -> Result<(), sqlx::Error> {
    let resolved = format!(
        "UPDATE attempts SET resolution = '{resolution}', resolved_by = 'Ada', resolution_reason = 'she looked',
                resolved_at = now()"
    );
    office.try_sql(&resolved).await
}

#[tokio::test]
async fn an_outcome_is_written_once() {
    for outcome in ["accepted", "rejected", "ambiguous"] {
        let office = office_with(outcome).await;
        for other in ["accepted", "deferred", "rejected", "not_sent", "ambiguous", "sending"] {
            if other != outcome {
                let finished = if other == "sending" { "NULL" } else { "now()" };
                let lie = format!("UPDATE attempts SET outcome = '{other}', finished_at = {finished}");
                refused(&office, "attempts_outcome_written_once", &lie).await;
            }
        }
        office.close().await;
    }
}

#[tokio::test]
async fn only_what_a_lost_owner_left_is_replaced_and_only_while_nobody_has_resolved_it() {
    let accept = "UPDATE attempts SET outcome = 'accepted', reason = NULL";
    let lose =
        |reason: &str| format!("UPDATE attempts SET outcome = 'ambiguous', reason = '{reason}', finished_at = now()");
    let office = office_with("sending").await;
    office.sql(&lose("stopped")).await;
    for lie in
        [accept, "UPDATE attempts SET reason = 'owner_lost'", "UPDATE attempts SET payload_sha256 = sha256('other')"]
    {
        refused(&office, "attempts_outcome_written_once", lie).await;
    }
    office.sql("UPDATE deliveries SET state = 'ambiguous'; UPDATE notices SET state = 'ambiguous'").await;
    office.close().await;

    let office = office_with("sending").await;
    office.sql(&lose("owner_lost")).await;
    refused(&office, "attempts_outcome_written_once", "UPDATE attempts SET outcome = 'sending', finished_at = NULL")
        .await;
    resolve(&office, "not_delivered").await.expect("a resolution");
    refused(&office, "attempts_outcome_written_once", accept).await;
    office.sql("UPDATE attempts SET late_result = '250 ok'").await;
    office.sql("UPDATE deliveries SET state = 'ambiguous'; UPDATE notices SET state = 'ambiguous'").await;
    office.close().await;

    let office = office_with("sending").await;
    office.sql(&lose("owner_lost")).await;
    office.sql(&format!("{accept}; UPDATE deliveries SET state = 'sent'; UPDATE notices SET state = 'sent'")).await;
    office.close().await;
}

#[tokio::test]
async fn a_resolution_is_whole_written_once_and_only_of_what_is_ambiguous() {
    let office = office_with("ambiguous").await;
    let bare = "UPDATE attempts SET resolution = 'delivered'";
    refused(&office, "attempts_resolution_whole", bare).await;
    refused(&office, "attempts_resolution_whole", &format!("{bare}, resolved_by = 'Ada', resolved_at = now()")).await;
    resolve(&office, "not_delivered").await.expect("a resolution");
    let gone = "resolution = NULL, resolved_by = NULL, resolution_reason = NULL, resolved_at = NULL";
    for other in ["resolution = 'delivered'", gone, "resolved_by = 'Eve'", "resolution_reason = 'she guessed'"] {
        refused(&office, "attempts_resolution_written_once", &format!("UPDATE attempts SET {other}")).await;
    }
    office.close().await;

    let office = office_with("rejected").await;
    let error = resolve(&office, "delivered").await.expect_err("a refusal");
    assert_eq!(violated(&error), Some("attempts_only_ambiguous_is_resolved"));
    office.close().await;
}

#[tokio::test]
async fn an_attempt_is_finished_when_it_is_over_and_a_lease_is_whole() {
    let office = office_with("sending").await;
    refused(&office, "attempts_finished_when_over", "UPDATE attempts SET outcome = 'not_sent'").await;
    refused(&office, "attempts_finished_when_over", "UPDATE attempts SET finished_at = now()").await;
    office.close().await;
    let office = office_with("").await;
    refused(&office, "deliveries_lease_whole", "UPDATE deliveries SET lease_token = gen_random_uuid()").await;
    let leased = "UPDATE deliveries SET lease_token = gen_random_uuid(), lease_owner = gen_random_uuid()";
    refused(&office, "deliveries_lease_only_open", &format!("{leased}, state = 'held', reason_code = 'by_person'"))
        .await;
    refused(&office, "deliveries_email_has_recipient", "UPDATE deliveries SET recipient = NULL").await;
    refused(&office, "deliveries_email_has_recipient", "UPDATE deliveries SET channel = 'letter'").await;
    office.close().await;
}

#[tokio::test]
async fn permits_schedules_and_scans_hold_together() {
    let office = office_with("").await;
    let permit = office.text("SELECT id::text FROM permits").await.remove(0);
    for (constraint, lie) in [
        ("permits_status_known", "UPDATE permits SET status = 'expired'".to_owned()),
        ("permits_effective_before_expiry", "UPDATE permits SET effective_on = expires_on + 1".to_owned()),
        ("permits_permit_type_fkey", "UPDATE permits SET permit_type = 'boats'".to_owned()),
        ("permits_permit_type_fkey", "DELETE FROM permit_types".to_owned()),
        ("permits_custom_object", "UPDATE permits SET custom = '[]'".to_owned()),
        ("notices_permit_id_fkey", format!("DELETE FROM permits WHERE id = '{permit}'")),
        ("schedule_steps_only_renewed_is_undated", "UPDATE schedule_steps SET offset_days = NULL".to_owned()),
        (
            "schedule_steps_offset_days_range",
            "UPDATE schedule_steps SET offset_days = 3651 WHERE position = 0".to_owned(),
        ),
        (
            "schedule_steps_notice_type_once",
            "UPDATE schedule_steps SET notice_type = 'same' WHERE position < 2".to_owned(),
        ),
        ("installation_pkey", "INSERT INTO installation (min_binary) VALUES ('2')".to_owned()),
        (
            "suppressions_class_known",
            "INSERT INTO suppressions VALUES (gen_random_uuid(), 'a', 'b', 'c', 'd', now())".to_owned(),
        ),
    ] {
        refused(&office, constraint, &lie).await;
    }
    let scan = |outcome: &str, finished: &str| {
        format!(
            "INSERT INTO scans (id, scheduled_for, trigger, as_of, own_day, boot_id, started_at, finished_at, outcome, lock)
             VALUES (gen_random_uuid(), '2027-01-01Z', 'schedule', '2027-01-01', true, '{permit}', now(), {finished},
                     '{outcome}', 'acquired')"
        )
    };
    office.sql(&scan("completed", "now()")).await;
    refused(&office, "scans_completed_once_idx", &scan("completed", "now()")).await;
    refused(&office, "scans_finished_when_over", &scan("running", "now()")).await;
    refused(&office, "scans_finished_when_over", &scan("abandoned", "NULL")).await;
    refused(&office, "scans_failed_says_why", &scan("failed", "now()")).await;
    office.sql(&scan("held_elsewhere", "now()")).await;
    refused(&office, "scans_held_elsewhere_once_idx", &scan("held_elsewhere", "now()")).await;
    office.close().await;
}
