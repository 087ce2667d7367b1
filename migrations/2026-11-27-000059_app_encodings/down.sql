DROP INDEX app_files_to_encode;
DROP INDEX app_files_by_digest;
ALTER TABLE app_files DROP COLUMN br, DROP COLUMN br_size, DROP COLUMN gzip, DROP COLUMN gzip_size, DROP COLUMN is_encoded;
