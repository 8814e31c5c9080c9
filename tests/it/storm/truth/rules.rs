//! The rules. Each statement must find nothing; what it finds are deliveries.

use super::Class::{self, Duplicate, Lost, Unexplained};

pub const RULES: [(Class, &str, &str); 33] = [
    (
        Duplicate,
        "accepted twice by the server",
        "SELECT min(d.id::text)::uuid FROM storm_ledger l LEFT JOIN deliveries d ON d.message_id = l.message_id
         GROUP BY l.message_id
         HAVING count(DISTINCT l.ctid) > 1 + (SELECT count(*) FROM attempts a JOIN deliveries o ON o.id = a.delivery_id
                                              WHERE o.message_id = l.message_id AND a.resolution = 'not_delivered')",
    ),
    (
        Duplicate,
        "two attempts that may both have arrived",
        "SELECT delivery_id FROM attempts
         WHERE outcome IN ('sending', 'accepted', 'ambiguous') AND resolution IS DISTINCT FROM 'not_delivered'
         GROUP BY delivery_id HAVING count(*) > 1",
    ),
    (
        Duplicate,
        "two notices of one permit, step and period",
        "SELECT min(d.id::text)::uuid FROM notices n LEFT JOIN deliveries d ON d.notice_id = n.id
         GROUP BY n.permit_id, n.notice_type, n.expires_on HAVING count(DISTINCT n.id) > 1",
    ),
    (
        Duplicate,
        "two copies to one address that nobody asked for",
        "SELECT min(d.id::text)::uuid FROM deliveries d WHERE NOT d.by_request AND d.state IN ('sent', 'ambiguous')
         GROUP BY d.notice_id, lower(d.recipient) HAVING count(*) > 1",
    ),
    (
        Duplicate,
        "taken by the server after its owner was lost",
        "SELECT a.delivery_id FROM storm_ledger l JOIN deliveries d ON d.message_id = l.message_id
         JOIN attempts a ON a.delivery_id = d.id AND encode(a.payload_sha256, 'hex') = l.sha256
         JOIN storm_log lost ON lost.delivery_id = d.id AND lost.id = a.id AND lost.at < l.at
             AND lost.state = 'ambiguous' AND lost.row->>'reason' = 'owner_lost'
         WHERE NOT EXISTS (SELECT FROM attempts o WHERE o.delivery_id = a.delivery_id AND o.id <> a.id
                           AND o.payload_sha256 = a.payload_sha256)",
    ),
    (
        Lost,
        "taken by the server, and no attempt admits it",
        "SELECT d.id FROM storm_ledger l
         LEFT JOIN deliveries d ON d.message_id = l.message_id AND d.recipient = l.recipient
         WHERE NOT EXISTS (SELECT FROM attempts a WHERE a.delivery_id = d.id
                           AND a.outcome IN ('accepted', 'ambiguous') AND encode(a.payload_sha256, 'hex') = l.sha256)",
    ),
    (
        Lost,
        "accepted by what we say, and never taken by the server",
        "SELECT a.delivery_id FROM attempts a JOIN deliveries d ON d.id = a.delivery_id
         WHERE a.outcome = 'accepted' AND a.transport = 'smtp' AND NOT EXISTS (
             SELECT FROM storm_ledger l WHERE l.message_id = d.message_id AND l.recipient = d.recipient
             AND l.sha256 = encode(a.payload_sha256, 'hex'))",
    ),
    (Lost, "an attempt that is open for ever", "SELECT delivery_id FROM attempts WHERE outcome = 'sending'"),
    (Lost, "a lease that is held by nobody", "SELECT id FROM deliveries WHERE lease_token IS NOT NULL"),
    (
        Lost,
        "it waits and nobody is coming",
        "SELECT id FROM deliveries WHERE state IN ('pending', 'sending', 'held') AND channel = 'email'",
    ),
    (
        Lost,
        "the notice waits and no copy does",
        "SELECT (SELECT min(d.id::text)::uuid FROM deliveries d WHERE d.notice_id = n.id) FROM notices n
         WHERE n.state IN ('pending', 'held')
           AND NOT EXISTS (SELECT FROM deliveries d WHERE d.notice_id = n.id AND d.state IN ('pending', 'held'))",
    ),
    (
        Lost,
        "it ended for no reason",
        "SELECT d.id FROM notices n JOIN deliveries d ON d.notice_id = n.id
         WHERE n.state NOT IN ('sent', 'ambiguous', 'pending', 'held') AND n.reason_code IS NULL",
    ),
    (
        Lost,
        "it is due, and has no notice",
        "SELECT NULL::uuid FROM permits p
         JOIN schedule_steps s ON s.permit_type = p.permit_type AND s.notice_type = 'expires-30d'
             AND s.enabled AND s.offset_days <= -29
         WHERE p.status = 'active' AND p.archived_at IS NULL AND p.notices_paused_until IS NULL
           AND p.expires_on BETWEEN '2027-03-30' AND '2027-03-31'
           AND NOT EXISTS (SELECT FROM notices n WHERE n.permit_id = p.id AND n.expires_on = p.expires_on
                           AND n.notice_type = 'expires-30d')",
    ),
    (
        Lost,
        "it is still owed, and was not sent",
        "SELECT (SELECT min(d.id::text)::uuid FROM deliveries d WHERE d.notice_id = n.id)
         FROM notices n JOIN permits p ON p.id = n.permit_id AND p.expires_on = n.expires_on
         JOIN schedule_steps s ON s.permit_type = p.permit_type AND s.notice_type = n.notice_type
             AND s.enabled AND s.offset_days <= -29
         WHERE p.status = 'active' AND p.archived_at IS NULL AND p.notices_paused_until IS NULL
           AND n.notice_type = 'expires-30d'
           AND NOT EXISTS (SELECT FROM deliveries d WHERE d.notice_id = n.id
                           AND (d.state IN ('sent', 'ambiguous', 'failed', 'cancelled')
                                OR d.channel = 'letter' AND d.state = 'pending'))",
    ),
    (
        Lost,
        "somebody on the permit was sent nothing",
        "SELECT min(d.id::text)::uuid
         FROM notices n JOIN permits p ON p.id = n.permit_id AND p.expires_on = n.expires_on
         JOIN schedule_steps s ON s.permit_type = p.permit_type AND s.notice_type = n.notice_type
             AND s.enabled AND s.offset_days <= -29
         JOIN deliveries d ON d.notice_id = n.id
         CROSS JOIN LATERAL (SELECT p.holder_email AS email, 'holder' AS role WHERE p.holder_email IS NOT NULL
                             UNION SELECT c.email, c.role FROM contacts c
                             WHERE c.permit_id = p.id AND c.email IS NOT NULL) AS who
         WHERE p.status = 'active' AND p.archived_at IS NULL AND p.notices_paused_until IS NULL
           AND n.notice_type = 'expires-30d'
         GROUP BY n.id, who.email, who.role
         HAVING NOT bool_or(d.state IN ('sent', 'ambiguous', 'failed', 'cancelled')
                            AND (d.role = who.role OR lower(d.recipient) = lower(who.email)))
            AND NOT bool_or(d.channel = 'letter' AND d.state = 'sent')",
    ),
    (
        Unexplained,
        "it ended unsent, and nobody had changed the permit",
        "SELECT d.id FROM deliveries d JOIN notices n ON n.id = d.notice_id JOIN permits p ON p.id = n.permit_id
         WHERE d.state NOT IN ('sent', 'ambiguous', 'failed')
           AND NOT EXISTS (SELECT FROM storm_changes c
                           WHERE c.permit_id = p.id OR c.permit_type = p.permit_type AND c.kind LIKE 'Step%')",
    ),
    (
        Unexplained,
        "it failed, and the server had not refused it",
        "SELECT d.id FROM deliveries d WHERE d.state = 'failed' AND d.attempt_count < 16
           AND NOT EXISTS (SELECT FROM attempts a WHERE a.delivery_id = d.id AND a.outcome = 'rejected')",
    ),
    (
        Unexplained,
        "given up for what the server says of itself",
        "SELECT delivery_id FROM attempts
         WHERE outcome = 'rejected' AND (phase NOT IN ('rcpt', 'data', 'dot') OR smtp_code NOT BETWEEN 500 AND 599
                                         OR phase <> 'dot' AND enhanced_code IN ('5.1.7', '5.1.8'))",
    ),
    (
        Unexplained,
        "what was the server's fault counts against it",
        "SELECT d.id FROM deliveries d
         WHERE d.attempt_count > (SELECT count(*) FROM attempts a WHERE a.delivery_id = d.id
                                  AND a.outcome = 'deferred' AND NOT a.transport_fault)",
    ),
    (
        Unexplained,
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
        Unexplained,
        "its gate opened after the permit had been changed",
        "SELECT l.delivery_id FROM storm_log l
         JOIN deliveries d ON d.id = l.delivery_id JOIN notices n ON n.id = d.notice_id
         JOIN permits p ON p.id = n.permit_id
         JOIN storm_changes c ON c.permit_id = p.id OR c.permit_type = p.permit_type
         WHERE l.place = 'attempts' AND l.operation = 'INSERT' AND l.state = 'sending'
           AND l.at > c.committed_at AND (c.undone_at IS NULL OR l.at < c.undone_at)
           AND CASE WHEN c.kind IN ('Readdress', 'Unaddress') THEN d.recipient = c.address AND NOT d.by_request
                    WHEN c.kind IN ('Renew', 'ChangeDate') THEN n.expires_on = c.expires_on
                    WHEN c.kind IN ('Archive', 'Pause', 'Revoke') THEN true
                    WHEN c.kind IN ('StepOff', 'StepGone', 'StepLater')
                        THEN n.notice_type = 'expires-30d' AND NOT d.by_request
                    ELSE false END",
    ),
    (
        Unexplained,
        "its gate opened for what was not pending, or was leased by another",
        "SELECT l.delivery_id FROM storm_log l
         CROSS JOIN LATERAL (SELECT b.state, b.boot_id FROM storm_log b
                             WHERE b.place = 'deliveries' AND b.delivery_id = l.delivery_id AND b.at < l.at
                               AND b.began_at <> l.began_at ORDER BY b.at DESC LIMIT 1) AS before
         WHERE l.place = 'attempts' AND l.operation = 'INSERT' AND l.state = 'sending'
           AND (before.state <> 'pending' OR before.boot_id IS DISTINCT FROM l.boot_id)",
    ),
    (
        Unexplained,
        "its gate opened for a process that was dead for the others",
        "SELECT l.delivery_id FROM storm_log l
         CROSS JOIN LATERAL (SELECT p.row FROM storm_log p WHERE p.place = 'processes' AND p.boot_id = l.boot_id
                               AND p.at < l.began_at ORDER BY p.at DESC LIMIT 1) AS life
         WHERE l.place = 'attempts' AND l.operation = 'INSERT' AND l.state = 'sending'
           AND (life.row->>'ended_at' IS NOT NULL
                OR (life.row->>'renewed_at')::timestamptz
                   + make_interval(secs => (life.row->>'lease_seconds')::int) < l.began_at)",
    ),
    (
        Unexplained,
        "taken by the server before its gate opened",
        "SELECT d.id FROM storm_ledger l JOIN deliveries d ON d.message_id = l.message_id
         WHERE NOT EXISTS (SELECT FROM storm_log b WHERE b.place = 'attempts' AND b.operation = 'INSERT'
                           AND b.delivery_id = d.id AND b.at < l.at)",
    ),
    (
        Unexplained,
        "its mail shows the name of before",
        "SELECT l.delivery_id FROM storm_log l
         JOIN attempt_messages m ON m.attempt_id = l.id
         JOIN deliveries d ON d.id = l.delivery_id JOIN notices n ON n.id = d.notice_id
         JOIN storm_changes c ON c.permit_id = n.permit_id AND c.kind = 'Rename'
         WHERE l.place = 'attempts' AND l.operation = 'INSERT' AND l.state = 'sending'
           AND l.at > c.committed_at AND (c.undone_at IS NULL OR l.at < c.undone_at)
           AND position('Corner Bakery'::bytea in m.content) > 0",
    ),
    (
        Unexplained,
        "its mail shows a name that was taken back",
        "SELECT l.delivery_id FROM storm_log l
         JOIN attempt_messages m ON m.attempt_id = l.id
         JOIN deliveries d ON d.id = l.delivery_id JOIN notices n ON n.id = d.notice_id
         JOIN LATERAL (SELECT max(c.back_at) AS back_at, max(c.began_at) AS began_at
                       FROM storm_changes c WHERE c.permit_id = n.permit_id AND c.kind = 'Rename') AS renamed
             ON l.at > renamed.back_at AND renamed.back_at > renamed.began_at
         WHERE l.place = 'attempts' AND l.operation = 'INSERT' AND l.state = 'sending'
           AND position('Village Bakery'::bytea in m.content) > 0",
    ),
    (
        Unexplained,
        // The gate locks no type: what it reads is as old as its transaction at most.
        "its mail shows what its permit type said before",
        "SELECT l.delivery_id FROM storm_log l
         JOIN attempt_messages m ON m.attempt_id = l.id
         JOIN deliveries d ON d.id = l.delivery_id JOIN notices n ON n.id = d.notice_id
         JOIN permits p ON p.id = n.permit_id
         JOIN storm_changes c ON c.permit_type = p.permit_type AND c.kind = 'Reword' AND l.began_at > c.committed_at
         WHERE l.place = 'attempts' AND l.operation = 'INSERT' AND l.state = 'sending'
           AND position(convert_to(c.before, 'UTF8') in m.content) > 0",
    ),
    (
        Unexplained,
        "its mail was not kept byte for byte",
        "SELECT a.delivery_id FROM attempts a LEFT JOIN attempt_messages m ON m.attempt_id = a.id
         WHERE a.transport = 'smtp' AND a.outcome IN ('accepted', 'ambiguous')
           AND (m.content IS NULL OR sha256(m.content) <> a.payload_sha256)",
    ),
    (
        Unexplained,
        "more than one unknown message of one sender of a process that died",
        "SELECT min(a.delivery_id::text)::uuid FROM attempts a JOIN processes p ON p.boot_id = a.boot_id
         WHERE a.outcome = 'ambiguous' AND a.reason = 'owner_lost'
         GROUP BY p.boot_id HAVING count(*) > substring(p.roles FROM '(\\d+) senders')::int",
    ),
    (
        Unexplained,
        "ambiguous although the server was well and its process was stopped in order",
        "SELECT a.delivery_id FROM attempts a JOIN storm_log l ON l.id = a.id AND l.operation = 'INSERT'
         JOIN storm_calm c ON l.began_at > c.at
         WHERE a.outcome = 'ambiguous'",
    ),
    (
        Unexplained,
        "left open by a process that was stopped in order while all was well",
        "SELECT l.delivery_id FROM storm_stops s JOIN processes p ON p.roles LIKE '% process ' || s.process
         CROSS JOIN LATERAL (SELECT DISTINCT ON (b.delivery_id) b.* FROM storm_log b
                             WHERE b.place = 'deliveries' AND b.at < s.at ORDER BY b.delivery_id, b.at DESC) AS l
         WHERE l.boot_id = p.boot_id AND l.state = 'sending'",
    ),
    (
        Unexplained,
        "a process that was stopped in order while all was well, and its row does not say so",
        "SELECT NULL::uuid FROM storm_stops s
         WHERE NOT EXISTS (SELECT FROM processes p WHERE p.roles LIKE '% process ' || s.process
                           AND p.ended_at IS NOT NULL)",
    ),
    (
        Unexplained,
        "written by a scan after another had the lock",
        "SELECT (SELECT min(d.id::text)::uuid FROM deliveries d WHERE d.notice_id = l.id)
         FROM storm_log l JOIN storm_log mine ON mine.place = 'scans' AND mine.id = (l.row->>'scan_id')::uuid
             AND mine.operation = 'INSERT'
         WHERE l.place = 'notices' AND l.operation = 'INSERT'
           AND EXISTS (SELECT FROM storm_log other WHERE other.place = 'scans' AND other.operation = 'INSERT'
                       AND other.state = 'running' AND other.at > mine.at AND other.at < l.at)",
    ),
];
