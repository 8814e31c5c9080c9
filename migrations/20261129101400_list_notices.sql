-- Finding the notices that need a person among millions that do not; newest first, as the list shows them.

CREATE INDEX notices_problems_idx ON notices (id) WHERE state IN ('held', 'ambiguous', 'failed');
CREATE INDEX notices_due_on_idx ON notices (due_on, id);
