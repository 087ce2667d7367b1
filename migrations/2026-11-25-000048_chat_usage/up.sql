-- What the models of chats have used: a row for each day, session and instance, so that instances do not wait for each other.
CREATE TABLE chat_usage (
    day date NOT NULL,
    workflow_id uuid NOT NULL,
    session text NOT NULL,
    writer_id uuid NOT NULL,
    turns bigint NOT NULL,
    calls bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    usd double precision NOT NULL,
    PRIMARY KEY (workflow_id, day, session, writer_id)
);
CREATE INDEX chat_usage_by_day ON chat_usage (day);
