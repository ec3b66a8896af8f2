//! One line in the log for each request, written when its answer has ended. Never what was asked or answered. Looks at how the
//! server is are for debugging only.

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{ConnectInfo, Request};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

/// The status of a request whose client did not wait for one, as others write it.
const WENT_AWAY: u16 = 499;

/// Where whoever answers a request adds up its tokens: an extension of the request.
#[derive(Clone, Debug, Default)]
pub(super) struct Tokens(Arc<AtomicU64>);

impl Tokens {
    /// So many more were generated.
    pub(super) fn add(&self, tokens: u64) {
        self.0.fetch_add(tokens, Ordering::Relaxed);
    }
}

/// Writes a line for each request.
pub async fn log(mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip().to_string());
    let tokens = Tokens::default();
    request.extensions_mut().insert(tokens.clone());
    let mut line = Line {
        peer: peer.unwrap_or_default(),
        method: request.method().clone(),
        // Without the query, in which somebody could have put a key.
        path: request.uri().path().to_owned(),
        start: Instant::now(),
        tokens,
        status: None,
        ended: false,
    };
    let response = next.run(request).await;
    line.status = Some(response.status());
    response.map(|body| {
        // Then nobody asks for it.
        line.ended = body.is_end_stream() || line.method == Method::HEAD;
        Body::new(Logged { body, line })
    })
}

/// What is known of a request. The line is written when this is dropped, so also for a client that went away.
#[derive(Debug)]
struct Line {
    peer: String,
    method: Method,
    path: String,
    start: Instant,
    tokens: Tokens,
    status: Option<StatusCode>,
    ended: bool,
}

impl Drop for Line {
    fn drop(&mut self) {
        let milliseconds = self.start.elapsed().as_millis() as u64;
        let status = self.status.map_or(WENT_AWAY, |status| status.as_u16());
        let Self { peer, method, path, .. } = &*self;
        let tokens = self.tokens.0.load(Ordering::Relaxed);
        let message = if self.ended { "answered" } else { "the client went away" };
        match self.is_routine() {
            true => tracing::debug!(target: "server", %method, path, status, milliseconds, tokens, peer, "{message}"),
            false => tracing::info!(target: "server", %method, path, status, milliseconds, tokens, peer, "{message}"),
        }
    }
}

impl Line {
    /// Whether somebody only looks how the server is, as pages and monitors do every second.
    fn is_routine(&self) -> bool {
        const LOOKS: [&str; 6] = ["/health", "/v1/health", "/ready", "/status", "/metrics", "/slots"];
        self.method == Method::GET && LOOKS.contains(&self.path.as_str())
    }
}

/// The body of an answer, with its line.
#[derive(Debug)]
struct Logged {
    body: Body,
    line: Line,
}

impl HttpBody for Logged {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.get_mut();
        let frame = Pin::new(&mut this.body).poll_frame(cx);
        this.line.ended |= matches!(frame, Poll::Ready(None)) || this.body.is_end_stream();
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
