DROP TABLE app_records;
ALTER TABLE app_collections
    DROP COLUMN record_count,
    DROP COLUMN record_bytes,
    DROP COLUMN tombstones;
