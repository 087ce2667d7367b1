DROP TABLE cron_triggers;
