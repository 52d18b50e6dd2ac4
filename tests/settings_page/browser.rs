//! WebDriver client: drives a headless Chromium through chromedriver. Each command is one HTTP request with a JSON body to this machine.
//! The client is hand-written, since the existing WebDriver crates depend on some twenty further crates, among them a second version of the
//! ICU crates.
//!
//! The client polls each condition until it is true, for at most [`CONDITION_TIMEOUT`]; no test sleeps for a guessed time.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdin, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long a test waits until a condition becomes true in the browser.
const CONDITION_TIMEOUT: Duration = Duration::from_secs(20);

pub const TAB: &str = "\u{e004}";
pub const ENTER: &str = "\u{e007}";
pub const ESCAPE: &str = "\u{e00c}";
pub const SPACE: &str = " ";

/// The JSON property in which the WebDriver protocol returns the id of a page element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// The script that starts chromedriver, passes on its output, and kills chromedriver once standard input closes. Standard input closes when
/// the test process ends, even by a crash. Chromium ends with chromedriver, since they communicate through a pipe.
const WARDEN: &str = r#"
chromedriver --port=0 </dev/null &
pid=$!
exec >/dev/null
read -r _
kill -KILL "$pid" 2>/dev/null
wait "$pid"
"#;

const FLAGS: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
    "--window-size=1280,900",
];

/// One browser window with a separate profile. It closes when this value is dropped.
pub struct Browser {
    /// The address and port on which chromedriver listens.
    driver: String,
    /// The path of the WebDriver session, with which the path of every command begins.
    session: String,
    warden: Child,
    leash: Option<ChildStdin>,
    _profile: TempDir,
}

/// The number of attempts to start chromedriver before a test fails.
const STARTS: usize = 3;

impl Browser {
    pub fn open() -> Self {
        for program in ["chromium", "chromedriver"] {
            let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            assert!(
                found.is_ok_and(|status| status.success()),
                "{program} does not start; these tests drive a real browser: apt-get install --no-install-recommends chromium chromium-driver"
            );
        }
        let profile = tempfile::tempdir().expect("a directory for temporary files");
        // chromedriver picks a port that is free on IPv4. It ends if another process uses the same port on IPv6. So the start is repeated.
        let (driver, warden, leash) = (0..STARTS).find_map(|_| Self::start()).expect("chromedriver prints its port");
        let mut browser = Self { driver, session: "/session".to_owned(), warden, leash, _profile: profile };
        let profile = format!("--user-data-dir={}", browser._profile.path().display());
        let flags: Vec<&str> = FLAGS.into_iter().chain([profile.as_str()]).collect();
        let wanted = json!({
            "goog:chromeOptions": {"args": flags},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        });
        let made = browser.post("", json!({"capabilities": {"alwaysMatch": wanted}}));
        browser.session = format!("/session/{}", made["sessionId"].as_str().expect("a session id"));
        browser
    }

