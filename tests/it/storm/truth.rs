//! What must be true once the storm is over, computed from the server's ledger and the database by statements that
//! share nothing with the product.

use std::fmt::Write as _;

use sqlx::{PgConnection, Row as _};
use uuid::Uuid;

use crate::support::{postbox::Postbox, smtp_server::SmtpServer};

/// Writes down every state of every delivery and attempt, with the database's own time.
pub const LOG: &str = "
    CREATE TABLE storm_log (
        at timestamptz NOT NULL DEFAULT clock_timestamp(), place text NOT NULL, operation text NOT NULL,
        delivery_id uuid NOT NULL, row jsonb NOT NULL);
    CREATE FUNCTION storm_log() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE content jsonb := to_jsonb(NEW);
    BEGIN
        INSERT INTO storm_log (place, operation, delivery_id, row)
        VALUES (TG_TABLE_NAME, TG_OP, coalesce(content->>'delivery_id', content->>'id')::uuid, content);
        RETURN NULL;
    END $$;
    CREATE TRIGGER storm_log AFTER INSERT OR UPDATE ON deliveries FOR EACH ROW EXECUTE FUNCTION storm_log();
    CREATE TRIGGER storm_log AFTER INSERT OR UPDATE ON attempts FOR EACH ROW EXECUTE FUNCTION storm_log();
    CREATE TABLE storm_ledger (
        message_id text NOT NULL, recipient text NOT NULL, sha256 text NOT NULL, at timestamptz NOT NULL);";

/// What is wrong, and with which delivery; each statement must find nothing.
const RULES: [(&str, &str); 14] = [
    (
        "accepted twice by the server",
        "SELECT d.id FROM storm_ledger l LEFT JOIN deliveries d ON d.message_id = l.message_id
         GROUP BY l.message_id, d.id
         HAVING count(*) > 1 + (SELECT count(*) FROM attempts a
                                WHERE a.delivery_id = d.id AND a.resolution = 'not_delivered')",
    ),
    (
        "taken by the server, and no attempt admits it",
        "SELECT d.id FROM storm_ledger l
         LEFT JOIN deliveries d ON d.message_id = l.message_id AND d.recipient = l.recipient
         WHERE NOT EXISTS (SELECT FROM attempts a WHERE a.delivery_id = d.id
                           AND a.outcome IN ('accepted', 'ambiguous') AND encode(a.payload_sha256, 'hex') = l.sha256)",
    ),
    (
        "accepted by what we say, and never taken by the server",
        "SELECT a.delivery_id FROM attempts a JOIN deliveries d ON d.id = a.delivery_id
         WHERE a.outcome = 'accepted' AND NOT EXISTS (
             SELECT FROM storm_ledger l WHERE l.message_id = d.message_id AND l.recipient = d.recipient
             AND l.sha256 = encode(a.payload_sha256, 'hex'))",
    ),
    (
        "two attempts that may both have arrived",
        "SELECT delivery_id FROM attempts
         WHERE outcome IN ('sending', 'accepted', 'ambiguous') AND resolution IS DISTINCT FROM 'not_delivered'
         GROUP BY delivery_id HAVING count(*) > 1",
    ),
    ("an attempt that is open for ever", "SELECT delivery_id FROM attempts WHERE outcome = 'sending'"),
    ("a lease that is held by nobody", "SELECT id FROM deliveries WHERE lease_token IS NOT NULL"),
    (
        "lost: it waits and nobody is coming",
        "SELECT id FROM deliveries WHERE state IN ('pending', 'sending', 'held') AND channel = 'email'",
    ),
    (
        "lost: the notice waits and no copy does",
        "SELECT (SELECT min(d.id::text)::uuid FROM deliveries d WHERE d.notice_id = n.id) FROM notices n
         WHERE n.state IN ('pending', 'held')
           AND NOT EXISTS (SELECT FROM deliveries d WHERE d.notice_id = n.id AND d.state IN ('pending', 'held'))",
    ),
    (
        "lost: it ended for no reason",
        "SELECT d.id FROM notices n JOIN deliveries d ON d.notice_id = n.id
         WHERE n.state NOT IN ('sent', 'ambiguous', 'pending', 'held') AND n.reason_code IS NULL",
    ),
    (
        "lost: it is still owed, and was not sent",
        "SELECT (SELECT min(d.id::text)::uuid FROM deliveries d WHERE d.notice_id = n.id)
         FROM notices n JOIN permits p ON p.id = n.permit_id AND p.expires_on = n.expires_on
         WHERE p.status = 'active' AND p.archived_at IS NULL AND p.notices_paused_until IS NULL
           AND n.notice_type = 'expires-30d'
           AND NOT EXISTS (SELECT FROM deliveries d WHERE d.notice_id = n.id
                           AND d.state IN ('sent', 'ambiguous', 'failed'))
           AND NOT EXISTS (SELECT FROM deliveries d WHERE d.notice_id = n.id AND d.channel = 'letter')",
    ),
    (
        "unexplained: it ended unsent, and nobody had changed the permit",
        "SELECT d.id FROM deliveries d JOIN notices n ON n.id = d.notice_id
         WHERE d.state NOT IN ('sent', 'ambiguous', 'failed')
           AND NOT EXISTS (SELECT FROM storm_changes c WHERE c.permit_id = n.permit_id)",
    ),
    (
        "unexplained: it failed, and the server had not refused it",
        "SELECT d.id FROM deliveries d WHERE d.state = 'failed' AND d.attempt_count < 16
           AND NOT EXISTS (SELECT FROM attempts a WHERE a.delivery_id = d.id AND a.outcome = 'rejected')",
    ),
    (
        "its state is not what its attempts say",
        "SELECT d.id FROM deliveries d
         WHERE (d.state = 'sent')
               <> EXISTS (SELECT FROM attempts a WHERE a.delivery_id = d.id
                          AND (a.outcome = 'accepted' OR a.resolution = 'delivered'))
            OR (d.state = 'ambiguous')
               <> EXISTS (SELECT FROM attempts a WHERE a.delivery_id = d.id
                          AND a.outcome = 'ambiguous' AND a.resolution IS NULL)",
    ),
    (
        "its gate opened after the permit had been changed",
        "SELECT l.delivery_id FROM storm_log l
         JOIN deliveries d ON d.id = l.delivery_id JOIN notices n ON n.id = d.notice_id
         JOIN storm_changes c ON c.permit_id = n.permit_id
         WHERE l.place = 'attempts' AND l.operation = 'INSERT' AND l.row->>'outcome' = 'sending'
           AND l.at > c.committed_at AND (c.undone_at IS NULL OR l.at < c.undone_at)
           AND CASE c.kind WHEN 'Rename' THEN false
                           WHEN 'Readdress' THEN d.recipient = c.address
                           WHEN 'Renew' THEN n.expires_on = c.expires_on
                           WHEN 'ChangeDate' THEN n.expires_on = c.expires_on
                           ELSE true END",
    ),
];

