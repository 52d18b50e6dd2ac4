//! A small blocking HTTP client without a connection pool and without redirects. It sends requests exactly as a test builds them. Some
//! tests need repeated headers or malformed queries, which HTTP client libraries may prevent.

use std::{
    fmt::Write as _,
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::Value;

use crate::contract;

/// The time-out of each read from a connection and of each write to it.
const IO_TIMEOUT: Duration = Duration::from_secs(60);

/// A caller of the API: the address of a server, an API key, and the store that the key belongs to.
#[derive(Clone, Debug)]
pub struct Api {
    pub address: String,
    pub key: Option<String>,
    pub store: String,
}

impl Api {
    /// Returns a caller of the same server that sends no API key.
    pub fn anonymous(&self) -> Self {
        Self { key: None, ..self.clone() }
    }

    /// Returns a caller of the same server and store with another API key.
    pub fn with_key(&self, secret: &str) -> Self {
        Self { key: Some(secret.to_owned()), ..self.clone() }
    }

    /// Returns a request to an operation of the API. `path` is without the prefix `/v1`.
    pub fn call(&self, method: &str, path: &str) -> Call {
        self.raw(method, &format!("/v1{path}"))
    }

    pub fn get(&self, path: &str) -> Call {
        self.call("GET", path)
    }

    pub fn post(&self, path: &str, body: Value) -> Call {
        self.call("POST", path).json(body)
    }

    /// Returns a request to the whole path `path`, which need not begin with `/v1`.
    pub fn raw(&self, method: &str, path: &str) -> Call {
        let mut call = Call {
            api: self.clone(),
            method: method.to_owned(),
            path: path.to_owned(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            chunked: false,
        };
        if let Some(key) = &self.key {
            call = call.header("x-api-key", key);
        }
        call
    }
}

/// A request under construction.
#[derive(Clone, Debug)]
pub struct Call {
    pub api: Api,
    pub method: String,
    /// The whole path with its prefix, such as `/v1/tickets`.
    pub path: String,
    /// The parts of the query string between the `&`, in the encoding in which they are sent.
    pub query: Vec<String>,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    chunked: bool,
}

impl Call {
    pub fn query(mut self, name: &str, value: impl ToString) -> Self {
        self.query.push(format!("{name}={}", encoded(&value.to_string())));
        self
    }

    /// Adds `text` to the query string without encoding it.
    pub fn raw_query(mut self, text: &str) -> Self {
        self.query.push(text.to_owned());
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn json(self, body: Value) -> Self {
        self.header("content-type", "application/json").bytes(body.to_string().into_bytes())
    }

    /// Sets the body, and sets no content type.
    pub fn bytes(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Appends a space to the body: the JSON means the same, but the bytes differ. Returns the request.
    pub fn reworded(mut self) -> Self {
        self.body.iter_mut().for_each(|body| body.push(b' '));
        self
    }

    /// Makes [`Self::send`] send the body in one chunk, without a content length.
    pub fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    fn target(&self) -> String {
        if self.query.is_empty() { self.path.clone() } else { format!("{}?{}", self.path, self.query.join("&")) }
    }

    fn described(&self) -> String {
        let mut text = format!("{} http://{}{}", self.method, self.api.address, self.target());
        if let Some(body) = &self.body {
            let shown: String = String::from_utf8_lossy(body).chars().take(2000).collect();
            let _ = write!(text, "\n  body sent: {shown}");
        }
        text
    }

    /// Sends the request. Asserts that the response, and the request if it succeeds, match the OpenAPI document. Also asserts that the
    /// response has the envelope: `requestId`, `requestReceivedAt`, `storeId`, and either `data` or `error`.
    #[track_caller]
    pub fn send(self) -> Answer {
        let answer = self.exchange();
        contract::check(&self, &answer);
        answer
    }

    /// Like [`Self::send`], but does not check the envelope.
    #[track_caller]
    pub fn exchange(&self) -> Answer {
        match self.attempt() {
            Ok(answer) => {
                contract::conforms(self, &answer);
                answer
            }
            Err(error) => panic!("{}\n  no answer: {error}", self.described()),
        }
    }

    /// Sends the request, and checks nothing in the response. If no response or only a truncated one arrives, for example because the
    /// server is killed, returns an error.
    pub fn attempt(&self) -> std::io::Result<Answer> {
        let mut stream = TcpStream::connect(&self.api.address)?;
        stream.set_read_timeout(Some(IO_TIMEOUT))?;
        stream.set_write_timeout(Some(IO_TIMEOUT))?;
        let mut head = format!("{} {} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.method, self.target(), self.api.address);
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        match (&self.body, self.chunked) {
            (Some(_), true) => head.push_str("transfer-encoding: chunked\r\n"),
            (Some(body), false) => {
                let _ = write!(head, "content-length: {}\r\n", body.len());
            }
            (None, _) => {}
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes())?;
        if let Some(body) = &self.body {
            // A server may respond to a body that is too large before it has read the body. Writing then fails, but the response can still
            // be read. So write errors are ignored.
            let _ = if self.chunked {
                let mut framed = format!("{:x}\r\n", body.len()).into_bytes();
                framed.extend_from_slice(body);
                framed.extend_from_slice(b"\r\n0\r\n\r\n");
                stream.write_all(&framed)
            } else {
                stream.write_all(body)
            };
        }
        let mut bytes = Vec::new();
        if let Err(error) = stream.read_to_end(&mut bytes)
            && bytes.is_empty()
        {
            return Err(error);
        }
        let answer = Answer::parse(self.described(), &bytes).ok_or_else(|| std::io::Error::other("the answer is not HTTP"))?;
        match answer.header("content-length") {
            Some(length) if self.method != "HEAD" && *length != answer.length.to_string() => {
                Err(std::io::Error::other("the answer was cut off"))
            }
            _ => Ok(answer),
        }
    }
}

/// An HTTP response.
#[derive(Clone, Debug)]
pub struct Answer {
    pub request: String,
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// The body, decompressed if it has a content encoding.
    pub text: String,
    /// The number of bytes of the body before decompression, without the framing of chunks.
    pub length: usize,
}

impl Answer {
    fn parse(request: String, bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let body = if chunked { dechunked(&bytes[end + 4..])? } else { bytes[end + 4..].to_vec() };
        let length = body.len();
        let mut text = String::new();
        if headers.iter().any(|(name, value)| name == "content-encoding" && value == "gzip") {
            flate2::read::GzDecoder::new(&body[..]).read_to_string(&mut text).ok()?;
        } else {
            text = String::from_utf8(body).ok()?;
        }
        Some(Self { request, status, headers, text, length })
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Returns the request and the response as text, for a failing assertion.
    pub fn described(&self) -> String {
        format!("{}\n  status: {}\n  headers: {:?}\n  body: {}", self.request, self.status, self.headers, self.text)
    }

    #[track_caller]
    pub fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("the body is not JSON: {error}\n{}", self.described()))
    }

    /// Asserts that the response is a success. Returns its `data`.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.described());
        self.body()["data"].clone()
    }

    /// Asserts that the response is a success whose `data` equals `expected`.
    #[track_caller]
    pub fn is(&self, expected: Value) {
        let found = self.ok();
        assert!(
            found == expected,
            "{}\n  expected: {}\n  found:    {}",
            self.request,
            serde_json::to_string_pretty(&expected).unwrap_or_default(),
            serde_json::to_string_pretty(&found).unwrap_or_default()
        );
    }

    /// Returns the ids of the records in the response, which must be a list, in the order of the list.
    #[track_caller]
    pub fn ids(&self) -> Vec<String> {
        let data = self.ok();
        let rows = data.as_array().unwrap_or_else(|| panic!("not a list\n{}", self.described()));
        rows.iter().map(|row| row["id"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Asserts that the response is a list of the records with exactly these ids, in this order.
    #[track_caller]
    pub fn lists(&self, expected: &[&str]) {
        assert_eq!(self.ids(), expected, "{}", self.request);
    }

    /// Returns the record with this id from the response, which must be a list.
    #[track_caller]
    pub fn row(&self, id: &str) -> Value {
        let data = self.ok();
        let rows = data.as_array().unwrap_or_else(|| panic!("not a list\n{}", self.described()));
        rows.iter().find(|row| row["id"] == id).cloned().unwrap_or_else(|| panic!("no {id} in the list\n{}", self.described()))
    }

    /// Asserts that the response has this status. Returns its error message.
    #[track_caller]
    pub fn fails(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.described());
        self.body()["error"]["message"].as_str().unwrap_or_default().to_owned()
    }

    /// Asserts that the response is a 400 whose error message begins with this parameter name or property path in backticks.
    #[track_caller]
    pub fn refuses(&self, field: &str) {
        let message = self.fails(400);
        assert!(message.starts_with(&format!("`{field}`")), "the message should begin with `{field}`\n{}", self.described());
    }

    /// Asserts that the response is a 404 whose error message begins with this parameter name or property path in backticks.
    #[track_caller]
    pub fn misses(&self, field: &str) {
        let message = self.fails(404);
        assert!(message.starts_with(&format!("`{field}`: ")), "the message should begin with `{field}`\n{}", self.described());
    }

    /// Asserts that the response is a 400 that refuses a value of `expand`.
    #[track_caller]
    pub fn refuses_expand(&self) {
        let message = self.fails(400);
        assert!(message.starts_with("Invalid expand value:"), "{}", self.described());
    }
}

fn dechunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|window| window == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).ok()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(bytes.get(end + 2..end + 2 + size)?);
        bytes = bytes.get(end + 4 + size..)?;
    }
}

fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
