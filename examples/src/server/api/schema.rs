//! JSON Schemas of clients: bounded, since making a grammar of one takes llama.cpp more than linear time; and those of answers
//! must not ask for what llama.cpp passes over in silence.

use super::error::ApiError;
use serde_json::{Map, Value, json};

const MAX_DEPTH: usize = 48;
const MAX_PARTS: u64 = 20_000;
/// Optional properties of one object: the time grows with the third power of their number, and the grammar nests as deep.
const MAX_OPTIONAL: u64 = 64;
const MAX_OPTIONAL_IN_ALL: u64 = 2048;
/// Values to choose from, in one place: each token is held against all of them.
const MAX_CHOICES: u64 = 1000;
const MAX_CHOICES_IN_ALL: u64 = 4000;
/// Regular expressions are turned into rules by a parser that recurses.
const MAX_PATTERN_BYTES: usize = 1000;
/// Bounds beyond it do not hold.
const MAX_BOUND: f64 = 9.2e18;

/// What the schemas of one request may still cost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Budget {
    parts: u64,
    optional: u64,
    choices: u64,
}

impl Budget {
    /// Checks the schema of a tool's parameters, or of an answer.
    pub(super) fn check(&mut self, param: &str, schema: &Value) -> Result<(), ApiError> {
        match schema {
            Value::Bool(false) => Err(ApiError::invalid(param, "the schema `false` allows nothing")),
            Value::Object(_) | Value::Bool(true) => {
                self.spend(schema).map_err(|why| ApiError::invalid(param, format!("the schema {why}")))
            }
            _ => Err(ApiError::invalid(param, "a JSON schema is an object")),
        }
    }

