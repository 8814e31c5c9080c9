-- Where `audit` puts a ledger that it compares with what is recorded here. Both tables are filled and read in one
-- transaction that is rolled back, so nobody ever sees a row. Unlogged: there is nothing to lose.

CREATE UNLOGGED TABLE audit_lines (
    line       bigint NOT NULL,
    queue_id   text,
    message_id text,
    accepted   boolean NOT NULL,
    CONSTRAINT audit_lines_says_something CHECK (queue_id IS NOT NULL OR message_id IS NOT NULL)
);
COMMENT ON TABLE  audit_lines IS 'What the lines of a ledger say.';
COMMENT ON COLUMN audit_lines.line IS 'Number of the line, from 1.';
COMMENT ON COLUMN audit_lines.queue_id IS 'Queue id of a mail server''s log; empty when the line names the message itself.';
COMMENT ON COLUMN audit_lines.message_id IS 'Message-ID with its brackets; empty on lines that say what became of a queue id.';
COMMENT ON COLUMN audit_lines.accepted IS 'The line says that the message was accepted.';

CREATE UNLOGGED TABLE audit_messages (
    message_id text   NOT NULL,
    times      bigint NOT NULL,
    first_line bigint NOT NULL
);
COMMENT ON TABLE  audit_messages IS 'The messages of a ledger.';
COMMENT ON COLUMN audit_messages.message_id IS 'Message-ID with its brackets.';
COMMENT ON COLUMN audit_messages.times IS 'How often it was accepted; 0 when it was queued and not delivered on.';
COMMENT ON COLUMN audit_messages.first_line IS 'First line that names it.';
