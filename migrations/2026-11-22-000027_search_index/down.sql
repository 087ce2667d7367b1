DROP TABLE search_postings;
DROP TABLE search_chunks;
DROP TABLE search_documents;
DROP TABLE search_indexes;
