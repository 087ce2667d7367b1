-- The unfinished runs of apps, by the workflow: those of other workspaces are not read to count them.
CREATE INDEX runs_of_apps_unfinished_by_workflow ON runs (workflow_id, id) WHERE trigger = 'app' AND finished_at IS NULL;

-- Admits the start of an app's run: reserves its key, and counts it for the limits of who starts it, in one call, because each
-- statement of its own would cost the start a round trip while rows are locked. Each statement sees what was committed before it:
-- a row is locked first, and what it limits is counted afterwards.
--
-- `verdict` is
--   new      all limits admit it, and it is counted;
--   known    its key is reserved already in the first scope;
--   unfit    its input does not fit, and it is counted for its rates alone;
--   limited  a limit is reached until `free_at`.
-- After `known` and `limited` nothing is changed.
CREATE FUNCTION admit_app_run(
    _run uuid,
    _app uuid,
    _binding text,
    _workflow uuid,
    _scopes text[],
    _key text,
    _digest bytea,
    _outcome jsonb,
    -- Rates, each a client and its starts of a minute.
    _clients text[],
    _rates int[],
    _fits boolean,
    -- Unfinished runs of the binding.
    _unfinished bigint,
    -- Who is counted for what follows; null: a member, whom it does not limit. A limit that is null does not exist.
    _network text,
    _unfinished_of_network bigint,
    _day_of_network bigint,
    _day_of_app bigint,
    _at timestamptz,
    -- Keys before it are forgotten.
    _keys_from timestamptz,
    -- The first id of a run that counts as unfinished for its network, and of one that may be admitted and not stored yet.
    _runs_from uuid,
    _recent_from uuid,
    OUT verdict text,
    OUT free_at timestamptz,
    -- Whether runs of the workflow wait for their turn.
    OUT is_limited boolean
)
LANGUAGE plpgsql
-- A connection plans each statement once, perhaps while the tables are small, and keeps the plan while they grow. So none is scanned,
-- and the queries below have subqueries by a key instead of joins.
SET enable_seqscan = off
AS $$
DECLARE
    today date := (_at AT TIME ZONE 'UTC')::date;
    tomorrow timestamptz := (today + 1)::timestamp AT TIME ZONE 'UTC';
    is_new boolean;
    step interval;
BEGIN
    -- The commit does not wait for the disk: the run's start is a later commit, which does, and takes this one with it.
    PERFORM set_config('synchronous_commit', 'off', true);
    is_limited := EXISTS (SELECT FROM workflows WHERE id = _workflow AND max_concurrent_runs IS NOT NULL);
    BEGIN
        WITH reserved AS (
            INSERT INTO idempotency_keys AS k (scope, key, request_digest, outcome, created_at)
            SELECT s.scope, _key, _digest, _outcome, _at FROM unnest(_scopes) AS s (scope)
            ON CONFLICT (scope, key) DO UPDATE SET request_digest = excluded.request_digest, outcome = excluded.outcome,
                created_at = excluded.created_at WHERE k.created_at < _keys_from
            RETURNING scope
        )
        SELECT EXISTS (SELECT FROM reserved WHERE scope = _scopes[1]) INTO is_new;
        IF NOT is_new THEN
            verdict := 'known';
            RAISE SQLSTATE 'CB001';
        END IF;

        verdict := 'limited';
        FOR i IN 1 .. cardinality(_clients) LOOP
            step := interval '1 minute' / _rates[i];
            -- Later than any start can leave it: the clock was set back.
            INSERT INTO app_limits AS l (app_id, client, used_until, day, day_count, recent)
            VALUES (_app, _clients[i], _at + step, today, 0, '{}')
            ON CONFLICT (app_id, client) DO UPDATE SET used_until = step
                + greatest(CASE WHEN l.used_until > _at + interval '1 minute' + step THEN _at ELSE l.used_until END, _at)
                WHERE l.used_until <= _at + interval '1 minute' - step OR l.used_until > _at + interval '1 minute' + step;
            IF NOT FOUND THEN
                SELECT used_until - interval '1 minute' + step INTO free_at FROM app_limits
                WHERE app_id = _app AND client = _clients[i];
                RAISE SQLSTATE 'CB001';
            END IF;
        END LOOP;

        IF NOT _fits THEN
            DELETE FROM idempotency_keys WHERE scope = ANY (_scopes) AND key = _key;
            verdict := 'unfit';
            RETURN;
        END IF;

        -- No more are counted than there may be.
        IF _unfinished <= (SELECT count(*) FROM (
            SELECT FROM runs r WHERE r.workflow_id = _workflow AND r.trigger = 'app' AND r.finished_at IS NULL
                AND (SELECT a.app_id = _app AND a.binding = _binding FROM app_runs a WHERE a.run_id = r.id)
            LIMIT _unfinished) AS q) THEN
            free_at := _at + interval '1 second';
            RAISE SQLSTATE 'CB001';
        END IF;

        IF _network IS NOT NULL AND (_unfinished_of_network IS NOT NULL OR _day_of_network IS NOT NULL) THEN
            IF NOT _network = ANY (_clients) THEN
                INSERT INTO app_limits AS l (app_id, client, used_until, day, day_count, recent)
                VALUES (_app, _network, _at, today, 0, '{}')
                ON CONFLICT (app_id, client) DO UPDATE SET day = l.day;
            END IF;
            UPDATE app_limits l SET day = today, day_count = CASE WHEN l.day = today THEN l.day_count ELSE 0 END + 1,
                recent = ARRAY(SELECT u.id FROM unnest(l.recent) AS u (id) WHERE u.id > _recent_from) || _run
            WHERE l.app_id = _app AND l.client = _network
                AND (_day_of_network IS NULL OR l.day <> today OR l.day_count < _day_of_network)
                AND (_unfinished_of_network IS NULL OR _unfinished_of_network > (SELECT count(*) FROM (
                    SELECT FROM app_runs a WHERE a.app_id = _app AND a.network = _network AND a.run_id > _runs_from
                        AND (SELECT r.finished_at IS NULL FROM runs r WHERE r.id = a.run_id)
                    UNION ALL SELECT FROM unnest(l.recent) AS u (id) WHERE u.id > _recent_from
                        AND (SELECT a.run_id FROM app_runs a WHERE a.run_id = u.id) IS NULL) AS unfinished));
            IF NOT FOUND THEN
                free_at := CASE WHEN EXISTS (SELECT FROM app_limits WHERE app_id = _app AND client = _network AND day = today
                    AND day_count >= _day_of_network) THEN tomorrow ELSE _at + interval '1 second' END;
                RAISE SQLSTATE 'CB001';
            END IF;
        END IF;

        -- The row of all anonymous visitors comes last: it is locked for the shortest time.
        IF _network IS NOT NULL AND _day_of_app IS NOT NULL THEN
            INSERT INTO app_limits AS l (app_id, client, used_until, day, day_count, recent)
            VALUES (_app, '', _at, today, 1, '{}')
            ON CONFLICT (app_id, client) DO UPDATE
                SET day = today, day_count = CASE WHEN l.day = today THEN l.day_count ELSE 0 END + 1
                WHERE l.day <> today OR l.day_count < _day_of_app;
            IF NOT FOUND THEN
                free_at := tomorrow;
                RAISE SQLSTATE 'CB001';
            END IF;
        END IF;
        verdict := 'new';
    EXCEPTION WHEN SQLSTATE 'CB001' THEN
        -- What the block has changed is taken back; `verdict` and `free_at` stay.
        NULL;
    END;
END $$;
