use serde_json::json;

use super::*;

fn who() -> Who {
    Who {
        name: "zoo".into(),
        model: "m".into(),
        key_env: "ZOO_KEY".into(),
        key: Some("secret-1".into()),
    }
}

fn refusal(status: u16, headers: &[(&'static str, &str)], body: Value) -> Refusal {
    let headers = headers
        .iter()
        .map(|(name, value)| {
            (reqwest::header::HeaderName::from_static(name), value.parse().unwrap())
        })
        .collect();
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let status = StatusCode::from_u16(status).unwrap();
    of_status(&who(), status, &headers, body.to_string().as_bytes(), now)
}

fn error(message: &str, code: Value) -> Value {
    json!({ "error": { "message": message, "type": null, "param": null, "code": code } })
}

#[test]
fn each_status_has_its_class_and_its_line() {
    let key =
        "set `ZOO_KEY` to a valid key, or `llm.providers.zoo.api_key_env` to another variable";
    let refused = |text: &str| ChatError::Refused(format!("`zoo` {text}"));
    let broken = |text: &str| ChatError::Unavailable(format!("`zoo` {text}"));
    for (status, body, expected) in [
        (
            401,
            error("Incorrect API key: secret-1", "x".into()),
            refused(&format!("refuses the key: {key}")),
        ),
        (
            403,
            json!("no"),
            refused(&format!("forbids this with the key or from this place: {key}")),
        ),
        (
            404,
            error("no such", "model_not_found".into()),
            refused("has no model `m`: set `llm.providers.zoo.model`"),
        ),
        (
            404,
            json!({ "error": "model 'm' not found" }),
            refused("has no model `m`: set `llm.providers.zoo.model`"),
        ),
        (
            404,
            Value::Null,
            refused("has no chat at its address (404): check `llm.providers.zoo.base_url`"),
        ),
        (
            400,
            error("bad  \n words secret-1", Value::Null),
            refused("does not take the request (400): bad words …"),
        ),
        (
            422,
            json!({ "detail": [{ "msg": "field required" }] }),
            refused("does not take the request (422): field required"),
        ),
        (422, json!({ "detail": "nope" }), refused("does not take the request (422): nope")),
        (
            400,
            json!({ "code": "X", "message": "flat" }),
            refused("does not take the request (400): flat"),
        ),
        (
            400,
            json!([{ "error": { "message": "listed", "code": 400 } }]),
            refused("does not take the request (400): listed"),
        ),
        (
            307,
            Value::Null,
            refused("sends this request elsewhere (307): check `llm.providers.zoo.base_url`"),
        ),
        (500, error("oops", 500.into()), broken("has a fault (500): oops")),
        (503, error("Loading model", 503.into()), broken("has a fault (503): Loading model")),
        (529, Value::Null, broken("has a fault (529)")),
        (408, Value::Null, broken("has a fault (408)")),
    ] {
        let refusal = refusal(status, &[], body.clone());
        assert_eq!(refusal.error, expected, "{status} {body}");
        let temporary = matches!(refusal.error, ChatError::Unavailable(_));
        assert_eq!(refusal.again.is_some(), temporary, "{status} {body}");
    }
    let long = refusal(500, &[], error(&"x".repeat(9999), Value::Null));
    assert!(long.error.to_string().len() < 200);
}

#[test]
fn quota_is_not_asked_again_and_a_rate_limit_is() {
    let limited = |refusal: &Refusal| match &refusal.error {
        ChatError::Limited { retry_after, .. } => *retry_after,
        other => panic!("{other:?}"),
    };
    for code in ["insufficient_quota", "exceeded_current_quota_error", "Arrearage"] {
        let refusal = refusal(429, &[("retry-after", "1")], error("pay", code.into()));
        assert_eq!((limited(&refusal), refusal.again), (None, None), "{code}");
    }
    assert_eq!(limited(&refusal(402, &[], Value::Null)), None);
    for (headers, told, wait) in [
        (&[][..], None, Some(1.0)),
        (&[("retry-after", "2")], Some(2.0), Some(2.0)),
        (&[("retry-after", "0.5")], Some(0.5), Some(0.5)),
        (&[("retry-after-ms", "250"), ("retry-after", "9")], Some(0.25), Some(0.25)),
        (&[("retry-after", "Thu, 01 Jan 2026 00:00:30 GMT")], Some(30.0), Some(30.0)),
        (&[("retry-after", "Wed, 31 Dec 2025 23:59:00 GMT")], None, Some(1.0)),
        (&[("retry-after", "soon")], None, Some(1.0)),
        (&[("retry-after", "-5")], None, Some(1.0)),
        (&[("retry-after", "1e300")], None, Some(1.0)),
        (&[("retry-after", "2"), ("x-should-retry", "false")], Some(2.0), None),
    ] {
        let refusal = refusal(429, headers, error("slow", "rate_limit_exceeded".into()));
        assert_eq!(limited(&refusal), told.map(Duration::from_secs_f64), "{headers:?}");
        assert_eq!(refusal.again, wait.map(Duration::from_secs_f64), "{headers:?}");
    }
}

#[test]
fn the_field_that_a_server_does_not_take_is_found() {
    let param = |param: &str| json!({ "error": { "message": "unsupported", "param": param } });
    for (body, field) in [
        (param("temperature"), Some("temperature")),
        (param("thinking.type"), Some("thinking")),
        (param("messages[0]"), None),
        (error("Use 'max_completion_tokens' instead", Value::Null), Some("max_completion_tokens")),
        (
            error("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.", Value::Null),
            Some("max_tokens"),
        ),
        (
            error("`reasoning_effort` is not supported with this model", Value::Null),
            Some("reasoning_effort"),
        ),
        (error("the input is too long", Value::Null), None),
    ] {
        assert_eq!(refusal(400, &[], body.clone()).field.as_deref(), field, "{body}");
    }
    assert_eq!(refusal(500, &[], param("temperature")).field, None);
}
