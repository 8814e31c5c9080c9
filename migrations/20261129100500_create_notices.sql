-- Notices, their deliveries, and every attempt. The promise lives in the constraints of this file.

CREATE TABLE notices (
    id              uuid        NOT NULL CONSTRAINT notices_pkey PRIMARY KEY,
    notice_key      text        NOT NULL CONSTRAINT notices_notice_key_key UNIQUE,
    permit_id       uuid        NOT NULL CONSTRAINT notices_permit_id_fkey REFERENCES permits (id),
    notice_type     text        NOT NULL,
    expires_on      date        NOT NULL,
    class           text        NOT NULL CONSTRAINT notices_class_known CHECK (class IN ('statutory', 'courtesy')),
    due_on          date        NOT NULL,
    send_by         date        NOT NULL,
    brought_forward boolean     NOT NULL DEFAULT false,
    in_advance      boolean     NOT NULL DEFAULT false,
    state           text        NOT NULL CONSTRAINT notices_state_known
                    CHECK (state IN ('pending', 'held', 'ambiguous', 'sent', 'failed', 'superseded', 'skipped', 'cancelled')),
    reason_code     text,
    reason          text,
    held_reason     text,
    superseded_at   timestamptz,
    created_at      timestamptz NOT NULL,
    scan_id         uuid        CONSTRAINT notices_scan_id_fkey REFERENCES scans (id),
    import_id       uuid        CONSTRAINT notices_import_id_fkey REFERENCES imports (id),
    -- to_char and not a cast, which would follow the session's DateStyle.
    CONSTRAINT notices_key_equals_parts
        CHECK (notice_key = permit_id::text || ':' || notice_type || ':' || to_char(expires_on, 'YYYY-MM-DD')),
    CONSTRAINT notices_ended_unsent_says_why
        CHECK (state NOT IN ('superseded', 'skipped', 'cancelled') OR reason_code IS NOT NULL),
    -- One whose last copy went to an address that left the permit is still owed, and waits for a new address.
    CONSTRAINT notices_superseded_says_when
        CHECK (state <> 'superseded' OR superseded_at IS NOT NULL OR reason_code = 'address_changed')
);
COMMENT ON TABLE  notices IS 'What is owed: one step for one permit and one expiry date. The memory of what was sent.';
COMMENT ON COLUMN notices.id IS 'UUID version 7.';
COMMENT ON COLUMN notices.notice_key IS '<permit id>:<notice type>:<expires_on>; one row may bear it, for ever.';
COMMENT ON COLUMN notices.permit_id IS 'The permit.';
COMMENT ON COLUMN notices.notice_type IS 'The step.';
COMMENT ON COLUMN notices.expires_on IS 'The expiry period.';
COMMENT ON COLUMN notices.class IS 'statutory or courtesy.';
COMMENT ON COLUMN notices.due_on IS 'Day on which the step is due.';
COMMENT ON COLUMN notices.send_by IS 'Last day on which it may go.';
COMMENT ON COLUMN notices.brought_forward IS 'It goes before its due day because no sending window lies between due_on and send_by.';
COMMENT ON COLUMN notices.in_advance IS 'Written by a person before its due day.';
COMMENT ON COLUMN notices.state IS 'Follows from its deliveries; written with the row when it has none.';
COMMENT ON COLUMN notices.reason_code IS 'Why it is held or ended unsent.';
COMMENT ON COLUMN notices.reason IS 'The same in words, or a person''s own.';
COMMENT ON COLUMN notices.held_reason IS 'Why a person holds it, in that person''s words, until one releases or cancels it; outlasts being superseded and revived.';
COMMENT ON COLUMN notices.superseded_at IS 'Business time since which it is no longer owed; a copy in flight may still end sent.';
COMMENT ON COLUMN notices.created_at IS 'Business time at which it was recorded.';
COMMENT ON COLUMN notices.scan_id IS 'The scan that recorded it, or revived and held it; empty when a change did.';
COMMENT ON COLUMN notices.import_id IS 'The import that recorded it, or revived and held it, if one did.';
CREATE INDEX notices_permit_id_idx ON notices (permit_id, expires_on);
CREATE INDEX notices_period_idx ON notices (expires_on, permit_id, notice_type) INCLUDE (state, reason_code);
CREATE INDEX notices_open_idx ON notices (send_by, id) WHERE state IN ('pending', 'held');
CREATE INDEX notices_scan_id_idx ON notices (scan_id, permit_id, id) WHERE state = 'held';
CREATE INDEX notices_import_id_idx ON notices (import_id, permit_id, id) WHERE state = 'held';
CREATE INDEX notices_revivable_idx ON notices (permit_id)
    WHERE superseded_at IS NOT NULL
      AND reason_code IN ('period_changed', 'not_active', 'paused', 'archived', 'step_removed', 'not_owed')
      AND state IN ('superseded', 'pending', 'held', 'ambiguous');

