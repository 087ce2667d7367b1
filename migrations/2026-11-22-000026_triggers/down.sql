DROP TABLE webhook_replays;
DROP TABLE webhook_triggers;
DROP TABLE cron_triggers;
