-- Permits, their contacts, their terms, and since when each expiry date was known.

CREATE TABLE permits (
    id                   uuid        NOT NULL CONSTRAINT permits_pkey PRIMARY KEY,
    permit_number        text        NOT NULL,
    number_key           text        NOT NULL CONSTRAINT permits_number_key_key UNIQUE,
    permit_type          text        NOT NULL CONSTRAINT permits_permit_type_fkey REFERENCES permit_types (code),
    status               text        NOT NULL CONSTRAINT permits_status_known
                                     CHECK (status IN ('active', 'suspended', 'revoked', 'surrendered', 'closed')),
    holder_name          text        NOT NULL,
    holder_email         text,
    holder_language      text        NOT NULL DEFAULT 'en',
    site_address         text,
    description          text,
    issued_on            date,
    effective_on         date,
    takes_effect_on      date,
    expires_on           date        NOT NULL,
    period_since         date        NOT NULL,
    notices_from         date,
    notices_paused_until date,
    external_id          text,
    custom               jsonb       NOT NULL DEFAULT '{}'
                                     CONSTRAINT permits_custom_object CHECK (jsonb_typeof(custom) = 'object'),
    version              bigint      NOT NULL DEFAULT 1,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    archived_at          timestamptz,
    CONSTRAINT permits_effective_before_expiry CHECK (effective_on <= expires_on)
);
COMMENT ON TABLE  permits IS 'What an office issued to a holder.';
COMMENT ON COLUMN permits.id IS 'UUID version 7.';
COMMENT ON COLUMN permits.permit_number IS 'The number people use; text, because leading zeros and dashes matter.';
COMMENT ON COLUMN permits.number_key IS 'permit_number in lower case without white space; unique, archived permits included.';
COMMENT ON COLUMN permits.permit_type IS 'Code of the permit type, whose schedule decides what is owed.';
COMMENT ON COLUMN permits.status IS 'Decided by people; only active permits are sent notices.';
COMMENT ON COLUMN permits.holder_name IS 'Person or organisation that holds the permit.';
COMMENT ON COLUMN permits.holder_email IS 'Address of the holder, well-formed, domain in its ASCII form; empty if none is known.';
COMMENT ON COLUMN permits.holder_language IS 'BCP 47 tag of the language the holder is written to in.';
COMMENT ON COLUMN permits.site_address IS 'Where the permit applies.';
COMMENT ON COLUMN permits.description IS 'What the permit is for, in the office''s words.';
COMMENT ON COLUMN permits.issued_on IS 'Day of issue.';
COMMENT ON COLUMN permits.effective_on IS 'First day of the present term, if known.';
COMMENT ON COLUMN permits.takes_effect_on IS 'Of the present term: effective_on, else the issue date that came with this term. Steps due on or before it are not owed.';
COMMENT ON COLUMN permits.expires_on IS 'Last valid day of the present term, a calendar date in the office''s zone.';
COMMENT ON COLUMN permits.period_since IS 'Business day on which this permit first had the present expires_on.';
COMMENT ON COLUMN permits.notices_from IS 'Steps due before this day are not owed; set by an import on permits it records for the first time.';
COMMENT ON COLUMN permits.notices_paused_until IS 'Last day of a pause of notices.';
COMMENT ON COLUMN permits.external_id IS 'Identifier in another system.';
COMMENT ON COLUMN permits.custom IS 'Further fields, free to the office.';
COMMENT ON COLUMN permits.version IS 'Raised by every change of anything a mail shows, contacts included; the ETag, and what the gate compares.';
COMMENT ON COLUMN permits.created_at IS 'Business time of creation.';
COMMENT ON COLUMN permits.updated_at IS 'Business time of the last change.';
COMMENT ON COLUMN permits.archived_at IS 'Business time of archiving; an archived permit is sent nothing and keeps its number.';
-- The scan walks this in order and finds in it what it needs to leave a permit out.
CREATE INDEX permits_expiring_idx ON permits (expires_on, id)
    INCLUDE (permit_type, takes_effect_on, notices_from, notices_paused_until, period_since)
    WHERE status = 'active' AND archived_at IS NULL;
CREATE INDEX permits_permit_type_idx ON permits (permit_type);
-- A scan judges every permit whose pause has ended since the last one.
CREATE INDEX permits_paused_idx ON permits (notices_paused_until) WHERE notices_paused_until IS NOT NULL;

