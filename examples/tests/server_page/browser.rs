//! Chromium without a window, driven through WebDriver.

use crate::stand_in::StandIn;
use axum::http::Method;
use fantoccini::actions::{InputSource as _, MouseActions, PointerAction};
use fantoccini::elements::Element;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use futures_util::FutureExt as _;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use url::{ParseError, Url};

/// What is waited for comes within milliseconds; a machine that does something else besides may take longer.
const PATIENCE: Duration = Duration::from_secs(90);

const FLAGS: [&str; 14] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--disable-translate",
    "--no-proxy-server",
    "--window-size=1280,900",
    // The browser ends when the driver does, however the test ends.
    "--remote-debugging-pipe",
];

/// A browser in which the page is open.
#[derive(Debug)]
pub(crate) struct Page {
    client: Client,
}

/// Opens the page of this server in a fresh browser, runs the test, and closes the browser whatever came of it.
pub(crate) async fn browse(server: &StandIn, test: impl AsyncFnOnce(&Page)) {
    let profile = tempfile::tempdir().unwrap();
    let (mut driver, address) = start_driver().await;
    let mut flags: Vec<String> = FLAGS.map(str::to_owned).to_vec();
    flags.push(format!("--user-data-dir={}", profile.path().display()));
    let binary = program("CHROMIUM", &["chromium", "chromium-browser", "google-chrome"]);
    let options = json!({ "goog:chromeOptions": { "args": flags, "binary": binary } });
    let mut builder = ClientBuilder::new(HttpConnector::new());
    builder.capabilities(options.as_object().unwrap().clone());
    let page = Page { client: builder.connect(&address).await.unwrap() };
    let whole = async {
        page.client.goto(server.address()).await.unwrap();
        page.until("document.querySelector('#state').dataset.state !== 'unknown'").await;
        test(&page).await;
    };
    let outcome = AssertUnwindSafe(whole).catch_unwind().await;
    if outcome.is_err() {
        eprintln!("the page said:\n{}", page.js("return document.body.innerText").await);
    }
    let closed = page.client.close().await;
    driver.kill().await.unwrap();
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
    closed.unwrap();
}

async fn start_driver() -> (Child, String) {
    let mut command = Command::new(program("CHROMEDRIVER", &["chromedriver"]));
    command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut driver = command.spawn().unwrap();
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some((_, port)) = line.split_once("successfully on port ") {
            let address = format!("http://127.0.0.1:{}", port.trim_end_matches('.'));
            // It must be able to go on writing.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return (driver, address);
        }
    }
    panic!("chromedriver ended without saying on which port it listens");
}

/// The program that the variable names, or the first of these names that is on the path.
fn program(variable: &str, names: &[&str]) -> PathBuf {
    if let Some(path) = std::env::var_os(variable) {
        return path.into();
    }
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let places = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    places.into_iter().find(|place| place.is_file()).unwrap_or_else(|| {
        panic!(
            "the page is tested in Chromium, and {} is not here: install the packages chromium and chromium-driver \
             (`cargo xtask test` does so where it may), or name the program in {variable}",
            names[0]
        )
    })
}

impl Page {
    /// What this JavaScript returns.
    pub(crate) async fn js(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Waits until this expression is true.
    pub(crate) async fn until(&self, condition: &str) {
        let start = Instant::now();
        while self.js(&format!("return Boolean({condition})")).await != Value::Bool(true) {
            if start.elapsed() >= PATIENCE {
                let shown = self.js("return document.body.innerText").await;
                panic!("never true: {condition}; the page shows {shown}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the text of the first element that this selector finds has all of these parts, and returns it.
    pub(crate) async fn says(&self, selector: &str, parts: &[&str]) -> String {
        let text = format!("(document.querySelector({})?.textContent ?? '')", json!(selector));
        let all = format!("{}.every((part) => {text}.includes(part))", json!(parts));
        self.until(&all).await;
        self.text(selector).await
    }

    /// The text in all elements that this selector finds.
    pub(crate) async fn text(&self, selector: &str) -> String {
        let script = "return [...document.querySelectorAll(SELECTOR)].map((it) => it.textContent).join('')";
        let text = self.js(&script.replace("SELECTOR", &json!(selector).to_string())).await;
        text.as_str().unwrap().to_owned()
    }

    pub(crate) async fn count(&self, selector: &str) -> u64 {
        let script = format!("return document.querySelectorAll({}).length", json!(selector));
        self.js(&script).await.as_u64().unwrap()
    }

    /// What the style sheets make of an element.
    pub(crate) async fn style(&self, selector: &str, property: &str) -> String {
        let script = "return getComputedStyle(document.querySelector(SELECTOR)).getPropertyValue(PROPERTY)";
        let script = script.replace("SELECTOR", &json!(selector).to_string());
        self.js(&script.replace("PROPERTY", &json!(property).to_string())).await.as_str().unwrap().to_owned()
    }

    pub(crate) async fn find(&self, selector: &str) -> Element {
        self.client.find(Locator::Css(selector)).await.unwrap_or_else(|error| panic!("{selector}: {error}"))
    }

    pub(crate) async fn click(&self, selector: &str) {
        self.find(selector).await.click().await.unwrap_or_else(|error| panic!("{selector}: {error}"));
    }

    /// Types into a field, or anything else that takes keys.
    pub(crate) async fn keys(&self, selector: &str, keys: &str) {
        self.find(selector).await.send_keys(keys).await.unwrap();
    }

    /// Types into what has the focus.
    pub(crate) async fn press(&self, keys: &str) {
        self.client.active_element().await.unwrap().send_keys(keys).await.unwrap();
    }

    /// Writes a message and sends it.
    pub(crate) async fn send(&self, message: &str) {
        self.keys("#prompt", message).await;
        self.click("#send").await;
    }

    /// Moves the pointer to an element.
    pub(crate) async fn hover(&self, selector: &str) {
        let element = self.find(selector).await;
        let over = PointerAction::MoveToElement { element, duration: None, x: 0.0, y: 0.0 };
        self.client.perform_actions(MouseActions::new("mouse".to_owned()).then(over)).await.unwrap();
    }

    /// A command of Chromium's own protocol.
    pub(crate) async fn devtools(&self, command: &'static str, parameters: Value) {
        self.client.issue_cmd(Devtools { command, parameters }).await.unwrap();
    }

    /// What the page looks like goes into a folder, if the variable `PAGE_PICTURES` names one.
    pub(crate) async fn picture(&self, name: &str) {
        if let Some(folder) = std::env::var_os("PAGE_PICTURES") {
            let picture = self.client.screenshot().await.unwrap();
            std::fs::write(PathBuf::from(folder).join(name).with_extension("png"), picture).unwrap();
        }
    }

    pub(crate) async fn reload(&self) {
        self.client.refresh().await.unwrap();
    }
}

#[derive(Debug)]
struct Devtools {
    command: &'static str,
    parameters: Value,
}

impl WebDriverCompatibleCommand for Devtools {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(json!({ "cmd": self.command, "params": self.parameters }).to_string()))
    }
}
