-- The tables and functions of a store, made once in a schema of their own. `schema.py` puts the schema's name
-- in the place of {schema}. Names of parameters begin with in_, so that they are not taken for columns.

-- One row. `catalog` changes whenever a record of space 0 or the set of cleared spaces changes, and with the format.
-- `needs` has the names of the features that the store needs (see `needs` and `told`).
CREATE TABLE {schema}.store (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    program text NOT NULL,
    format integer NOT NULL,
    catalog bigint NOT NULL,
    needs bytea NOT NULL DEFAULT ''
);

-- The engines that opened the store. `last_group` says which of its commits an engine made last, so that the
-- outcome of one whose connection was cut can be looked up; `epoch` keeps a commit that is still on its way
-- from coming after that. All three are random numbers, which do not repeat when an older copy of the database is put
-- back.
CREATE TABLE {schema}.server (
    id bigint PRIMARY KEY,
    epoch bigint NOT NULL,
    last_group bigint NOT NULL DEFAULT 0,
    seen timestamptz NOT NULL DEFAULT now()
);

-- The records. `version` names the commit that wrote the record: a random number.
CREATE TABLE {schema}.records (
    space bigint NOT NULL,
    partition bytea NOT NULL,
    sort bytea NOT NULL,
    version bigint NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (space, partition, sort)
) WITH (fillfactor = 85);  -- room for new versions on their own page, where no index has to be changed

-- The totals of a space: the sum over all slots. Engines count into different ones of 16 slots, so that few of them
-- wait for each other.
CREATE TABLE {schema}.total (
    space bigint NOT NULL,
    slot integer NOT NULL,
    records bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (space, slot)
);

-- The spaces with logs. Every commit that has a number up to `last` had ended when the row was written. Rows are
-- written under the store's exclusive lock only.
CREATE TABLE {schema}.log (space bigint PRIMARY KEY, last bigint NOT NULL);

-- The numbers that all commits share are sequences, because a row would stay locked until the end of the transaction.
-- Only `draw`, and commits that hold the store's exclusive lock, change them. Stamps are unsigned: 2^63 is subtracted.
CREATE SEQUENCE {schema}.log_number MINVALUE 0;  -- the last sequence number of a log's record, over all spaces
CREATE SEQUENCE {schema}.log_stamp MINVALUE -9223372036854775808;  -- none of the commits under way has a greater one
CREATE SEQUENCE {schema}.body_stamp MINVALUE -9223372036854775808;  -- the last stamp of a body

-- Deleted spaces whose records are still to be deleted. Readers mask them.
CREATE TABLE {schema}.cleared (space bigint PRIMARY KEY);

SELECT setval('{schema}.log_number', 0), setval('{schema}.log_stamp', -9223372036854775808),
    setval('{schema}.body_stamp', -9223372036854775808);
INSERT INTO {schema}.store (program, format, catalog) VALUES ('hashrange', {format}, 0);

-- Functions.

