//! The daily partitions of `stream_events`, made ahead of need.

use chrono::{Days, NaiveDate};
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};

use crate::connect::Session;
use crate::roles::{LOCK, ROLE};
use crate::{Store, StoreError};

/// How many days ahead of today a partition exists.
pub const PARTITIONS_AHEAD: u64 = 3;

impl Store {
    /// Makes the partitions from yesterday (a clock may lag) to [`PARTITIONS_AHEAD`] days from `today`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer or refuses.
    pub async fn ensure_partitions(&self, today: NaiveDate) -> Result<(), StoreError> {
        let mut connection = self.connector().open(Session::Owner).await?;
        ensure(&mut connection, today).await
    }
}

/// The table that holds the events of the streams of a day.
pub(crate) fn partition_name(day: NaiveDate) -> String {
    day.format("stream_events_%Y%m%d").to_string()
}

pub(crate) async fn ensure(connection: &mut AsyncPgConnection, today: NaiveDate) -> Result<(), StoreError> {
    let first = today.checked_sub_days(Days::new(1)).unwrap_or(today);
    // Held until the tables are committed: one statement of several parts is one transaction.
    let mut sql = format!("{LOCK}SELECT pg_advisory_xact_lock(hashtext('callboard partitions'));");
    for day in first.iter_days().zip(0..PARTITIONS_AHEAD + 2).map(|(day, _)| day) {
        let next = day.succ_opt().unwrap_or(day);
        let name = partition_name(day);
        // Lanes write into the partition itself, so the role needs its rights there too.
        sql.push_str(&format!(
            "CREATE TABLE IF NOT EXISTS {name} PARTITION OF stream_events FOR VALUES FROM ('{day}') TO ('{next}');
             DO $$ BEGIN
                 IF EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}')
                    AND NOT has_table_privilege('{ROLE}', '{name}', 'INSERT') THEN
                     GRANT SELECT, INSERT ON {name} TO {ROLE};
                 END IF;
             END $$;"
        ));
    }
    connection.batch_execute(&sql).await?;
    Ok(())
}
