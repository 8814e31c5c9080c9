-- People who sign in to the pages, and what they did there.

CREATE TABLE users (
    id              uuid        NOT NULL CONSTRAINT users_pkey PRIMARY KEY,
    email           text        NOT NULL CONSTRAINT users_email_length CHECK (char_length(email) BETWEEN 3 AND 254),
    email_key       text        NOT NULL CONSTRAINT users_email_key_key UNIQUE,
    role            text        NOT NULL CONSTRAINT users_role_known CHECK (role IN ('viewer', 'clerk', 'admin')),
    password_hash   text,
    created_by      text        NOT NULL,
    created_at      timestamptz NOT NULL,
    last_sign_in_at timestamptz,
    disabled_at     timestamptz
);
COMMENT ON TABLE users IS 'People who may sign in. One who left is disabled and stays, so that what they did keeps its name.';
COMMENT ON COLUMN users.id IS 'UUID version 7.';
COMMENT ON COLUMN users.email IS 'Address with which they sign in, as it was written.';
COMMENT ON COLUMN users.email_key IS 'The address in small letters, by which it is unique.';
COMMENT ON COLUMN users.role IS 'viewer, clerk (changes permits and notices too) or admin (everything).';
COMMENT ON COLUMN users.password_hash IS 'argon2id, as a PHC string; NULL until the password is set by a link.';
COMMENT ON COLUMN users.created_by IS 'Who added them.';
COMMENT ON COLUMN users.created_at IS 'Business time.';
COMMENT ON COLUMN users.last_sign_in_at IS 'Business time.';
COMMENT ON COLUMN users.disabled_at IS 'Business time; they cannot sign in from then on.';

CREATE TABLE sessions (
    id           uuid        NOT NULL CONSTRAINT sessions_pkey PRIMARY KEY,
    user_id      uuid        NOT NULL CONSTRAINT sessions_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    token_sha256 bytea       NOT NULL CONSTRAINT sessions_token_sha256_key UNIQUE
                             CONSTRAINT sessions_token_sha256_length CHECK (octet_length(token_sha256) = 32),
    created_at   timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL
);
CREATE INDEX sessions_user_id_idx ON sessions (user_id);
CREATE INDEX sessions_last_seen_at_idx ON sessions (last_seen_at);
COMMENT ON TABLE sessions IS 'Browsers in which somebody is signed in; signing out removes the row.';
COMMENT ON COLUMN sessions.id IS 'UUID version 7.';
COMMENT ON COLUMN sessions.user_id IS 'Who is signed in.';
COMMENT ON COLUMN sessions.token_sha256 IS 'SHA-256 of the value of the cookie; the value itself is nowhere.';
COMMENT ON COLUMN sessions.created_at IS 'Business time; a session ends some hours after it, however it is used.';
COMMENT ON COLUMN sessions.last_seen_at IS 'Business time, within a minute; a session that is not used ends.';

CREATE TABLE password_links (
    token_sha256 bytea       NOT NULL CONSTRAINT password_links_pkey PRIMARY KEY
                             CONSTRAINT password_links_token_sha256_length CHECK (octet_length(token_sha256) = 32),
    user_id      uuid        CONSTRAINT password_links_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL
);
CREATE INDEX password_links_user_id_idx ON password_links (user_id);
COMMENT ON TABLE password_links IS 'One-time links by which somebody sets a password. Using one removes all of the same user.';
COMMENT ON COLUMN password_links.token_sha256 IS 'SHA-256 of the secret in the link; the secret itself is nowhere.';
COMMENT ON COLUMN password_links.user_id IS 'Whose password; NULL: it makes the first administrator, while there is no user.';
COMMENT ON COLUMN password_links.created_at IS 'Business time.';
COMMENT ON COLUMN password_links.expires_at IS 'Business time; not taken from then on.';

CREATE TABLE sign_in_failures (
    kind    text        NOT NULL CONSTRAINT sign_in_failures_kind_known CHECK (kind IN ('account', 'address')),
    key     text        NOT NULL,
    count   integer     NOT NULL CONSTRAINT sign_in_failures_count_positive CHECK (count > 0),
    last_at timestamptz NOT NULL,
    CONSTRAINT sign_in_failures_pkey PRIMARY KEY (kind, key)
);
CREATE INDEX sign_in_failures_last_at_idx ON sign_in_failures (last_at);
COMMENT ON TABLE sign_in_failures IS 'Tries to sign in that failed one after the other, so that guessing becomes slow.';
COMMENT ON COLUMN sign_in_failures.kind IS 'account: an address that was typed, known or not; address: where the tries came from.';
COMMENT ON COLUMN sign_in_failures.key IS 'SHA-256 in hex of what was typed, or the IP address.';
COMMENT ON COLUMN sign_in_failures.count IS 'Failures since the last success or the last quiet hour.';
COMMENT ON COLUMN sign_in_failures.last_at IS 'Business time of the last one.';

CREATE TABLE office_log (
    id         uuid        NOT NULL CONSTRAINT office_log_pkey PRIMARY KEY,
    at         timestamptz NOT NULL,
    by         text        NOT NULL,
    action     text        NOT NULL,
    subject    text        NOT NULL,
    subject_id uuid,
    label      text        NOT NULL,
    before     jsonb,
    after      jsonb
);
CREATE INDEX office_log_at_idx ON office_log (at DESC, id DESC);
CREATE INDEX office_log_subject_id_idx ON office_log (subject_id) WHERE subject_id IS NOT NULL;
COMMENT ON TABLE office_log IS 'Who did what, besides changes of permits, which are in permit_history. Written in the transaction of the deed.';
COMMENT ON COLUMN office_log.id IS 'UUID version 7.';
COMMENT ON COLUMN office_log.at IS 'Business time.';
COMMENT ON COLUMN office_log.by IS 'Who: the address of a user, the name of a token, or command.';
COMMENT ON COLUMN office_log.action IS 'What was done, as a word.';
COMMENT ON COLUMN office_log.subject IS 'What it was done with: notice, permit-type, suppression, token, user, import or scan.';
COMMENT ON COLUMN office_log.subject_id IS 'Which one, where it has an id.';
COMMENT ON COLUMN office_log.label IS 'Which one, as people call it.';
COMMENT ON COLUMN office_log.before IS 'What it was; NULL where it was not there before.';
COMMENT ON COLUMN office_log.after IS 'What it became, or what was said with the deed.';

-- The audit reads the newest changes of all permits, but an import is one line there.
CREATE INDEX permit_history_at_idx ON permit_history (at DESC, permit_id DESC) WHERE import_id IS NULL;
