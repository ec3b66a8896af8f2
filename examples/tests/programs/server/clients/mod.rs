//! The server, used by the clients that programs for such servers are written with.

mod python;
mod rust;

use super::super::common::{file, path};
use super::process::{Server, server_of};
use llama_spec_tests::zoo::{Llama, TOOLS_TEMPLATE};

/// The key of the server.
const KEY: &str = "secret";
/// It as a header.
const HEADER: &str = "Authorization: Bearer secret";

/// A server of the model `zoo` with tools, in two slots and with a draft, once it is ready.
fn serving() -> Server {
    let model = Llama::target(1).with_chat_template(TOOLS_TEMPLATE).labelled("target-tools");
    let (model, draft) = (path(model.cached().unwrap()), file("draft-0.8"));
    let files = ["--model", &model, "--draft", &draft];
    let rest = ["--alias", "zoo", "--slots", "2", "--context", "4096", "--api-key", KEY];
    let mut server = Server::spawn(server_of(&[&files[..], &rest].concat()));
    server.wait_for("ready: ");
    server
}

/// Where its interface is.
fn base(server: &Server) -> String {
    format!("http://{}/v1", server.address)
}
