DELETE FROM blob_uses WHERE kind = 'app_file';
DROP TABLE app_collections;
DROP TABLE app_bindings;
DROP TABLE app_files;
DROP TABLE app_deployments;
DROP TABLE apps;
