-- complain if the script is sourced in psql rather than by CREATE EXTENSION
\echo Use "CREATE EXTENSION flashwise_ace" to load this file. \quit

CREATE FUNCTION flashwise_ace_workers(
    OUT worker integer,
    OUT pid integer,
    OUT state text,
    OUT written bigint,
    OUT skipped_clean bigint,
    OUT skipped_hot bigint,
    OUT skipped_pinned bigint,
    OUT skipped_locked bigint,
    OUT skipped_failed bigint,
    OUT late bigint,
    OUT write_time double precision,
    OUT busy_share double precision,
    OUT errors bigint,
    OUT last_error text,
    OUT last_error_at timestamp with time zone,
    OUT stats_reset timestamp with time zone)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE FUNCTION flashwise_ace_reset()
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE VIEW flashwise_ace AS
    SELECT * FROM flashwise_ace_workers();

COMMENT ON VIEW flashwise_ace IS 'what each write-back worker did since stats_reset';
COMMENT ON FUNCTION flashwise_ace_reset() IS 'sets the counters of all write-back workers to 0';

-- An error message can name a file.
REVOKE ALL ON FUNCTION flashwise_ace_workers() FROM PUBLIC;
REVOKE ALL ON FUNCTION flashwise_ace_reset() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION flashwise_ace_workers() TO pg_read_all_stats;
GRANT SELECT ON flashwise_ace TO pg_read_all_stats;