CREATE TABLE deliveries (
    id              uuid        NOT NULL CONSTRAINT deliveries_pkey PRIMARY KEY,
    notice_id       uuid        NOT NULL CONSTRAINT deliveries_notice_id_fkey REFERENCES notices (id),
    copy            integer     NOT NULL DEFAULT 1 CONSTRAINT deliveries_copy_positive CHECK (copy > 0),
    channel         text        NOT NULL CONSTRAINT deliveries_channel_known CHECK (channel IN ('email', 'letter')),
    recipient       text,
    recipient_key   text        NOT NULL,
    recipient_name  text        NOT NULL DEFAULT '',
    role            text        NOT NULL,
    language        text        NOT NULL DEFAULT 'en',
    by_request      boolean     NOT NULL DEFAULT false,
    state           text        NOT NULL CONSTRAINT deliveries_state_known
                    CHECK (state IN ('pending', 'held', 'sending', 'sent', 'ambiguous', 'failed', 'bounced',
                                     'superseded', 'suppressed', 'skipped', 'cancelled')),
    reason_code     text,
    send_by         date        NOT NULL,
    next_attempt_at timestamptz NOT NULL,
    attempt_count   integer     NOT NULL DEFAULT 0,
    lost_owners     integer     NOT NULL DEFAULT 0,
    lease_token     uuid,
    lease_owner     uuid,
    message_id      text,
    last_error      text,
    payload_sha256  bytea,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    CONSTRAINT deliveries_address_once UNIQUE (notice_id, recipient_key, copy),
    CONSTRAINT deliveries_email_has_recipient CHECK ((channel = 'email') = (recipient IS NOT NULL)),
    CONSTRAINT deliveries_lease_whole CHECK ((lease_token IS NULL) = (lease_owner IS NULL)),
    CONSTRAINT deliveries_lease_only_open CHECK (lease_token IS NULL OR state IN ('pending', 'sending'))
) WITH (fillfactor = 80);
COMMENT ON TABLE  deliveries IS 'One copy of a notice to one address, or one letter to post.';
COMMENT ON COLUMN deliveries.id IS 'UUID version 7.';
COMMENT ON COLUMN deliveries.notice_id IS 'The notice.';
COMMENT ON COLUMN deliveries.copy IS 'Number of the copy to this address, from 1; part of the Message-ID.';
COMMENT ON COLUMN deliveries.channel IS 'email, or letter when no copy may be mailed.';
COMMENT ON COLUMN deliveries.recipient IS 'Address as it is written to; empty for a letter.';
COMMENT ON COLUMN deliveries.recipient_key IS 'Address in lower case, or "letter"; a notice goes to each once per copy.';
COMMENT ON COLUMN deliveries.recipient_name IS 'Display name of the recipient.';
COMMENT ON COLUMN deliveries.role IS 'holder, or the contact''s role.';
COMMENT ON COLUMN deliveries.language IS 'BCP 47 tag of the recipient''s language.';
COMMENT ON COLUMN deliveries.by_request IS 'A person asked for this copy: its address need not be one of the permit.';
COMMENT ON COLUMN deliveries.state IS 'A lease leaves it pending; only the gate makes it sending.';
COMMENT ON COLUMN deliveries.reason_code IS 'Why it is held or ended unsent.';
COMMENT ON COLUMN deliveries.send_by IS 'The notice''s send_by, here for the order of leasing.';
COMMENT ON COLUMN deliveries.next_attempt_at IS 'Business time before which it is not tried.';
COMMENT ON COLUMN deliveries.attempt_count IS 'Attempts that count against MAX_ATTEMPTS.';
COMMENT ON COLUMN deliveries.lost_owners IS 'How often an owner died between lease and gate.';
COMMENT ON COLUMN deliveries.lease_token IS 'Names one lease; the gate and giving back must bring it.';
COMMENT ON COLUMN deliveries.lease_owner IS 'Boot id of the process that holds the lease.';
COMMENT ON COLUMN deliveries.message_id IS 'Message-ID, equal at every attempt.';
COMMENT ON COLUMN deliveries.last_error IS 'What the last attempt that failed was told.';
COMMENT ON COLUMN deliveries.payload_sha256 IS 'SHA-256 of the bytes of the last attempt.';
COMMENT ON COLUMN deliveries.created_at IS 'Business time at which it was recorded.';
COMMENT ON COLUMN deliveries.updated_at IS 'Business time of the last change of state.';
CREATE INDEX deliveries_to_lease_idx ON deliveries (send_by, id) WHERE state = 'pending' AND channel = 'email';
CREATE INDEX deliveries_address_left_idx ON deliveries (notice_id)
    WHERE state = 'superseded' AND reason_code = 'address_changed';
