-- A notice of which one copy was handed over or refused while it was not owed is owed again like the others, for the
-- sake of its other copies; the scan finds it by the same index.
DROP INDEX notices_revivable_idx;
CREATE INDEX notices_revivable_idx ON notices (permit_id)
    WHERE superseded_at IS NOT NULL
      AND reason_code IN ('period_changed', 'not_active', 'paused', 'archived', 'step_removed', 'not_owed')
      AND state IN ('superseded', 'pending', 'held', 'ambiguous', 'sent', 'failed');
