//! Sockets: which addresses, how many connections, and how long a client may leave one unused or unread.

use super::config::Flags;
use crate::failure::Failure;
use axum::extract::ConnectInfo;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep, timeout};
use tower::Layer;

/// The most headers of a request.
const MOST_HEADERS: usize = 100;
/// The longest head of a request in bytes, and what is read or written ahead.
const LONGEST_HEAD: usize = 64 << 10;
/// How long to wait when the system has no more sockets for us.
const PAUSE: Duration = Duration::from_millis(50);
/// How long connections may take to close once there is nothing more to answer.
const CLOSING: Duration = Duration::from_secs(2);

/// What is said to a client for whom there is no connection left.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n\
    Connection: close\r\nContent-Length: 111\r\n\r\n\
    {\"error\":{\"message\":\"too many connections; try again\",\"type\":\"server_error\",\"param\":null,\"code\":\"connections\"}}";

/// The limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct Connections {
    most: usize,
    header_timeout: Duration,
    write_timeout: Duration,
}

impl Connections {
    /// As the flags say.
    pub fn new(flags: &Flags) -> Self {
        let (header_timeout, write_timeout) = (flags.header_timeout, flags.write_timeout);
        Self { most: flags.max_connections as usize, header_timeout, write_timeout }
    }
}

/// The addresses of a host.
///
/// # Errors
/// When its name means nothing.
pub async fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    // Addresses of version 6 may stand in brackets, as in URLs.
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let unknown = |why: String| Failure::Usage(format!("--host {host}: {why}"));
    let found: Vec<_> = lookup_host((bare, port)).await.map_err(|why| unknown(why.to_string()))?.collect();
    if found.is_empty() { Err(unknown("has no address".into())) } else { Ok(found) }
}

/// Listens on the first of these addresses that is free.
///
/// # Errors
/// When none is.
pub async fn bind(addresses: &[SocketAddr]) -> Result<TcpListener, Failure> {
    TcpListener::bind(addresses).await.map_err(|why| {
        let names: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
        Failure::Other(format!("cannot listen on {}: {why}", names.join(" or ")))
    })
}

/// Serves until `end` comes, and then until the connections are closed, which they soon must be.
pub async fn serve(listener: TcpListener, router: Router, limits: Connections, end: impl Future<Output = ()>) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_headers(MOST_HEADERS)
        .max_header_size(LONGEST_HEAD)
        .max_buf_size(LONGEST_HEAD);
    let places = Arc::new(Semaphore::new(limits.most));
    let open = GracefulShutdown::new();
    let mut end = std::pin::pin!(end);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut end => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(target: "server", %error, "a connection was not taken");
                sleep(PAUSE).await;
                continue;
            }
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            tokio::spawn(timeout(limits.write_timeout, turn_away(stream)));
            continue;
        };
        // Small pieces of a stream are not held back. It works without that, too.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(Extension(ConnectInfo(peer)).layer(router.clone()));
        let connection = http.serve_connection(TokioIo::new(Paced::new(stream, limits.write_timeout)), service);
        let connection = open.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(target: "server", %peer, error = ?error, "a connection broke off");
            }
            drop(place);
        });
    }
    drop(listener);
    if timeout(CLOSING, open.shutdown()).await.is_err() {
        tracing::warn!(target: "server", "some connections were cut off");
    }
}

async fn turn_away(mut stream: TcpStream) {
    // Who does not read it has gone.
    let _ = stream.write_all(FULL).await;
    let _ = stream.shutdown().await;
}

/// A socket that fails when nothing of what is written is taken for some time. A client that reads slowly keeps its answer, and
/// its slot, from ending; one that does not read would do so for ever.
#[derive(Debug)]
struct Paced<S> {
    stream: S,
    patience: Duration,
    /// Ends when patience does.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Paced<S> {
    fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, stalled: None }
    }

    /// What came of an attempt to write.
    fn pace<T>(&mut self, cx: &mut Context<'_>, attempt: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if attempt.is_ready() {
            self.stalled = None;
            return attempt;
        }
        let patience = self.patience;
        ready!(self.stalled.get_or_insert_with(|| Box::pin(sleep(patience))).as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let attempt = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.pace(cx, attempt)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let attempt = Pin::new(&mut this.stream).poll_write_vectored(cx, bytes);
        this.pace(cx, attempt)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let attempt = Pin::new(&mut this.stream).poll_flush(cx);
        this.pace(cx, attempt)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let attempt = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.pace(cx, attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[test]
    fn the_refusal_has_the_length_it_names() {
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("Content-Length: {}\r\n", body.len()))
                || head.ends_with(&format!("Content-Length: {}", body.len())),
            "{}",
            body.len()
        );
        serde_json::from_str::<serde_json::Value>(body).unwrap();
    }

    #[tokio::test]
    async fn who_does_not_read_is_dropped() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let mut ours = Paced::new(ours, Duration::from_millis(10));
        let error = ours.write_all(&[0; 17]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn who_reads_slowly_is_not() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut ours = Paced::new(ours, Duration::from_secs(600));
        let reader = tokio::spawn(async move {
            let mut all = [0; 64];
            for byte in all.chunks_mut(1) {
                theirs.read_exact(byte).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        ours.write_all(&[0; 64]).await.unwrap();
        reader.await.unwrap();
        assert!(ours.stalled.is_none());
    }

    #[tokio::test]
    async fn hosts_have_addresses() {
        for (host, ip) in [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("[::1]", "::1")] {
            let found = addresses(host, 80).await.unwrap();
            assert_eq!(found, [SocketAddr::new(ip.parse().unwrap(), 80)]);
        }
        let refused = addresses("not a host", 80).await.unwrap_err();
        assert!(refused.status() == 2 && refused.to_string().contains("not a host"), "{refused}");
    }
}
