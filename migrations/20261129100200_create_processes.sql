-- Processes that are alive, by the database's clock, and facts about the database itself.

CREATE TABLE processes (
    boot_id       uuid        NOT NULL CONSTRAINT processes_pkey PRIMARY KEY,
    host          text        NOT NULL,
    roles         text        NOT NULL,
    version       text        NOT NULL,
    fingerprint   text        NOT NULL,
    lease_seconds integer     NOT NULL CONSTRAINT processes_lease_seconds_positive CHECK (lease_seconds > 0),
    started_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    renewed_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at      timestamptz
);
COMMENT ON TABLE  processes IS 'One row per process that may hold leases. A row not renewed for lease_seconds is dead for good.';
COMMENT ON COLUMN processes.boot_id IS 'Random identity of one life of one process.';
COMMENT ON COLUMN processes.host IS 'Name of the machine, for people.';
COMMENT ON COLUMN processes.roles IS 'What the process does: web, scan, dispatch, or the name of a command.';
COMMENT ON COLUMN processes.version IS 'Version of the program.';
COMMENT ON COLUMN processes.fingerprint IS 'Zone, schedule, From, public URL and version; replicas that differ disagree.';
COMMENT ON COLUMN processes.lease_seconds IS 'After how many seconds without renewal this process is dead.';
COMMENT ON COLUMN processes.started_at IS 'Database time of the start.';
COMMENT ON COLUMN processes.renewed_at IS 'Database time of the last renewal.';
COMMENT ON COLUMN processes.ended_at IS 'Database time of an orderly end.';

-- "Alive" is said in one place.
CREATE VIEW living_processes AS
    SELECT boot_id FROM processes
    WHERE ended_at IS NULL AND renewed_at + make_interval(secs => lease_seconds) > clock_timestamp();
COMMENT ON VIEW living_processes IS 'Processes whose leases and open attempts are their own.';

CREATE TABLE installation (
    single       boolean     NOT NULL DEFAULT true CONSTRAINT installation_pkey PRIMARY KEY
                             CONSTRAINT installation_single CHECK (single),
    min_binary   text        NOT NULL,
    installed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE  installation IS 'One row of facts about this database.';
COMMENT ON COLUMN installation.single IS 'Always true; keeps the table at one row.';
COMMENT ON COLUMN installation.min_binary IS 'Oldest version of the program that may use this database.';
COMMENT ON COLUMN installation.installed_at IS 'Database time of the first migration; times before it were never expected to be scanned.';
INSERT INTO installation (min_binary) VALUES ('0.1.0');

CREATE TABLE business_clocks (
    setting      text        NOT NULL CONSTRAINT business_clocks_pkey PRIMARY KEY,
    offset_micros bigint     NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE  business_clocks IS 'The offset from database time to business time for each value of CLOCK, made once by the first process that met it.';
COMMENT ON COLUMN business_clocks.setting IS 'The value of CLOCK.';
COMMENT ON COLUMN business_clocks.offset_micros IS 'Business time minus database time in microseconds.';
COMMENT ON COLUMN business_clocks.created_at IS 'Database time at which the offset was made.';
