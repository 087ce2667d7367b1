-- Compressed forms of files, as blobs that the use of their deployment keeps. Without one that saves enough, the file is sent as it is.
ALTER TABLE app_files
    ADD COLUMN br bytea,
    ADD COLUMN br_size bigint,
    ADD COLUMN gzip bytea,
    ADD COLUMN gzip_size bigint,
    -- Whether the file was compressed, if it is one to compress.
    ADD COLUMN is_encoded boolean NOT NULL DEFAULT false;
CREATE INDEX app_files_by_digest ON app_files (digest, deployment_id);
CREATE INDEX app_files_to_encode ON app_files (deployment_id, size) WHERE NOT is_encoded AND size >= 1024;
