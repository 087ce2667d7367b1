//! `kill -9` between the commit of a sign-in and its mail: the mail arrives, and none of its content is in the log.

use client::Client;
use integration_tests::{AnswerExt, JSON, MailServer, until};
use serde_json::json;
use store::testing::TestDatabase;

use super::folder;
use super::service::Service;

const ADA: &str = "ada@example.org";

async fn ready(client: &Client) {
    until("the service to be ready", async || client.ready().await.is_ok_and(|answer| answer.status == 200))
        .await;
}

async fn post(client: &Client, path: &str, body: serde_json::Value) -> client::Answer {
    client.send("POST", path, &[JSON], body.to_string()).await.unwrap()
}

#[tokio::test]
async fn a_mail_survives_a_kill_of_its_sender() {
    let database = TestDatabase::create().await;
    let mut mail = MailServer::start().await;
    let mut service = Service::new(&folder("sign-in"), Some(database.dsn()));
    service.set("SERVICE_SMTP_URL", mail.url());
    service.set("SERVICE_LOG", "trace".to_owned());
    mail.server.go_down().await;
    service.start();
    let client = Client::new(&service.base()).unwrap();
    ready(&client).await;
    assert_eq!(post(&client, "/api/auth/email/start", json!({"email": ADA})).await.status, 202);
    service.kill();
    mail.server.come_up().await;
    mail.be_silent(true);
    service.start();
    ready(&client).await;
    let first = mail.mail(1).await;
    service.kill();
    mail.be_silent(false);
    service.start();
    ready(&client).await;
    let second = mail.mail(2).await;
    assert_eq!(first.code(), second.code(), "a mail interrupted by a kill is sent again");
    let answer = post(&client, "/api/auth/email/verify", json!({"email": ADA, "code": second.code()})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = answer.json().unwrap();
    let link = second.link().unwrap();
    let path = link.strip_prefix(&service.base()).unwrap().to_owned();
    assert_eq!(post(&client, &path, json!({})).await.status, 401);
    let logged = service.logged();
    assert!(logged.contains("mail sent"), "the log is not empty");
    let challenge = client.cookie("__Host-svc_chal").unwrap();
    let secrets = [
        path.rsplit('/').next().unwrap(),
        body["access_token"].as_str().unwrap(),
        body["refresh_token"].as_str().unwrap(),
        &challenge,
    ];
    for secret in secrets {
        assert!(!logged.contains(secret), "{secret} is in the log");
    }
    let line = logged.lines().find(|line| line.contains(&second.code()) && !line.contains("crash"));
    assert_eq!(line, None);
    service.stop();
}

#[tokio::test]
async fn without_a_mail_server_only_the_log_contains_the_code() {
    let database = TestDatabase::create().await;
    let mut service = Service::new(&folder("sign-in-log"), Some(database.dsn()));
    service.start();
    let client = Client::new(&service.base()).unwrap();
    ready(&client).await;
    assert_eq!(post(&client, "/api/auth/email/start", json!({"email": ADA})).await.status, 202);
    until("the mail in the log", async || service.logged().contains("signs in with the code")).await;
    let logged = service.logged();
    let line = logged.lines().find(|line| line.contains("signs in with the code")).unwrap();
    assert!(
        line.contains(ADA) && line.contains("SERVICE_SMTP_URL") && line.contains("/api/auth/magic/"),
        "{line}"
    );
    let code = line.split("signs in with the code ").nth(1).unwrap().split(' ').next().unwrap();
    post(&client, "/api/auth/email/verify", json!({"email": ADA, "code": code})).await.expect(200);
    service.stop();
}
