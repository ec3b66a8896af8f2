//! What clients ask for and a model that generates text does not have.

use super::error::ApiError;
use axum::http::{StatusCode, Uri};

/// Embeddings and rankings are made by other models; asking again does not help, so it is no server error.
pub(super) async fn handle(uri: Uri) -> ApiError {
    let message = match uri.path() {
        path if path.contains("rank") => "this server ranks nothing: it serves a model that generates text",
        path if path.contains("infill") => "filling in is not possible: use /completion with the model's own marks",
        _ => "this server makes no embeddings: it serves a model that generates text",
    };
    ApiError::new(StatusCode::BAD_REQUEST, "unsupported", message)
}
