-- Every import leaves its report, and the rows that were rejected. The defaults are for programs of before, whose
-- every row was a committed import.
ALTER TABLE imports
    ADD COLUMN committed boolean NOT NULL DEFAULT true,
    ADD COLUMN dry_run   boolean NOT NULL DEFAULT false,
    ADD COLUMN delimiter text    NOT NULL DEFAULT ',' CONSTRAINT imports_delimiter_one CHECK (length(delimiter) = 1),
    ADD COLUMN header    text[]  NOT NULL DEFAULT '{}',
    ADD CONSTRAINT imports_dry_run_uncommitted CHECK (NOT (committed AND dry_run));
COMMENT ON COLUMN imports.finished_at IS 'Business time of the commit, or of the end.';
COMMENT ON COLUMN imports.committed IS 'Whether the good rows were applied.';
COMMENT ON COLUMN imports.dry_run IS 'Whether nothing was meant to be changed.';
COMMENT ON COLUMN imports.delimiter IS 'What stands between two cells of the file.';
COMMENT ON COLUMN imports.header IS 'Names of the columns of the file.';

CREATE TABLE import_rejections (
    import_id uuid   NOT NULL CONSTRAINT import_rejections_import_id_fkey REFERENCES imports (id) ON DELETE CASCADE,
    file_row  bigint NOT NULL,
    cells     jsonb  NOT NULL,
    errors    text   NOT NULL,
    CONSTRAINT import_rejections_pkey PRIMARY KEY (import_id, file_row)
);
COMMENT ON TABLE  import_rejections IS 'Rows that imports rejected, so that people can correct them; of each import a bounded number.';
COMMENT ON COLUMN import_rejections.import_id IS 'The import.';
COMMENT ON COLUMN import_rejections.file_row IS 'Row of the file.';
COMMENT ON COLUMN import_rejections.cells IS 'The cells as they stand in the file: a list of texts.';
COMMENT ON COLUMN import_rejections.errors IS 'What is wrong with the row, in words.';

CREATE UNLOGGED TABLE import_rejected_rows (
    import_id uuid   NOT NULL,
    file_row  bigint NOT NULL,
    cells     jsonb  NOT NULL,
    errors    text   NOT NULL,
    CONSTRAINT import_rejected_rows_pkey PRIMARY KEY (import_id, file_row)
);
COMMENT ON TABLE  import_rejected_rows IS 'Rejected rows of files that are being imported, until the import is recorded.';
COMMENT ON COLUMN import_rejected_rows.import_id IS 'The import.';
COMMENT ON COLUMN import_rejected_rows.file_row IS 'Row of the file.';
COMMENT ON COLUMN import_rejected_rows.cells IS 'The cells as they stand in the file: a list of texts.';
COMMENT ON COLUMN import_rejected_rows.errors IS 'What is wrong with the row, in words.';
