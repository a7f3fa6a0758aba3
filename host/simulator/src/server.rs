//! Sockets, connections and paths.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::config::Protocol;
use crate::models;
use crate::refusal::{Reason, Refusal};
use crate::reply::{Reply, ResetOnPurpose, Step, StepBody};
use crate::state::{Head, State};

/// Serves connections until it is dropped.
pub(crate) async fn serve(listener: TcpListener, state: Arc<State>) {
    loop {
        // Out of file handles, or a connection that is gone already: the next one may do.
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(connection(stream, Arc::clone(&state)));
    }
}

/// Binds a port of the loopback address, within a runtime.
pub(crate) fn bind(port: u16) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", port))?;
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

async fn connection(stream: TcpStream, state: Arc<State>) {
    // Streams of small events are what this is for.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| handle(request, Arc::clone(&state)));
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    if Pin::new(&mut connection).await.is_err() {
        // Lingering for no time turns the close into a reset.
        let stream = connection.into_parts().io.into_inner();
        let _ = stream.set_zero_linger();
    }
}

async fn handle(request: Request<Incoming>, state: Arc<State>) -> Result<Response<StepBody>, ResetOnPurpose> {
    let path = request.uri().path().to_owned();
    let method = request.method().clone();
    let head = head(request.headers());
    let protocol = match path.as_str() {
        "/v1/chat/completions" => Some(Protocol::Chat),
        "/v1/responses" => Some(Protocol::Responses),
        "/v1/messages" => Some(Protocol::Messages),
        _ => None,
    };
    let asker = if head.version { Protocol::Messages } else { Protocol::Chat };
    let reply = match (method, protocol) {
        (Method::POST, Some(protocol)) => {
            // A client that goes away while it sends gets no answer anyway.
            let Ok(body) = read(request.into_body()).await else { return Err(ResetOnPurpose) };
            let state = Arc::clone(&state);
            let post = move || state.post(protocol, &head, &body);
            tokio::task::spawn_blocking(post).await.map_err(|_| ResetOnPurpose)?
        }
        (Method::GET, None) if path == "/v1/models" || path.starts_with("/v1/models/") => {
            listing(&state, asker, &head, path.strip_prefix("/v1/models/"))
        }
        (Method::GET | Method::HEAD, None) if path == "/" => Reply::new(200, "text/plain", "simulated provider\n"),
        (method, _) => {
            let message = match asker {
                Protocol::Messages => "Not Found".to_owned(),
                _ => format!("Invalid URL ({method} {path})"),
            };
            let refusal = Refusal::new(Reason::NoSuchPath, message).status(404);
            Reply::json(404, &refusal.to_json(asker, "req_path").unwrap_or_default())
        }
    };
    respond(reply).await
}

fn listing(state: &State, asker: Protocol, head: &Head, id: Option<&str>) -> Reply {
    if let Err(refusal) = state.check_key(head, asker) {
        return Reply::json(refusal.status, &refusal.to_json(asker, "req_models").unwrap_or_default());
    }
    let (listing, next) = state.listing();
    models::list(&state.config(), asker, id, listing, next)
}

fn head(headers: &HeaderMap) -> Head {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").and_then(|value| value.strip_prefix("Bearer "));
    Head {
        key: text("x-api-key").or_else(|| text("api-key")).or(bearer).map(str::to_owned),
        version: text("anthropic-version").is_some(),
        session: text("x-simulator-session").unwrap_or_default().to_owned(),
    }
}

async fn read(body: Incoming) -> Result<Bytes, hyper::Error> {
    Ok(body.collect().await?.to_bytes())
}

/// Plays what comes before the headers, and hands over the rest.
async fn respond(mut reply: Reply) -> Result<Response<StepBody>, ResetOnPurpose> {
    while let Some(Step::Wait(pause)) = reply.steps.front() {
        let pause = *pause;
        reply.steps.pop_front();
        sleep(pause).await;
    }
    if reply.status == 0 {
        return Err(ResetOnPurpose);
    }
    let (status, headers) = (reply.status, std::mem::take(&mut reply.headers));
    let mut response = Response::new(reply.into_body());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    Ok(response)
}