    /// Starts chromedriver. Returns its address, the shell that runs it, and the shell's standard input. Returns `None` if chromedriver
    /// ends before it prints its port.
    fn start() -> Option<(String, Child, Option<ChildStdin>)> {
        let mut warden = Command::new("sh")
            .args(["-c", WARDEN])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh starts");
        let leash = warden.stdin.take();
        let mut lines = BufReader::new(warden.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let started = lines.find_map(|line| line.split_once("started successfully on port ").map(|(_, port)| port.to_owned()));
        let Some(port) = started else {
            drop(leash);
            warden.wait().expect("the shell ends");
            return None;
        };
        // chromedriver continues to print. A thread reads its output, since chromedriver would block once the pipe is full.
        thread::spawn(move || lines.for_each(drop));
        Some((format!("127.0.0.1:{}", port.trim_end_matches('.')), warden, leash))
    }

    /// Sends one WebDriver command. Returns its result or an error message.
    fn command(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let path = format!("{}{path}", self.session);
        let answer = exchange(&self.driver, method, &path, body).map_err(|error| format!("{method} {path}: {error}"))?;
        match answer.pointer("/value/error") {
            Some(error) => Err(format!("{method} {path}: {error}: {}", answer["value"]["message"])),
            None => Ok(answer["value"].clone()),
        }
    }

    fn try_post(&self, path: &str, body: Value) -> Result<Value, String> {
        self.command("POST", path, Some(&body))
    }

    #[track_caller]
    fn post(&self, path: &str, body: Value) -> Value {
        self.try_post(path, body).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Repeats a step until it succeeds. Panics if it does not succeed within [`CONDITION_TIMEOUT`]. Returns the result of the step.
    #[track_caller]
    fn patiently<T>(&self, what: &str, step: impl Fn() -> Result<T, String>) -> T {
        let deadline = Instant::now() + CONDITION_TIMEOUT;
        loop {
            match step() {
                Ok(value) => return value,
                Err(error) if Instant::now() > deadline => panic!("{what}: {error}\nthe page reads:\n{}", self.text_of_page()),
                Err(_) => thread::sleep(Duration::from_millis(25)),
            }
        }
    }

    fn text_of_page(&self) -> String {
        self.script("return document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    #[track_caller]
    pub fn go(&self, url: &str) {
        self.post("/url", json!({"url": url}));
    }

    #[track_caller]
    pub fn reload(&self) {
        self.post("/refresh", json!({}));
    }

    /// Runs JavaScript code in the page. Returns its result; if the result is a promise, returns the value of the promise.
    #[track_caller]
    pub fn script(&self, script: &str) -> Value {
        self.post("/execute/sync", json!({"script": script, "args": []}))
    }

    /// Waits until a JavaScript expression is true.
    #[track_caller]
    pub fn until(&self, what: &str, expression: &str) {
        self.patiently(what, || {
            let found = self.script(&format!("return {expression}"));
            if found == true { Ok(()) } else { Err(format!("{expression} is {found}")) }
        });
    }

    /// Returns the id of the only visible element that an XPath finds. Returns an error if there is no such element or more than one.
    fn element(&self, xpath: &str) -> Result<String, String> {
        let found = self.try_post("/elements", json!({"using": "xpath", "value": xpath}))?;
        let ids: Vec<&str> = found.as_array().into_iter().flatten().filter_map(|element| element[ELEMENT].as_str()).collect();
        let mut seen = ids.iter().filter(|id| {
            let script = "return arguments[0].checkVisibility()";
            self.try_post("/execute/sync", json!({"script": script, "args": [{ELEMENT: id}]})).is_ok_and(|seen| seen == true)
        });
        match (seen.next(), seen.next()) {
            (Some(id), None) => Ok((*id).to_owned()),
            (None, _) => Err(format!("nothing is visible at {xpath}")),
            (Some(_), Some(_)) => Err(format!("{xpath} finds more than one visible element")),
        }
    }

    #[track_caller]
    pub fn click(&self, xpath: &str) {
        self.patiently("click", || self.try_post(&format!("/element/{}/click", self.element(xpath)?), json!({})));
    }

    /// Clicks the button with this text.
    #[track_caller]
    pub fn press(&self, button: &str) {
        self.click(&format!("//button[normalize-space()='{button}']"));
    }

    /// Replaces the text of an input element by typing.
    #[track_caller]
    pub fn fill(&self, xpath: &str, text: &str) {
        self.patiently("fill", || {
            let id = self.element(xpath)?;
            self.try_post(&format!("/element/{id}/clear"), json!({}))?;
            self.try_post(&format!("/element/{id}/value"), json!({"text": text}))
        });
    }

    /// Chooses an option of a select element by typing the text with which the option begins.
    #[track_caller]
    pub fn choose(&self, xpath: &str, text: &str) {
        self.patiently("choose", || self.try_post(&format!("/element/{}/value", self.element(xpath)?), json!({"text": text})));
    }

    /// Returns the text of an element, once it is visible.
    #[track_caller]
    pub fn text(&self, xpath: &str) -> String {
        self.patiently("read", || self.text_at(xpath))
    }

    fn text_at(&self, xpath: &str) -> Result<String, String> {
        let script = "return arguments[0].innerText";
        let found = self.try_post("/execute/sync", json!({"script": script, "args": [{ELEMENT: self.element(xpath)?}]}))?;
        Ok(found.as_str().unwrap_or_default().to_owned())
    }

    /// Waits until an element is visible and its text contains `part`.
    #[track_caller]
    pub fn reads(&self, xpath: &str, part: &str) {
        self.patiently("read", || {
            let text = self.text_at(xpath)?;
            if text.contains(part) { Ok(()) } else { Err(format!("{xpath} reads {text:?} and lacks {part:?}")) }
        });
    }

    /// Waits until an element is visible.
    #[track_caller]
    pub fn sees(&self, xpath: &str) {
        self.text(xpath);
    }

    /// Waits until no element that an XPath finds is visible.
    #[track_caller]
    pub fn misses(&self, xpath: &str) {
        self.patiently("wait until it is gone", || match self.element(xpath) {
            Err(error) if error.starts_with("nothing is visible") => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(format!("{xpath} is still visible")),
        });
    }

    /// Presses keys one after the other. The element that has the focus receives them.
    #[track_caller]
    pub fn strike(&self, keys: &str) {
        let strokes: Vec<Value> =
            keys.chars().flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key}))).collect();
        self.post("/actions", json!({"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]}));
    }

    #[track_caller]
    pub fn resize(&self, width: u32, height: u32) {
        // A browser window cannot be as narrow as a phone, so the screen of a phone is emulated.
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.post("/goog/cdp/execute", json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": size}));
    }

    /// Returns the text that the page put on the clipboard.
    #[track_caller]
    pub fn clipboard(&self) -> String {
        self.post("/permissions", json!({"descriptor": {"name": "clipboard-read"}, "state": "granted"}));
        self.script("return navigator.clipboard.readText()").as_str().unwrap_or_default().to_owned()
    }

    /// Returns the value of a cookie, even of an `HttpOnly` cookie, which scripts cannot read.
    #[track_caller]
    pub fn cookie(&self, name: &str) -> String {
        let found = self.command("GET", &format!("/cookie/{name}"), None).unwrap_or_else(|error| panic!("{error}"));
        found["value"].as_str().expect("a cookie has a value").to_owned()
    }

    fn log(&self, kind: &str) -> Vec<Value> {
        self.post("/se/log", json!({"type": kind})).as_array().cloned().unwrap_or_default()
    }

    /// Returns the messages in the browser's console since the last call, of all log levels.
    #[track_caller]
    pub fn console(&self) -> Vec<String> {
        self.log("browser").iter().map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Returns the URLs of the requests that the browser sent since the last call.
    #[track_caller]
    pub fn requests(&self) -> Vec<String> {
        let got = self.log("performance").into_iter().filter_map(|entry| serde_json::from_str(entry["message"].as_str()?).ok());
        got.filter(|got: &Value| got["message"]["method"] == "Network.requestWillBeSent")
            .map(|got| got["message"]["params"]["request"]["url"].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}

/// Sends one request to chromedriver. Returns the JSON of the response. Chromedriver announces that it closes the connection, but leaves it
/// open, so the response is read by its content length.
fn exchange(address: &str, method: &str, path: &str, body: Option<&Value>) -> std::io::Result<Value> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(CONDITION_TIMEOUT * 2))?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )?;
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        match reader.read_line(&mut line)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            _ if line.trim_end().is_empty() => break,
            _ => {}
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(std::io::Error::other)?;
        }
    }
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    serde_json::from_slice(&bytes).map_err(std::io::Error::other)
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.leash.take());
        let _ = self.warden.wait();
    }
}
