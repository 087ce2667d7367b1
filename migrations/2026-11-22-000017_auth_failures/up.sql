-- A sliding log of failed sign-ins: one row for each key of each failure. Nothing in it has to outlive a crash, so it
-- costs no write-ahead log.
CREATE UNLOGGED TABLE auth_failures (
    key text NOT NULL,
    at timestamptz NOT NULL
);
CREATE INDEX auth_failures_by_key ON auth_failures (key, at);
CREATE INDEX auth_failures_by_time ON auth_failures (at);
