-- The memory guard: by which marks the database that wrote the memory of what was sent is known, and each time that
-- another one, or an older state of it, was found in its place.

CREATE TABLE memory_marks (
    single            boolean     NOT NULL DEFAULT true CONSTRAINT memory_marks_pkey PRIMARY KEY
                                  CONSTRAINT memory_marks_single CHECK (single),
    system_identifier bigint,
    timeline          bigint,
    database_oid      bigint      NOT NULL,
    notices_oid       bigint      NOT NULL,
    recorded_at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE  memory_marks IS 'One row: the marks of the database whose memory may be trusted. Written at the first start, and by resume.';
COMMENT ON COLUMN memory_marks.single IS 'Always true; keeps the table at one row.';
COMMENT ON COLUMN memory_marks.system_identifier IS 'Identifies the cluster; changes with a new one (initdb, major upgrade). Empty if our role may not read it.';
COMMENT ON COLUMN memory_marks.timeline IS 'Timeline of the write-ahead log; changes with a failover or a recovery to a point in time. Empty if our role may not read it.';
COMMENT ON COLUMN memory_marks.database_oid IS 'Changes with a database that is made anew or copied.';
COMMENT ON COLUMN memory_marks.notices_oid IS 'Changes with a table of notices that is made anew, as by restoring a dump.';
COMMENT ON COLUMN memory_marks.recorded_at IS 'Database time at which these became the marks on record.';

CREATE TABLE memory_lapses (
    id                bigint      NOT NULL GENERATED ALWAYS AS IDENTITY CONSTRAINT memory_lapses_pkey PRIMARY KEY,
    system_identifier bigint,
    timeline          bigint,
    database_oid      bigint      NOT NULL,
    notices_oid       bigint      NOT NULL,
    noticed_at        timestamptz NOT NULL,
    held              bigint      NOT NULL,
    confirmed_at      timestamptz,
    reason            text,
    CONSTRAINT memory_lapses_confirmed_says_why CHECK ((confirmed_at IS NULL) = (reason IS NULL))
);
COMMENT ON TABLE  memory_lapses IS 'One row for each time that the marks were not those on record: the memory may have gone back.';
COMMENT ON COLUMN memory_lapses.id IS 'Order of entry.';
COMMENT ON COLUMN memory_lapses.system_identifier IS 'The mark that was found.';
COMMENT ON COLUMN memory_lapses.timeline IS 'The mark that was found.';
COMMENT ON COLUMN memory_lapses.database_oid IS 'The mark that was found.';
COMMENT ON COLUMN memory_lapses.notices_oid IS 'The mark that was found.';
COMMENT ON COLUMN memory_lapses.noticed_at IS 'Business time at which what was pending had been held.';
COMMENT ON COLUMN memory_lapses.held IS 'Notices that were pending and were held, for they may have been sent since.';
COMMENT ON COLUMN memory_lapses.confirmed_at IS 'Business time at which a person confirmed that mail may go again.';
COMMENT ON COLUMN memory_lapses.reason IS 'That person''s words.';

-- A mark that our role may not read is empty and guards nothing; the others still do. A function and not a view,
-- because only a function can catch the refusal. A table of notices that a later migration makes anew has another
-- oid: such a migration must write it to memory_marks.
CREATE FUNCTION present_memory_marks(
    OUT system_identifier bigint, OUT timeline bigint, OUT database_oid bigint, OUT notices_oid bigint
) LANGUAGE plpgsql STABLE AS $$
BEGIN
    BEGIN
        system_identifier := (SELECT c.system_identifier FROM pg_catalog.pg_control_system() c);
    EXCEPTION WHEN OTHERS THEN
        system_identifier := NULL;
    END;
    BEGIN
        -- The timeline that is written now; the control file's is that of the last checkpoint.
        timeline := ('x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8))::bit(32)::bigint;
    EXCEPTION WHEN OTHERS THEN
        timeline := NULL;
    END;
    database_oid := (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database());
    notices_oid := 'notices'::regclass::oid;
END $$;
COMMENT ON FUNCTION present_memory_marks() IS 'The marks of the database that answers now.';

-- "Differs" is said in one place; an empty mark differs from nothing.
CREATE VIEW memory_comparison AS
    SELECT mark.name, mark.recorded, mark.present
    FROM memory_marks r
    CROSS JOIN LATERAL present_memory_marks() p
    CROSS JOIN LATERAL (VALUES
        ('system identifier', r.system_identifier, p.system_identifier),
        ('timeline', r.timeline, p.timeline),
        ('oid of the database', r.database_oid, p.database_oid),
        ('oid of the table of notices', r.notices_oid, p.notices_oid)) AS mark (name, recorded, present);
COMMENT ON VIEW memory_comparison IS 'Each mark as it is on record and as it is now; where the two differ, the memory may have gone back.';
