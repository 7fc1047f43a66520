-- The objects, the settings and their limits, what the workers write, who may see what. The server has the library in
-- shared_preload_libraries, and its other settings of flashwise_ace are the defaults.
CREATE EXTENSION flashwise_ace;

SELECT name, setting, unit, context, vartype, min_val, max_val, boot_val
FROM pg_settings WHERE name LIKE 'flashwise\_ace.%' ORDER BY name COLLATE "C";
SET flashwise_ace.workers = 2;
SET flashwise_ace.unknown = 1;
ALTER SYSTEM SET flashwise_ace.workers = 33;
ALTER SYSTEM SET flashwise_ace.margin = -1;

-- Waits until a condition holds, for a minute at most.
CREATE FUNCTION wait_until(condition text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    holds boolean;
BEGIN
    FOR i IN 1..600 LOOP
        EXECUTE 'SELECT ' || condition INTO holds;
        EXIT WHEN holds;
        PERFORM pg_sleep(0.1);
    END LOOP;
    RETURN holds;
END $$;

-- One row a worker; all of them run.
SELECT wait_until('(SELECT bool_and(state = ''active'') FROM flashwise_ace)');
SELECT worker, pid IS NOT NULL AS runs, state, errors, last_error IS NULL AS no_error FROM flashwise_ace;
SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'flashwise_ace writer' AND datid IS NULL;

-- Dirty buffers ahead of the hand are written.
SET max_parallel_workers_per_gather = 0;
CREATE TABLE t (k integer PRIMARY KEY, v text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, repeat('x', 200) FROM generate_series(1, 100000) i;
UPDATE t SET v = repeat('y', 200) WHERE k % 3 = 0;
SELECT count(*), sum(length(v)) FROM t;
SELECT wait_until('(SELECT sum(written) > 0 FROM flashwise_ace)');
SELECT sum(skipped_clean + skipped_hot + skipped_pinned + skipped_locked) > 0 AS skipped,
       sum(skipped_failed) AS failed, sum(errors) AS errors,
       bool_and(busy_share BETWEEN 0 AND 1) AS shares, sum(write_time) > 0 AS timed
FROM flashwise_ace;

SELECT flashwise_ace_reset();
SELECT bool_and(stats_reset > now() - interval '1 minute') AS is_reset FROM flashwise_ace;

-- A setting that is changed takes effect without a restart.
ALTER SYSTEM SET flashwise_ace.enabled = off;
SELECT pg_reload_conf();
SELECT wait_until('(SELECT bool_and(state = ''standby'') FROM flashwise_ace)');
ALTER SYSTEM RESET flashwise_ace.enabled;
ALTER SYSTEM SET flashwise_ace.workers = 2;
SELECT pg_reload_conf();
SELECT wait_until('(SELECT bool_and(state = ''active'') FROM flashwise_ace WHERE worker < 2)');
SELECT worker, state FROM flashwise_ace;
ALTER SYSTEM RESET flashwise_ace.workers;
SELECT pg_reload_conf();

-- A worker that was ended is started again.
SELECT pid AS worker_pid FROM flashwise_ace WHERE worker = 0 \gset
SELECT pg_terminate_backend(:worker_pid);
SELECT wait_until('(SELECT state = ''active'' AND pid <> ' || :worker_pid || ' FROM flashwise_ace WHERE worker = 0)');

-- Error messages can name files: not for everybody.
CREATE ROLE regress_ace_nobody;
CREATE ROLE regress_ace_monitor IN ROLE pg_monitor;
SET ROLE regress_ace_nobody;
SELECT count(*) FROM flashwise_ace;
SELECT flashwise_ace_reset();
SET ROLE regress_ace_monitor;
SELECT count(*) FROM flashwise_ace;
SELECT flashwise_ace_reset();
RESET ROLE;
DROP ROLE regress_ace_nobody, regress_ace_monitor;

DROP TABLE t;
DROP FUNCTION wait_until(text);
DROP EXTENSION flashwise_ace;
