-- Files that are never compressed, such as images, are not in it.
DROP INDEX app_files_to_encode;
CREATE INDEX app_files_to_encode ON app_files (deployment_id, size)
    WHERE NOT is_encoded AND size >= 1024 AND media_type ~ '^text/|[/+](json|xml|yaml|x-ndjson|rtf)(;|$)';
