-- Imports of files.

CREATE TABLE imports (
    id          uuid        NOT NULL CONSTRAINT imports_pkey PRIMARY KEY,
    file_name   text        NOT NULL,
    started_at  timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    report      jsonb       NOT NULL
);
COMMENT ON TABLE  imports IS 'Files that were imported, with what became of their rows.';
COMMENT ON COLUMN imports.id IS 'UUID version 7.';
COMMENT ON COLUMN imports.file_name IS 'Name of the file without its folder.';
COMMENT ON COLUMN imports.started_at IS 'Business time of the start.';
COMMENT ON COLUMN imports.finished_at IS 'Business time of the commit.';
COMMENT ON COLUMN imports.report IS 'The report as the command prints it.';
