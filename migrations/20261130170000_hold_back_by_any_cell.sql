-- Of a row that is wider or narrower than the header nobody knows which cell is its permit number.
ALTER TABLE import_rejected_rows ADD COLUMN cell_keys jsonb;
COMMENT ON COLUMN import_rejected_rows.cell_keys IS 'Of a row that is not as wide as the header, what makes each of its cells unique that could be a permit number: a list of texts.';
