DROP TABLE thread_items;
DROP TABLE threads;
