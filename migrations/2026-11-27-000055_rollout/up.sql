-- How versions of a workflow become live. Without a row, each numbered version does when it is saved. `workflows.live_version` is 0
-- for a workflow whose versions have not passed the gate yet.
CREATE TABLE rollouts (
    workflow_id uuid PRIMARY KEY,
    workspace_id uuid NOT NULL,
    -- JSON; null: versions become live without an evaluation.
    gate text,
    -- The version that a part of the new threads uses; null: none.
    canary_version int,
    canary_percent int,
    -- Turns after which the canary becomes live; null: never by itself.
    promote_after_turns int,
    canary_since timestamptz,
    -- JSON: how the last canary ended.
    last_canary text,
    updated_at timestamptz NOT NULL,
    CHECK ((canary_version IS NULL) = (canary_percent IS NULL) AND (canary_version IS NULL) = (canary_since IS NULL))
);
CREATE INDEX rollouts_with_canary ON rollouts (workflow_id) WHERE canary_version IS NOT NULL;

-- What a gate has decided about a version. Deleted with nothing: it belongs to the version.
CREATE TABLE version_gates (
    workflow_id uuid NOT NULL,
    version int NOT NULL,
    workspace_id uuid NOT NULL,
    status text NOT NULL,
    threshold double precision NOT NULL,
    max_drop double precision NOT NULL,
    -- The evaluation of this version; null: there could be none.
    run_id uuid,
    score double precision,
    -- The live version that it was compared with.
    live_version int,
    live_score double precision,
    error text,
    created_at timestamptz NOT NULL,
    finished_at timestamptz,
    PRIMARY KEY (workflow_id, version)
);
CREATE INDEX version_gates_running ON version_gates (workflow_id, version) WHERE status = 'running';

-- Evaluations for gates: of new versions, and of live versions to compare them with. One whose run is not stored yet is started by
-- any instance.
CREATE TABLE gate_evaluations (
    run_id uuid PRIMARY KEY,
    workflow_id uuid NOT NULL,
    version int NOT NULL,
    workspace_id uuid NOT NULL,
    -- SHA-256 of what decides the score beside the version: dataset version, evaluators, number of cases.
    key bytea NOT NULL,
    -- JSON: the object `evaluation`.
    request text NOT NULL,
    -- SHA-256 of the digests of the cases in their order.
    fingerprint bytea,
    score double precision,
    error text,
    created_at timestamptz NOT NULL,
    finished_at timestamptz
);
CREATE INDEX gate_evaluations_by_key ON gate_evaluations (workflow_id, version, key, run_id);
CREATE INDEX gate_evaluations_unfinished ON gate_evaluations (run_id) WHERE finished_at IS NULL;

-- The canary that a thread uses for as long as that version is the workflow's canary.
ALTER TABLE threads ADD COLUMN canary_version int;
