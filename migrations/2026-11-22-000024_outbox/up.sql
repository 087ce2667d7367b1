-- Requests that are sent once the step that wants them is done. A row comes with its step's row in one commit. One that was
-- taken stays for a while: a commit that is sent again must find it. `request` names secrets and holds none.
CREATE TABLE outbox (
    id uuid PRIMARY KEY,
    run_id uuid NOT NULL,
    request text NOT NULL,
    created_at timestamptz NOT NULL,
    -- Nobody else takes it before that; null: it is over.
    next_attempt_at timestamptz,
    attempts int NOT NULL,
    -- The instance that is sending it.
    claimed_by uuid,
    finished_at timestamptz,
    -- Why it was not taken, of the last attempt.
    error text
);
CREATE INDEX outbox_by_turn ON outbox (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX outbox_by_end ON outbox (finished_at) WHERE finished_at IS NOT NULL;
