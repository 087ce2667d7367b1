DROP TABLE chat_usage;
