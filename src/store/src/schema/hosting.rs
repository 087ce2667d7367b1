//! Hosted apps.

diesel::table! {
    apps (id) {
        id -> Uuid,
        workspace_id -> Uuid,
        alias -> Text,
        holds_alias -> Bool,
        name -> Text,
        access -> Text,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
        erased_at -> Nullable<Timestamptz>,
        active_release -> Nullable<Uuid>,
    }
}

diesel::table! {
    app_deployments (id) {
        id -> Uuid,
        app_id -> Uuid,
        workspace_id -> Uuid,
        digest -> Bytea,
        size -> Int8,
        expanded_size -> Int8,
        file_count -> Int4,
        available -> Bool,
        bindings -> Text,
        declares_bindings -> Bool,
        collections -> Text,
        declares_collections -> Bool,
        spa -> Bool,
        frame_ancestors -> Text,
        wasm -> Bool,
        report -> Text,
        created_by -> Nullable<Text>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    app_collections (id) {
        id -> Uuid,
        app_id -> Uuid,
        workspace_id -> Uuid,
        name -> Text,
        kind -> Text,
        capabilities -> Text,
        schema -> Nullable<Text>,
        created_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
        record_count -> Int8,
        record_bytes -> Int8,
        tombstones -> Int8,
    }
}

diesel::table! {
    app_releases (id) {
        id -> Uuid,
        app_id -> Uuid,
        workspace_id -> Uuid,
        number -> Int4,
        deployment_id -> Uuid,
        source_release_id -> Nullable<Uuid>,
        permission_revision -> Text,
        permissions -> Text,
        bindings -> Text,
        collections -> Text,
        spa -> Bool,
        frame_ancestors -> Text,
        wasm -> Bool,
        created_by -> Nullable<Text>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    app_acknowledgements (app_id, permission_revision) {
        app_id -> Uuid,
        permission_revision -> Text,
        workspace_id -> Uuid,
        acknowledged_by -> Nullable<Text>,
        acknowledged_at -> Timestamptz,
    }
}
