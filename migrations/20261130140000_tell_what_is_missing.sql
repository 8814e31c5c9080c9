-- A file that calls itself complete says by its silence that a permit is gone. A row that was rejected is no silence.
ALTER TABLE import_rejected_rows ADD COLUMN number_key text;
COMMENT ON COLUMN import_rejected_rows.number_key IS 'What makes the permit number of the row unique; empty where it has none that can be read.';
