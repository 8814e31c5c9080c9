-- Retention: content and personal data go after a while; keys, states, times, hashes and Message-IDs stay, so that
-- nothing is sent again because its memory was cleaned.

CREATE TABLE purges (
    id          uuid        NOT NULL CONSTRAINT purges_pkey PRIMARY KEY,
    trigger     text        NOT NULL CONSTRAINT purges_trigger_known CHECK (trigger IN ('daily', 'command')),
    started_at  timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    removed     jsonb       NOT NULL
);
COMMENT ON TABLE  purges IS 'Each time that old content and personal data were removed, to the end.';
COMMENT ON COLUMN purges.id IS 'UUID version 7.';
COMMENT ON COLUMN purges.trigger IS 'daily, by a process that serves; or command.';
COMMENT ON COLUMN purges.started_at IS 'Business time.';
COMMENT ON COLUMN purges.finished_at IS 'Business time.';
COMMENT ON COLUMN purges.removed IS 'How many of each kind.';
CREATE INDEX purges_started_at_idx ON purges (started_at);

ALTER TABLE notices ADD COLUMN purged_at timestamptz;
COMMENT ON COLUMN notices.purged_at IS 'Business time since which names and addresses are gone from it and its copies; it is only memory then: nothing revives it, and nothing is made of it.';

ALTER TABLE permits ADD COLUMN purged_at timestamptz;
COMMENT ON COLUMN permits.purged_at IS 'Business time at which names and addresses were removed; somebody may have written new ones since.';

-- What was removed is no change that people said.
CREATE OR REPLACE FUNCTION permit_said(permit permits) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT to_jsonb(permit)
        - ARRAY['id', 'number_key', 'takes_effect_on', 'period_since', 'version', 'created_at', 'updated_at', 'purged_at']
        || jsonb_build_object('contacts', coalesce(
               (SELECT jsonb_agg(jsonb_build_object('name', c.name, 'email', c.email, 'role', c.role,
                                                    'language', c.language) ORDER BY c.position)
                FROM contacts c WHERE c.permit_id = permit.id), '[]'))
$$;

ALTER TABLE permit_history
    DROP CONSTRAINT permit_history_action_known,
    ADD CONSTRAINT permit_history_action_known
        CHECK (action IN ('created', 'corrected', 'renewed', 'archived', 'restored', 'purged'));

-- What stays of what people said about a permit: its number, type, dates and state.
CREATE FUNCTION permit_unsaid(said jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT said || '{"holder_name": "(removed)", "holder_email": null, "site_address": null, "description": null, "custom": {}, "contacts": []}'
$$;

-- The report of an import without what stood in the file: row, column and code of each remark stay.
CREATE FUNCTION import_report_unsaid(report jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT report || coalesce(
        (SELECT jsonb_object_agg(name, coalesce(
                    (SELECT jsonb_agg(remark || '{"value": null, "detail": "(removed)"}' ORDER BY place)
                     FROM jsonb_array_elements(report -> name) WITH ORDINALITY AS remarks (remark, place)), '[]'))
         FROM unnest(ARRAY['errors', 'warnings']) AS name
         WHERE jsonb_typeof(report -> name) = 'array'), '{}')
$$;

-- Server replies repeat addresses; what else they say stays.
CREATE FUNCTION without_addresses(words text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT regexp_replace(words, '[^[:space:]<>"'',;:()]+@[^[:space:]<>"'',;:()]+', '(removed)', 'g')
$$;

-- As before, but that a person's words on how something was found out may be removed.
CREATE OR REPLACE FUNCTION attempts_guard_outcome() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.outcome, NEW.reason, NEW.payload_sha256) IS DISTINCT FROM (OLD.outcome, OLD.reason, OLD.payload_sha256)
       AND OLD.outcome <> 'sending'
       AND NOT (OLD.outcome = 'ambiguous' AND OLD.reason IS NOT DISTINCT FROM 'owner_lost' AND OLD.resolution IS NULL
                AND NEW.outcome <> 'sending') THEN
        RAISE EXCEPTION 'attempt % already ended as %', OLD.id, OLD.outcome
            USING ERRCODE = 'check_violation', CONSTRAINT = 'attempts_outcome_written_once';
    END IF;
    IF OLD.resolution IS NOT NULL
       AND ((NEW.resolution, NEW.resolved_by, NEW.resolved_at)
                IS DISTINCT FROM (OLD.resolution, OLD.resolved_by, OLD.resolved_at)
            OR NEW.resolution_reason NOT IN (OLD.resolution_reason, '(removed)')) THEN
        RAISE EXCEPTION 'attempt % is already resolved as %', OLD.id, OLD.resolution
            USING ERRCODE = 'check_violation', CONSTRAINT = 'attempts_resolution_written_once';
    END IF;
    RETURN NEW;
END $$;
