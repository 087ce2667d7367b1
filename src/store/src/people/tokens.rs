//! Service tokens. Only the SHA-256 of a secret is stored.

use auth::principal::Principal;
use auth::service_token::TokenDigest;
use chrono::{DateTime, TimeDelta, Utc};
use diesel::dsl::{exists, not};
use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::people::token_lookup::texts;
use crate::schema::{service_token_secrets, service_tokens};
use crate::{Changes, Store, StoreError};

/// Minimum interval between recorded uses.
const USE_NOTED_FOR: TimeDelta = TimeDelta::minutes(1);

/// The maker of a token or a secret.
#[derive(Debug, Clone)]
pub struct Cause {
    /// The maker, as named by [`auth::principal::Actor::name`].
    pub by: String,
    /// The secret that they presented, if they are a service token.
    pub with: Option<TokenDigest>,
}

impl Cause {
    /// The cause for a caller.
    #[must_use]
    pub fn from_principal(principal: &Principal) -> Self {
        Self { by: principal.actor().name(), with: principal.secret().copied() }
    }

    fn with(&self) -> Option<&[u8]> {
        self.with.as_ref().map(TokenDigest::as_bytes)
    }
}

/// A service token to create.
#[derive(Debug, Clone)]
pub struct NewServiceToken {
    /// Its id, which is part of its secret.
    pub id: Uuid,
    /// Its label.
    pub name: Option<String>,
    /// Scopes as texts.
    pub scopes: Vec<String>,
    /// Ids or slugs; empty means all workspaces.
    pub workspaces: Vec<String>,
    /// The maker and the secret that they presented.
    pub cause: Cause,
    /// When it is created.
    pub issued_at: DateTime<Utc>,
    /// When it expires.
    pub expires_at: Option<DateTime<Utc>>,
    /// The digest of its secret.
    pub digest: TokenDigest,
}

/// A service token's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredServiceToken {
    /// UUIDv7.
    pub id: Uuid,
    /// Its label.
    pub name: Option<String>,
    /// Scopes as texts.
    pub scopes: Vec<String>,
    /// Ids or slugs; empty means all workspaces.
    pub workspaces: Vec<String>,
    /// The maker.
    pub created_by: String,
    /// When it was created.
    pub issued_at: DateTime<Utc>,
    /// When it expires.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was revoked.
    pub revoked_at: Option<DateTime<Utc>>,
    /// The reason for the revocation.
    pub revoked_reason: Option<String>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// The status of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceTokenStatus {
    /// Valid.
    Active,
    /// Revoked.
    Revoked,
    /// Expired.
    Expired,
}

impl ServiceTokenStatus {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Active, Self::Revoked, Self::Expired];

    /// The name in listings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
        }
    }

    /// Parses a status name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl StoredServiceToken {
    /// The status at this instant.
    #[must_use]
    pub fn status(&self, now: DateTime<Utc>) -> ServiceTokenStatus {
        if self.revoked_at.is_some() {
            ServiceTokenStatus::Revoked
        } else if self.expires_at.is_some_and(|at| at <= now) {
            ServiceTokenStatus::Expired
        } else {
            ServiceTokenStatus::Active
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = service_tokens)]
pub(crate) struct ServiceTokenRow {
    id: Uuid,
    name: Option<String>,
    scopes: Value,
    workspaces: Value,
    created_by: String,
    issued_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    revoked_reason: Option<String>,
    last_used_at: Option<DateTime<Utc>>,
}

impl TryFrom<ServiceTokenRow> for StoredServiceToken {
    type Error = StoreError;

    fn try_from(row: ServiceTokenRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id,
            name: row.name,
            scopes: texts("scopes of a service token", Some(row.scopes))?,
            workspaces: texts("workspaces of a service token", Some(row.workspaces))?,
            created_by: row.created_by,
            issued_at: row.issued_at,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
            revoked_reason: row.revoked_reason,
            last_used_at: row.last_used_at,
        })
    }
}

impl Store {
    /// Records the use of a token, at most once a minute.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn service_token_used(&self, token: &StoredServiceToken) -> Result<(), StoreError> {
        let now = self.now();
        if token.last_used_at.is_some_and(|at| now - at < USE_NOTED_FOR) {
            return Ok(());
        }
        // Other requests may have recorded a use in the meantime.
        let stale = service_tokens::last_used_at
            .is_null()
            .or(service_tokens::last_used_at.le(now - USE_NOTED_FOR).assume_not_null());
        diesel::update(service_tokens::table.find(token.id))
            .filter(stale)
            .set(service_tokens::last_used_at.eq(Some(now)))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }

    /// Returns a token.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn service_token(&self, id: Uuid) -> Result<Option<StoredServiceToken>, StoreError> {
        find(&mut *self.connection().await?, id).await
    }

    /// Returns tokens, newest first.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn service_tokens(
        &self,
        status: Option<ServiceTokenStatus>,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<StoredServiceToken>, StoreError> {
        let now = self.now();
        let mut rows = service_tokens::table.select(ServiceTokenRow::as_select()).into_boxed();
        let gone = service_tokens::expires_at.le(now).assume_not_null();
        rows = match status {
            None => rows,
            Some(ServiceTokenStatus::Revoked) => rows.filter(service_tokens::revoked_at.is_not_null()),
            Some(ServiceTokenStatus::Expired) => rows
                .filter(service_tokens::revoked_at.is_null())
                .filter(service_tokens::expires_at.is_not_null())
                .filter(gone),
            Some(ServiceTokenStatus::Active) => rows.filter(service_tokens::revoked_at.is_null()).filter(
                service_tokens::expires_at.is_null().or(service_tokens::expires_at.gt(now).assume_not_null()),
            ),
        };
        if let Some(before) = before {
            rows = rows.filter(service_tokens::id.lt(before));
        }
        let rows: Vec<ServiceTokenRow> =
            rows.order(service_tokens::id.desc()).limit(limit).load(&mut *self.connection().await?).await?;
        rows.into_iter().map(TryInto::try_into).collect()
    }

    /// Whether any token is currently valid.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn has_active_service_token(&self) -> Result<bool, StoreError> {
        let active = self.service_tokens(Some(ServiceTokenStatus::Active), None, 1).await?;
        Ok(!active.is_empty())
    }
}

