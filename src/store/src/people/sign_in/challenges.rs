//! Challenges: a link and a code, sent to a mail address.

use auth::sign_in::{
    CHALLENGE_LIFE, CODES_PER_ADDRESS, Challenge, Code, CodeKey, CodeVerdict, LINKS_PER_ADDRESS,
    LINKS_PER_NETWORK, MailContent, MailLimit, PER_BROWSER, PER_BROWSER_AND_DAY, PER_CLIENT, PER_NETWORK,
    PER_NETWORK_AND_DAY, Sent, Token,
};
use chrono::{DateTime, Utc};
use diesel::dsl::{Gt, not};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use super::NewMail;
use crate::database::changes::lock_of;
use crate::schema::{outgoing_mail, sign_in_challenges};
use crate::{Changes, Store, StoreError};

diesel::define_sql_function! {
    /// Converts to lower case.
    fn lower(text: Text) -> Text;
}

/// A requested sign-in.
pub struct NewSignIn<'a> {
    /// The id of the challenge and of its mail.
    pub id: Uuid,
    /// The mail address to sign in.
    pub email: &'a str,
    /// SHA-256 of the link's token.
    pub link_digest: Vec<u8>,
    /// HMAC of the code.
    pub code_mac: Vec<u8>,
    /// SHA-256 of the browser's secret for this challenge.
    pub binding_digest: Vec<u8>,
    /// SHA-256 of the browser's secret for all its challenges.
    pub browser: Vec<u8>,
    /// Whether the request presented that secret; otherwise the response sets it.
    pub browser_known: bool,
    /// The destination after the sign-in.
    pub return_to: Option<&'a str>,
    /// The key for counting the client's requests.
    pub client: &'a str,
    /// The sealed mail with the code.
    pub with_code: Vec<u8>,
    /// The sealed mail with only the link; `None` if the service has no address for links.
    pub with_link: Option<Vec<u8>>,
}

/// A code that a user enters.
pub struct ShownCode<'a> {
    /// SHA-256 of the browser's secret.
    pub binding_digest: &'a [u8],
    /// The address that the user claims for the code.
    pub email: &'a str,
    /// The code; `None` if its format is invalid, which counts as wrong.
    pub code: Option<&'a Code>,
    /// The HMAC key for codes.
    pub key: &'a CodeKey,
}

/// Proof that the user reads the mail address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proven {
    /// Their address.
    pub email: String,
    /// The destination after the sign-in.
    pub return_to: Option<String>,
}

/// The result of using a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkUse {
    /// Signs in.
    Good(Proven),
    /// Another browser requested it.
    OtherBrowser,
    /// Used, superseded, expired, or unknown.
    Over,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = sign_in_challenges, check_for_backend(diesel::pg::Pg))]
struct ChallengeRow {
    id: Uuid,
    email: String,
    code_mac: Vec<u8>,
    binding_digest: Vec<u8>,
    tries: i32,
    return_to: Option<String>,
    expires_at: DateTime<Utc>,
    used_at: Option<DateTime<Utc>>,
    superseded_at: Option<DateTime<Utc>>,
}

impl ChallengeRow {
    fn challenge(&self) -> Challenge {
        Challenge {
            tries: self.tries,
            expires_at: self.expires_at,
            used: self.used_at.is_some(),
            superseded: self.superseded_at.is_some(),
        }
    }

    fn proven(self) -> Proven {
        Proven { email: self.email, return_to: self.return_to }
    }

    fn link_use(self, binding_digest: Option<&[u8]>, now: DateTime<Utc>) -> LinkUse {
        match binding_digest {
            _ if !self.challenge().is_open(now) => LinkUse::Over,
            Some(shown) if Token::is_same(shown, &self.binding_digest) => LinkUse::Good(self.proven()),
            _ => LinkUse::OtherBrowser,
        }
    }
}

/// SQL condition: within a limit's window.
fn since(limit: MailLimit, now: DateTime<Utc>) -> Gt<sign_in_challenges::created_at, DateTime<Utc>> {
    sign_in_challenges::created_at.gt(now - limit.window)
}

