-- What is held and then falls away with a change of its permit comes back held, when it is owed again: else a pause that
-- ends would send what a restored database may have sent already, or what nobody has released.

ALTER TABLE notices ADD COLUMN held_before text CONSTRAINT notices_held_before_known
    CHECK (held_before IN ('claim_limit', 'memory_went_back', 'owner_died'));
COMMENT ON COLUMN notices.held_before IS 'Why it was held when it was superseded or lost its address: it comes back held for that. Of what a person held, held_reason says so.';
