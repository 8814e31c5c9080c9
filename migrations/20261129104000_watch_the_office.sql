-- What the pages count and list each morning: what was sent when, and the few copies that need a person among millions
-- that do not.

CREATE INDEX attempts_accepted_idx ON attempts (finished_at) WHERE outcome = 'accepted' AND transport <> 'letter';
CREATE INDEX deliveries_problems_idx ON deliveries (id) WHERE state IN ('failed', 'bounced', 'ambiguous');
CREATE INDEX deliveries_letters_idx ON deliveries (send_by, id) WHERE state = 'pending' AND channel = 'letter';
