-- What all replicas know about the mail transport: whether it is paused, who probes it, and its pace.

CREATE TABLE transport (
    single          boolean     NOT NULL DEFAULT true CONSTRAINT transport_pkey PRIMARY KEY
                                CONSTRAINT transport_single CHECK (single),
    paused_until    timestamptz,
    pause_seconds   double precision NOT NULL DEFAULT 0,
    fault           text,
    probe_boot_id   uuid,
    probe_token     uuid,
    opened_at       timestamptz,
    closed_at       timestamptz,
    accepted_at     timestamptz,
    policy_refusals text[]      NOT NULL DEFAULT '{}',
    next_send_at    timestamptz NOT NULL DEFAULT '-infinity',
    CONSTRAINT transport_probe_whole CHECK ((probe_boot_id IS NULL) = (probe_token IS NULL)),
    CONSTRAINT transport_paused_says_why CHECK (paused_until IS NULL OR fault IS NOT NULL)
);
COMMENT ON TABLE  transport IS 'One row that all replicas share; times are the database''s own.';
COMMENT ON COLUMN transport.single IS 'Always true; keeps the table at one row.';
COMMENT ON COLUMN transport.paused_until IS 'While set, nothing is leased but by the prober, who may go from this time on.';
COMMENT ON COLUMN transport.pause_seconds IS 'Length of the present pause; doubled by every probe that fails.';
COMMENT ON COLUMN transport.fault IS 'What opened the breaker, in the server''s words.';
COMMENT ON COLUMN transport.probe_boot_id IS 'The process that probes; a dead one''s probe is free.';
COMMENT ON COLUMN transport.probe_token IS 'Names the probe; the gate lets its holder through.';
COMMENT ON COLUMN transport.opened_at IS 'When the breaker opened.';
COMMENT ON COLUMN transport.closed_at IS 'When it last closed; speed comes back gradually from here.';
COMMENT ON COLUMN transport.accepted_at IS 'When a message was last accepted.';
COMMENT ON COLUMN transport.policy_refusals IS 'Addresses refused by policy (5.7.x) since a message was last accepted.';
COMMENT ON COLUMN transport.next_send_at IS 'The next free moment under MAIL_RATE_PER_SECOND.';
INSERT INTO transport DEFAULT VALUES;
