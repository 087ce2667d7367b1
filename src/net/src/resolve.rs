//! Name resolution.

use std::net::IpAddr;

use async_trait::async_trait;

/// Resolves names.
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    /// Returns every address of a name.
    ///
    /// # Errors
    /// The reason, as text without the name, if the name does not resolve.
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String>;
}

/// The machine's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        let found = tokio::net::lookup_host((name, 0)).await.map_err(|error| error.to_string())?;
        Ok(found.map(|address| address.ip()).collect())
    }
}
