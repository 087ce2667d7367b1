//! The floor: a bare actix-web server that broadcasts the same bytes to as many readers. Nothing is stored, no reader
//! is authenticated, and none can resume.

use std::sync::Arc;
use std::time::Duration;

use actix_web::web::{Bytes, Data, Path};
use actix_web::{App, HttpResponse, HttpServer, web};
use anyhow::{Context, Result};
use futures_util::stream::unfold;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Sender};

use super::super::server::pause;

/// A topic's capacity in the service.
const CAPACITY: usize = 16;
const PACE: Duration = Duration::from_millis(50);

/// Serves until it is killed; prints its address.
pub(in super::super) fn run(topics: usize) -> Result<()> {
    actix_rt::System::new().block_on(serve(topics))
}

async fn serve(topics: usize) -> Result<()> {
    let senders: Arc<Vec<Sender<Bytes>>> = Arc::new((0..topics).map(|_| Sender::new(CAPACITY)).collect());
    // The writers have separate threads, like the service's turns.
    let writers = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for (nth, sender) in senders.iter().cloned().enumerate() {
        writers.spawn(write(sender, nth, topics));
    }
    let shared = Arc::clone(&senders);
    let server = HttpServer::new(move || {
        App::new().app_data(Data::new(Arc::clone(&shared))).route("/streams/{n}", web::get().to(read))
    })
    .workers(2)
    .tcp_nodelay(true)
    .bind(("127.0.0.1", 0))?;
    let address = server.addrs().first().copied().context("no address")?;
    println!("listening on http://{address}");
    server.run().await?;
    Ok(())
}

async fn write(sender: Sender<Bytes>, nth: usize, topics: usize) {
    // Offsets are spread over the pace, as with turns that began one after another.
    let share = f64::from(u32::try_from(nth).unwrap_or(0)) / f64::from(u32::try_from(topics).unwrap_or(1));
    pause(PACE.mul_f64(share)).await;
    let mut pace = tokio::time::interval(PACE);
    for seq in 1_u64.. {
        pace.tick().await;
        // As long as a service event.
        let event = format!(
            "id: 019aa5d0-0000-7000-8000-{nth:012}.{seq}\ndata: {{\"type\":\"thread.item.updated\",\"item_id\":\
             \"msg_0123456789abcdef0123456789abcdef\",\"update\":{{\"type\":\"content_part_added\",\"part\":\
             {{\"type\":\"output_text\",\"text\":\"word \"}}}}}}\n\n"
        );
        let _ = sender.send(Bytes::from(event));
    }
}

async fn read(senders: Data<Arc<Vec<Sender<Bytes>>>>, nth: Path<usize>) -> HttpResponse {
    let Some(sender) = senders.get(*nth) else { return HttpResponse::NotFound().finish() };
    let body = unfold(sender.subscribe(), next);
    HttpResponse::Ok().content_type("text/event-stream").streaming(body)
}

async fn next(
    mut events: broadcast::Receiver<Bytes>,
) -> Option<(actix_web::Result<Bytes>, broadcast::Receiver<Bytes>)> {
    loop {
        match events.recv().await {
            Ok(event) => return Some((Ok(event), events)),
            // Lost: nothing stores it for a second read.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}
