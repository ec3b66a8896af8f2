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
        self.0.remove(name).filter(|value| !value.is_null()).map(whole)
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
        let message = format!("`{param}`: {}", plain(&error.inner().to_string()));
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_type", message).about(param)
    })
}

/// A number such as 2.0, which some clients write for 2, as the other one.
fn whole(value: Value) -> Value {
    // Above it not every whole number is one of these.
    const MOST: f64 = 9_007_199_254_740_992.0;
    match value.as_f64().filter(|number| value.is_f64() && number.fract() == 0.0 && number.abs() <= MOST) {
        Some(number) => Value::from(number as i64),
        None => value,
    }
}

/// A message without names that only this program's language has.
fn plain(message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once("expected ") else { return message.to_owned() };
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" | "a JSON number" => "a number",
        "a sequence" => "a list",
        "a map" => "an object",
        other if other.starts_with("struct ") => "an object",
        other if other.starts_with("a tuple") || other.starts_with("tuple") => "a list of as many as belong together",
        other => other,
    };
    format!("{found}expected {expected}")
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
    fn numbers_may_have_a_point_and_types_have_plain_names() {
        let all = json!({ "a": 2.0, "b": -1.0, "c": 2.5, "d": "x", "e": -1, "f": {}, "g": 1e300, "h": 2.0 });
        let mut fields = fields(all);
        assert_eq!(fields.take::<u32>("a").unwrap(), Some(2));
        assert_eq!(fields.take::<i64>("b").unwrap(), Some(-1));
        assert_eq!(fields.take::<f32>("h").unwrap(), Some(2.0));
        let message = |error: ApiError| error.body()["error"]["message"].as_str().unwrap().to_owned();
        for (got, expected) in [
            (fields.take::<u32>("c").unwrap_err(), "a whole number from 0"),
            (fields.take::<f32>("d").unwrap_err(), "a number"),
            (fields.take::<u32>("e").unwrap_err(), "a whole number from 0"),
            (fields.take::<Vec<u32>>("f").unwrap_err(), "a list"),
            (fields.take::<i64>("g").unwrap_err(), "a whole number"),
        ] {
            let message = message(got);
            assert!(message.ends_with(&format!("expected {expected}")), "{message}");
        }
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
