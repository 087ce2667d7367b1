//! Signing keys that are not configured: generated once, stored here, sealed by the vault key if there is one.

use auth::keyring::KeyRing;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

use crate::schema::service_keys;
use crate::{Store, StoreError};

/// Bytes in a generated key.
const KEY_BYTES: usize = 32;

impl Store {
    /// Returns the key with this name, generated at the first call. All instances get the same one.
    ///
    /// # Errors
    /// [`StoreError::Key`] when it is sealed under a vault key that `ring` does not hold.
    pub async fn service_key(&self, name: &str, ring: Option<&KeyRing>) -> Result<Vec<u8>, StoreError> {
        let mut fresh = vec![0_u8; KEY_BYTES];
        self.random().fill(&mut fresh)?;
        let context = context(name);
        let (stored, sealed_under) = match ring {
            Some(ring) => (ring.seal(&context, &fresh, self.random())?, Some(ring.active().to_owned())),
            None => (fresh, None),
        };
        let mut connection = self.connection().await?;
        diesel::insert_into(service_keys::table)
            .values((
                service_keys::name.eq(name),
                service_keys::key.eq(stored),
                service_keys::sealed_under.eq(sealed_under),
                service_keys::created_at.eq(self.now()),
            ))
            .on_conflict_do_nothing()
            .execute(&mut *connection)
            .await?;
        let (key, sealed_under): (Vec<u8>, Option<String>) = service_keys::table
            .find(name)
            .select((service_keys::key, service_keys::sealed_under))
            .first(&mut *connection)
            .await?;
        match sealed_under {
            None => Ok(key),
            Some(id) => Ok(KeyRing::open_with(ring, &id, &context, &key)?),
        }
    }

    /// Reseals keys under the ring's active key; returns the number of resealed keys. A plain key stays plain.
    ///
    /// # Errors
    /// [`StoreError::Key`] when a key is sealed under a vault key that `ring` does not hold.
    pub async fn reseal_service_keys(&self, ring: &KeyRing) -> Result<u64, StoreError> {
        let mut connection = self.connection().await?;
        let rows: Vec<(String, Vec<u8>, Option<String>)> = service_keys::table
            .filter(service_keys::sealed_under.ne(ring.active()))
            .select((service_keys::name, service_keys::key, service_keys::sealed_under))
            .load(&mut *connection)
            .await?;
        let mut resealed = 0;
        for (name, sealed, under) in rows {
            let (context, under) = (context(&name), under.unwrap_or_default());
            let plain = ring.open(&under, &context, &sealed)?;
            let fresh = ring.seal(&context, &plain, self.random())?;
            let changed = diesel::update(service_keys::table.find(&name))
                .filter(service_keys::key.eq(&sealed))
                .set((service_keys::key.eq(fresh), service_keys::sealed_under.eq(ring.active())))
                .execute(&mut *connection)
                .await?;
            resealed += u64::try_from(changed).unwrap_or_default();
        }
        Ok(resealed)
    }
}

/// The seal context for the key with this name.
fn context(name: &str) -> String {
    format!("callboard|service-key|{name}")
}
