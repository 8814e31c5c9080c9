-- Permit types and their schedules: which notices are owed, and when.

CREATE TABLE permit_types (
    code           text        NOT NULL CONSTRAINT permit_types_pkey PRIMARY KEY
                               CONSTRAINT permit_types_code_form CHECK (code ~ '^[a-z0-9-]{1,64}$'),
    name           text        NOT NULL,
    renewal_url    text,
    office_contact text,
    grace_days     integer     NOT NULL DEFAULT 0
                               CONSTRAINT permit_types_grace_days_range CHECK (grace_days BETWEEN 0 AND 3650),
    version        bigint      NOT NULL DEFAULT 1,
    created_at     timestamptz NOT NULL,
    updated_at     timestamptz NOT NULL
);
COMMENT ON TABLE  permit_types IS 'A kind of permit; decides which notices are owed, by its schedule.';
COMMENT ON COLUMN permit_types.code IS 'Short name used by the API and in files; never changes.';
COMMENT ON COLUMN permit_types.name IS 'Name shown to people; unique without regard to case.';
COMMENT ON COLUMN permit_types.renewal_url IS 'Where a holder renews; shown in mails.';
COMMENT ON COLUMN permit_types.office_contact IS 'Whom a holder asks; shown in mails.';
COMMENT ON COLUMN permit_types.grace_days IS 'Days after expires_on in which the permit counts as in grace.';
COMMENT ON COLUMN permit_types.version IS 'Raised by every change; the ETag.';
COMMENT ON COLUMN permit_types.created_at IS 'Business time of creation.';
COMMENT ON COLUMN permit_types.updated_at IS 'Business time of the last change.';
CREATE UNIQUE INDEX permit_types_name_key ON permit_types (lower(name));

CREATE TABLE schedule_steps (
    permit_type  text    NOT NULL CONSTRAINT schedule_steps_permit_type_fkey REFERENCES permit_types (code) ON DELETE CASCADE,
    position     integer NOT NULL,
    notice_type  text    NOT NULL CONSTRAINT schedule_steps_notice_type_form CHECK (notice_type ~ '^[a-z0-9-]{1,40}$'),
    offset_days  integer CONSTRAINT schedule_steps_offset_days_range CHECK (offset_days BETWEEN -3650 AND 3650),
    class        text    NOT NULL CONSTRAINT schedule_steps_class_known CHECK (class IN ('statutory', 'courtesy')),
    late_by_days integer NOT NULL DEFAULT 7 CONSTRAINT schedule_steps_late_by_days_range CHECK (late_by_days BETWEEN 0 AND 3650),
    enabled      boolean NOT NULL DEFAULT true,
    CONSTRAINT schedule_steps_pkey PRIMARY KEY (permit_type, position),
    CONSTRAINT schedule_steps_notice_type_once UNIQUE (permit_type, notice_type),
    CONSTRAINT schedule_steps_only_renewed_is_undated CHECK ((offset_days IS NULL) = (notice_type = 'renewed'))
);
COMMENT ON TABLE  schedule_steps IS 'One line of a permit type''s schedule.';
COMMENT ON COLUMN schedule_steps.permit_type IS 'The permit type whose schedule this line belongs to.';
COMMENT ON COLUMN schedule_steps.position IS 'Place in the list, from 0; of two steps due on one day the later in the list is the more urgent.';
COMMENT ON COLUMN schedule_steps.notice_type IS 'Which notice; part of the notice key.';
COMMENT ON COLUMN schedule_steps.offset_days IS 'Days after expires_on, negative before; empty only for renewed, which is due on the day of the renewal.';
COMMENT ON COLUMN schedule_steps.class IS 'statutory or courtesy; only a courtesy notice can be unsubscribed.';
COMMENT ON COLUMN schedule_steps.late_by_days IS 'For steps after expiry: how many days after its due day the notice may still go.';
COMMENT ON COLUMN schedule_steps.enabled IS 'A step switched off is owed to nobody.';
