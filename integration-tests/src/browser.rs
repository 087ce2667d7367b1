//! A real browser, driven like a user would use it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fantoccini::elements::Element;
use fantoccini::key::Key;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::until;

/// Console messages about a broken connection: the browser logs them however the page handles it.
const NETWORK: [&str; 2] = ["net::ERR_", "Failed to load resource"];

/// The policies of app pages close every device, even one that this Chromium does not have.
const NO_DEVICE: &str = "Error with Permissions-Policy header: Unrecognized feature: 'bluetooth'";

/// A headless Chromium with a new profile.
pub struct Browser {
    client: fantoccini::Client,
    driver: Driver,
    network_may_fail: bool,
}

/// Maximum attempts to start the driver, which may find its port taken.
const DRIVER_STARTS: usize = 5;

struct Driver {
    process: Child,
    port: u16,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser with a desktop-sized window.
    ///
    /// # Panics
    /// Names the command that installs Chromium if it is missing.
    pub async fn start() -> Self {
        Self::start_in(tempfile::tempdir().expect("a folder")).await
    }

    /// Starts a browser that trusts the authority whose certificate is in this file, like a user who has imported it.
    ///
    /// # Panics
    /// Names the command that installs `certutil` if it is missing.
    pub async fn start_trusting(authority: &Path) -> Self {
        if let Ok(line) = std::env::var("CALLBOARD_MISSING_CERTUTIL") {
            panic!("certutil is not here; this gets it: {line}");
        }
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join(".pki/nssdb");
        std::fs::create_dir_all(&folder).expect("a folder");
        let folder = format!("sql:{}", folder.display());
        let file = authority.to_str().expect("a path");
        for arguments in
            [&["-N", "--empty-password"][..], &["-A", "-t", "C,,", "-n", "callboard", "-i", file][..]]
        {
            let done = Command::new("certutil").args(["-d", &folder]).args(arguments).status();
            assert!(done.expect("certutil starts").success(), "certutil {arguments:?}");
        }
        Self::start_in(home).await
    }

    /// Starts a browser with this home folder.
    async fn start_in(profile: TempDir) -> Self {
        if let Ok(line) = std::env::var("CALLBOARD_MISSING_CHROMIUM") {
            panic!("Chromium and its driver are not here; this gets them: {line}");
        }
        let (process, port) = start_driver(profile.path());
        let arguments = [
            "--headless=new".to_owned(),
            // Root requires this, and all pages are ours.
            "--no-sandbox".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-gpu".to_owned(),
            "--window-size=1280,900".to_owned(),
            "--lang=en".to_owned(),
            format!("--user-data-dir={}", profile.path().join("profile").display()),
        ];
        let capabilities = json!({
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        });
        let capabilities: Map<String, Value> = capabilities.as_object().cloned().expect("an object");
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("a session");
        let session = client.session_id().await.expect("a session").expect("its id");
        let driver = Driver { process, port, session, _profile: profile };
        Self { client, driver, network_may_fail: false }
    }

    /// Allows network errors on the console, because the scenario cuts the network.
    pub fn network_may_fail(&mut self) {
        self.network_may_fail = true;
    }

    /// Opens a URL.
    ///
    /// # Panics
    /// When the browser fails to open it.
    pub async fn goto(&self, url: &str) {
        self.client.goto(url).await.unwrap_or_else(|error| panic!("{url}: {error}"));
    }

    /// Reloads the page.
    ///
    /// # Panics
    /// When the browser fails to reload it.
    pub async fn reload(&self) {
        self.client.refresh().await.expect("the page again");
    }

    /// Runs a function's body in the page.
    ///
    /// # Panics
    /// When it throws.
    pub async fn js(&self, body: &str) -> Value {
        self.client.execute(body, Vec::new()).await.unwrap_or_else(|error| panic!("{body}: {error}"))
    }

    /// Like [`Self::js`], for a body that returns a promise.
    ///
    /// # Panics
    /// When it throws.
    pub async fn js_async(&self, body: &str) -> Value {
        let script = format!(
            "const done = arguments[arguments.length - 1]; (async () => {{ {body} }})().then(done, (e) => done('' + e));"
        );
        self.client.execute_async(&script, Vec::new()).await.unwrap_or_else(|error| panic!("{body}: {error}"))
    }

