-- Who changed which permit, and what it was before.

CREATE TABLE permit_history (
    permit_id uuid        NOT NULL CONSTRAINT permit_history_permit_id_fkey REFERENCES permits (id) ON DELETE CASCADE,
    version   bigint      NOT NULL,
    action    text        NOT NULL CONSTRAINT permit_history_action_known
                          CHECK (action IN ('created', 'corrected', 'renewed', 'archived', 'restored')),
    at        timestamptz NOT NULL,
    by        text        NOT NULL,
    import_id uuid        CONSTRAINT permit_history_import_id_fkey REFERENCES imports (id),
    before    jsonb,
    CONSTRAINT permit_history_pkey PRIMARY KEY (permit_id, version),
    CONSTRAINT permit_history_before_unless_created CHECK (action = 'created' OR before IS NOT NULL)
);
COMMENT ON TABLE permit_history IS 'Every change of a permit since this table exists, one row a version.';
COMMENT ON COLUMN permit_history.permit_id IS 'The permit.';
COMMENT ON COLUMN permit_history.version IS 'The version that the change made.';
COMMENT ON COLUMN permit_history.action IS 'What was done.';
COMMENT ON COLUMN permit_history.at IS 'Business time.';
COMMENT ON COLUMN permit_history.by IS 'Who did it: token:<name>, command, or import.';
COMMENT ON COLUMN permit_history.import_id IS 'The import that did it, if one did.';
COMMENT ON COLUMN permit_history.before IS 'What people had said about the permit until then, contacts included; what it became is in the next row, or in the permit.';

-- What people say about a permit, as one object: what `before` holds.
CREATE FUNCTION permit_said(permit permits) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT to_jsonb(permit) - ARRAY['id', 'number_key', 'takes_effect_on', 'period_since', 'version', 'created_at', 'updated_at']
        || jsonb_build_object('contacts', coalesce(
               (SELECT jsonb_agg(jsonb_build_object('name', c.name, 'email', c.email, 'role', c.role,
                                                    'language', c.language) ORDER BY c.position)
                FROM contacts c WHERE c.permit_id = permit.id), '[]'))
$$;