impl Changes {
    /// Stores a challenge with its mail, and supersedes the browser's earlier ones. `false`: nothing is stored,
    /// because a mail limit is reached.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn start_sign_in(&mut self, new: NewSignIn<'_>) -> Result<bool, StoreError> {
        let now = self.store.now();
        // Fixed order, so that two requests do not deadlock.
        for named in
            [format!("sign-in to\n{}", new.email.to_lowercase()), format!("sign-in from\n{}", new.client)]
        {
            diesel::sql_query("SELECT pg_advisory_xact_lock($1)")
                .bind::<BigInt, _>(lock_of(&named))
                .execute(&mut *self.connection)
                .await?;
        }
        let content = match self.mail_sent(&new, now).await?.allows() {
            MailContent::Link if new.with_link.is_none() => MailContent::Nothing,
            content => content,
        };
        if content == MailContent::Nothing {
            return Ok(false);
        }
        self.supersede(&new, now).await?;
        self.insert_sign_in(new, content == MailContent::Code, now).await?;
        Ok(true)
    }

    /// Counts the mails sent to the address, and for the client.
    async fn mail_sent(&mut self, new: &NewSignIn<'_>, now: DateTime<Utc>) -> Result<Sent, StoreError> {
        let to_address = || {
            sign_in_challenges::table
                .filter(lower(sign_in_challenges::email).eq(lower(new.email)))
                .into_boxed()
        };
        let within = |limit: MailLimit| to_address().filter(since(limit, now));
        // A browser without its cookie cannot be distinguished from others with the same client key.
        let for_browser = |limit| match new.browser_known {
            true => within(limit).filter(sign_in_challenges::browser.eq(&new.browser)).count(),
            false => within(limit)
                .filter(sign_in_challenges::address.eq(new.client))
                .filter(sign_in_challenges::browser_known.eq(false))
                .count(),
        };
        let for_network = |limit| within(limit).filter(sign_in_challenges::address.eq(new.client));
        let of_kind = |code: bool, limit| within(limit).filter(sign_in_challenges::has_code.eq(code)).count();
        let trusted = to_address()
            .filter(sign_in_challenges::browser.eq(&new.browser))
            .filter(sign_in_challenges::used_at.is_not_null());
        let by_client = sign_in_challenges::table
            .filter(sign_in_challenges::address.eq(new.client))
            .filter(since(PER_CLIENT, now))
            .count();
        let links_for_network = for_network(LINKS_PER_NETWORK).filter(not(sign_in_challenges::has_code));
        let connection = &mut *self.connection;
        Ok(Sent {
            trusted: trusted.count().get_result::<i64>(connection).await? > 0,
            for_browser: for_browser(PER_BROWSER).get_result(connection).await?,
            for_browser_today: for_browser(PER_BROWSER_AND_DAY).get_result(connection).await?,
            for_network: for_network(PER_NETWORK).count().get_result(connection).await?,
            for_network_today: for_network(PER_NETWORK_AND_DAY).count().get_result(connection).await?,
            codes: of_kind(true, CODES_PER_ADDRESS).get_result(connection).await?,
            links_for_network: links_for_network.count().get_result(connection).await?,
            links: of_kind(false, LINKS_PER_ADDRESS).get_result(connection).await?,
            by_client: by_client.get_result(connection).await?,
        })
    }

    /// Supersedes the browser's older challenges and their mails.
    async fn supersede(&mut self, new: &NewSignIn<'_>, now: DateTime<Utc>) -> Result<(), StoreError> {
        let older: Vec<Uuid> = diesel::update(sign_in_challenges::table)
            .filter(sign_in_challenges::browser.eq(&new.browser))
            .filter(sign_in_challenges::used_at.is_null())
            .filter(sign_in_challenges::superseded_at.is_null())
            .set(sign_in_challenges::superseded_at.eq(now))
            .returning(sign_in_challenges::id)
            .get_results(&mut *self.connection)
            .await?;
        diesel::delete(outgoing_mail::table)
            .filter(outgoing_mail::id.eq_any(older))
            .execute(&mut *self.connection)
            .await?;
        Ok(())
    }

    async fn insert_sign_in(
        &mut self,
        new: NewSignIn<'_>,
        has_code: bool,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        // A valid code never has an empty HMAC.
        let code_mac = if has_code { new.code_mac } else { Vec::new() };
        diesel::insert_into(sign_in_challenges::table)
            .values((
                sign_in_challenges::id.eq(new.id),
                sign_in_challenges::email.eq(new.email),
                sign_in_challenges::link_digest.eq(new.link_digest),
                sign_in_challenges::code_mac.eq(code_mac),
                sign_in_challenges::binding_digest.eq(new.binding_digest),
                sign_in_challenges::browser.eq(new.browser),
                sign_in_challenges::browser_known.eq(new.browser_known),
                sign_in_challenges::has_code.eq(has_code),
                sign_in_challenges::tries.eq(0),
                sign_in_challenges::return_to.eq(new.return_to),
                sign_in_challenges::address.eq(new.client),
                sign_in_challenges::created_at.eq(now),
                sign_in_challenges::expires_at.eq(now + CHALLENGE_LIFE),
            ))
            .execute(&mut *self.connection)
            .await?;
        let content = if has_code { new.with_code } else { new.with_link.unwrap_or_default() };
        self.queue_mail(NewMail {
            id: new.id,
            recipient: new.email,
            content,
            expires_at: now + CHALLENGE_LIFE,
        })
        .await
    }

    /// Uses up a challenge if the code is right, and counts a try if it is wrong; `None` only means that it
    /// does not sign in. Commit in either case.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn use_code(&mut self, shown: ShownCode<'_>) -> Result<Option<Proven>, StoreError> {
        let found: Option<ChallengeRow> = sign_in_challenges::table
            .filter(sign_in_challenges::binding_digest.eq(shown.binding_digest))
            .select(ChallengeRow::as_select())
            .for_update()
            .first(&mut *self.connection)
            .await
            .optional()?;
        let Some(row) = found else { return Ok(None) };
        let now = self.store.now();
        let right = shown.code.is_some_and(|code| shown.key.is_code(row.id, code, &row.code_mac));
        let right = right && shown.email == row.email;
        let of_this = diesel::update(sign_in_challenges::table.find(row.id));
        match row.challenge().try_code(now, right) {
            CodeVerdict::Accepted => {
                of_this.set(sign_in_challenges::used_at.eq(now)).execute(&mut *self.connection).await?;
                Ok(Some(row.proven()))
            }
            CodeVerdict::Wrong => {
                let tries = sign_in_challenges::tries.eq(row.tries + 1);
                of_this.set(tries).execute(&mut *self.connection).await?;
                Ok(None)
            }
            CodeVerdict::Over => Ok(None),
        }
    }

    /// Uses up a challenge by its link, for the browser that requested it.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn use_link(
        &mut self,
        link_digest: &[u8],
        binding_digest: Option<&[u8]>,
    ) -> Result<LinkUse, StoreError> {
        let found: Option<ChallengeRow> = sign_in_challenges::table
            .filter(sign_in_challenges::link_digest.eq(link_digest))
            .select(ChallengeRow::as_select())
            .for_update()
            .first(&mut *self.connection)
            .await
            .optional()?;
        let Some(row) = found else { return Ok(LinkUse::Over) };
        let (id, now) = (row.id, self.store.now());
        let link_use = row.link_use(binding_digest, now);
        if matches!(link_use, LinkUse::Good(_)) {
            diesel::update(sign_in_challenges::table.find(id))
                .set(sign_in_challenges::used_at.eq(now))
                .execute(&mut *self.connection)
                .await?;
        }
        Ok(link_use)
    }
}

impl Store {
    /// Returns the result that a link would have, without using it up.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn look_at_link(
        &self,
        link_digest: &[u8],
        binding_digest: Option<&[u8]>,
    ) -> Result<LinkUse, StoreError> {
        let found: Option<ChallengeRow> = sign_in_challenges::table
            .filter(sign_in_challenges::link_digest.eq(link_digest))
            .select(ChallengeRow::as_select())
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        Ok(found.map_or(LinkUse::Over, |row| row.link_use(binding_digest, self.now())))
    }
}
