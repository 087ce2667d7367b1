DROP INDEX app_files_to_encode;
CREATE INDEX app_files_to_encode ON app_files (deployment_id, size) WHERE NOT is_encoded AND size >= 1024;
