//! Hosted apps: archives, and apps published as a publisher does it.

use client::Answer;
use serde_json::{Value, json};

use crate::{AnswerExt, TestService};

/// A ZIP archive of stored (uncompressed) files.
///
/// # Panics
/// If a file or the archive is too large for a ZIP archive.
#[must_use]
pub fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut entries, mut directory) = (Vec::new(), Vec::new());
    for (path, content) in files {
        let size = u32::try_from(content.len()).unwrap().to_le_bytes();
        let mut fields = b"\x14\0\0\0\0\0\0\0!\x5c".to_vec();
        fields.extend(crc(content).to_le_bytes());
        fields.extend(size);
        fields.extend(size);
        fields.extend(u16::try_from(path.len()).unwrap().to_le_bytes());
        fields.extend([0, 0]);
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&fields);
        directory.extend([0; 10]);
        directory.extend(u32::try_from(entries.len()).unwrap().to_le_bytes());
        directory.extend(path.as_bytes());
        entries.extend(b"PK\x03\x04");
        entries.extend(fields);
        entries.extend(path.as_bytes());
        entries.extend(*content);
    }
    let count = u16::try_from(files.len()).unwrap().to_le_bytes();
    let (start, size) = (entries.len(), directory.len());
    entries.extend(directory);
    entries.extend(b"PK\x05\x06\0\0\0\0");
    entries.extend([count, count].concat());
    entries.extend(u32::try_from(size).unwrap().to_le_bytes());
    entries.extend(u32::try_from(start).unwrap().to_le_bytes());
    entries.extend([0, 0]);
    entries
}

/// The CRC-32 that ZIP archives use.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        let mixed = crc ^ u32::from(*byte);
        (0..8).fold(mixed, |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 })
    };
    !bytes.iter().fold(!0, step)
}

/// Builds an app; by default public, with one page and no bindings.
pub struct AppBuilder<'t> {
    t: &'t TestService,
    alias: String,
    access: &'static str,
    files: Vec<(String, Vec<u8>)>,
}

/// A created app.
#[derive(Debug, Clone)]
pub struct HostedApp {
    /// The app's id.
    pub id: String,
    /// The first label of the app's host.
    pub alias: String,
    /// The app's host on a service with the default app domain.
    pub host: String,
}

impl TestService {
    /// Starts building an app, owned by the bootstrap token's holder if the service has one.
    #[must_use]
    pub fn app(&self, alias: &str) -> AppBuilder<'_> {
        let files = vec![("index.html".to_owned(), b"<!doctype html><title>App</title><p>Hi".to_vec())];
        AppBuilder { t: self, alias: alias.to_owned(), access: "public", files }
    }

    /// Sends a request to the control plane of apps, with the bootstrap token if the service has one. The body is JSON
    /// or an archive.
    pub async fn as_publisher(&self, method: &str, path: &str, body: impl AsRef<[u8]>) -> Answer {
        let kind = if body.as_ref().starts_with(b"PK") { "application/zip" } else { "application/json" };
        let token = self.variables().get("SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN");
        let token = token.map(|token| format!("Bearer {token}"));
        let mut headers = vec![("content-type", kind)];
        headers.extend(token.as_deref().map(|token| ("authorization", token)));
        if body.as_ref().is_empty() {
            headers.remove(0);
        }
        self.send(method, path, &headers, body).await
    }
}

impl AppBuilder<'_> {
    /// Restricts the app to signed-in members.
    #[must_use]
    pub fn for_members(mut self) -> Self {
        self.access = "members";
        self
    }

    /// Adds or replaces a file of the bundle.
    #[must_use]
    pub fn file(mut self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.files.retain(|(known, _)| known != path);
        self.files.push((path.to_owned(), content.as_ref().to_vec()));
        self
    }

    /// Sets the manifest's fields besides `schema_version`, and besides `bindings` if it binds nothing.
    #[must_use]
    pub fn manifest(self, members: &Value) -> Self {
        let mut manifest = json!({"schema_version": 1, "bindings": {}});
        manifest.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        self.file("service.app.json", manifest.to_string())
    }

    /// The app's bundle.
    #[must_use]
    pub fn bundle(&self) -> Vec<u8> {
        let files = self.files.iter().map(|(path, content)| (path.as_str(), content.as_slice()));
        archive(&files.collect::<Vec<_>>())
    }

    /// Creates the app, without a deployment.
    ///
    /// # Panics
    /// If the service refuses.
    pub async fn create(&self) -> HostedApp {
        let body = json!({"alias": self.alias, "name": self.alias, "access": self.access}).to_string();
        let made = self.t.as_publisher("POST", "/api/apps", body).await.expect(201);
        let (id, alias) = (made.value()["id"].as_str().unwrap().to_owned(), self.alias.clone());
        HostedApp { id, host: format!("{alias}.apps.localhost"), alias }
    }

    /// Creates the app and publishes its bundle.
    ///
    /// # Panics
    /// If the service refuses.
    pub async fn publish(self) -> HostedApp {
        let app = self.create().await;
        let deployment = app.deploy(self.t, self.bundle()).await;
        app.publish(self.t, &deployment).await;
        app
    }
}

impl HostedApp {
    /// A control plane path below the app.
    #[must_use]
    pub fn path(&self, rest: &str) -> String {
        format!("/api/apps/{}{rest}", self.alias)
    }

    /// Uploads a bundle; returns the deployment id.
    ///
    /// # Panics
    /// If the service refuses.
    pub async fn deploy(&self, t: &TestService, bundle: Vec<u8>) -> String {
        t.as_publisher("POST", &self.path("/deployments"), bundle).await.expect(201).member("id")
    }

    /// Acknowledges a deployment's permissions; returns the revision.
    ///
    /// # Panics
    /// If the service refuses.
    pub async fn acknowledge(&self, t: &TestService, deployment: &str) -> String {
        let at = self.path(&format!("/deployments/{deployment}"));
        let read = t.as_publisher("GET", &format!("{at}/permissions"), "").await;
        assert_eq!(read.status, 200, "{}", read.text());
        let revision = read.value()["permission_revision"].as_str().unwrap().to_owned();
        let body = json!({"permission_revision": revision}).to_string();
        t.as_publisher("POST", &format!("{at}/acknowledge"), body).await.expect(200);
        revision
    }

    /// Acknowledges a deployment's permissions and publishes it; returns the release.
    ///
    /// # Panics
    /// If the service refuses.
    pub async fn publish(&self, t: &TestService, deployment: &str) -> Value {
        self.acknowledge(t, deployment).await;
        let at = self.path(&format!("/deployments/{deployment}/publish"));
        t.as_publisher("POST", &at, "").await.expect(201).value()
    }
}
