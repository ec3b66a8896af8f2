//! Who is let in.

use super::process::Server;
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