CREATE INDEX deliveries_leased_idx ON deliveries (lease_owner) WHERE lease_owner IS NOT NULL;

CREATE TABLE attempts (
    id                uuid        NOT NULL CONSTRAINT attempts_pkey PRIMARY KEY,
    delivery_id       uuid        NOT NULL CONSTRAINT attempts_delivery_id_fkey REFERENCES deliveries (id),
    number            integer     NOT NULL CONSTRAINT attempts_number_positive CHECK (number > 0),
    notice_key        text        NOT NULL,
    boot_id           uuid        NOT NULL,
    transport         text        NOT NULL CONSTRAINT attempts_transport_known CHECK (transport IN ('smtp', 'file', 'http', 'letter')),
    outcome           text        NOT NULL CONSTRAINT attempts_outcome_known
                      CHECK (outcome IN ('sending', 'accepted', 'deferred', 'rejected', 'not_sent', 'ambiguous')),
    transport_fault   boolean     NOT NULL DEFAULT false,
    reason            text,
    phase             text        CONSTRAINT attempts_phase_known
                      CHECK (phase IN ('connect', 'tls', 'banner', 'ehlo', 'auth', 'mail', 'rcpt', 'data', 'body', 'dot')),
    smtp_code         integer,
    enhanced_code     text,
    response          text,
    payload_sha256    bytea       CONSTRAINT attempts_payload_sha256_length CHECK (octet_length(payload_sha256) = 32),
    started_at        timestamptz NOT NULL,
    finished_at       timestamptz,
    resolution        text        CONSTRAINT attempts_resolution_known CHECK (resolution IN ('delivered', 'not_delivered')),
    resolved_by       text,
    resolution_reason text,
    resolved_at       timestamptz,
    late_result       text,
    CONSTRAINT attempts_number_once UNIQUE (delivery_id, number),
    CONSTRAINT attempts_finished_when_over CHECK ((outcome = 'sending') = (finished_at IS NULL)),
    CONSTRAINT attempts_accepted_has_proof CHECK (outcome <> 'accepted' OR (
        CASE transport
            WHEN 'smtp' THEN smtp_code = 250 AND phase = 'dot' AND payload_sha256 IS NOT NULL
            WHEN 'file' THEN response IS NOT NULL AND payload_sha256 IS NOT NULL
            WHEN 'http' THEN response IS NOT NULL AND payload_sha256 IS NOT NULL
            WHEN 'letter' THEN response IS NOT NULL
        END) IS TRUE),
    CONSTRAINT attempts_resolution_whole CHECK (
        (resolution IS NULL) = (resolved_by IS NULL) AND (resolution IS NULL) = (resolved_at IS NULL)
        AND (resolution IS NULL) = (resolution_reason IS NULL)),
    CONSTRAINT attempts_only_ambiguous_is_resolved CHECK (resolution IS NULL OR outcome = 'ambiguous')
);
COMMENT ON TABLE  attempts IS 'One try to hand one delivery over, recorded before and after.';
COMMENT ON COLUMN attempts.id IS 'UUID version 7.';
COMMENT ON COLUMN attempts.delivery_id IS 'The delivery.';
COMMENT ON COLUMN attempts.number IS 'Count within the delivery, from 1.';
COMMENT ON COLUMN attempts.notice_key IS 'Key of the notice, here so that an attempt speaks for itself.';
COMMENT ON COLUMN attempts.boot_id IS 'The process that made it.';
COMMENT ON COLUMN attempts.transport IS 'smtp, file, http or letter.';
COMMENT ON COLUMN attempts.outcome IS 'sending until it is over; then written once.';
COMMENT ON COLUMN attempts.transport_fault IS 'The transport failed, not this notice.';
COMMENT ON COLUMN attempts.reason IS 'Why it is not sent or ambiguous, as a code.';
COMMENT ON COLUMN attempts.phase IS 'How far the conversation came.';
COMMENT ON COLUMN attempts.smtp_code IS 'Code of the deciding reply.';
COMMENT ON COLUMN attempts.enhanced_code IS 'Enhanced status code of the deciding reply.';
COMMENT ON COLUMN attempts.response IS 'The deciding reply in the server''s words; the file''s name for transport file; who posted it and when for a letter.';
COMMENT ON COLUMN attempts.payload_sha256 IS 'SHA-256 of the exact bytes.';
COMMENT ON COLUMN attempts.started_at IS 'Business time at which the gate opened.';
COMMENT ON COLUMN attempts.finished_at IS 'Business time of the end.';
COMMENT ON COLUMN attempts.resolution IS 'For an ambiguous attempt: what was found out.';
COMMENT ON COLUMN attempts.resolved_by IS 'Who found out: a person, policy, or evidence.';
COMMENT ON COLUMN attempts.resolution_reason IS 'How.';
COMMENT ON COLUMN attempts.resolved_at IS 'Business time of the resolution.';
COMMENT ON COLUMN attempts.late_result IS 'A reply that came after the attempt had been resolved.';
-- Never twice by our doing: at most one attempt may be open, accepted, or ambiguous and not resolved as not delivered.
CREATE UNIQUE INDEX attempts_one_effective_idx ON attempts (delivery_id)
    WHERE outcome IN ('sending', 'accepted')
       OR (outcome = 'ambiguous' AND resolution IS DISTINCT FROM 'not_delivered');
