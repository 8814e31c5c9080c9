-- The list of permits by holder and by last change, among a million.

CREATE INDEX permits_holder_name_idx ON permits (lower(holder_name), id);
DROP INDEX permits_updated_at_idx;
CREATE INDEX permits_updated_at_idx ON permits (updated_at, id);
