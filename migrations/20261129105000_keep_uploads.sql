-- Files that people have sent and not imported yet, and who imported what.

-- A file is checked as often as its owner changes how it is read, and imported when it looks right. The next request may
-- reach another replica, so it waits here and not on a disk. Unlogged: losing one in a crash costs its owner a second
-- upload.
CREATE UNLOGGED TABLE kept_files (
    id        uuid        NOT NULL CONSTRAINT kept_files_pkey PRIMARY KEY,
    file_name text        NOT NULL,
    bytes     bigint      NOT NULL,
    kept_by   text        NOT NULL,
    kept_at   timestamptz NOT NULL,
    words     jsonb       NOT NULL DEFAULT '{}',
    look      jsonb,
    import_id uuid,
    refusal   text
);
COMMENT ON TABLE  kept_files IS 'Files that wait to be imported. Gone when they are, when somebody discards them, or after a day.';
COMMENT ON COLUMN kept_files.id IS 'UUID version 7.';
COMMENT ON COLUMN kept_files.file_name IS 'What its owner calls it.';
COMMENT ON COLUMN kept_files.bytes IS 'Its size.';
COMMENT ON COLUMN kept_files.kept_by IS 'Who sent it.';
COMMENT ON COLUMN kept_files.kept_at IS 'Business time.';
COMMENT ON COLUMN kept_files.words IS 'How it is to be read and applied, as it was checked last.';
COMMENT ON COLUMN kept_files.look IS 'Its columns with samples, and what is read from which.';
COMMENT ON COLUMN kept_files.import_id IS 'The dry run with these words, whose report is kept as that of every import; NULL if it was refused.';
COMMENT ON COLUMN kept_files.refusal IS 'Why the file was refused as a whole with these words, in words.';

CREATE UNLOGGED TABLE kept_file_parts (
    file_id uuid    NOT NULL CONSTRAINT kept_file_parts_file_id_fkey REFERENCES kept_files (id) ON DELETE CASCADE,
    number  integer NOT NULL,
    content bytea   NOT NULL,
    CONSTRAINT kept_file_parts_pkey PRIMARY KEY (file_id, number)
);
ALTER TABLE kept_file_parts ALTER COLUMN content SET STORAGE EXTERNAL;
COMMENT ON TABLE  kept_file_parts IS 'What stands in the files that wait, in pieces.';
COMMENT ON COLUMN kept_file_parts.file_id IS 'The file.';
COMMENT ON COLUMN kept_file_parts.number IS 'Place of the piece, from 0.';
COMMENT ON COLUMN kept_file_parts.content IS 'Its bytes.';

ALTER TABLE imports ADD COLUMN by text;
COMMENT ON COLUMN imports.by IS 'Who imported; NULL for imports of programs that did not record it.';
