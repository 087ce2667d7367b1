DROP INDEX search_indexes_deleted;
DELETE FROM search_postings p USING search_indexes i WHERE i.id = p.index_id AND i.deleted_at IS NOT NULL;
DELETE FROM search_chunks c USING search_indexes i WHERE i.id = c.index_id AND i.deleted_at IS NOT NULL;
DELETE FROM search_documents d USING search_indexes i WHERE i.id = d.index_id AND i.deleted_at IS NOT NULL;
DELETE FROM search_indexes WHERE deleted_at IS NOT NULL;
ALTER TABLE search_indexes DROP COLUMN deleted_at;
DROP TABLE workspace_usage;
