//! Who is let in.

use super::process::{Answer, Server};
use std::fs;

#[test]
fn requests_need_one_of_the_keys() {
    let dir = tempfile::tempdir().unwrap();
    let keys = dir.path().join("keys");
    fs::write(&keys, "# of the team\nfrom-file\n\n").unwrap();
    let server = Server::start(&["--api-key", "first,second", "--api-key-file", keys.to_str().unwrap()]);
    for path in ["/health", "/ready"] {
        let answer = server.get(path, &[]);
        assert_ne!(answer.status, 401, "{answer:?}");
    }
    for header in ["Authorization: Bearer first", "authorization: bearer second", "X-Api-Key: from-file"] {
        assert_eq!(server.get("/v1/models", &[header]).status, 200, "{header}");
    }
    for headers in [&[][..], &["Authorization: Bearer firs"], &["Authorization: first"], &["X-Api-Key: # of the team"]]
    {
        for path in ["/v1/models", "/v1/chat/completions", "/no/such/path"] {
            let answer = server.get(path, headers);
            answer.refused(401, "invalid_api_key");
            assert!(answer.head.contains("\r\nwww-authenticate: bearer"), "{answer:?}");
        }
    }
}

#[test]
fn without_a_key_only_this_machine_is_answered() {
    let server = Server::start(&["--cors-origin", "https://named.example"]);
    let ask = |server: &Server, host: &str, more: &str| {
        let body = r#"{"prompt": "a", "max_tokens": 2}"#;
        let text = format!(
            "POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n{more}\r\n{body}",
            body.len()
        );
        Answer::read(&server.raw(text))
    };
    server.until("/ready", &[], |answer| answer.status == 200);
    ask(&server, "evil.example", "").refused(403, "foreign_host");
    ask(&server, "localhost", "Origin: http://evil.example\r\n").refused(403, "foreign_origin");
    let page = format!("Origin: http://{}\r\n", server.address);
    for (host, more) in
        [("localhost:1234", ""), (&*server.address.to_string(), &*page), ("[::1]", "Origin: https://named.example\r\n")]
    {
        assert_eq!(ask(&server, host, more).status, 200, "{host} {more}");
    }
    // The page is kept from strangers as well.
    let page = Answer::read(&server.raw("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"));
    page.refused(403, "foreign_host");
    // With a key, the name does not matter.
    let server = Server::start(&["--api-key", "k"]);
    server.until("/ready", &[], |answer| answer.status == 200);
    assert_eq!(ask(&server, "my.server", "Authorization: Bearer k\r\nOrigin: http://my.server\r\n").status, 200);
}

#[test]
fn pages_of_other_origins_are_not_served_unless_allowed() {
    let preflight = |server: &Server, origin: &str| {
        let headers = [
            &format!("Origin: {origin}"),
            "Access-Control-Request-Method: POST",
            "Access-Control-Request-Headers: authorization,content-type",
        ];
        server.send("OPTIONS", "/v1/models", &headers, "").head
    };
    let closed = Server::start(&[]);
    assert!(!preflight(&closed, "https://example.org").contains("access-control"));
    assert!(!closed.get("/v1/models", &["Origin: https://example.org"]).head.contains("access-control"));

    // A preflight comes without a key.
    let open = Server::start(&["--cors-origin", "https://example.org", "--api-key", "k"]);
    let head = preflight(&open, "https://example.org");
    assert!(head.contains("access-control-allow-origin: https://example.org"), "{head}");
    assert!(head.contains("access-control-allow-headers: authorization,content-type"), "{head}");
    assert!(!preflight(&open, "https://example.com").contains("access-control-allow-origin"));
    let refused = open.get("/v1/models", &["Origin: https://example.org"]);
    refused.refused(401, "invalid_api_key");
    assert!(refused.head.contains("access-control-allow-origin: https://example.org"), "{refused:?}");

    let any = Server::start(&["--cors-origin", "*"]);
    assert!(preflight(&any, "https://example.com").contains("access-control-allow-origin: *"));
}
