-- What begins runs of a workflow by itself at set times. Whoever claims a row begins its run and then moves it on; who dies
-- in between leaves it claimed, and the next finds by the key of the fire whether its run was begun.
CREATE TABLE cron_triggers (
    workflow_id uuid PRIMARY KEY REFERENCES workflows (id),
    expression text NOT NULL,
    timezone text NOT NULL,
    overlap boolean NOT NULL,
    missed text NOT NULL CHECK (missed IN ('skip', 'once')),
    enabled boolean NOT NULL,
    -- Null: it does not fire.
    next_fire_at timestamptz,
    -- When the fire was first claimed, by whomever; it is judged by this whoever goes on with it.
    claimed_at timestamptz,
    -- Nobody else takes it before that.
    claimed_until timestamptz,
    -- The time of the last run that was begun, and the run.
    last_scheduled_for timestamptz,
    last_run_id uuid,
    -- JSON: what became of the last fire that began no run.
    last_skipped json,
    last_error json,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE INDEX cron_triggers_by_fire ON cron_triggers (next_fire_at) WHERE next_fire_at IS NOT NULL;

-- Addresses that begin a run when they are called. `secrets` is sealed.
CREATE TABLE webhook_triggers (
    workflow_id uuid PRIMARY KEY REFERENCES workflows (id),
    -- JSON: everything but the secrets.
    config json NOT NULL,
    secrets bytea NOT NULL,
    -- How far its calls have used up its rate.
    used_until timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

-- Signed calls that were taken, for as long as they could be sent again.
CREATE TABLE webhook_replays (
    workflow_id uuid NOT NULL,
    digest bytea NOT NULL,
    -- Under which idempotency key the call begins its run: it may come again under no other.
    key text NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (workflow_id, digest)
);
CREATE INDEX webhook_replays_by_end ON webhook_replays (expires_at);
