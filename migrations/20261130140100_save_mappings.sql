-- How files of one kind are read, saved under a name.
CREATE TABLE import_mappings (
    id       uuid        NOT NULL CONSTRAINT import_mappings_pkey PRIMARY KEY,
    name     text        NOT NULL CONSTRAINT import_mappings_name_length CHECK (char_length(name) BETWEEN 1 AND 100),
    name_key text        NOT NULL CONSTRAINT import_mappings_name_key_unique UNIQUE,
    words    jsonb       NOT NULL CONSTRAINT import_mappings_words_size CHECK (octet_length(words::text) <= 65536),
    saved_by text        NOT NULL,
    saved_at timestamptz NOT NULL
);
COMMENT ON TABLE  import_mappings IS 'How files of one kind are read: columns, status words, permit type and dates, to be used again by name.';
COMMENT ON COLUMN import_mappings.id IS 'UUID version 7.';
COMMENT ON COLUMN import_mappings.name IS 'What people call it.';
COMMENT ON COLUMN import_mappings.name_key IS 'The name in small letters, which is unique.';
COMMENT ON COLUMN import_mappings.words IS 'What was chosen, in the words of the options of an import; what was not is guessed each time.';
COMMENT ON COLUMN import_mappings.saved_by IS 'Who saved it last.';
COMMENT ON COLUMN import_mappings.saved_at IS 'Business time of that.';
