//! The mail queue. A row is claimed before it is sent and deleted after: if the sender dies in between, the
//! mail is sent again.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Integer, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::schema::outgoing_mail;
use crate::{Changes, Store, StoreError};

/// A claimed mail.
#[derive(Debug, Clone, QueryableByName)]
pub struct OutgoingMail {
    /// Its id, to which the content's seal is bound.
    #[diesel(sql_type = SqlUuid)]
    pub id: Uuid,
    /// The recipient's address.
    #[diesel(sql_type = Text)]
    pub recipient: String,
    /// The sealed content.
    #[diesel(sql_type = Binary)]
    pub content: Vec<u8>,
    /// Attempts, including this one.
    #[diesel(sql_type = Integer)]
    pub attempts: i32,
    /// When its content expires.
    #[diesel(sql_type = Timestamptz)]
    pub expires_at: DateTime<Utc>,
}

/// A mail to send.
pub struct NewMail<'a> {
    /// Its id, to which the content's seal is bound.
    pub id: Uuid,
    /// The recipient's address.
    pub recipient: &'a str,
    /// The sealed content.
    pub content: Vec<u8>,
    /// When its content expires.
    pub expires_at: DateTime<Utc>,
}

impl Changes {
    /// Enqueues a mail, committed or rolled back with the change.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn queue_mail(&mut self, new: NewMail<'_>) -> Result<(), StoreError> {
        let now = self.store.now();
        diesel::insert_into(outgoing_mail::table)
            .values((
                outgoing_mail::id.eq(new.id),
                outgoing_mail::recipient.eq(new.recipient),
                outgoing_mail::content.eq(new.content),
                outgoing_mail::created_at.eq(now),
                outgoing_mail::expires_at.eq(new.expires_at),
                outgoing_mail::next_attempt_at.eq(now),
                outgoing_mail::attempts.eq(0),
            ))
            .execute(&mut *self.connection)
            .await?;
        Ok(())
    }
}

impl Store {
    /// Claims due mail; no other sender can claim it during `sending`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn claim_mail(
        &self,
        instance: Uuid,
        sending: TimeDelta,
        most: i64,
    ) -> Result<Vec<OutgoingMail>, StoreError> {
        let now = self.now();
        diesel::sql_query(
            "UPDATE outgoing_mail SET next_attempt_at = $2, attempts = attempts + 1, claimed_by = $3
             WHERE id IN (SELECT id FROM outgoing_mail WHERE next_attempt_at <= $1
                          ORDER BY next_attempt_at LIMIT $4 FOR UPDATE SKIP LOCKED)
             RETURNING id, recipient, content, attempts, expires_at",
        )
        .bind::<Timestamptz, _>(now)
        .bind::<Timestamptz, _>(now + sending)
        .bind::<SqlUuid, _>(instance)
        .bind::<BigInt, _>(most)
        .load(&mut *self.connection().await?)
        .await
        .map_err(StoreError::from)
    }

    /// Releases mail that an earlier life of this instance had claimed; it is due again.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn give_mail_back(&self, instance: Uuid) -> Result<usize, StoreError> {
        let given = diesel::update(outgoing_mail::table)
            .filter(outgoing_mail::claimed_by.eq(instance))
            .set((outgoing_mail::next_attempt_at.eq(self.now()), outgoing_mail::claimed_by.eq(None::<Uuid>)))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(given)
    }

    /// Schedules a claimed mail's next attempt at `next`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn retry_mail(&self, id: Uuid, next: DateTime<Utc>) -> Result<(), StoreError> {
        diesel::update(outgoing_mail::table.find(id))
            .set((outgoing_mail::next_attempt_at.eq(next), outgoing_mail::claimed_by.eq(None::<Uuid>)))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }

    /// Deletes a mail that was sent or will not be sent.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn delete_mail(&self, id: Uuid) -> Result<(), StoreError> {
        diesel::delete(outgoing_mail::table.find(id)).execute(&mut *self.connection().await?).await?;
        Ok(())
    }
}