impl Changes {
    /// Creates a token.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn create_service_token(
        &mut self,
        new: NewServiceToken,
    ) -> Result<StoredServiceToken, StoreError> {
        let row: ServiceTokenRow = diesel::insert_into(service_tokens::table)
            .values((
                service_tokens::id.eq(new.id),
                service_tokens::name.eq(new.name),
                service_tokens::scopes.eq(json!(new.scopes)),
                service_tokens::workspaces.eq(json!(new.workspaces)),
                service_tokens::created_by.eq(&new.cause.by),
                service_tokens::created_with.eq(new.cause.with()),
                service_tokens::issued_at.eq(new.issued_at),
                service_tokens::expires_at.eq(new.expires_at),
            ))
            .returning(ServiceTokenRow::as_returning())
            .get_result(&mut *self.connection)
            .await?;
        self.add_secret(new.id, new.digest, &new.cause, new.issued_at).await?;
        row.try_into()
    }

    /// Gives a token another secret; its earlier secrets stay valid until then. `None` if the token is not
    /// found or no longer valid.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn rotate_service_token(
        &mut self,
        id: Uuid,
        digest: TokenDigest,
        cause: &Cause,
        old_until: DateTime<Utc>,
    ) -> Result<Option<StoredServiceToken>, StoreError> {
        let now = self.store.now();
        let Some(token) = lock(&mut self.connection, id).await? else { return Ok(None) };
        if token.status(now) != ServiceTokenStatus::Active {
            return Ok(None);
        }
        diesel::update(service_token_secrets::table)
            .filter(service_token_secrets::token_id.eq(id))
            .filter(
                service_token_secrets::expires_at
                    .is_null()
                    .or(service_token_secrets::expires_at.gt(old_until).assume_not_null()),
            )
            .set(service_token_secrets::expires_at.eq(Some(old_until)))
            .execute(&mut *self.connection)
            .await?;
        // Deletes long expired secrets, unless something was created with them.
        let (tokens, secrets) =
            diesel::alias!(service_tokens as caused_tokens, service_token_secrets as caused_secrets);
        let made_token = tokens
            .filter(tokens.field(service_tokens::created_with).eq(service_token_secrets::digest.nullable()));
        let made_secret = secrets.filter(
            secrets.field(service_token_secrets::created_with).eq(service_token_secrets::digest.nullable()),
        );
        diesel::delete(service_token_secrets::table)
            .filter(service_token_secrets::token_id.eq(id))
            .filter(
                service_token_secrets::expires_at
                    .is_not_null()
                    .and(service_token_secrets::expires_at.lt(now - TimeDelta::days(90)).assume_not_null()),
            )
            .filter(not(exists(made_token)))
            .filter(not(exists(made_secret)))
            .execute(&mut *self.connection)
            .await?;
        self.add_secret(id, digest, cause, now).await?;
        Ok(Some(token))
    }

    /// Revokes a token; a revoked token stays unchanged. The flag says whether the token was valid until now.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn revoke_service_token(
        &mut self,
        id: Uuid,
        reason: &str,
    ) -> Result<Option<(StoredServiceToken, bool)>, StoreError> {
        let Some(token) = lock(&mut self.connection, id).await? else { return Ok(None) };
        if token.revoked_at.is_some() {
            return Ok(Some((token, false)));
        }
        let row: ServiceTokenRow = diesel::update(service_tokens::table.find(id))
            .set((
                service_tokens::revoked_at.eq(Some(self.store.now())),
                service_tokens::revoked_reason.eq(Some(reason)),
            ))
            .returning(ServiceTokenRow::as_returning())
            .get_result(&mut *self.connection)
            .await?;
        Ok(Some((row.try_into()?, true)))
    }

    async fn add_secret(
        &mut self,
        token: Uuid,
        digest: TokenDigest,
        cause: &Cause,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        diesel::insert_into(service_token_secrets::table)
            .values((
                service_token_secrets::digest.eq(digest.as_bytes()),
                service_token_secrets::token_id.eq(token),
                service_token_secrets::created_at.eq(now),
                service_token_secrets::created_by.eq(&cause.by),
                service_token_secrets::created_with.eq(cause.with()),
            ))
            .execute(&mut *self.connection)
            .await?;
        Ok(())
    }
}

async fn find(
    connection: &mut AsyncPgConnection,
    id: Uuid,
) -> Result<Option<StoredServiceToken>, StoreError> {
    let row: Option<ServiceTokenRow> = service_tokens::table
        .find(id)
        .select(ServiceTokenRow::as_select())
        .first(connection)
        .await
        .optional()?;
    row.map(TryInto::try_into).transpose()
}

pub(crate) async fn lock(
    connection: &mut AsyncPgConnection,
    id: Uuid,
) -> Result<Option<StoredServiceToken>, StoreError> {
    let row: Option<ServiceTokenRow> = service_tokens::table
        .find(id)
        .select(ServiceTokenRow::as_select())
        .for_update()
        .first(connection)
        .await
        .optional()?;
    row.map(TryInto::try_into).transpose()
}
