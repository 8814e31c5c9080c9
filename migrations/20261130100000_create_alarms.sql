-- Alarms: what the operator must hear of, once each, and the messages that say so.

CREATE TABLE alarms (
    id         uuid        NOT NULL CONSTRAINT alarms_pkey PRIMARY KEY,
    kind       text        NOT NULL CONSTRAINT alarms_kind_known CHECK (kind IN (
                   'missing_run', 'failed_scan', 'transport', 'dead_letters', 'ambiguous', 'held', 'unsent_statutory',
                   'oldest_pending', 'replicas_disagree', 'memory_went_back', 'late_result', 'database_held',
                   'files_only')),
    subject    text        NOT NULL,
    detail     text        NOT NULL,
    raised_at  timestamptz NOT NULL,
    raised_by  uuid        NOT NULL,
    cleared_at timestamptz,
    CONSTRAINT alarms_cleared_after_raised CHECK (cleared_at >= raised_at)
);
COMMENT ON TABLE  alarms IS 'One row for each time that something began to need the operator.';
COMMENT ON COLUMN alarms.id IS 'UUID version 7.';
COMMENT ON COLUMN alarms.kind IS 'What is wrong; the label of the metric.';
COMMENT ON COLUMN alarms.subject IS 'What exactly: the expected time of a missing run; empty for kinds that stand once.';
COMMENT ON COLUMN alarms.detail IS 'A sentence about it as it was when raised; no address in full.';
COMMENT ON COLUMN alarms.raised_at IS 'Business time at which it was seen.';
COMMENT ON COLUMN alarms.raised_by IS 'Boot id of the process that saw it first.';
COMMENT ON COLUMN alarms.cleared_at IS 'Business time at which it was over; empty while it stands.';
CREATE UNIQUE INDEX alarms_standing_once_idx ON alarms (kind, subject) WHERE cleared_at IS NULL;
-- One for each missed time, however often replicas look and whatever they see in between.
CREATE UNIQUE INDEX alarms_missing_run_once_idx ON alarms (subject) WHERE kind = 'missing_run';
CREATE INDEX alarms_raised_at_idx ON alarms (raised_at DESC);

CREATE TABLE alarm_messages (
    id           bigint      NOT NULL GENERATED ALWAYS AS IDENTITY CONSTRAINT alarm_messages_pkey PRIMARY KEY,
    alarm_id     uuid        NOT NULL CONSTRAINT alarm_messages_alarm_id_fkey REFERENCES alarms (id),
    event        text        NOT NULL CONSTRAINT alarm_messages_event_known CHECK (event IN ('raised', 'cleared')),
    surface      text        NOT NULL CONSTRAINT alarm_messages_surface_known CHECK (surface IN ('email', 'webhook')),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    next_try_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    tries        integer     NOT NULL DEFAULT 0,
    taken_until  timestamptz,
    last_error   text,
    delivered_at timestamptz,
    CONSTRAINT alarm_messages_once UNIQUE (alarm_id, event, surface)
);
COMMENT ON TABLE  alarm_messages IS 'The outbox of the alarms: one message for each surface, written with the alarm.';
COMMENT ON COLUMN alarm_messages.id IS 'Order of entry.';
COMMENT ON COLUMN alarm_messages.alarm_id IS 'The alarm.';
COMMENT ON COLUMN alarm_messages.event IS 'Whether it says that the alarm was raised or that it is over.';
COMMENT ON COLUMN alarm_messages.surface IS 'email to ALERT_EMAIL, webhook to ALERT_WEBHOOK_URL; the addresses are not kept here.';
COMMENT ON COLUMN alarm_messages.created_at IS 'Database time of the entry.';
COMMENT ON COLUMN alarm_messages.next_try_at IS 'Database time before which it is not tried.';
COMMENT ON COLUMN alarm_messages.tries IS 'How often it was tried.';
COMMENT ON COLUMN alarm_messages.taken_until IS 'Database time until which one process has it.';
COMMENT ON COLUMN alarm_messages.last_error IS 'Why the last try failed.';
COMMENT ON COLUMN alarm_messages.delivered_at IS 'Database time at which it was taken.';
CREATE INDEX alarm_messages_open_idx ON alarm_messages (id) WHERE delivered_at IS NULL;

-- Two replicas that disagree about the schedule must not each time bring theirs into force anew: its times would
-- then never have been expected long enough to be missed.
ALTER TABLE scan_schedules ADD COLUMN kept_at timestamptz NOT NULL DEFAULT clock_timestamp();
COMMENT ON COLUMN scan_schedules.kept_at IS 'Database time at which a process last went by it; renewed about once a minute.';

-- What is looked for every few seconds, among millions that are well.
CREATE INDEX notices_unsent_statutory_idx ON notices (send_by)
    WHERE class = 'statutory' AND superseded_at IS NULL AND state IN ('skipped', 'failed');
CREATE INDEX attempts_late_result_idx ON attempts (resolved_at) WHERE late_result IS NOT NULL;
CREATE INDEX attempts_kept_as_file_idx ON attempts (finished_at) WHERE transport = 'file' AND outcome = 'accepted';