    /// Waits until an expression is true in the page.
    ///
    /// # Panics
    /// On a timeout, with the content of the page.
    pub async fn until(&self, expression: &str) {
        let looking =
            until(expression, async || self.js(&format!("return !!({expression})")).await == json!(true));
        let guard = PageTextOnTimeout { driver: &self.driver, waited: expression };
        looking.await;
        std::mem::forget(guard);
    }

    /// Enters a frame of the page: everything after this happens there.
    ///
    /// # Panics
    /// When the element is not a frame.
    pub async fn enter_frame(&self, css: &str) {
        self.find(css).await.enter_frame().await.unwrap_or_else(|error| panic!("{css}: {error}"));
    }

    /// Returns to the page around the frame.
    ///
    /// # Panics
    /// When the browser fails to do so.
    pub async fn leave_frame(&self) {
        self.client.clone().enter_parent_frame().await.expect("the page");
    }

    async fn find(&self, css: &str) -> Element {
        let quoted = Value::from(css).to_string();
        self.until(&format!("document.querySelector({quoted})")).await;
        self.client.find(Locator::Css(css)).await.unwrap_or_else(|error| panic!("{css}: {error}"))
    }

    /// Clicks an element, after waiting for it.
    ///
    /// # Panics
    /// When a user could not click it.
    pub async fn click(&self, css: &str) {
        self.find(css).await.click().await.unwrap_or_else(|error| panic!("{css}: {error}"));
    }

    /// Types into an element.
    ///
    /// # Panics
    /// When a user could not type there.
    pub async fn write(&self, css: &str, text: &str) {
        self.find(css).await.send_keys(text).await.unwrap_or_else(|error| panic!("{css}: {error}"));
    }

    /// Presses keys in the focused element.
    ///
    /// # Panics
    /// When the browser fails to do so.
    pub async fn press(&self, keys: &str) {
        let active = self.client.active_element().await.expect("something has the focus");
        active.send_keys(keys).await.unwrap_or_else(|error| panic!("{keys:?}: {error}"));
    }

    /// Presses one key.
    pub async fn key(&self, key: Key) {
        self.press(&String::from(char::from(key))).await;
    }

    /// The visible text of an element.
    ///
    /// # Panics
    /// When the element is missing.
    pub async fn text(&self, css: &str) -> String {
        self.find(css).await.text().await.unwrap_or_else(|error| panic!("{css}: {error}"))
    }

    /// The visible texts of all matching elements.
    pub async fn texts(&self, css: &str) -> Vec<String> {
        let quoted = Value::from(css).to_string();
        let body = format!(
            "return [...document.querySelectorAll({quoted})].filter((e) => e.checkVisibility()).map((e) => e.innerText.trim())"
        );
        let found = self.js(&body).await;
        found
            .as_array()
            .expect("a list")
            .iter()
            .map(|text| text.as_str().expect("a text").to_owned())
            .collect()
    }

    /// Runs a command of Chromium's own protocol.
    ///
    /// # Panics
    /// When Chromium refuses.
    pub async fn chromium(&self, command: &'static str, parameters: Value) {
        let command =
            DriverCommand { path: "goog/cdp/execute", body: json!({"cmd": command, "params": parameters}) };
        self.client.issue_cmd(command).await.expect("Chromium does it");
    }

    /// Emulates a phone: narrow, with touch.
    pub async fn be_a_phone(&self) {
        let size = json!({"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": true});
        self.chromium("Emulation.setDeviceMetricsOverride", size).await;
        self.chromium("Emulation.setTouchEmulationEnabled", json!({"enabled": true})).await;
    }

    /// Emulates a dark system theme.
    pub async fn be_dark(&self) {
        self.be_coloured("dark").await;
    }

    /// Emulates a light system theme.
    pub async fn be_light(&self) {
        self.be_coloured("light").await;
    }

    async fn be_coloured(&self, scheme: &str) {
        let scheme = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.chromium("Emulation.setEmulatedMedia", scheme).await;
    }

