-- Datasets of workflows. One without a name has the cases that a request has brought, and the id of its run.
CREATE TABLE datasets (
    id uuid PRIMARY KEY,
    workspace_id uuid NOT NULL,
    workflow_id uuid NOT NULL,
    name text,
    created_at timestamptz NOT NULL,
    deleted_at timestamptz
);
CREATE UNIQUE INDEX datasets_by_name ON datasets (workflow_id, name) WHERE name IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX datasets_unnamed ON datasets (created_at) WHERE name IS NULL;
CREATE INDEX datasets_deleted ON datasets (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE dataset_versions (
    dataset_id uuid NOT NULL,
    number int NOT NULL,
    n_cases int NOT NULL,
    -- SHA-256 of the digests of the cases in their order.
    fingerprint bytea NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (dataset_id, number)
);

-- The cases of versions, in order: those of the version `number` and of the later ones before `until`.
CREATE TABLE dataset_entries (
    dataset_id uuid NOT NULL,
    place int NOT NULL,
    number int NOT NULL,
    -- The first version that has another case at this place, or none.
    until int,
    digest bytea NOT NULL,
    PRIMARY KEY (dataset_id, place, number)
);
CREATE INDEX dataset_entries_by_digest ON dataset_entries (digest);

-- Cases by their content: the same case of many versions is one row.
CREATE TABLE dataset_cases (
    workspace_id uuid NOT NULL,
    -- SHA-256 of the canonical JSON (RFC 8785).
    digest bytea NOT NULL,
    -- JSON {id, inputs, expected_output, metadata}; {id, inputs, erased} once the data of the visitor were erased.
    content text NOT NULL,
    -- The run that it is a copy of, and the thread of that run.
    run_id uuid,
    thread_id uuid,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (workspace_id, digest)
);
CREATE INDEX dataset_cases_by_run ON dataset_cases (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX dataset_cases_by_thread ON dataset_cases (thread_id) WHERE thread_id IS NOT NULL;
CREATE INDEX dataset_cases_by_age ON dataset_cases (created_at, digest);

-- What a training or an evaluation has beside its row in runs.
CREATE TABLE training_runs (
    run_id uuid PRIMARY KEY,
    workflow_id uuid NOT NULL,
    dataset_id uuid NOT NULL,
    dataset_version int NOT NULL,
    fingerprint bytea NOT NULL,
    -- SHA-256 of the evaluators: scores of runs with equal ones can be compared.
    judges bytea NOT NULL,
    n_cases int NOT NULL,
    -- SHA-256 of the request.
    digest bytea NOT NULL,
    -- JSON: the object `training` or `evaluation`, without cases.
    request text NOT NULL,
    -- JSON: what was decided before the first call.
    start text NOT NULL,
    origin_run_id uuid,
    pause_requested_at timestamptz,
    -- JSON: how far it has got.
    state text
);
CREATE INDEX training_runs_to_pause ON training_runs (run_id) WHERE pause_requested_at IS NOT NULL;
CREATE INDEX training_runs_by_dataset ON training_runs (dataset_id);
CREATE INDEX training_runs_by_workflow ON training_runs (workflow_id, run_id);

-- Calls of models. Those of a run are found again by their keys.
CREATE TABLE training_calls (
    run_id uuid NOT NULL,
    id uuid NOT NULL,
    key bytea NOT NULL,
    role text NOT NULL,
    model text NOT NULL,
    -- JSON; null: the call was not answered.
    reply text,
    calls bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    nanodollars bigint NOT NULL,
    estimated boolean NOT NULL,
    attempts int NOT NULL,
    duration_ms bigint NOT NULL,
    PRIMARY KEY (run_id, id)
);

-- Results of cases.
CREATE TABLE training_cases (
    run_id uuid NOT NULL,
    candidate int NOT NULL,
    case_index int NOT NULL,
    sample int NOT NULL,
    phase text NOT NULL,
    split text,
    epoch int NOT NULL,
    score double precision,
    passed boolean NOT NULL,
    -- Calls of models that were answered, with or without a request.
    answered int NOT NULL,
    -- JSON: output, text, error, trace, verdicts, duration.
    result text NOT NULL,
    PRIMARY KEY (run_id, candidate, case_index, sample)
);

CREATE TABLE training_candidates (
    run_id uuid NOT NULL,
    number int NOT NULL,
    -- JSON: the record.
    record text NOT NULL,
    PRIMARY KEY (run_id, number)
);

-- What a run has done once: a resumed run does not do it again.
CREATE TABLE training_marks (
    run_id uuid NOT NULL,
    mark text NOT NULL,
    -- JSON: the event, if reports need it.
    event text,
    PRIMARY KEY (run_id, mark)
);

CREATE TABLE training_counters (
    workflow_id uuid PRIMARY KEY,
    config_version bigint NOT NULL
);

CREATE TABLE training_checkpoints (
    id uuid PRIMARY KEY,
    workspace_id uuid NOT NULL,
    workflow_id uuid NOT NULL,
    run_id uuid NOT NULL,
    candidate int NOT NULL,
    epoch int NOT NULL,
    config_version bigint NOT NULL,
    -- JSON.
    runnable_config text NOT NULL,
    -- JSON {evaluator: mean}.
    metrics text NOT NULL,
    -- JSON.
    metadata text NOT NULL,
    score double precision NOT NULL,
    fingerprint bytea NOT NULL,
    judges bytea NOT NULL,
    is_best boolean NOT NULL,
    created_at timestamptz NOT NULL,
    UNIQUE (workflow_id, config_version),
    UNIQUE (run_id, candidate, epoch)
);
CREATE INDEX training_checkpoints_by_score ON training_checkpoints (workflow_id, fingerprint, judges, score DESC);
CREATE TRIGGER training_checkpoints_append_only BEFORE UPDATE OR DELETE ON training_checkpoints
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER training_checkpoints_no_truncate BEFORE TRUNCATE ON training_checkpoints
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