-- 8 bytes, big-endian, of a stamp from which 2^63 was subtracted.
CREATE FUNCTION {schema}.stamp_bytes(in_stamp bigint) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT int8send(in_stamp # '-9223372036854775808'::bigint)
$$;

-- What each reader is told first: the version of the catalog; and the format, the needed features and, behind eight
-- bytes 0xff, the cleared spaces, 8 bytes each. Programs of format 7 take all of it for spaces, so it is padded: eight
-- bytes of text are the number of no space. In SQL, so that PostgreSQL makes it a part of the statement that calls it.
CREATE FUNCTION {schema}.told() RETURNS TABLE (catalog bigint, value bytea) LANGUAGE sql STABLE AS $$
    SELECT s.catalog, '{padded_format}'::bytea || s.needs || '\xffffffffffffffff'::bytea
        || coalesce((SELECT string_agg(int8send(c.space), '') FROM {schema}.cleared c), '')
    FROM {schema}.store s
$$;

-- The names of the features that the store needs, for the table `store`.
CREATE FUNCTION {schema}.needs() RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT coalesce(string_agg(repeat(' ', 8 - length(r.sort) % 8)::bytea || r.sort, '' ORDER BY r.sort), '')
    FROM {schema}.records r WHERE r.space = 0 AND r.partition = 'needs'
$$;

-- The lock of the store, held to the end of the transaction. Commits share it, unless they read what no lock on
-- a record can protect: that a record is absent, a range, the catalog that they change. A server that waits for the
-- exclusive lock keeps all later commits waiting, so it waits in_exclusive_ms at most, and then fails with HR006.
CREATE FUNCTION {schema}.take_lock(in_exclusive_ms bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    before text;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'Hashrange commits in READ COMMITTED transactions only' USING ERRCODE = 'HR003';
    END IF;
    IF in_exclusive_ms > 0 THEN
        before := current_setting('lock_timeout');
        PERFORM set_config('lock_timeout', in_exclusive_ms::text, true);
        BEGIN
            PERFORM pg_advisory_xact_lock({lock});
        EXCEPTION WHEN lock_not_available THEN
            RAISE EXCEPTION 'other commits hold the lock of the store' USING ERRCODE = 'HR006';
        END;
        PERFORM set_config('lock_timeout', before, true);
    ELSE
        PERFORM pg_advisory_xact_lock_shared({lock});
    END IF;
END
$$;

-- The records at some addresses, all from one moment, without those that are what the engine knows: `in_seen` is
-- the version that it knows, 0 where it knows that there is no record, -1 where it knows nothing. A record that
-- is no longer there has no version. Row 0 is that of `told`.
CREATE FUNCTION {schema}.fetch(in_space bigint[], in_partition bytea[], in_sort bytea[], in_seen bigint[])
RETURNS TABLE (n bigint, version bigint, value bytea) LANGUAGE plpgsql STABLE
SET search_path = {schema} SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    -- A standby's records are out of date: a former primary, behind an address that stayed, is not read.
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION 'this is a standby' USING ERRCODE = '25006';
    END IF;
    RETURN QUERY
    SELECT 0::bigint, t.catalog, t.value FROM told() t
    UNION ALL
    SELECT k.n, r.version, r.value
    FROM unnest(in_space, in_partition, in_sort, in_seen) WITH ORDINALITY AS k(space, partition, sort, seen, n)
    LEFT JOIN records r ON r.space = k.space AND r.partition = k.partition AND r.sort = k.sort
    WHERE coalesce(r.version, 0) <> k.seen AND (r.version IS NOT NULL OR k.seen > 0);
END
$$;

-- Lock records in the order of their addresses, before a group writes. Row 0 is that of `told`; then comes a row for
-- each record that is there, without its value if the engine knows it (see `fetch`), or needs none (-1).
--
-- If the engine says nothing for in_idle_ms, PostgreSQL ends its connection, and so releases its locks.
CREATE FUNCTION {schema}.lock_records(
    in_idle_ms bigint, in_space bigint[], in_partition bytea[], in_sort bytea[], in_seen bigint[]
) RETURNS TABLE (n bigint, version bigint, value bytea) LANGUAGE plpgsql
SET search_path = {schema} SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    PERFORM take_lock(0), set_config('idle_in_transaction_session_timeout', in_idle_ms::text, true);
    RETURN QUERY
    SELECT 0::bigint, t.catalog, t.value FROM told() t;
    RETURN QUERY
    SELECT k.n, r.version, CASE WHEN k.seen NOT IN (-1, r.version) THEN r.value END
    FROM unnest(in_space, in_partition, in_sort, in_seen) WITH ORDINALITY AS k(space, partition, sort, seen, n)
    JOIN records r ON r.space = k.space AND r.partition = k.partition AND r.sort = k.sort
    ORDER BY r.space, r.partition, r.sort
    FOR UPDATE OF r;
END
$$;

-- How far logs can be read. A commit whose number is lower than those that are visible may still be under way, but it
-- had its lock before its number, and releases it when its records are visible. So a server that asks here, and only then
-- takes the snapshot with which it reads a log, sees all records up to the lowest mark that concerns the space: the
-- first mark, the last number of all, concerns every space (-1); the others are the last numbers that there were when
-- the commits under way took their locks. A lock has the lower half of that number.
CREATE FUNCTION {schema}.marks(OUT mark_space bigint[], OUT mark bigint[]) LANGUAGE plpgsql AS $$
DECLARE
    last bigint := pg_sequence_last_value('{schema}.log_number');
BEGIN
    SELECT -1::bigint || array_agg(l.classid::bigint # {salt}),
        last || array_agg(last + (l.objid::bigint - last)::bit(32)::integer)
    INTO mark_space, mark
    FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.mode = 'ShareLock' AND l.granted
        AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database());
END
$$;

-- The records of a space from low to below high, at most in_rows of them, and about in_bytes. The first row
-- is as row 0 of `fetch`; a last row with no partition says that the range ended. A log is read as far as the marks
-- say (see `marks`), to its end if they are NULL, and not at all without any: then there is only the first row.
CREATE FUNCTION {schema}.scan(
    in_space bigint, in_low_partition bytea, in_low_sort bytea, in_high_partition bytea, in_high_sort bytea,
    in_reverse boolean, in_rows bigint, in_bytes bigint, in_mark_space bigint[], in_mark bigint[]
) RETURNS TABLE (partition bytea, sort bytea, version bigint, value bytea) LANGUAGE plpgsql STABLE
SET search_path = {schema} SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    one record;
    left_rows bigint := in_rows;
    left_bytes bigint := in_bytes;
    last bytea;
    unmarked boolean := false;
BEGIN
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION 'this is a standby' USING ERRCODE = '25006';
    END IF;
    IF in_mark IS NOT NULL THEN
        SELECT int8send(greatest(l.last, (
            SELECT min(m.mark) FROM unnest(in_mark_space, in_mark) AS m(space, mark) WHERE m.space IN (-1, in_space)
        ))) INTO last FROM log l WHERE l.space = in_space;
        unmarked := FOUND AND cardinality(in_mark) = 0;
    END IF;
    partition := NULL; sort := NULL;
    SELECT t.catalog, t.value INTO version, value FROM told() t;
    RETURN NEXT;
    IF unmarked THEN
        RETURN;
    END IF;
    IF in_reverse THEN
        FOR one IN SELECT r.partition, r.sort, r.version, r.value FROM records r
            WHERE r.space = in_space AND (r.partition, r.sort) >= (in_low_partition, in_low_sort)
                AND (r.partition, r.sort) < (in_high_partition, in_high_sort) AND (last IS NULL OR r.sort <= last)
            ORDER BY r.partition DESC, r.sort DESC
        LOOP
            partition := one.partition; sort := one.sort; version := one.version; value := one.value;
            RETURN NEXT;
            left_rows := left_rows - 1; left_bytes := left_bytes - length(one.value);
            IF left_rows <= 0 OR left_bytes <= 0 THEN RETURN; END IF;
        END LOOP;
    ELSIF in_high_partition IS NULL THEN
        FOR one IN SELECT r.partition, r.sort, r.version, r.value FROM records r
            WHERE r.space = in_space AND (r.partition, r.sort) >= (in_low_partition, in_low_sort)
                AND (last IS NULL OR r.sort <= last)
            ORDER BY r.partition, r.sort
        LOOP
            partition := one.partition; sort := one.sort; version := one.version; value := one.value;
            RETURN NEXT;
            left_rows := left_rows - 1; left_bytes := left_bytes - length(one.value);
            IF left_rows <= 0 OR left_bytes <= 0 THEN RETURN; END IF;
        END LOOP;
    ELSE
        FOR one IN SELECT r.partition, r.sort, r.version, r.value FROM records r
            WHERE r.space = in_space AND (r.partition, r.sort) >= (in_low_partition, in_low_sort)
                AND (r.partition, r.sort) < (in_high_partition, in_high_sort) AND (last IS NULL OR r.sort <= last)
            ORDER BY r.partition, r.sort
        LOOP
            partition := one.partition; sort := one.sort; version := one.version; value := one.value;
            RETURN NEXT;
            left_rows := left_rows - 1; left_bytes := left_bytes - length(one.value);
            IF left_rows <= 0 OR left_bytes <= 0 THEN RETURN; END IF;
        END LOOP;
    END IF;
    partition := NULL; sort := NULL; version := NULL; value := NULL;
    RETURN NEXT;
END
$$;

-- Records and ranges, all from one moment: rows as those of `fetch`, and those of `scan` with negative numbers. In
-- SQL, so that PostgreSQL makes it a part of the statement that calls it.
CREATE FUNCTION {schema}.fetch_ranges(
    in_space bigint[], in_partition bytea[], in_sort bytea[], in_seen bigint[],
    in_range_space bigint[], in_low_partition bytea[], in_low_sort bytea[],
    in_high_partition bytea[], in_high_sort bytea[], in_reverse bigint[], in_rows bigint[], in_bytes bigint,
    in_mark_space bigint[], in_mark bigint[]
) RETURNS TABLE (n bigint, version bigint, value bytea, partition bytea, sort bytea) LANGUAGE sql STABLE AS $$
    SELECT f.n, f.version, f.value, NULL::bytea, NULL::bytea
    FROM {schema}.fetch(in_space, in_partition, in_sort, in_seen) f
    UNION ALL
    SELECT -k.n, s.version, s.value, s.partition, s.sort
    FROM unnest(in_range_space, in_low_partition, in_low_sort, in_high_partition, in_high_sort, in_reverse, in_rows)
        WITH ORDINALITY AS k(space, low_partition, low_sort, high_partition, high_sort, reverse, rows, n)
    CROSS JOIN LATERAL {schema}.scan(
        k.space, k.low_partition, k.low_sort, k.high_partition, k.high_sort, k.reverse <> 0, k.rows, in_bytes,
        in_mark_space, in_mark
    ) s
$$;

-- As `fetch_ranges`, with marks. VOLATILE, so that each statement has a snapshot of its own, the second one after the
-- marks.
CREATE FUNCTION {schema}.fetch_logs(
    in_space bigint[], in_partition bytea[], in_sort bytea[], in_seen bigint[],
    in_range_space bigint[], in_low_partition bytea[], in_low_sort bytea[],
    in_high_partition bytea[], in_high_sort bytea[], in_reverse bigint[], in_rows bigint[], in_bytes bigint
) RETURNS TABLE (n bigint, version bigint, value bytea, partition bytea, sort bytea) LANGUAGE plpgsql AS $$
DECLARE
    marks record;
BEGIN
    SELECT * INTO marks FROM {schema}.marks();
    RETURN QUERY SELECT * FROM {schema}.fetch_ranges(
        in_space, in_partition, in_sort, in_seen, in_range_space, in_low_partition, in_low_sort,
        in_high_partition, in_high_sort, in_reverse, in_rows, in_bytes, marks.mark_space, marks.mark
    );
END
$$;

-- Take in_numbers numbers for records of logs, the first of them above `number`, and in_bodies stamps for bodies, the
-- first of which is `stamp`: in_moment, or one more than the last stamp. `log_stamp` is the greatest stamp of the
-- other commits with stamps of logs that are under way, in_log_stamp that of this one.
--
-- One commit draws at a time. It does not keep its lock: the error ends the block, and so releases what was locked in
-- it; sequences are not set back. Whatever else ends the block releases the lock as well.
CREATE FUNCTION {schema}.draw(
    in_numbers bigint, in_log_stamp bigint, in_bodies bigint, in_moment bigint,
    OUT number bigint, OUT log_stamp bigint, OUT stamp bigint
) LANGUAGE plpgsql AS $$
DECLARE
    new bigint;
BEGIN
    PERFORM pg_advisory_xact_lock({drawing});
    IF in_numbers > 0 THEN
        number := pg_sequence_last_value('{schema}.log_number');
        new := setval('{schema}.log_number', number + in_numbers);
    END IF;
    IF in_log_stamp IS NOT NULL THEN
        -- All others share the lock. Where there are none, all their records are visible to the next statement.
        IF NOT pg_try_advisory_xact_lock({stamping}) THEN
            log_stamp := pg_sequence_last_value('{schema}.log_stamp');
        END IF;
        new := setval('{schema}.log_stamp', greatest(log_stamp, in_log_stamp));
    END IF;
    IF in_bodies > 0 THEN
        stamp := greatest(pg_sequence_last_value('{schema}.body_stamp') + 1, in_moment);
        new := setval('{schema}.body_stamp', stamp + in_bodies - 1);
    END IF;
    RAISE EXCEPTION 'drawn' USING ERRCODE = 'HR007';
EXCEPTION WHEN SQLSTATE 'HR007' THEN
    NULL;
END
$$;

-- Commit a group of bodies: all of it, or nothing. It takes the store's lock exclusively if in_exclusive_ms is above
-- 0 (see take_lock).
--
-- Addresses come in their order. `in_seen` is the version that was read, 0: read as absent, -1: not read.
-- `in_op` is 0: only read, 1: put, 2: delete, 3: has to be absent. So that nobody else makes a record that has to be
-- absent, it is made itself, and deleted at the end: nobody ever sees it, and the index makes others wait.
-- `in_locks` says that all records have to be locked before any is changed: because some are only read, or because
-- some that were not read are deleted under the store's exclusive lock, and may not be there. `outcome` is
--   'committed'
--   'changed'     nothing was written: the catalog is not the one that was read
-- Exceptions undo what was written: HR004 where a record is not what was read, HR005 where the group has to come
-- again with the exclusive lock, HR008 where the engine knows another format. Formats up to 7 give none.
--
-- Groups never wait for each other in a circle. First each makes records, in the order of their addresses. Who
-- waits there waits for another engine that makes the same record, or has locked it, and itself holds only what it
-- has made, which nobody waits for who has come further. Then each locks what is there, in the same order.
CREATE FUNCTION {schema}.commit_group(
    in_server bigint, in_epoch bigint, in_version bigint,
    in_exclusive_ms bigint, in_locks boolean, in_catalog bigint, in_changes_catalog boolean,
    in_space bigint[], in_partition bytea[], in_sort bytea[], in_seen bigint[], in_op bigint[], in_value bytea[],
    in_present bigint, in_new bigint, in_absent bigint, in_updates bigint, in_puts bigint, in_deletes bigint,
    in_blind_deletes bigint,
    in_count_space bigint[], in_count_records bigint[], in_count_bytes bigint[],
    in_log_space bigint[], in_log_partition bytea[], in_log_stamp_at bigint[], in_log_stamp bigint,
    in_appended_log bigint[], in_appended_value bytea[],
    in_moment bigint, in_bodies bigint,
    in_kept_body bigint[], in_kept_space bigint[], in_kept_partition bytea[], in_kept_sort bytea[],
    in_kept_value bytea[],
    in_last_space bigint[], in_last bigint, in_body_stamp bigint,
    in_cleared bigint[],
    in_format bigint DEFAULT 0,
    OUT outcome text, OUT catalog bigint
) LANGUAGE plpgsql
SET search_path = {schema} SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    present bigint;
    appeared bigint;
    blind_deletes bigint;
    made bigint := 0;
    changed bigint := 0;
    changes bigint;
    drawn record;
BEGIN
    PERFORM take_lock(in_exclusive_ms);
    IF in_format <> {format} THEN
        RAISE EXCEPTION 'a newer version of Hashrange has upgraded the store to format {format}: restart this server '
            'with the newer version' USING ERRCODE = 'HR008';
    END IF;
    outcome := 'changed';
    SELECT s.catalog INTO catalog FROM store s;
    IF catalog <> in_catalog THEN
        RETURN;
    END IF;
    UPDATE server s SET last_group = in_version, seen = now() WHERE s.id = in_server AND s.epoch = in_epoch;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the engine is fenced' USING ERRCODE = 'HR002';
    END IF;

    -- So that readers know which spaces have logs, a space gets its first log while nobody else commits.
    IF in_exclusive_ms = 0 AND EXISTS (
        SELECT FROM unnest(in_log_space) AS a(space) WHERE NOT EXISTS (SELECT FROM log l WHERE l.space = a.space)
    ) THEN
        RAISE EXCEPTION 'a space has no log yet' USING ERRCODE = 'HR005';
    END IF;

    -- Make the records that are not there. Another engine that just makes the same is waited for.
    IF in_new + in_absent + in_puts > 0 THEN
        INSERT INTO records (space, partition, sort, version, value)
        SELECT k.space, k.partition, k.sort, in_version, coalesce(k.value, '')
        FROM unnest(in_space, in_partition, in_sort, in_seen, in_op, in_value)
            AS k(space, partition, sort, seen, op, value)
        WHERE k.seen <= 0 AND k.op IN (1, 3)
        ORDER BY k.space, k.partition, k.sort
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS made = ROW_COUNT;
    END IF;

    -- Lock what was read or is written, and was there before, in the order of the addresses; then look whether it
    -- is what was read. All these locks are held to the end of the transaction.
    IF in_locks THEN
        SELECT count(*) FILTER (WHERE seen > 0 AND version = seen), count(*) FILTER (WHERE seen = 0),
            count(*) FILTER (WHERE seen = -1 AND op = 2)
        INTO present, appeared, blind_deletes
        FROM (
            SELECT k.seen, k.op, r.version
            FROM unnest(in_space, in_partition, in_sort, in_seen, in_op) AS k(space, partition, sort, seen, op)
            JOIN records r ON r.space = k.space AND r.partition = k.partition AND r.sort = k.sort
            WHERE r.version <> in_version
            ORDER BY r.space, r.partition, r.sort
            FOR UPDATE OF r
        ) locked;
        IF present < in_present OR appeared > 0 THEN
            RAISE EXCEPTION 'a record that was read has changed' USING ERRCODE = 'HR004';
        END IF;
        -- A record that is deleted without having been read, and is not there, cannot be locked.
        IF blind_deletes < in_blind_deletes AND in_exclusive_ms = 0 THEN
            RAISE EXCEPTION 'a record that is not there cannot be locked' USING ERRCODE = 'HR005';
        END IF;
    END IF;

    -- Change and delete the others, in the order of the addresses: those that were read, and those that were not and
    -- are there. Another transaction that writes them is waited for, and then the version compared with the one that
    -- it has left.
    changes := in_new + in_absent + in_puts + in_updates + in_deletes;
    IF made < changes THEN
        MERGE INTO records r
        USING (
            SELECT * FROM unnest(in_space, in_partition, in_sort, in_seen, in_op, in_value)
                AS u(space, partition, sort, seen, op, value)
            WHERE u.op = 2 OR (u.op = 1 AND (u.seen > 0 OR (u.seen = -1 AND made < in_new + in_absent + in_puts)))
        ) k
        ON r.space = k.space AND r.partition = k.partition AND r.sort = k.sort
        WHEN MATCHED AND k.op = 2 AND (k.seen = -1 OR r.version = k.seen) THEN
            DELETE
        WHEN MATCHED AND k.op = 1 AND (r.version = k.seen OR (k.seen = -1 AND r.version <> in_version)) THEN
            UPDATE SET version = in_version, value = k.value;
        GET DIAGNOSTICS changed = ROW_COUNT;
    END IF;
    IF made + changed < changes THEN
        -- A record that was read as absent, and is there, is neither made nor changed.
        IF in_blind_deletes = 0 OR EXISTS (
            SELECT FROM unnest(in_space, in_partition, in_sort, in_seen, in_op) AS k(space, partition, sort, seen, op)
            LEFT JOIN records r ON r.space = k.space AND r.partition = k.partition AND r.sort = k.sort
            WHERE (k.op IN (1, 3) AND r.version IS DISTINCT FROM in_version)
                OR (k.op = 2 AND k.seen > 0 AND r.version IS NOT NULL)
        ) THEN
            RAISE EXCEPTION 'a record that was read has changed' USING ERRCODE = 'HR004';
        END IF;
        -- A record that is deleted without having been read, and is not there, cannot be locked.
        IF in_exclusive_ms = 0 THEN
            RAISE EXCEPTION 'a record that is not there cannot be locked' USING ERRCODE = 'HR005';
        END IF;
    END IF;

    IF in_absent > 0 THEN
        DELETE FROM records r
        USING unnest(in_space, in_partition, in_sort, in_op) AS k(space, partition, sort, op)
        WHERE k.op = 3 AND r.space = k.space AND r.partition = k.partition AND r.sort = k.sort;
    END IF;

    IF cardinality(in_cleared) > 0 THEN
        INSERT INTO cleared SELECT unnest(in_cleared) ON CONFLICT DO NOTHING;
        DELETE FROM total t WHERE t.space = ANY(in_cleared);
    END IF;
    IF cardinality(in_count_space) > 0 THEN
        INSERT INTO total AS t (space, slot, records, bytes)
        SELECT c.space, (in_server % 16)::integer, c.records, c.bytes
        FROM unnest(in_count_space, in_count_records, in_count_bytes) AS c(space, records, bytes)
        ORDER BY c.space
        ON CONFLICT (space, slot) DO UPDATE
        SET records = t.records + excluded.records, bytes = t.bytes + excluded.bytes;
    END IF;

    -- Numbers and stamps are drawn when all rows are locked: so commits that touch the same record have theirs in the
    -- order of the commits. Readers of logs learn from the first locks which numbers may be missing (see `marks`).
    IF cardinality(in_log_space) > 0 OR cardinality(in_kept_body) > 0 THEN
        PERFORM pg_advisory_xact_lock_shared(
            (l.space # {salt})::bit(32)::integer, pg_sequence_last_value('log_number')::bit(32)::integer
        ) FROM unnest(in_log_space) AS l(space) GROUP BY l.space;
        PERFORM pg_advisory_xact_lock_shared({stamping}) WHERE in_log_stamp IS NOT NULL;
        SELECT * INTO drawn FROM draw(cardinality(in_appended_log), in_log_stamp, in_bodies, in_moment);
    END IF;
    IF cardinality(in_log_space) > 0 THEN
        -- A log's stamps never decrease, over commits that are visible by now, and those that are still under way.
        INSERT INTO records (space, partition, sort, version, value)
        SELECT l.space, l.partition, int8send(drawn.number + a.n), in_version,
            CASE WHEN l.stamp > substr(a.value, l.stamp_at::integer + 1, 8)
                THEN overlay(a.value PLACING l.stamp FROM l.stamp_at::integer + 1) ELSE a.value END
        FROM (
            SELECT g.space, g.partition, g.stamp_at, g.n, CASE WHEN g.stamp_at >= 0 THEN greatest(
                stamp_bytes(drawn.log_stamp),
                (SELECT substr(r.value, g.stamp_at::integer + 1, 8) FROM records r
                WHERE r.space = g.space AND r.partition = g.partition AND r.sort <= int8send(drawn.number)
                ORDER BY r.partition DESC, r.sort DESC LIMIT 1)
            ) END AS stamp
            FROM unnest(in_log_space, in_log_partition, in_log_stamp_at) WITH ORDINALITY
                AS g(space, partition, stamp_at, n)
        ) l
        JOIN unnest(in_appended_log, in_appended_value) WITH ORDINALITY AS a(log, value, n) ON a.log = l.n;
    END IF;
    IF cardinality(in_kept_body) > 0 THEN
        INSERT INTO records (space, partition, sort, version, value)
        SELECT k.space, k.partition, k.sort || stamp_bytes(drawn.stamp + k.body), in_version, k.value
        FROM unnest(in_kept_body, in_kept_space, in_kept_partition, in_kept_sort, in_kept_value)
            AS k(body, space, partition, sort, value);
    END IF;

    -- Of a commit that nobody else's goes beside: the numbers that its body has taken by itself; and all up to here
    -- have ended.
    IF in_last IS NOT NULL THEN
        PERFORM setval('log_number', in_last), setval('log_stamp', -9223372036854775808);
    END IF;
    IF in_body_stamp IS NOT NULL THEN
        PERFORM setval('body_stamp', in_body_stamp);
    END IF;
    IF in_exclusive_ms > 0 THEN
        INSERT INTO log AS l (space, last)
        SELECT a.space, pg_sequence_last_value('log_number') FROM unnest(in_log_space || in_last_space) AS a(space)
        GROUP BY a.space
        ON CONFLICT (space) DO UPDATE SET last = excluded.last;
    END IF;

    IF in_changes_catalog THEN
        UPDATE store s SET catalog = in_version, needs = needs();
        catalog := in_version;
    END IF;
    outcome := 'committed';
END
$$;
