DROP TABLE stream_readers;
