-- Messages are written once for each attempt and seldom read: lz4 packs them at a third of the usual effort. A server
-- that was built without it keeps the usual way.
DO $$
BEGIN
    ALTER TABLE attempt_messages ALTER COLUMN content SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END $$;
