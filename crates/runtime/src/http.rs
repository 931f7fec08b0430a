//! The HTTP port of a role: `/metrics`, `/livez`, `/readyz`, `/`.

use std::net::SocketAddr;

use axum::{Router, extract::State, http::StatusCode, http::header, response::IntoResponse, routing::get};
use tokio::net::TcpListener;

use crate::{health::Health, net, shutdown::Supervisor, telemetry::Metrics};

#[derive(Clone)]
struct Pages {
    health: Health,
    metrics: Metrics,
    title: String,
}

/// Serves until the supervisor stops. Returns the bound address.
///
/// # Errors
/// The address cannot be bound.
pub async fn serve(
    sup: &Supervisor,
    listen: SocketAddr,
    title: &str,
    health: Health,
    metrics: Metrics,
) -> Result<SocketAddr, net::BindError> {
    let refused = |e| net::BindError::other("http", listen, &e);
    let listener = TcpListener::bind(listen).await.map_err(refused)?;
    let addr = listener.local_addr().map_err(refused)?;
    let app = Router::new()
        .route("/", get(index))
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(scrape))
        .with_state(Pages { health, metrics, title: title.to_owned() });
    let token = sup.token().clone();
    sup.spawn("http", async move {
        let done = axum::serve(listener, app).with_graceful_shutdown(async move { token.cancelled().await });
        if let Err(e) = done.await {
            tracing::warn!(error = %e, "http server ended");
        }
    });
    Ok(addr)
}

async fn index(State(p): State<Pages>) -> String {
    format!("{}\n/metrics /livez /readyz\n", p.title)
}

async fn livez(State(p): State<Pages>) -> impl IntoResponse {
    match p.health.death() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("dead: {why}\n")),
    }
}

async fn readyz(State(p): State<Pages>) -> impl IntoResponse {
    if p.health.is_ready() {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    let mut text = String::new();
    if let Some(why) = p.health.death() {
        text.push_str(&format!("dead: {why}\n"));
    }
    for (what, why) in p.health.waiting() {
        text.push_str(&format!("waiting for {what}: {why}\n"));
    }
    (StatusCode::SERVICE_UNAVAILABLE, text)
}

async fn scrape(State(p): State<Pages>) -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")],
        p.metrics.encode(),
    )
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn get_page(addr: SocketAddr, path: &str) -> String {
        let mut s = tokio::net::TcpStream::connect(addr).await.unwrap();
        s.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let mut out = String::new();
        s.read_to_string(&mut out).await.unwrap();
        out
    }

    #[tokio::test]
    async fn pages_tell_the_truth() {
        let health = Health::new();
        let sup = Supervisor::new(health.clone());
        health.waits_for("quorum", "no leader yet");
        let addr =
            serve(&sup, "127.0.0.1:0".parse().unwrap(), "t", health.clone(), Metrics::new()).await.unwrap();
        assert!(get_page(addr, "/readyz").await.contains("waiting for quorum: no leader yet"));
        assert!(get_page(addr, "/livez").await.starts_with("HTTP/1.1 200"));
        health.has("quorum");
        assert!(get_page(addr, "/readyz").await.starts_with("HTTP/1.1 200"));
        assert!(get_page(addr, "/metrics").await.contains("# EOF"));
        health.die("disk");
        assert!(get_page(addr, "/livez").await.contains("dead: disk"));
        sup.stop().await;
    }
}
