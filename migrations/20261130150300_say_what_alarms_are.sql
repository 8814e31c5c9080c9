-- Alarms stand for each cause or day, and show how it is now.

COMMENT ON COLUMN alarms.subject IS 'What exactly: the expected time of a missing run; the day, or the scan or import, of what people work off; in what replicas differ; empty for kinds of which one stands.';
COMMENT ON COLUMN alarms.detail IS 'A sentence about it as it was when it was last seen; no address in full.';