    /// Cuts or restores the browser's network.
    pub async fn be_offline(&self, offline: bool) {
        let conditions =
            json!({"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
        self.chromium("Network.enable", json!({})).await;
        self.chromium("Network.emulateNetworkConditions", conditions).await;
    }

    /// Asserts that axe-core finds no problem in the page's current state.
    ///
    /// # Panics
    /// Names the command that installs axe-core if it is missing.
    pub async fn assert_accessible(&self, what: &str) {
        if let Ok(line) = std::env::var("CALLBOARD_MISSING_AXE") {
            panic!("axe-core is not here; this gets it: {line}");
        }
        let file = std::env::var("CALLBOARD_AXE").expect("CALLBOARD_AXE is not set: run `cargo xtask test`");
        let axe = std::fs::read_to_string(file).expect("axe-core");
        self.client.execute(&format!("{axe}; return 0"), Vec::new()).await.expect("axe-core loads");
        let found = self
            .js_async(
                "const { violations } = await axe.run(document, {resultTypes: ['violations']});
                 return violations.map((v) => `${v.id}: ${v.help}\\n` + v.nodes.map((n) => n.html + '\\n  ' + n.failureSummary).join('\\n'));",
            )
            .await;
        assert_eq!(found, json!([]), "axe-core on {what}");
    }

    /// Ends the browser and asserts that its console is empty.
    ///
    /// # Panics
    /// When the console is not empty.
    pub async fn finish(self) {
        let log = DriverCommand { path: "se/log", body: json!({"type": "browser"}) };
        let entries = self.client.issue_cmd(log).await.expect("the console");
        let is_network = |text: &str| NETWORK.iter().any(|mark| text.contains(mark));
        let bad: Vec<_> = entries
            .as_array()
            .expect("a list")
            .iter()
            .filter(|entry| entry["level"] == "SEVERE" || entry["level"] == "WARNING")
            .filter_map(|entry| entry["message"].as_str())
            .filter(|text| !(text.contains(NO_DEVICE) || self.network_may_fail && is_network(text)))
            .collect();
        assert!(bad.is_empty(), "on the console: {bad:#?}");
    }
}

/// A command that only Chromium's driver knows.
#[derive(Debug)]
struct DriverCommand {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for DriverCommand {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.body.to_string()))
    }
}

/// Prints the page's text after a wait has timed out.
struct PageTextOnTimeout<'a> {
    driver: &'a Driver,
    waited: &'a str,
}

impl Drop for PageTextOnTimeout<'_> {
    fn drop(&mut self) {
        let script = json!({"script": "return document.body.innerText", "args": []}).to_string();
        let shown = self.driver.send("POST", "/execute/sync", &script);
        eprintln!("waited for {}; the page shows: {shown}", self.waited);
    }
}

impl Driver {
    /// Sends a driver command without the runtime, which may be shutting down.
    fn send(&self, method: &str, path: &str, body: &str) -> String {
        let request = format!(
            "{method} /session/{}{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.session,
            body.len()
        );
        let Ok(mut connection) = TcpStream::connect(("127.0.0.1", self.port)) else { return String::new() };
        let _ = connection.write_all(request.as_bytes());
        // The driver keeps the connection open after its response.
        let mut lines = BufReader::new(connection);
        let (mut length, mut line) = (0, String::new());
        while lines.read_line(&mut line).is_ok_and(|read| read > 2) {
            let value =
                line.to_ascii_lowercase().strip_prefix("content-length:").map(|text| text.trim().parse());
            length = value.and_then(Result::ok).unwrap_or(length);
            line.clear();
        }
        let mut answer = vec![0; length];
        let _ = lines.read_exact(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.send("DELETE", "", "");
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts the driver. It takes a free IPv4 port, then the same IPv6 port, and exits if another process has that one:
/// hence the retries.
fn start_driver(home: &Path) -> (Child, u16) {
    for _ in 0..DRIVER_STARTS {
        let mut process = Command::new("chromedriver")
            .arg("--port=0")
            .env("HOME", home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("chromedriver starts");
        match port_of(&mut process) {
            Some(port) => return (process, port),
            None => drop(process.wait()),
        }
    }
    panic!("chromedriver found no port in {DRIVER_STARTS} starts");
}

/// The driver's port; `None` if the driver has exited.
fn port_of(process: &mut Child) -> Option<u16> {
    let output = process.stdout.take().expect("its output");
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("started successfully on port"))?;
    // Closing the pipe would end the driver.
    std::thread::spawn(move || lines.for_each(drop));
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    Some(digits.parse().expect("a port"))
}
