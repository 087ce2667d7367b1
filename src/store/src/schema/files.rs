//! Chat files.

diesel::table! {
    attachments (id) {
        id -> Uuid,
        workspace_id -> Uuid,
        workflow_id -> Nullable<Uuid>,
        owner_kind -> Text,
        owner_id -> Nullable<Text>,
        session -> Text,
        name -> Text,
        mime_type -> Text,
        size -> Int8,
        digest -> Nullable<Bytea>,
        preview -> Nullable<Bytea>,
        width -> Nullable<Int4>,
        height -> Nullable<Int4>,
        colour -> Nullable<Text>,
        text -> Nullable<Text>,
        thread_id -> Nullable<Uuid>,
        created_at -> Timestamptz,
        attached_at -> Nullable<Timestamptz>,
        contained -> Bool,
    }
}
