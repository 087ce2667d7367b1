//! The database disappears for a moment: nothing is lost, and the service recovers automatically.

use integration_tests::{AnswerExt, TestService, chat, events, graphs, pause, until, within};

const CUT: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";

#[tokio::test]
async fn connections_lost_under_load_lose_no_messages() {
    let t = TestService::start().await;
    let text = "{{ inputs.message }} is what you said";
    let workflow = t.workflow().graph(graphs::words(text, 10)).published().create().await;
    let talking = (0..12).map(|n| {
        let (client, workflow) = (t.visitor(), workflow.id.clone());
        tokio::spawn(async move {
            for round in 0..4 {
                let message = format!("number {n} round {round}");
                // A message that is rejected now is sent again.
                let turn = loop {
                    match client.say(&workflow, &message).await {
                        Err(error) if error.is_passing() => pause(20).await,
                        other => break other.unwrap(),
                    }
                };
                assert_eq!((turn.error, turn.text), (None, format!("{message} is what you said")));
            }
        })
    });
    let talking: Vec<_> = talking.collect();
    for _ in 0..5 {
        pause(60).await;
        t.execute(CUT).await;
    }
    for one in talking {
        within("all visitors to have chatted", one).await.unwrap();
    }
    let unfinished = "SELECT count(*) FROM runs WHERE finished_at IS NULL";
    t.until_scalar("every turn to end", unfinished, "0").await;
    assert_eq!(t.scalar("SELECT count(*) FROM runs WHERE status <> 'succeeded'").await, "0");
    t.assert_healthy().await;
}

#[tokio::test]
async fn a_running_stream_continues_after_lost_connections() {
    let t = TestService::start().await;
    let text = "some words ".repeat(50);
    let workflow = t.workflow().graph(graphs::words(&text, 10)).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
    let mut body = answer.until("some").await;
    for _ in 0..3 {
        t.execute(CUT).await;
        pause(150).await;
    }
    body.push_str(&answer.rest().await);
    assert_eq!(events(&body).pop().unwrap()["item"]["content"][0]["text"], text);
    assert_eq!(t.resume(&stream, None).await.rest().await, body);
}

#[tokio::test]
async fn readiness_fails_while_the_database_refuses_connections() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let database = t.scalar("SELECT current_database()").await;
    let owner = integration_tests::owner_of_all_databases().await;
    owner.execute(&format!("ALTER DATABASE \"{database}\" ALLOW_CONNECTIONS false")).await.unwrap();
    let cut = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'");
    owner.execute(&cut).await.unwrap();
    until("readiness to fail", async || t.get("/readyz").await.status == 503).await;
    let red = t.get("/readyz").await;
    assert_eq!(red.header("retry-after"), Some("1"));
    assert!(red.text().contains("the database does not respond"), "{}", red.text());
    assert_eq!(t.get("/healthz").await.status, 200, "the process is alive");
    let refused = t.chat(&chat::create(&workflow, "hi")).await.expect(503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(
        !refused.text().contains(&database),
        "internal details do not reach a client: {}",
        refused.text()
    );
    owner.execute(&format!("ALTER DATABASE \"{database}\" ALLOW_CONNECTIONS true")).await.unwrap();
    until("readiness to recover", async || t.get("/readyz").await.status == 200).await;
    assert_eq!(t.chat(&chat::create(&workflow, "hi")).await.status, 200);
}
