//! What begins runs of a workflow by itself.

mod cron;
mod webhook;
