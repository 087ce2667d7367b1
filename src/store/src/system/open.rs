//! Opens a database: checks and migrates it, creates its role and its partitions.

use secrecy::ExposeSecret as _;

use crate::database::connect::{Connector, SessionKind};
use crate::system::{migrate, partitions, requirements, roles};
use crate::{DatabaseRuntime, Store, StoreError, StoreOptions};

impl Store {
    /// Connects, applies missing migrations, creates the role and the partitions ahead.
    ///
    /// # Errors
    /// [`StoreError`] when the database cannot be reached or used, may lose writes, or a migration fails.
    pub async fn open(options: StoreOptions) -> Result<Self, StoreError> {
        let runtime = DatabaseRuntime::start().map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let connector = Connector::new(options.dsn.expose_secret(), runtime.handle())?;
        let mut owner = connector.open(SessionKind::Owner).await?;
        requirements::check(&mut owner).await?;
        let (mut owner, applied) = migrate::up(owner).await?;
        if applied > 0 {
            tracing::info!(applied, "migrations applied");
        }
        partitions::ensure(&mut owner, options.clock.now().date_naive()).await?;
        let role = roles::ensure(&mut owner).await?;
        drop(owner);
        let store = Self::over(connector, role, options, runtime)?;
        store.ensure_default_workspace().await?;
        Ok(store)
    }
}
