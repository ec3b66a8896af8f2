//! The JSON object of a request, whose fields are taken out one by one: what is wrong is named, what is unknown is left.

use super::error::ApiError;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The fields of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    pub(super) fn new(fields: Map<String, Value>) -> Self {
        Self(fields)
    }

    /// Takes a field; `null` is as good as none.
    ///
    /// # Errors
    /// When it is not of this type.
    pub(super) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, ApiError> {
        match self.value(name) {
            Some(value) => read(name, value).map(Some),
            None => Ok(None),
        }
    }

    /// Takes the first of these fields that is there; the others are passed over.
    pub(super) fn first<T: DeserializeOwned>(&mut self, names: &[&str]) -> Result<Option<T>, ApiError> {
        for name in names {
            if let Some(value) = self.take(name)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Takes a field that must be there.
    pub(super) fn require<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, ApiError> {
        self.take(name)?.ok_or_else(|| missing(name))
    }

    /// Takes a field that is `false` unless it is set.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool, ApiError> {
        Ok(self.take(name)?.unwrap_or(false))
    }

    /// Takes a field as it is.
    pub(super) fn value(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    /// The name of a field that nobody took.
    pub(super) fn left(&self) -> Option<&str> {
        self.0.keys().next().map(String::as_str)
    }

    pub(super) fn into_map(self) -> Map<String, Value> {
        self.0
    }
}

/// A value of this type.
pub(super) fn read<T: DeserializeOwned>(param: &str, value: Value) -> Result<T, ApiError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let inner = error.path().to_string();
        let param = match inner.as_str() {
            "." => param.to_owned(),
            inner if inner.starts_with('[') => format!("{param}{inner}"),
            inner => format!("{param}.{inner}"),
        };
        let message = format!("`{param}`: {}", error.inner());
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_type", message).about(param)
    })
}

/// What is said of a field that is not there.
pub(super) fn missing(name: &str) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "missing_field", format!("`{name}` is missing")).about(name)
}

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        // Also keeps web pages of others out: a browser asks before it sends this type elsewhere.
        if !is_json(request.headers()) {
            let message = "the body must be JSON, with the header `Content-Type: application/json`";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message));
        }
        let body = Bytes::from_request(request, state).await.map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", "the body is longer than is taken")
            }
            _ => ApiError::new(StatusCode::BAD_REQUEST, "incomplete_body", "the body ended too early"),
        })?;
        parse(&body)
    }
}

fn parse(body: &[u8]) -> Result<Fields, ApiError> {
    let wrong = |message: String| ApiError::new(StatusCode::BAD_REQUEST, "invalid_json", message);
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(Fields(fields)),
        Ok(_) => Err(wrong("the body must be a JSON object".into())),
        Err(error) => Err(wrong(format!("the body is no JSON: {error}"))),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let declared = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(value: Value) -> Fields {
        parse(value.to_string().as_bytes()).unwrap()
    }

    fn param(error: ApiError) -> Value {
        error.body()["error"]["param"].clone()
    }

    #[test]
    fn fields_are_taken_once_and_null_is_nothing() {
        let mut fields = fields(json!({ "a": 1, "b": null, "c": "x" }));
        assert_eq!(fields.take::<u32>("a").unwrap(), Some(1));
        assert_eq!(fields.take::<u32>("a").unwrap(), None);
        assert_eq!(fields.take::<u32>("b").unwrap(), None);
        assert_eq!(fields.left(), Some("c"));
        assert_eq!(fields.first::<String>(&["b", "c"]).unwrap().as_deref(), Some("x"));
        assert_eq!(fields.left(), None);
    }

    #[test]
    fn wrong_types_name_the_place() {
        let mut fields = fields(json!({ "a": "x", "list": [1, "two"], "object": { "inner": { "n": [] } } }));
        assert_eq!(param(fields.take::<u32>("a").unwrap_err()), "a");
        assert_eq!(param(fields.take::<Vec<u32>>("list").unwrap_err()), "list[1]");
        type Nested = std::collections::BTreeMap<String, std::collections::BTreeMap<String, u32>>;
        assert_eq!(param(fields.take::<Nested>("object").unwrap_err()), "object.inner.n");
        assert_eq!(param(fields.require::<u32>("none").unwrap_err()), "none");
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let deep = "[".repeat(100_000);
        for body in ["", "[]", "1", "{", "{\"a\":}", "\u{0}", deep.as_str()] {
            let error = parse(body.as_bytes()).unwrap_err();
            assert_eq!((error.status().as_u16(), &error.body()["error"]["code"]), (400, &json!("invalid_json")));
        }
        assert!(parse(&[b'{', b'"', 0xff, b'"', b':', b'1', b'}']).is_err());
    }
}