    fn spend(&mut self, schema: &Value) -> Result<(), String> {
        // A list of types stands for as many schemas as it names, and so does all that is in it.
        let mut open = vec![(schema, 1, 1u64)];
        while let Some((value, depth, times)) = open.pop() {
            self.parts = self.parts.saturating_add(times);
            if depth > MAX_DEPTH || self.parts > MAX_PARTS {
                return Err(format!(
                    "nests more than {MAX_DEPTH} levels deep, or with the others of the request has more than {MAX_PARTS} parts"
                ));
            }
            match value {
                Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1, times))),
                Value::Object(fields) => {
                    let types =
                        fields.get("type").and_then(Value::as_array).map_or(1, |types| types.len().max(1) as u64);
                    let times = times.saturating_mul(types);
                    self.object(fields, times)?;
                    open.extend(fields.values().map(|value| (value, depth + 1, times)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn object(&mut self, fields: &Map<String, Value>, times: u64) -> Result<(), String> {
        let pattern = fields.get("pattern").and_then(Value::as_str);
        if pattern.is_some_and(|pattern| pattern.len() > MAX_PATTERN_BYTES) {
            return Err(format!("has a pattern of more than {MAX_PATTERN_BYTES} bytes"));
        }
        let optional = optional(fields);
        self.optional = self.optional.saturating_add(optional.saturating_mul(times));
        if optional > MAX_OPTIONAL || self.optional > MAX_OPTIONAL_IN_ALL {
            return Err(format!(
                "has an object with {optional} optional properties; at most {MAX_OPTIONAL} are taken, and \
                 {MAX_OPTIONAL_IN_ALL} in all: name them in `required`, or divide the object"
            ));
        }
        for list in ["enum", "anyOf", "oneOf"] {
            let choices = fields.get(list).and_then(Value::as_array).map_or(0, |choices| choices.len() as u64);
            self.choices = self.choices.saturating_add(choices.saturating_mul(times));
            if choices > MAX_CHOICES || self.choices > MAX_CHOICES_IN_ALL {
                return Err(format!(
                    "has {choices} choices in `{list}`; at most {MAX_CHOICES} are taken, and {MAX_CHOICES_IN_ALL} in all"
                ));
            }
        }
        Ok(())
    }
}

/// The properties of an object that its text may leave out.
fn optional(schema: &Map<String, Value>) -> u64 {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return 0 };
    let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut required: Vec<&str> = required.iter().filter_map(Value::as_str).collect();
    required.sort_unstable();
    properties.keys().filter(|name| required.binary_search(&name.as_str()).is_err()).count() as u64
}

/// The schema of an answer, checked. What allows anything becomes one that allows any JSON.
pub(super) fn of_answer(param: &str, schema: Value) -> Result<Value, ApiError> {
    Budget::default().check(param, &schema)?;
    match &schema {
        Value::Object(fields) if !fields.is_empty() => {}
        _ => return Ok(json!({ "type": ["object", "array", "string", "number", "boolean", "null"] })),
    }
    let mut open = vec![&schema];
    while let Some(schema) = open.pop() {
        let Value::Object(fields) = schema else { continue };
        if let Some(why) = passed_over(fields) {
            return Err(ApiError::unsupported(param, format!("the schema {why}")));
        }
        for within in ["properties", "$defs", "definitions"] {
            open.extend(fields.get(within).and_then(Value::as_object).into_iter().flat_map(Map::values));
        }
        for within in ["items", "prefixItems", "anyOf", "oneOf", "allOf"] {
            open.extend(fields.get(within).and_then(Value::as_array).into_iter().flatten());
        }
        open.extend(["items", "additionalProperties"].iter().filter_map(|within| fields.get(*within)));
    }
    Ok(schema)
}

/// What llama.cpp would not keep to, though it knows the word.
fn passed_over(schema: &Map<String, Value>) -> Option<String> {
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && (pattern.len() < 2 || !pattern.starts_with('^') || !pattern.ends_with('$'))
    {
        return Some(format!(
            "has the pattern `{pattern}`: one that does not begin with `^` and end with `$` is not possible"
        ));
    }
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let names = ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"];
    if let Some(name) = names.iter().find(|name| bound(name).is_some_and(|bound| bound.abs() > MAX_BOUND)) {
        return Some(format!("has a `{name}` beyond what 64 bits hold"));
    }
    let least = bound("minimum").or(bound("exclusiveMinimum"));
    let most = bound("maximum").or(bound("exclusiveMaximum"));
    matches!((least, most), (Some(least), Some(most)) if least > most)
        .then(|| "has a least number above the greatest: nothing is so".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &Value) -> Result<(), String> {
        Budget::default().spend(schema)
    }

    fn object(optional: u64, required: u64) -> Value {
        let named = |kind: &str, count| (0..count).map(|index| format!("{kind}{index}")).collect::<Vec<_>>();
        let names = [named("o", optional), named("r", required)].concat();
        let properties: Map<_, _> = names.into_iter().map(|name| (name, json!({ "type": "string" }))).collect();
        json!({ "type": "object", "properties": properties, "required": named("r", required) })
    }

    #[test]
    fn sizes_are_bounded() {
        let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({ "items": inner }));
        assert!(check(&nested(40)).is_ok());
        assert!(check(&nested(60)).is_err());
        assert!(check(&json!({ "examples": vec![1; MAX_PARTS as usize] })).is_err());
        assert!(check(&json!({ "pattern": "(".repeat(MAX_PATTERN_BYTES + 1) })).is_err());
        for wrong in [json!("no schema"), json!(false), json!(1)] {
            assert!(Budget::default().check("s", &wrong).is_err());
        }
    }

    #[test]
    fn what_takes_more_than_linear_time_is_bounded_more_tightly() {
        assert_eq!(check(&object(MAX_OPTIONAL, 2000)), Ok(()));
        let why = check(&object(MAX_OPTIONAL + 1, 0)).unwrap_err();
        assert!(why.contains("65 optional properties; at most 64"), "{why}");
        assert!(check(&json!({ "enum": vec![1; MAX_CHOICES as usize] })).is_ok());
        for list in ["enum", "anyOf", "oneOf"] {
            let why = check(&json!({ list: vec![json!({}); MAX_CHOICES as usize + 1] })).unwrap_err();
            assert!(why.contains(list), "{why}");
        }
        // All schemas of a request together.
        let mut budget = Budget::default();
        let taken = (0..100).take_while(|_| budget.check("s", &object(MAX_OPTIONAL, 0)).is_ok()).count();
        assert_eq!(taken as u64, MAX_OPTIONAL_IN_ALL / MAX_OPTIONAL);
        // A list of types copies what is in the schema.
        let doubled = |inner| json!({ "type": ["array", "object"], "items": inner });
        assert!(check(&(0..8).fold(json!({}), |inner, _| doubled(inner))).is_ok());
        assert!(check(&(0..15).fold(json!({}), |inner, _| doubled(inner))).is_err());
    }

    #[test]
    fn what_would_be_passed_over_is_refused() {
        let within = |schema: Value| json!({ "type": "object", "properties": { "a": { "anyOf": [schema] } } });
        for (bad, said) in [
            (json!({ "type": "string", "pattern": "a+" }), "`a+`"),
            (json!({ "type": "string", "pattern": "$" }), "`$`"),
            (json!({ "type": "integer", "minimum": 1e30 }), "`minimum`"),
            (json!({ "type": "integer", "exclusiveMaximum": -1e19 }), "`exclusiveMaximum`"),
            (json!({ "type": "integer", "minimum": 5, "maximum": 1 }), "above the greatest"),
        ] {
            for schema in [bad.clone(), within(bad)] {
                let body = of_answer("response_format", schema).unwrap_err().body();
                assert_eq!(body["error"]["param"], "response_format");
                assert!(body["error"]["message"].as_str().unwrap().contains(said), "{body}");
            }
        }
        let good = within(json!({ "type": "string", "pattern": "^a+$", "enum": [{ "pattern": "a" }] }));
        assert_eq!(of_answer("s", good.clone()).unwrap(), good);
        let range = json!({ "type": "integer", "minimum": i64::MIN / 2, "maximum": 5 });
        assert_eq!(of_answer("s", range.clone()).unwrap(), range);
        for anything in [json!(true), json!({})] {
            assert!(of_answer("s", anything).unwrap()["type"].is_array());
        }
    }
}
