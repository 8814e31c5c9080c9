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

-- Where an import puts what it read until it is applied in one transaction. Empty between imports; what a killed
-- one left is removed by the next. Unlogged: losing it in a crash loses nothing.
CREATE UNLOGGED TABLE import_rows (
    import_id        uuid   NOT NULL,
    file_row         bigint NOT NULL,
    id               uuid   NOT NULL,
    permit_number    text   NOT NULL,
    number_key       text   NOT NULL,
    permit_type      text   NOT NULL,
    permit_type_name text   NOT NULL,
    status           text,
    holder_name      text   NOT NULL,
    holder_email     text,
    holder_language  text,
    contacts         jsonb  NOT NULL,
    site_address     text,
    description      text,
    issued_on        date,
    effective_on     date,
    expires_on       date   NOT NULL,
    external_id      text,
    CONSTRAINT import_rows_pkey PRIMARY KEY (import_id, file_row)
);
COMMENT ON TABLE  import_rows IS 'Good rows of files that are being imported: each one term of one permit.';
COMMENT ON COLUMN import_rows.import_id IS 'The import; its process holds an advisory lock made from this id.';
COMMENT ON COLUMN import_rows.file_row IS 'Row of the file.';
COMMENT ON COLUMN import_rows.id IS 'UUID version 7, of the permit if it is new and this row its current term.';
COMMENT ON COLUMN import_rows.permit_number IS 'The number as the file has it.';
COMMENT ON COLUMN import_rows.number_key IS 'What makes the number unique.';
COMMENT ON COLUMN import_rows.permit_type IS 'Code of the permit type, made from its name.';
COMMENT ON COLUMN import_rows.permit_type_name IS 'The permit type as the file names it.';
COMMENT ON COLUMN import_rows.status IS 'Status; empty when the row says nothing about it.';
COMMENT ON COLUMN import_rows.holder_name IS 'Name of the holder.';
COMMENT ON COLUMN import_rows.holder_email IS 'Address of the holder, well-formed.';
COMMENT ON COLUMN import_rows.holder_language IS 'BCP 47 tag; empty when the row says nothing about it.';
COMMENT ON COLUMN import_rows.contacts IS 'Others who get copies: a list of name, email, role.';
COMMENT ON COLUMN import_rows.site_address IS 'Where the permit applies.';
COMMENT ON COLUMN import_rows.description IS 'What the permit is for.';
COMMENT ON COLUMN import_rows.issued_on IS 'Issue date that came with the term.';
COMMENT ON COLUMN import_rows.effective_on IS 'First day of the term.';
COMMENT ON COLUMN import_rows.expires_on IS 'Last valid day of the term.';
COMMENT ON COLUMN import_rows.external_id IS 'Identifier in another system.';

CREATE UNLOGGED TABLE import_permits (
    import_id          uuid   NOT NULL,
    number_key         text   NOT NULL,
    file_row           bigint NOT NULL,
    outcome            text   CONSTRAINT import_permits_outcome_known
                              CHECK (outcome IN ('created', 'renewed', 'updated', 'same', 'earlier', 'archived')),
    permit_id          uuid,
    permit_type        text,
    version            bigint,
    present_expires_on date,
    contacts           jsonb,
    CONSTRAINT import_permits_pkey PRIMARY KEY (import_id, number_key)
);
COMMENT ON TABLE  import_permits IS 'Permits of files that are being imported, and what the import makes of each.';
COMMENT ON COLUMN import_permits.import_id IS 'The import.';
COMMENT ON COLUMN import_permits.number_key IS 'What makes the number unique.';
COMMENT ON COLUMN import_permits.file_row IS 'Row of the current term.';
COMMENT ON COLUMN import_permits.outcome IS 'created, renewed or updated; or left alone: same, earlier or archived. Empty until planned.';
COMMENT ON COLUMN import_permits.permit_id IS 'The permit, known or new.';
COMMENT ON COLUMN import_permits.permit_type IS 'Code of the permit type that is meant; empty until it exists.';
COMMENT ON COLUMN import_permits.version IS 'Version of a known permit when this was planned.';
COMMENT ON COLUMN import_permits.present_expires_on IS 'Date of a known permit when this was planned.';
COMMENT ON COLUMN import_permits.contacts IS 'All contacts the permit is to have; empty when they stay as they are.';
