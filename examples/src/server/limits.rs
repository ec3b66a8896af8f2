//! How much a client may send, and how slowly.

use super::api::ApiError;
use super::config::Flags;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

/// What counts as one in the room for bodies, in bytes.
const UNIT: usize = 1 << 10;
/// How many of the largest bodies are read at once.
const LARGEST_AT_ONCE: usize = 8;
/// Of a body that is too large, this many times the largest is read and thrown away, so that a client that sends all of it
/// before it reads gets to see the answer.
const THROWN_AWAY: usize = 8;
/// How long that may take.
const THROWING_AWAY: Duration = Duration::from_secs(5);

/// The limits of bodies.
#[derive(Clone, Debug)]
pub struct Bodies {
    /// The largest one in bytes.
    most: usize,
    /// How long one may take.
    patience: Duration,
    /// For all that are being read or worked on.
    room: Arc<Semaphore>,
}

impl Bodies {
    /// As the flags say.
    pub fn new(flags: &Flags) -> Self {
        Self::with((flags.max_body as usize) << 20, flags.body_timeout)
    }

    fn with(most: usize, patience: Duration) -> Self {
        Self { most, patience, room: Arc::new(Semaphore::new(LARGEST_AT_ONCE * most.div_ceil(UNIT))) }
    }

    /// All of a body, with its room.
    async fn read(&self, body: Body) -> Result<(Bytes, OwnedSemaphorePermit), Refusal> {
        let announced = body.size_hint().lower();
        if announced > self.most as u64 {
            self.throw_away(body);
            return Err(Refusal::TooLarge(self.most));
        }
        let deadline = Instant::now() + self.patience;
        let mut room = self.take(0)?;
        let mut whole = Vec::new();
        let mut pieces = body.into_data_stream();
        while let Some(piece) = timeout_at(deadline, pieces.next()).await.map_err(|_| Refusal::TooSlow)? {
            let piece = piece.map_err(|_| Refusal::Broken)?;
            if whole.len() + piece.len() > self.most {
                self.throw_away(Body::from_stream(pieces));
                return Err(Refusal::TooLarge(self.most));
            }
            let more = (whole.len() + piece.len()).div_ceil(UNIT) - room.num_permits();
            room.merge(self.take(more)?);
            whole.extend_from_slice(&piece);
        }
        Ok((whole.into(), room))
    }

    fn take(&self, units: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let units = u32::try_from(units).map_err(|_| Refusal::Busy)?;
        self.room.clone().try_acquire_many_owned(units).map_err(|_| Refusal::Busy)
    }

    /// Reads on beside the answer.
    fn throw_away(&self, body: Body) {
        let most = self.most.saturating_mul(THROWN_AWAY);
        tokio::spawn(timeout(THROWING_AWAY, async move {
            let mut pieces = body.into_data_stream();
            let mut read = 0;
            while let Some(Ok(piece)) = pieces.next().await
                && read < most
            {
                read += piece.len();
            }
        }));
    }
}

/// Why a body is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// It is larger than this many bytes.
    TooLarge(usize),
    /// It did not come in time.
    TooSlow,
    /// It broke off, or is badly framed.
    Broken,
    /// So many are being read that there is no room for another.
    Busy,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let error = match self {
            Self::TooLarge(most) => {
                let message = format!("the body is larger than {most} bytes");
                ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
            }
            Self::TooSlow => {
                ApiError::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", "the body did not come in time")
            }
            Self::Broken => {
                ApiError::new(StatusCode::BAD_REQUEST, "body_broken", "the body broke off or is badly framed")
            }
            Self::Busy => ApiError::unavailable("too many large requests at once; try again", 1),
        };
        // What is left of the body is not read, so nothing can follow it.
        ([(header::CONNECTION, HeaderValue::from_static("close"))], error).into_response()
    }
}

/// Reads the body of a request before anybody looks at it.
pub async fn read_body(State(bodies): State<Bodies>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    match bodies.read(body).await {
        // The room is given back when the answer has begun: by then the body was read into something else.
        Ok((bytes, _room)) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Err(refusal) => refusal.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use std::convert::Infallible;

    fn pieces(count: usize, size: usize) -> Body {
        Body::from_stream(stream::iter((0..count).map(move |_| Ok::<_, Infallible>(Bytes::from(vec![b'x'; size])))))
    }

    const PATIENCE: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn bodies_are_read_up_to_the_limit() {
        let bodies = Bodies::with(1000, PATIENCE);
        for body in [pieces(1, 1000), pieces(1000, 1), Body::from(vec![0; 1000]), Body::empty()] {
            assert!(bodies.read(body).await.is_ok());
        }
        for body in [pieces(1, 1001), pieces(1001, 1), pieces(1 << 40, 1 << 10), Body::from(vec![0; 1001])] {
            assert_eq!(bodies.read(body).await.err(), Some(Refusal::TooLarge(1000)));
        }
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let bodies = Bodies::with(1000, Duration::from_millis(20));
        let never = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        assert_eq!(bodies.read(never).await.err(), Some(Refusal::TooSlow));
    }

    #[tokio::test]
    async fn many_bodies_share_their_room() {
        let bodies = Bodies::with(4 * UNIT, PATIENCE);
        let mut held = Vec::new();
        for _ in 0..LARGEST_AT_ONCE {
            held.push(bodies.read(pieces(4, UNIT)).await.unwrap());
        }
        assert_eq!(bodies.read(pieces(1, 1)).await.err(), Some(Refusal::Busy));
        held.pop();
        assert!(bodies.read(pieces(1, 1)).await.is_ok());
    }
}
