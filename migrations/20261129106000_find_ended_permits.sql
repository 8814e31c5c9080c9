-- The list of the few permits that are revoked, suspended or otherwise not active, among a million that are.

CREATE INDEX permits_not_active_idx ON permits (expires_on, id) WHERE status <> 'active';
