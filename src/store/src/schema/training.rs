//! Trainings, their datasets and checkpoints.

diesel::table! {
    datasets (id) {
        id -> Uuid,
        workspace_id -> Uuid,
        workflow_id -> Uuid,
        name -> Nullable<Text>,
        created_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    dataset_versions (dataset_id, number) {
        dataset_id -> Uuid,
        number -> Int4,
        n_cases -> Int4,
        fingerprint -> Bytea,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    dataset_entries (dataset_id, place, number) {
        dataset_id -> Uuid,
        place -> Int4,
        number -> Int4,
        until -> Nullable<Int4>,
        digest -> Bytea,
    }
}

diesel::table! {
    dataset_cases (workspace_id, digest) {
        workspace_id -> Uuid,
        digest -> Bytea,
        content -> Text,
        run_id -> Nullable<Uuid>,
        thread_id -> Nullable<Uuid>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    training_runs (run_id) {
        run_id -> Uuid,
        workflow_id -> Uuid,
        dataset_id -> Uuid,
        dataset_version -> Int4,
        fingerprint -> Bytea,
        judges -> Bytea,
        n_cases -> Int4,
        digest -> Bytea,
        request -> Text,
        start -> Text,
        origin_run_id -> Nullable<Uuid>,
        pause_requested_at -> Nullable<Timestamptz>,
        state -> Nullable<Text>,
        in_flight -> Int4,
        lost_calls -> Int4,
        replies_erased_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    training_calls (run_id, id) {
        run_id -> Uuid,
        id -> Uuid,
        key -> Bytea,
        role -> Text,
        model -> Text,
        reply -> Nullable<Text>,
        calls -> Int8,
        input_tokens -> Int8,
        output_tokens -> Int8,
        nanodollars -> Int8,
        estimated -> Bool,
        attempts -> Int4,
        duration_ms -> Int8,
    }
}

diesel::table! {
    training_cases (run_id, candidate, case_index, sample) {
        run_id -> Uuid,
        candidate -> Int4,
        case_index -> Int4,
        sample -> Int4,
        phase -> Text,
        split -> Nullable<Text>,
        epoch -> Int4,
        score -> Nullable<Float8>,
        passed -> Bool,
        answered -> Int4,
        result -> Text,
        details -> Nullable<Text>,
    }
}

diesel::table! {
    training_candidates (run_id, number) {
        run_id -> Uuid,
        number -> Int4,
        record -> Text,
    }
}

diesel::table! {
    training_marks (run_id, mark) {
        run_id -> Uuid,
        mark -> Text,
        event -> Nullable<Text>,
    }
}

diesel::table! {
    training_checkpoints (id) {
        id -> Uuid,
        workspace_id -> Uuid,
        workflow_id -> Uuid,
        run_id -> Uuid,
        candidate -> Int4,
        epoch -> Int4,
        config_version -> Int8,
        runnable_config -> Text,
        metrics -> Text,
        metadata -> Text,
        score -> Float8,
        fingerprint -> Bytea,
        judges -> Bytea,
        is_best -> Bool,
        created_at -> Timestamptz,
    }
}

diesel::allow_tables_to_appear_in_same_query!(datasets, dataset_versions, dataset_entries, dataset_cases);
diesel::allow_tables_to_appear_in_same_query!(training_runs, training_calls);
