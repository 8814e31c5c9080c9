-- Finding permits among a million: by any part of what people know of one, and in the order of the list.

CREATE EXTENSION IF NOT EXISTS pg_trgm;

-- Everything by which a permit is searched, in lower case.
CREATE FUNCTION permit_search_text(number text, number_key text, external_id text, holder text, email text, site text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT lower(number || E'\n' || number_key || E'\n' || coalesce(external_id, '') || E'\n' || holder || E'\n'
                 || coalesce(email, '') || E'\n' || coalesce(site, ''))
$$;

CREATE INDEX permits_search_idx ON permits
    USING gin (permit_search_text(permit_number, number_key, external_id, holder_name, holder_email, site_address)
               gin_trgm_ops);
CREATE INDEX permits_expires_on_idx ON permits (expires_on, id);
CREATE INDEX permits_updated_at_idx ON permits (updated_at);
