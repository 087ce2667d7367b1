-- Runs that pages of apps have started, each written with its run.
CREATE TABLE app_runs (
    run_id uuid PRIMARY KEY,
    app_id uuid NOT NULL,
    -- The release that froze the binding.
    release_id uuid NOT NULL,
    binding text NOT NULL,
    -- SHA-256 of the handle, which no table has.
    handle bytea NOT NULL,
    -- SHA-256 of the cookie of the visitor who has started it.
    visitor bytea,
    -- The member who has started it.
    user_id uuid,
    -- What limits count a visitor without a session under.
    network text
);
CREATE UNIQUE INDEX app_runs_handle_key ON app_runs (handle);
CREATE INDEX app_runs_by_app ON app_runs (app_id, run_id);
CREATE INDEX app_runs_by_network ON app_runs (app_id, network, run_id) WHERE network IS NOT NULL;

-- Runs of apps that have not ended, for the limits.
CREATE INDEX runs_of_apps_unfinished ON runs (id) WHERE trigger = 'app' AND finished_at IS NULL;

-- How far visitors have used their limits: of an app's client, of a client and a binding, or of all anonymous visitors (client '').
-- A crash of the database forgives.
CREATE UNLOGGED TABLE app_limits (
    app_id uuid NOT NULL,
    client text NOT NULL,
    -- Until when starts of the past fill the rate.
    used_until timestamptz NOT NULL,
    day date NOT NULL,
    -- Starts of that day.
    day_count int NOT NULL,
    -- Runs that were admitted in the last seconds.
    recent uuid[] NOT NULL,
    PRIMARY KEY (app_id, client)
);
