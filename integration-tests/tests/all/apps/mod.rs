//! Hosted apps.

mod codes;
mod data;
mod denied;
mod deployments;
mod dev_tls;
mod drafts;
mod examples;
pub(crate) mod gateway;
mod login;
mod preflight;
mod records;
mod releases;
mod rollbacks;
mod run_list;
pub(crate) mod runs;
mod scripts;
mod uploads;
mod whole;

use std::fmt::Write as _;

pub(crate) use integration_tests::apps::archive;
use integration_tests::{Answer, AnswerExt, TestService};
use serde_json::{Value, json};

/// An archive with one page; the archive is also text.
pub(crate) const PAGE: &str = "PK\x03\x04\x14\0\0\0\0\0\0\0!\\gP_z\x08\0\0\0\x08\0\0\0\n\0\0\0index.html<p>Hi 16\
    PK\x01\x02\x14\x03\x14\0\0\0\0\0\0\0!\\gP_z\x08\0\0\0\x08\0\0\0\n\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0index.html\
    PK\x05\x06\0\0\0\0\x01\0\x01\08\0\0\x000\0\0\0\0\0";

/// The content type of an archive.
const ZIP: (&str, &str) = ("content-type", "application/zip");

fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// SHA-256, hexadecimal.
fn sha256(bytes: &[u8]) -> String {
    hex(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref())
}

/// Creates an app on an open service.
async fn app(t: &TestService, alias: &str) -> Value {
    let body = json!({"alias": alias, "name": alias, "access": "public"}).to_string();
    let made = t.post("/api/apps", &body).await.expect(201);
    serde_json::from_slice(&made.body).unwrap()
}

fn deployments(app: &str) -> String {
    format!("/api/apps/{app}/deployments")
}

/// Uploads an archive to an app on an open service.
async fn upload(t: &TestService, app: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    t.anonymous().send("POST", &deployments(app), headers, body.to_vec()).await.unwrap()
}

/// Number of uploaded files that wait for their check.
fn waiting(t: &TestService) -> usize {
    let folder = std::path::Path::new(&t.variables()["SERVICE_DATA_DIR"]).join("uploads");
    folder.read_dir().unwrap().count()
}