CREATE INDEX attempts_sending_idx ON attempts (boot_id) WHERE outcome = 'sending';
CREATE INDEX attempts_unresolved_idx ON attempts (finished_at) WHERE outcome = 'ambiguous' AND resolution IS NULL;

CREATE TABLE attempt_messages (
    attempt_id uuid  NOT NULL CONSTRAINT attempt_messages_pkey PRIMARY KEY
                     CONSTRAINT attempt_messages_attempt_id_fkey REFERENCES attempts (id) ON DELETE CASCADE,
    content    bytea NOT NULL
);
COMMENT ON TABLE  attempt_messages IS 'The exact bytes of each attempt; removed by retention, the hash stays.';
COMMENT ON COLUMN attempt_messages.attempt_id IS 'The attempt.';
COMMENT ON COLUMN attempt_messages.content IS 'The message as handed over, CRLF line ends, before dot-stuffing.';

-- An outcome is written once, with its reason and the hash of what was sent; so is a resolution, with who found it
-- out and how. One exception: what a lost owner left is replaced by what the owner saw, as long as nobody has
-- resolved it.
CREATE FUNCTION attempts_guard_outcome() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.outcome, NEW.reason, NEW.payload_sha256) IS DISTINCT FROM (OLD.outcome, OLD.reason, OLD.payload_sha256)
       AND OLD.outcome <> 'sending'
       AND NOT (OLD.outcome = 'ambiguous' AND OLD.reason IS NOT DISTINCT FROM 'owner_lost' AND OLD.resolution IS NULL
                AND NEW.outcome <> 'sending') THEN
        RAISE EXCEPTION 'attempt % already ended as %', OLD.id, OLD.outcome
            USING ERRCODE = 'check_violation', CONSTRAINT = 'attempts_outcome_written_once';
    END IF;
    IF OLD.resolution IS NOT NULL
       AND (NEW.resolution, NEW.resolved_by, NEW.resolution_reason, NEW.resolved_at)
           IS DISTINCT FROM (OLD.resolution, OLD.resolved_by, OLD.resolution_reason, OLD.resolved_at) THEN
        RAISE EXCEPTION 'attempt % is already resolved as %', OLD.id, OLD.resolution
            USING ERRCODE = 'check_violation', CONSTRAINT = 'attempts_resolution_written_once';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER attempts_guard_outcome
    BEFORE UPDATE OF outcome, reason, payload_sha256, resolution, resolved_by, resolution_reason, resolved_at ON attempts
    FOR EACH ROW EXECUTE FUNCTION attempts_guard_outcome();

-- "sent" is never a bare word: an accepted attempt or a resolution stands behind it.
CREATE FUNCTION deliveries_guard_sent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM attempts
                   WHERE delivery_id = NEW.id AND (outcome = 'accepted' OR resolution = 'delivered')) THEN
        RAISE EXCEPTION 'delivery % has no accepted attempt and no resolution', NEW.id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'deliveries_sent_has_proof';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER deliveries_guard_sent_insert AFTER INSERT ON deliveries
    FOR EACH ROW WHEN (NEW.state = 'sent') EXECUTE FUNCTION deliveries_guard_sent();
CREATE TRIGGER deliveries_guard_sent_update AFTER UPDATE OF state ON deliveries
    FOR EACH ROW WHEN (NEW.state = 'sent' AND OLD.state IS DISTINCT FROM 'sent') EXECUTE FUNCTION deliveries_guard_sent();
