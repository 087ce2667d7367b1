//! Cron and webhook triggers.

diesel::table! {
    cron_triggers (workflow_id) {
        workflow_id -> Uuid,
        expression -> Text,
        timezone -> Text,
        overlap -> Bool,
        missed -> Text,
        enabled -> Bool,
        next_fire_at -> Nullable<Timestamptz>,
        claimed_at -> Nullable<Timestamptz>,
        claimed_until -> Nullable<Timestamptz>,
        last_scheduled_for -> Nullable<Timestamptz>,
        last_run_id -> Nullable<Uuid>,
        last_skipped -> Nullable<Json>,
        last_error -> Nullable<Json>,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    webhook_triggers (workflow_id) {
        workflow_id -> Uuid,
        config -> Json,
        secrets -> Bytea,
        used_until -> Nullable<Timestamptz>,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    webhook_replays (workflow_id, digest) {
        workflow_id -> Uuid,
        digest -> Bytea,
        key -> Text,
        expires_at -> Timestamptz,
    }
}
