//! Cron and webhook triggers of workflows.

mod cron;
mod webhook;
