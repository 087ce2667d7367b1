-- What the records of a collection are, counted by the transactions that write them.
ALTER TABLE app_collections
    ADD COLUMN record_count bigint NOT NULL DEFAULT 0,
    ADD COLUMN record_bytes bigint NOT NULL DEFAULT 0,
    -- Rows of deleted records.
    ADD COLUMN tombstones bigint NOT NULL DEFAULT 0;

-- Records of collections. The row of a deleted record stays for 30 days, without its data.
CREATE TABLE app_records (
    id uuid PRIMARY KEY,
    app_id uuid NOT NULL,
    collection_id uuid NOT NULL,
    -- The user whose record it is; null in a collection that is shared.
    owner uuid,
    version bigint NOT NULL CHECK (version >= 1),
    -- JSON object; null: deleted. Not jsonb, which writes numbers such as 1e300 in full.
    data text,
    -- SHA-256 of the run, node and visit that wrote this version; null: a request did.
    written_by bytea,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE INDEX app_records_listed ON app_records (collection_id, owner, created_at, id) WHERE data IS NOT NULL;
CREATE INDEX app_records_deleted ON app_records (collection_id, updated_at) WHERE data IS NULL;

-- A transaction sees records of the app that it names, and of these only those of the owner that it names: a user, `shared`
-- for the records of no user, or `any` for what deletes records of all owners. Without the names there are none.
ALTER TABLE app_records ENABLE ROW LEVEL SECURITY;
ALTER TABLE app_records FORCE ROW LEVEL SECURITY;
CREATE POLICY app_records_of_one_owner ON app_records
    USING (
        app_id::text = current_setting('callboard.app', true)
        AND current_setting('callboard.owner', true) IN (coalesce(owner::text, 'shared'), 'any')
    )
    WITH CHECK (
        app_id::text = current_setting('callboard.app', true)
        AND current_setting('callboard.owner', true) = coalesce(owner::text, 'shared')
    );
