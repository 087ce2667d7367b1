//! Questions that runs ask people.

diesel::table! {
    run_questions (run_id, node, visit, attempt) {
        run_id -> Uuid,
        node -> Text,
        visit -> Int4,
        attempt -> Int4,
        key -> Text,
        message -> Nullable<Text>,
        schema -> Nullable<Text>,
        item -> Nullable<Text>,
        continues_without -> Bool,
        audience -> Json,
        asked_at -> Timestamptz,
        expires_at -> Nullable<Timestamptz>,
        answer -> Nullable<Text>,
        answered_by -> Nullable<Text>,
        answered_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    question_items (item_id) {
        item_id -> Bytea,
        thread_id -> Uuid,
        run_id -> Uuid,
        node -> Text,
        visit -> Int4,
        attempt -> Int4,
        stream_id -> Nullable<Uuid>,
    }
}

diesel::table! {
    turns_sent (run_id) {
        run_id -> Uuid,
        thread_id -> Uuid,
        dialect -> Text,
        sent -> Text,
        due_at -> Nullable<Timestamptz>,
        continued_by -> Nullable<Uuid>,
    }
}
