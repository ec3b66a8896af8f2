//! Starting: exit statuses and reports, and that the port is not opened before; ending.

use super::super::common::{INSPECT, SERVER, file, finish, path, run, start};
use super::process::{Server, server};
use llama_spec_tests::broken;
use std::fs;
use std::net::TcpListener;

#[test]
fn what_does_not_go_together_is_refused_with_the_report_of_inspect() {
    // If the port were opened first, that it is taken would be said.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let target = file("target");
    let draft = file("draft-other-vocabulary");
    let cases: [&[&str]; 2] = [&["--draft", &draft], &["--spec", "draft-mtp"]];
    for case in cases {
        let args = ["--model", &target, "--threads", "1", "--port", &port, "--context", "512", "--slots", "2"];
        let refused = run(SERVER, args.iter().chain(case), "");
        assert_eq!(refused.status.code(), Some(3), "{refused:?}");
        assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
        assert!(refused.stderr.starts_with("error: these files and settings do not go together"), "{refused:?}");
        let args = [&target, "--context", "512", "--slots", "2"];
        let report = run(INSPECT, args.iter().chain(case), "");
        assert_eq!(report.status.code(), Some(3), "{report:?}");
        assert_eq!(refused.stdout, report.stdout);
    }
}

#[test]
fn files_that_are_no_model_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let target = file("target");
    for broken in broken::all(dir.path()).unwrap() {
        let broken = path(broken.path);
        run(SERVER, ["--model", &broken, "--port", "0"], "").refused(4, &[]);
        run(SERVER, ["--model", &target, "--draft", &broken, "--port", "0"], "").refused(4, &[]);
    }
    run(SERVER, ["--model", "/no/such/file.gguf"], "").refused(4, &["/no/such/file.gguf"]);
}

#[test]
fn arguments_that_make_no_sense() {
    let dir = tempfile::tempdir().unwrap();
    let keys = path(dir.path().join("keys"));
    fs::write(&keys, "# none\n\n").unwrap();
    let bad_keys = path(dir.path().join("bad-keys"));
    fs::write(&bad_keys, "good\nsecret with spaces\n").unwrap();
    let folder = path(dir.path().to_owned());
    let beneath = path(dir.path().join("keys/store"));
    let all: [(&[&str], &str); 32] = [
        (&["--store-mib", "-1"], "--store-mib"),
        (&["--store-file", "/no/such/store"], "--store-file /no/such/store: the folder /no/such"),
        (&["--store-file", &folder], "the name of a file"),
        (&["--store-file", &beneath], "--store-file"),
        (&["--store-file", "store", "--store-mib", "0"], "nothing is kept"),
        (&["--spec", "ngram"], "unknown speculative method `ngram`"),
        (&["--slots", "0"], "--slots"),
        (&["--slots", "257"], "256"),
        (&["--context", "1"], "a number of tokens from 2"),
        (&["--port", "65536"], "65535"),
        (&["--port", "http"], "http"),
        (&["--queue", "-1"], "--queue"),
        (&["--host", ""], "--host"),
        (&["--host", "no such host"], "no such host"),
        (&["--max-body", "0"], "--max-body"),
        (&["--header-timeout", "-1"], "a number of seconds"),
        (&["--grace", "soon"], "a number of seconds"),
        (&["--grace", "NaN"], "a number of seconds"),
        (&["--patience", "0.5"], "from 1 to 604800"),
        (&["--log-format", "xml"], "human, json"),
        (&["--kv-type-k", "q9"], "q9"),
        (&["--no-supervise=perhaps"], "perhaps"),
        (&["--inject-fault", "fire@1"], "abort-in-draft@N"),
        (&["--cors-origin", "example.org"], "example.org"),
        (&["--cors-origin", "https://example.org/path"], "an origin such as"),
        (&["--api-key", ""], "LLAMA_SPEC_API_KEY"),
        (&["--kv-type-v", "q4_0", "--flash-attn", "off"], "--flash-attn off"),
        (&["--gpu-layers", "5"], "--gpu-layers"),
        (&["--draft-gpu-layers", "all"], "--draft-gpu-layers"),
        (&["--context", "1000000000"], "--context 1000000000 in --slots 4"),
        (&["--api-key-file", &keys], "has no key"),
        (&["--modell", "x"], "--modell"),
    ];
    for (args, said) in all {
        finish(start(server(args), "")).refused(2, &[said, "--help"]);
    }
    run(SERVER, [""; 0], "").refused(2, &["--model <FILE>"]);
    let refused = finish(start(server(&["--api-key-file", &bad_keys]), ""));
    refused.refused(2, &["line 2"]);
    assert!(!refused.stderr.contains("secret"), "{refused:?}");
    finish(start(server(&["--api-key-file", "/no/such/file"]), "")).refused(1, &["/no/such/file"]);
    finish(start(server(&["--chat-template-file", "/no/such/file"]), "")).refused(1, &["/no/such/file"]);
}

#[test]
fn addresses_of_other_machines_need_a_key() {
    for host in ["0.0.0.0", "::"] {
        finish(start(server(&["--host", host]), "")).refused(2, &["no key is set", "--allow-public-without-key"]);
    }
    for allowed in [["--host=0.0.0.0", "--allow-public-without-key"], ["--host=0.0.0.0", "--api-key=k"]] {
        let server = Server::start(&allowed);
        assert_eq!(server.get("/health", &[]).status, 200);
    }
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let refused = finish(start(server(&["--port", &address.port().to_string()]), ""));
    refused.refused(1, &["cannot listen on", &address.to_string()]);
}

#[test]
fn help_names_everything_and_hides_the_fault() {
    let help = run(SERVER, ["--help"], "").succeeded();
    for part in ["--model", "--spec", "--host", "--api-key-file", "LLAMA_SPEC_PORT", "Exit status", "curl"] {
        assert!(help.stdout.contains(part), "{part}: {}", help.stdout);
    }
    assert!(!help.stdout.contains("inject"), "{}", help.stdout);
}

#[test]
fn a_person_is_told_what_is_served_and_how_to_try_it() {
    let mut server = Server::start(&["--spec", "ngram-mod"]);
    let curl = server.wait_for("curl");
    assert!(curl.contains(&format!("http://{}/v1/chat/completions", server.address)), "{curl}");
    drop(server);
    let mut server = Server::start(&["--log-format", "json"]);
    server.wait_for("\"ready\"");
    server.get("/v1/models?secret=1", &[]);
    let line: serde_json::Value = serde_json::from_str(&server.wait_for("/v1/models")).unwrap();
    assert_eq!((&line["method"], &line["path"], &line["status"]), (&"GET".into(), &"/v1/models".into(), &200.into()));
    assert!(line["milliseconds"].is_u64() && line["tokens"] == 0 && line["peer"] == "127.0.0.1", "{line}");
}

#[cfg(unix)]
#[test]
fn signals_end_it_in_order() {
    for signal in ["TERM", "INT"] {
        let mut server = Server::start(&[]);
        server.wait_for("ready: ");
        assert_eq!(server.get("/ready", &[]).status, 200);
        server.signal(signal);
        let run = server.end();
        assert_eq!(run.status.code(), Some(0), "{run:?}");
        assert_eq!(run.stdout, "", "{run:?}");
        assert!(run.stderr.contains("stopping"), "{run:?}");
    }
}
