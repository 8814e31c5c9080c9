-- Scans: every try is a row.

CREATE TABLE scan_schedules (
    id       bigint      NOT NULL GENERATED ALWAYS AS IDENTITY CONSTRAINT scan_schedules_pkey PRIMARY KEY,
    schedule text        NOT NULL,
    zone     text        NOT NULL,
    since    timestamptz NOT NULL
);
COMMENT ON TABLE  scan_schedules IS 'Which schedule came into force when; the newest row is the present one.';
COMMENT ON COLUMN scan_schedules.id IS 'Order of entry.';
COMMENT ON COLUMN scan_schedules.schedule IS 'SCAN_SCHEDULE.';
COMMENT ON COLUMN scan_schedules.zone IS 'TIME_ZONE.';
COMMENT ON COLUMN scan_schedules.since IS 'Business time from which its times are expected.';

CREATE TABLE scans (
    id              uuid        NOT NULL CONSTRAINT scans_pkey PRIMARY KEY,
    scheduled_for   timestamptz,
    trigger         text        NOT NULL CONSTRAINT scans_trigger_known CHECK (trigger IN ('schedule', 'manual', 'command')),
    as_of           date        NOT NULL,
    own_day         boolean     NOT NULL,
    boot_id         uuid        NOT NULL,
    started_at      timestamptz NOT NULL,
    finished_at     timestamptz,
    outcome         text        NOT NULL CONSTRAINT scans_outcome_known
                    CHECK (outcome IN ('running', 'completed', 'failed', 'abandoned', 'held_elsewhere', 'already_done')),
    lock            text        NOT NULL CONSTRAINT scans_lock_known CHECK (lock IN ('acquired', 'held_elsewhere')),
    claimed         bigint      NOT NULL DEFAULT 0,
    already_claimed bigint      NOT NULL DEFAULT 0,
    revived         bigint      NOT NULL DEFAULT 0,
    superseded      bigint      NOT NULL DEFAULT 0,
    skipped         bigint      NOT NULL DEFAULT 0,
    held            bigint      NOT NULL DEFAULT 0,
    error           text,
    CONSTRAINT scans_finished_when_over CHECK ((outcome = 'running') = (finished_at IS NULL)),
    CONSTRAINT scans_failed_says_why CHECK (outcome <> 'failed' OR error IS NOT NULL)
);
COMMENT ON TABLE  scans IS 'One row for every try to scan.';
COMMENT ON COLUMN scans.id IS 'UUID version 7.';
COMMENT ON COLUMN scans.scheduled_for IS 'The expected time this scan was for; empty when asked for by hand.';
COMMENT ON COLUMN scans.trigger IS 'What started it: schedule, manual (page or API) or command.';
COMMENT ON COLUMN scans.as_of IS 'The day that was today for this scan.';
COMMENT ON COLUMN scans.own_day IS 'Whether as_of was the business day on which it began; only then does it meet an expected time.';
COMMENT ON COLUMN scans.boot_id IS 'The process that tried.';
COMMENT ON COLUMN scans.started_at IS 'Business time of the start.';
COMMENT ON COLUMN scans.finished_at IS 'Business time of the end.';
COMMENT ON COLUMN scans.outcome IS 'How it ended; running while it goes on.';
COMMENT ON COLUMN scans.lock IS 'Whether the single-flight lock was had.';
COMMENT ON COLUMN scans.claimed IS 'Notices made pending or held.';
COMMENT ON COLUMN scans.already_claimed IS 'Steps that were due and already had a notice.';
COMMENT ON COLUMN scans.revived IS 'Superseded notices that are owed again.';
COMMENT ON COLUMN scans.superseded IS 'Notices recorded or turned superseded.';
COMMENT ON COLUMN scans.skipped IS 'Notices recorded or turned skipped.';
COMMENT ON COLUMN scans.held IS 'The part of claimed that is held.';
COMMENT ON COLUMN scans.error IS 'Why it failed.';
CREATE UNIQUE INDEX scans_completed_once_idx ON scans (scheduled_for) WHERE outcome = 'completed';
CREATE UNIQUE INDEX scans_held_elsewhere_once_idx ON scans (scheduled_for, boot_id) WHERE outcome = 'held_elsewhere';
CREATE INDEX scans_started_at_idx ON scans (started_at DESC);
CREATE INDEX scans_running_idx ON scans (boot_id) WHERE outcome = 'running';
CREATE INDEX scans_scheduled_for_idx ON scans (scheduled_for) WHERE scheduled_for IS NOT NULL;
