-- What an import has to know of its rows, so that it changes nothing by what it could not read, and takes back only what
-- an import put there.

-- Programs of before mark nothing, and of the contacts of before nobody knows: they stay, as a person's do.
ALTER TABLE contacts ADD COLUMN from_holder boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN contacts.from_holder IS 'Whether an import took it from the cell of the holder''s addresses, so that the next one with such a column replaces it.';

-- All rejected rows are staged by their numbers, though of a bounded number alone the cells are kept.
ALTER TABLE import_rejected_rows ADD COLUMN kept boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN import_rejected_rows.kept IS 'Whether the row is kept with the import; of others only the number is known.';

ALTER TABLE import_rows
    ADD COLUMN holder_unusable   boolean NOT NULL DEFAULT false,
    ADD COLUMN contacts_unusable boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN import_rows.holder_unusable IS 'Whether the cell of the holder''s addresses has one that is none, so that what is known stays.';
COMMENT ON COLUMN import_rows.contacts_unusable IS 'The same of the cells of contacts.';
