//! The tables as diesel sees them; `migrations/` is authoritative.

mod files;
mod hosting;
mod questions;
mod training;
mod triggers;

pub(crate) use files::attachments;
pub(crate) use hosting::{app_acknowledgements, app_collections, app_deployments, app_releases, apps};
pub(crate) use questions::{question_items, run_questions, turns_sent};
pub(crate) use training::{
    dataset_entries, dataset_versions, datasets, training_calls, training_candidates, training_cases,
    training_checkpoints, training_marks, training_runs,
};
pub(crate) use triggers::{cron_triggers, webhook_replays, webhook_triggers};

diesel::table! {
    workspaces (id) {
        id -> Uuid,
        slug -> Text,
        name -> Text,
        created_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
        training_calls -> Text,
    }
}

diesel::table! {
    workflows (id) {
        id -> Uuid,
        workspace_id -> Uuid,
        handle -> Text,
        name -> Text,
        description -> Nullable<Text>,
        tags -> Json,
        is_public -> Bool,
        require_login -> Bool,
        published_at -> Nullable<Timestamptz>,
        published_by -> Nullable<Text>,
        chat -> Json,
        latest_version -> Nullable<Int4>,
        archived_at -> Nullable<Timestamptz>,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
        max_concurrent_runs -> Nullable<Int4>,
        live_version -> Nullable<Int4>,
    }
}

diesel::table! {
    workflow_versions (id) {
        id -> Uuid,
        workflow_id -> Uuid,
        number -> Nullable<Int4>,
        digest -> Bytea,
        identity -> Bytea,
        graph -> Json,
        runnable_config -> Nullable<Json>,
        metadata -> Json,
        notes -> Nullable<Text>,
        created_by -> Nullable<Text>,
        created_at -> Timestamptz,
        draft -> Bool,
    }
}

diesel::table! {
    threads (id) {
        id -> Uuid,
        workflow_id -> Uuid,
        workspace_id -> Uuid,
        owner_kind -> Text,
        owner_id -> Nullable<Text>,
        title -> Nullable<Text>,
        status -> Text,
        created_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
        erased_at -> Nullable<Timestamptz>,
        status_reason -> Nullable<Text>,
        image_domains -> Nullable<Text>,
        canary_version -> Nullable<Int4>,
        requires_cookie -> Bool,
    }
}

diesel::table! {
    thread_items (thread_id, id) {
        thread_id -> Uuid,
        id -> Bytea,
        content -> Text,
        answers -> Nullable<Bytea>,
        run_id -> Nullable<Uuid>,
        key -> Nullable<Text>,
        changed_by -> Nullable<Uuid>,
        before -> Nullable<Text>,
    }
}

diesel::table! {
    thread_cuts (thread_id, id) {
        thread_id -> Uuid,
        id -> Bytea,
        behind -> Bytea,
        messages_from -> Bytea,
        answers_behind -> Bytea,
    }
}