CREATE TABLE contacts (
    id        uuid    NOT NULL CONSTRAINT contacts_pkey PRIMARY KEY,
    permit_id uuid    NOT NULL CONSTRAINT contacts_permit_id_fkey REFERENCES permits (id) ON DELETE CASCADE,
    position  integer NOT NULL,
    name      text    NOT NULL DEFAULT '',
    email     text,
    role      text    NOT NULL,
    language  text    NOT NULL DEFAULT 'en',
    CONSTRAINT contacts_position_once UNIQUE (permit_id, position)
);
COMMENT ON TABLE  contacts IS 'Others who get a copy of a permit''s notices.';
COMMENT ON COLUMN contacts.id IS 'UUID version 7.';
COMMENT ON COLUMN contacts.permit_id IS 'The permit.';
COMMENT ON COLUMN contacts.position IS 'Place in the permit''s list, from 0.';
COMMENT ON COLUMN contacts.name IS 'Name of the person; may be empty.';
COMMENT ON COLUMN contacts.email IS 'Well-formed address, domain in its ASCII form; empty if none is known.';
COMMENT ON COLUMN contacts.role IS 'What the person is to the permit, such as agent or owner.';
COMMENT ON COLUMN contacts.language IS 'BCP 47 tag of the language the person is written to in.';

CREATE TABLE terms (
    permit_id    uuid        NOT NULL CONSTRAINT terms_permit_id_fkey REFERENCES permits (id) ON DELETE CASCADE,
    number       integer     NOT NULL CONSTRAINT terms_number_positive CHECK (number > 0),
    issued_on    date,
    effective_on date,
    expires_on   date        NOT NULL,
    recorded_at  timestamptz NOT NULL,
    CONSTRAINT terms_pkey PRIMARY KEY (permit_id, number)
);
COMMENT ON TABLE  terms IS 'Validity periods; renewing opens a new one and never overwrites the old. The highest number is the present one.';
COMMENT ON COLUMN terms.permit_id IS 'The permit.';
COMMENT ON COLUMN terms.number IS 'Count within the permit, from 1.';
COMMENT ON COLUMN terms.issued_on IS 'Issue date that came with this term, if any.';
COMMENT ON COLUMN terms.effective_on IS 'First day of the term, if known.';
COMMENT ON COLUMN terms.expires_on IS 'Last valid day of the term.';
COMMENT ON COLUMN terms.recorded_at IS 'Business time at which the term was recorded.';

CREATE TABLE expiry_periods (
    permit_id  uuid NOT NULL CONSTRAINT expiry_periods_permit_id_fkey REFERENCES permits (id) ON DELETE CASCADE,
    expires_on date NOT NULL,
    since      date NOT NULL,
    CONSTRAINT expiry_periods_pkey PRIMARY KEY (permit_id, expires_on)
);
COMMENT ON TABLE  expiry_periods IS 'Each expiry date a permit ever had, and since when; a date that comes back keeps its first day.';
COMMENT ON COLUMN expiry_periods.permit_id IS 'The permit.';
COMMENT ON COLUMN expiry_periods.expires_on IS 'The expiry date.';
COMMENT ON COLUMN expiry_periods.since IS 'Business day on which the permit first had it.';

CREATE TABLE suppressions (
    id         uuid        NOT NULL CONSTRAINT suppressions_pkey PRIMARY KEY,
    address    text        NOT NULL,
    class      text        NOT NULL CONSTRAINT suppressions_class_known CHECK (class IN ('all', 'courtesy')),
    reason     text        NOT NULL,
    source     text        NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT suppressions_address_class_key UNIQUE (address, class)
);
COMMENT ON TABLE  suppressions IS 'Addresses that must not be mailed.';
COMMENT ON COLUMN suppressions.id IS 'UUID version 7.';
COMMENT ON COLUMN suppressions.address IS 'The address as deliveries compare it: lower case, domain in its ASCII form.';
COMMENT ON COLUMN suppressions.class IS 'all, or courtesy for an address that unsubscribed.';
COMMENT ON COLUMN suppressions.reason IS 'Why, in words.';
COMMENT ON COLUMN suppressions.source IS 'person, bounce, refused, or unsubscribe.';
COMMENT ON COLUMN suppressions.created_at IS 'Business time of creation.';
