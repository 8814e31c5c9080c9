//! What must be true once the storm is over, computed from the server's ledger and the database by statements that
//! share nothing with the product.

mod rules;

use std::fmt::Write as _;

use sqlx::{PgConnection, Row as _};
use uuid::Uuid;

use crate::support::{postbox::Postbox, smtp_server::SmtpServer};
use rules::RULES;

/// Writes down every state of every scan, notice, delivery, attempt and process, with the database's own time: when it
/// was written, and when its transaction began.
pub const LOG: &str = "
    CREATE TABLE storm_log (
        at timestamptz NOT NULL DEFAULT clock_timestamp(), began_at timestamptz NOT NULL DEFAULT now(),
        place text NOT NULL, operation text NOT NULL, id uuid NOT NULL, delivery_id uuid, boot_id uuid, state text,
        row jsonb NOT NULL);
    CREATE INDEX ON storm_log (delivery_id, at);
    CREATE INDEX ON storm_log (boot_id, at) WHERE place = 'processes';
    CREATE INDEX ON storm_log (id, at) WHERE place IN ('notices', 'scans');
    CREATE FUNCTION storm_log() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE content jsonb := to_jsonb(NEW);
    BEGIN
        INSERT INTO storm_log (place, operation, id, delivery_id, boot_id, state, row)
        VALUES (TG_TABLE_NAME, TG_OP, coalesce(content->>'id', content->>'boot_id')::uuid,
                CASE TG_TABLE_NAME WHEN 'deliveries' THEN content->>'id' ELSE content->>'delivery_id' END::uuid,
                coalesce(content->>'boot_id', content->>'lease_owner')::uuid,
                coalesce(content->>'state', content->>'outcome'), content);
        RETURN NULL;
    END $$;
    CREATE TRIGGER storm_log AFTER INSERT OR UPDATE ON deliveries FOR EACH ROW EXECUTE FUNCTION storm_log();
    CREATE TRIGGER storm_log AFTER INSERT OR UPDATE ON attempts FOR EACH ROW EXECUTE FUNCTION storm_log();
    CREATE TRIGGER storm_log AFTER INSERT OR UPDATE ON processes FOR EACH ROW EXECUTE FUNCTION storm_log();
    CREATE TRIGGER storm_log AFTER INSERT OR UPDATE ON notices FOR EACH ROW EXECUTE FUNCTION storm_log();
    CREATE TRIGGER storm_log AFTER INSERT OR UPDATE ON scans FOR EACH ROW EXECUTE FUNCTION storm_log();
    CREATE TABLE storm_calm (at timestamptz NOT NULL);
    CREATE TABLE storm_stops (process integer NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
    CREATE TABLE storm_ledger (
        message_id text NOT NULL, recipient text NOT NULL, sha256 text NOT NULL, at timestamptz NOT NULL);
    CREATE INDEX ON storm_ledger (message_id);";

/// The process `$1` was stopped after that, and ended well.
pub const STOPPED: &str = "INSERT INTO storm_stops (process) VALUES ($1)";

/// From now on the server is well, and nobody is killed or stood still.
pub const CALM: &str = "INSERT INTO storm_calm VALUES (clock_timestamp())";

/// What a difference means for those who wait for a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Twice, or it might have been.
    Duplicate,
    /// Never, and nobody would know.
    Lost,
    /// Something that must not be so.
    Unexplained,
}

/// Something that is wrong, with the whole history of its notice.
#[derive(Debug)]
pub struct Difference {
    pub class: Class,
    pub story: String,
}

impl Difference {
    pub fn unexplained(story: String) -> Self {
        Self { class: Class::Unexplained, story }
    }
}

/// Everything that is wrong.
pub async fn differences(post: &Postbox, server: &SmtpServer) -> Vec<Difference> {
    let mut session = post.session().await;
    let accepted = server.accepted();
    sqlx::query("INSERT INTO storm_ledger SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[])")
        .bind(accepted.iter().map(|taken| &*taken.message_id).collect::<Vec<_>>())
        .bind(accepted.iter().map(|taken| &*taken.recipient).collect::<Vec<_>>())
        .bind(accepted.iter().map(|taken| &*taken.sha256).collect::<Vec<_>>())
        .bind(accepted.iter().map(|taken| taken.at).collect::<Vec<_>>())
        .execute(&mut session)
        .await
        .expect("the ledger");
    sqlx::raw_sql("ANALYZE").execute(&mut session).await.expect("statistics");
    let mut differences = Vec::new();
    for (class, what, query) in RULES {
        let found: Vec<Option<Uuid>> = sqlx::query_scalar(query).fetch_all(&mut session).await.expect("the rule");
        for delivery in found {
            let mut story = what.to_owned();
            // Of the first ones only: a protection that is gone shows everywhere.
            if differences.len() < 20 {
                tell(&mut session, delivery, &mut story).await;
            }
            differences.push(Difference { class, story });
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
        WITH mine AS (SELECT n.*, p.id AS permit, p.permit_type FROM deliveries d JOIN notices n ON n.id = d.notice_id
                      JOIN permits p ON p.id = n.permit_id WHERE d.id = $1)
        SELECT at, what FROM (
            SELECT l.at, l.place || ' ' || l.operation || ' ' || jsonb_strip_nulls(l.row - $2)::text AS what
            FROM storm_log l JOIN deliveries d ON d.id = l.delivery_id JOIN mine ON mine.id = d.notice_id
            UNION ALL SELECT l.at, l.place || ' ' || l.operation || ' ' || jsonb_strip_nulls(l.row - $2)::text
            FROM storm_log l JOIN mine ON l.place = 'notices' AND l.id = mine.id
            UNION ALL SELECT l.at, 'server took ' || l.message_id || ' ' || l.sha256
            FROM storm_ledger l JOIN deliveries d ON d.message_id = l.message_id JOIN mine ON mine.id = d.notice_id
            UNION ALL SELECT coalesce(c.committed_at, c.began_at), 'change ' || to_jsonb(c)::text
            FROM storm_changes c JOIN mine ON mine.permit = c.permit_id OR mine.permit_type = c.permit_type
            UNION ALL SELECT clock_timestamp(), 'in the end ' || to_jsonb(mine)::text FROM mine) AS history
        ORDER BY at";
    let rows = sqlx::query(history).bind(delivery).bind(&NOISE[..]).fetch_all(session).await.expect("the history");
    for row in rows {
        let at: Option<chrono::DateTime<chrono::Utc>> = row.get("at");
        let what: String = row.get("what");
        let _ = write!(story, "\n    {} {what}", at.map(|at| at.format("%T%.6f").to_string()).unwrap_or_default());
    }
}