diesel::table! {
    runs (id) {
        id -> Uuid,
        workspace_id -> Uuid,
        workflow_id -> Uuid,
        version_id -> Uuid,
        trigger -> Text,
        writer_id -> Uuid,
        thread_id -> Nullable<Uuid>,
        stream_id -> Nullable<Uuid>,
        status -> Text,
        inputs -> Text,
        output -> Nullable<Text>,
        error -> Nullable<Text>,
        cancel_requested_at -> Nullable<Timestamptz>,
        parked -> Integer,
        turn_order -> Nullable<Uuid>,
        usage -> Nullable<Text>,
        continues -> Nullable<Uuid>,
        options -> Nullable<Text>,
        created_at -> Timestamptz,
        started_at -> Nullable<Timestamptz>,
        finished_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    run_steps (run_id, node, visit, attempt) {
        run_id -> Uuid,
        node -> Text,
        visit -> Int4,
        attempt -> Int4,
        step -> Int4,
        status -> Text,
        input_digest -> Bytea,
        result -> Nullable<Text>,
        result_blob -> Nullable<Bytea>,
        error -> Nullable<Text>,
        note -> Nullable<Text>,
        started_at -> Timestamptz,
        finished_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    streams (id) {
        id -> Uuid,
        day -> Date,
        run_id -> Uuid,
        workflow_id -> Uuid,
        thread_id -> Nullable<Uuid>,
        dialect -> Text,
    }
}

diesel::table! {
    stream_events (day, stream_id, first_seq) {
        day -> Date,
        stream_id -> Uuid,
        first_seq -> Int8,
        last_seq -> Int8,
        frames -> Text,
    }
}

diesel::table! {
    leases (writer_id) {
        writer_id -> Uuid,
        epoch -> Int8,
        expires_at -> Timestamptz,
        oldest_run -> Uuid,
        round -> Int8,
        ended_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    service_keys (name) {
        name -> Text,
        key -> Bytea,
        sealed_under -> Nullable<Text>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    idempotency_keys (scope, key) {
        scope -> Text,
        key -> Text,
        request_digest -> Bytea,
        outcome -> Json,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    blobs (digest) {
        digest -> Bytea,
        size -> Int8,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    blob_chunks (digest, number) {
        digest -> Bytea,
        number -> Int4,
        bytes -> Bytea,
    }
}

diesel::table! {
    users (id) {
        id -> Uuid,
        email -> Nullable<Text>,
        name -> Nullable<Text>,
        created_at -> Timestamptz,
        last_sign_in_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    workspace_members (workspace_id, user_id) {
        workspace_id -> Uuid,
        user_id -> Uuid,
        role -> Text,
        created_at -> Timestamptz,
        invited_until -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    sign_in_challenges (id) {
        id -> Uuid,
        email -> Text,
        link_digest -> Bytea,
        code_mac -> Bytea,
        binding_digest -> Bytea,
        tries -> Int4,
        return_to -> Nullable<Text>,
        address -> Text,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
        used_at -> Nullable<Timestamptz>,
        superseded_at -> Nullable<Timestamptz>,
        browser -> Nullable<Bytea>,
        browser_known -> Bool,
        has_code -> Bool,
    }
}

diesel::table! {
    sign_in_sessions (id) {
        id -> Uuid,
        user_id -> Uuid,
        cookie_digest -> Nullable<Bytea>,
        cookie_used_at -> Timestamptz,
        user_agent -> Nullable<Text>,
        created_at -> Timestamptz,
        last_used_at -> Timestamptz,
        expires_at -> Timestamptz,
        revoked_at -> Nullable<Timestamptz>,
        revoked_reason -> Nullable<Text>,
    }
}

diesel::table! {
    refresh_tokens (digest) {
        digest -> Bytea,
        session_id -> Uuid,
        issued_at -> Timestamptz,
        expires_at -> Timestamptz,
        used_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    outgoing_mail (id) {
        id -> Uuid,
        recipient -> Text,
        content -> Bytea,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
        next_attempt_at -> Timestamptz,
        attempts -> Int4,
        claimed_by -> Nullable<Uuid>,
    }
}

diesel::allow_tables_to_appear_in_same_query!(thread_items, thread_cuts, threads);
diesel::allow_tables_to_appear_in_same_query!(run_questions, runs, question_items, turns_sent);
diesel::allow_tables_to_appear_in_same_query!(
    runs,
    streams,
    threads,
    workflows,
    workflow_versions,
    workspaces
);
diesel::allow_tables_to_appear_in_same_query!(users, workspace_members, workspaces, sign_in_sessions);

diesel::table! {
    oidc_sign_ins (state_digest) {
        state_digest -> Bytea,
        binding_digest -> Bytea,
        sealed -> Bytea,
        return_to -> Nullable<Text>,
        address -> Text,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
        used_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    user_identities (issuer, subject) {
        issuer -> Text,
        subject -> Text,
        user_id -> Uuid,
        created_at -> Timestamptz,
    }
}

diesel::allow_tables_to_appear_in_same_query!(user_identities, users);

diesel::table! {
    service_tokens (id) {
        id -> Uuid,
        name -> Nullable<Text>,
        scopes -> Json,
        workspaces -> Json,
        created_by -> Text,
        issued_at -> Timestamptz,
        expires_at -> Nullable<Timestamptz>,
        revoked_at -> Nullable<Timestamptz>,
        revoked_reason -> Nullable<Text>,
        last_used_at -> Nullable<Timestamptz>,
        created_with -> Nullable<Bytea>,
    }
}

diesel::table! {
    service_token_secrets (digest) {
        digest -> Bytea,
        token_id -> Uuid,
        created_at -> Timestamptz,
        expires_at -> Nullable<Timestamptz>,
        created_by -> Nullable<Text>,
        created_with -> Nullable<Bytea>,
    }
}

diesel::joinable!(service_token_secrets -> service_tokens (token_id));
diesel::allow_tables_to_appear_in_same_query!(service_tokens, service_token_secrets);

diesel::table! {
    credentials (id) {
        id -> Uuid,
        workspace_id -> Uuid,
        name -> Text,
        provider -> Nullable<Text>,
        description -> Nullable<Text>,
        preview -> Text,
        key_id -> Text,
        wrapped_key -> Bytea,
        nonce -> Bytea,
        ciphertext -> Bytea,
        version -> Int4,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
        created_by -> Nullable<Text>,
    }
}

diesel::allow_tables_to_appear_in_same_query!(credentials, workspaces);

diesel::table! {
    outbox (id) {
        id -> Uuid,
        run_id -> Uuid,
        request -> Text,
        created_at -> Timestamptz,
        next_attempt_at -> Nullable<Timestamptz>,
        attempts -> Int4,
        claimed_by -> Nullable<Uuid>,
        finished_at -> Nullable<Timestamptz>,
        error -> Nullable<Text>,
        progress -> Nullable<Text>,
    }
}

diesel::table! {
    audit_log (id) {
        id -> Uuid,
        at -> Timestamptz,
        actor_kind -> Text,
        actor_id -> Nullable<Text>,
        action -> Text,
        target_kind -> Nullable<Text>,
        target_id -> Nullable<Text>,
        workspace_id -> Nullable<Uuid>,
        outcome -> Text,
        reason -> Nullable<Text>,
        address -> Nullable<Text>,
        request_id -> Nullable<Text>,
    }
}

diesel::table! {
    auth_failures (key, at) {
        key -> Text,
        at -> Timestamptz,
    }
}