/// Everything that is wrong, each with the whole history of the notice.
pub async fn differences(post: &Postbox, server: &SmtpServer) -> Vec<String> {
    let mut session = post.session().await;
    for taken in server.accepted() {
        sqlx::query("INSERT INTO storm_ledger VALUES ($1, $2, $3, $4)")
            .bind(&taken.message_id)
            .bind(&taken.recipient)
            .bind(&taken.sha256)
            .bind(taken.at)
            .execute(&mut session)
            .await
            .expect("the ledger");
    }
    let mut differences = Vec::new();
    for (what, query) in RULES {
        let found: Vec<Option<Uuid>> = sqlx::query_scalar(query).fetch_all(&mut session).await.expect("the rule");
        for delivery in found {
            let mut story = what.to_owned();
            tell(&mut session, delivery, &mut story).await;
            differences.push(story);
        }
    }
    differences
}

/// What says nothing of what happened.
const NOISE: [&str; 15] = [
    "copy",
    "role",
    "channel",
    "send_by",
    "language",
    "notice_id",
    "by_request",
    "created_at",
    "message_id",
    "transport",
    "notice_key",
    "recipient_key",
    "recipient_name",
    "finished_at",
    "number",
];

/// What happened to the notice of this delivery, in order.
async fn tell(session: &mut PgConnection, delivery: Option<Uuid>, story: &mut String) {
    let history = "
        WITH mine AS (SELECT n.*, p.id AS permit FROM deliveries d JOIN notices n ON n.id = d.notice_id
                      JOIN permits p ON p.id = n.permit_id WHERE d.id = $1)
        SELECT at, what FROM (
            SELECT l.at, l.place || ' ' || l.operation || ' ' || jsonb_strip_nulls(l.row - $2)::text AS what
            FROM storm_log l JOIN deliveries d ON d.id = l.delivery_id JOIN mine ON mine.id = d.notice_id
            UNION ALL SELECT l.at, 'server took ' || l.message_id || ' ' || l.sha256
            FROM storm_ledger l JOIN deliveries d ON d.message_id = l.message_id JOIN mine ON mine.id = d.notice_id
            UNION ALL SELECT c.committed_at, 'change ' || to_jsonb(c)::text
            FROM storm_changes c JOIN mine ON mine.permit = c.permit_id
            UNION ALL SELECT now(), 'in the end ' || to_jsonb(mine)::text FROM mine) AS history
        ORDER BY at";
    let rows = sqlx::query(history).bind(delivery).bind(&NOISE[..]).fetch_all(session).await.expect("the history");
    for row in rows {
        let at: Option<chrono::DateTime<chrono::Utc>> = row.get("at");
        let what: String = row.get("what");
        let _ = write!(story, "\n    {} {what}", at.map(|at| at.format("%T%.6f").to_string()).unwrap_or_default());
    }
}
