//! The floor: a bare handler that streams the same pieces and writes the two items in two transactions, with
//! prepared statements, on a pool of 16. No checks, no journal, no stored stream.

use std::sync::Arc;

use actix_web::web::{Bytes, Data};
use actix_web::{App, HttpResponse, HttpServer, web};
use anyhow::{Context, Result};
use futures_util::stream::{self, StreamExt};
use tokio::sync::{Mutex, mpsc};
use tokio_postgres::{Client, NoTls, Statement};

const CONNECTIONS: usize = 16;
const TABLE: &str = "CREATE TABLE IF NOT EXISTS floor_items \
    (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, thread text NOT NULL, content text NOT NULL)";
const INSERT: &str = "INSERT INTO floor_items (thread, content) VALUES ($1, $2)";

struct Connection {
    client: Client,
    begin: Statement,
    insert: Statement,
    insert_chunk: Statement,
    commit: Statement,
}

struct FloorPool {
    free: mpsc::UnboundedSender<Connection>,
    taken: Mutex<mpsc::UnboundedReceiver<Connection>>,
}

impl FloorPool {
    /// Stores one item in one transaction.
    async fn store(&self, content: &str) -> Result<()> {
        let connection = self.taken.lock().await.recv().await.context("the pool is closed")?;
        connection.client.execute(&connection.begin, &[]).await?;
        connection.client.execute(&connection.insert, &[&"thr_floor", &content]).await?;
        connection.client.execute(&connection.commit, &[]).await?;
        let _ = self.free.send(connection);
        Ok(())
    }
}

/// Bytes per inserted chunk.
const CHUNK: usize = 256 << 10;
const CHUNKS: &str = "CREATE TABLE IF NOT EXISTS floor_chunks (number int NOT NULL, bytes bytea NOT NULL)";
const INSERT_CHUNK: &str = "INSERT INTO floor_chunks (number, bytes) VALUES ($1, $2)";

/// Serves until it is killed; prints its address.
pub(super) fn run(dsn: &str) -> Result<()> {
    actix_rt::System::new().block_on(serve(dsn))
}

async fn serve(dsn: &str) -> Result<()> {
    let (free, taken) = mpsc::unbounded_channel();
    for _ in 0..CONNECTIONS {
        let (client, connection) = tokio_postgres::connect(dsn, NoTls).await?;
        actix_rt::spawn(connection);
        client.batch_execute("SELECT pg_advisory_lock(1)").await?;
        client.batch_execute(TABLE).await?;
        client.batch_execute(CHUNKS).await?;
        client.batch_execute("SELECT pg_advisory_unlock(1)").await?;
        let (begin, insert) = (client.prepare("BEGIN").await?, client.prepare(INSERT).await?);
        let (commit, insert_chunk) = (client.prepare("COMMIT").await?, client.prepare(INSERT_CHUNK).await?);
        let _ = free.send(Connection { client, begin, insert, insert_chunk, commit });
    }
    let pool = Arc::new(FloorPool { free, taken: Mutex::new(taken) });
    let server = HttpServer::new(move || {
        App::new()
            .app_data(Data::new(Arc::clone(&pool)))
            .route("/api/chat", web::post().to(chat))
            .route("/upload", web::post().to(upload))
    })
    .workers(2)
    .tcp_nodelay(true)
    .bind(("127.0.0.1", 0))?;
    let address = server.addrs().first().copied().context("no address")?;
    println!("listening on http://{address}");
    server.run().await?;
    Ok(())
}

async fn chat(pool: Data<Arc<FloorPool>>, body: Bytes) -> actix_web::Result<HttpResponse> {
    let request: serde_json::Value = serde_json::from_slice(&body)?;
    let text = request.pointer("/params/input/content/0/text").and_then(|text| text.as_str());
    let text = text.unwrap_or_default().to_owned();
    let failed = |error: anyhow::Error| actix_web::error::ErrorInternalServerError(error.to_string());
    pool.store(&body_item("user_message", &text)).await.map_err(failed)?;
    let created = event("{\"type\":\"thread.created\",\"thread\":{\"id\":\"thr_floor\"}}");
    let pieces: Vec<Bytes> = text
        .split_inclusive(' ')
        .map(|piece| {
            let part = serde_json::json!({"type": "thread.item.updated", "item_id": "msg_floor",
                "update": {"type": "content_part_added", "part": {"type": "output_text", "text": piece}}});
            event(&part.to_string())
        })
        .collect();
    let item = body_item("assistant_message", &text);
    let pool = Arc::clone(&pool);
    let done = stream::once(async move {
        pool.store(&item)
            .await
            .map_err(|error| actix_web::error::ErrorInternalServerError(error.to_string()))?;
        Ok(event(&format!("{{\"type\":\"thread.item.done\",\"item\":{item}}}")))
    });
    let body =
        stream::iter(std::iter::once(created).chain(pieces)).map(Ok::<_, actix_web::Error>).chain(done);
    Ok(HttpResponse::Ok().content_type("text/event-stream").streaming(Box::pin(body)))
}

/// Inserts a body chunk by chunk, each in its own transaction.
async fn upload(pool: Data<Arc<FloorPool>>, mut body: web::Payload) -> actix_web::Result<HttpResponse> {
    let (mut chunk, mut number) = (Vec::with_capacity(CHUNK), 0_i32);
    loop {
        let piece = body.next().await.transpose()?;
        chunk.extend_from_slice(piece.as_deref().unwrap_or_default());
        while chunk.len() >= CHUNK || piece.is_none() && !chunk.is_empty() {
            let rest = chunk.split_off(CHUNK.min(chunk.len()));
            let full = std::mem::replace(&mut chunk, rest);
            let connection = pool.taken.lock().await.recv().await;
            let connection =
                connection.ok_or_else(|| actix_web::error::ErrorInternalServerError("no pool"))?;
            let inserted = connection.client.execute(&connection.insert_chunk, &[&number, &full]).await;
            inserted.map_err(|error| actix_web::error::ErrorInternalServerError(error.to_string()))?;
            let _ = pool.free.send(connection);
            number += 1;
        }
        if piece.is_none() {
            return Ok(HttpResponse::Ok().finish());
        }
    }
}

fn body_item(kind: &str, text: &str) -> String {
    serde_json::json!({"type": kind, "id": "msg_floor", "thread_id": "thr_floor",
        "content": [{"type": "output_text", "text": text}]})
    .to_string()
}

fn event(json: &str) -> Bytes {
    Bytes::from(format!("data: {json}\n\n"))
}
