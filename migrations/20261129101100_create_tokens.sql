-- Access tokens of the API, and the answers that are kept for repeated requests.

CREATE TABLE tokens (
    id           uuid        NOT NULL CONSTRAINT tokens_pkey PRIMARY KEY,
    name         text        NOT NULL CONSTRAINT tokens_name_length CHECK (char_length(name) BETWEEN 1 AND 100),
    scope        text        NOT NULL CONSTRAINT tokens_scope_known CHECK (scope IN ('read', 'write', 'admin')),
    token_sha256 bytea       NOT NULL CONSTRAINT tokens_token_sha256_key UNIQUE
                             CONSTRAINT tokens_token_sha256_length CHECK (octet_length(token_sha256) = 32),
    hint         text        NOT NULL,
    expires_on   date,
    created_by   text        NOT NULL,
    created_at   timestamptz NOT NULL,
    last_used_at timestamptz,
    revoked_at   timestamptz
);
COMMENT ON TABLE tokens IS 'Access tokens of the API. A revoked one stays, so that what it did keeps its name.';
COMMENT ON COLUMN tokens.id IS 'UUID version 7.';
COMMENT ON COLUMN tokens.name IS 'What people call it: the system that uses it.';
COMMENT ON COLUMN tokens.scope IS 'read, write (includes read) or admin (includes both).';
COMMENT ON COLUMN tokens.token_sha256 IS 'SHA-256 of the token; the token itself is nowhere.';
COMMENT ON COLUMN tokens.hint IS 'Its last four characters, which belong to its checksum.';
COMMENT ON COLUMN tokens.expires_on IS 'Last day on which it is taken; NULL: until it is revoked.';
COMMENT ON COLUMN tokens.created_by IS 'Who made it.';
COMMENT ON COLUMN tokens.created_at IS 'Business time.';
COMMENT ON COLUMN tokens.last_used_at IS 'Business time, within a minute.';
COMMENT ON COLUMN tokens.revoked_at IS 'Business time; not taken from then on.';

CREATE TABLE idempotency_keys (
    token_id       uuid        NOT NULL CONSTRAINT idempotency_keys_token_id_fkey REFERENCES tokens (id) ON DELETE CASCADE,
    method         text        NOT NULL,
    path           text        NOT NULL,
    key            text        NOT NULL CONSTRAINT idempotency_keys_key_length CHECK (char_length(key) BETWEEN 1 AND 255),
    request_sha256 bytea       NOT NULL CONSTRAINT idempotency_keys_request_sha256_length CHECK (octet_length(request_sha256) = 32),
    status         integer,
    headers        jsonb       NOT NULL DEFAULT '{}',
    body           bytea       NOT NULL DEFAULT '',
    created_at     timestamptz NOT NULL,
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (token_id, method, path, key)
);
CREATE INDEX idempotency_keys_created_at_idx ON idempotency_keys (created_at);
COMMENT ON TABLE idempotency_keys IS 'Answers to requests with an Idempotency-Key, written in the transaction of the request itself.';
COMMENT ON COLUMN idempotency_keys.token_id IS 'Who asked.';
COMMENT ON COLUMN idempotency_keys.method IS 'HTTP method.';
COMMENT ON COLUMN idempotency_keys.path IS 'Path of the request.';
COMMENT ON COLUMN idempotency_keys.key IS 'The key that the caller chose.';
COMMENT ON COLUMN idempotency_keys.request_sha256 IS 'SHA-256 of query, content type and body: another request under the same key is refused.';
COMMENT ON COLUMN idempotency_keys.status IS 'HTTP status of the answer; NULL only inside the transaction.';
COMMENT ON COLUMN idempotency_keys.headers IS 'Headers of the answer that belong to it.';
COMMENT ON COLUMN idempotency_keys.body IS 'Body of the answer.';
COMMENT ON COLUMN idempotency_keys.created_at IS 'Business time; answers are kept for 7 days.';
