//! `counterpart contract replay`: sends the same requests to two servers, and compares their responses.

use std::{collections::BTreeMap, fs};

use clap::{Args, ValueEnum};
use openapi_diff::{
    Document, Notes, diff,
    replay::{self, Answer, Caller, Comparison, Credential, Request, corpus, examples},
};
use regex::Regex;
use reqwest::{Client, Method, redirect::Policy};
use serde::Deserialize;
use tokio::runtime::Handle;
use url::Url;

use super::{
    NOTES,
    document_source::{document, text},
    json,
};
use crate::cli::http_client::{client, explained};
use crate::{
    cli::{Failed, note, print, progress},
    config::switch,
    domain::clock::ClocksAndIds,
};

/// The arguments of `contract replay`.
#[derive(Args, Debug)]
pub struct ReplayCommand {
    /// The URL of the old server: the base URL of its API, or only its origin
    ///
    /// To an origin such as `http://127.0.0.1:8080`, the path of the first entry of `servers` in the document is added.
    #[arg(long, env = "COUNTERPART_OLD_SERVER", value_name = "URL")]
    old: Url,

    /// The URL of the new server: the base URL of its API, or only its origin
    #[arg(long, env = "COUNTERPART_NEW_SERVER", value_name = "URL")]
    new: Url,

    /// The requests, one JSON object a line: a file, or `-` for standard input
    ///
    /// An example is `{"call": "POST /tickets/list?pageSize=3", "body": {}}`. These properties are optional:
    ///
    /// - `text`: the body, if it is no JSON; `headers`: headers to send
    ///
    /// - `key`: the name of a key in the file of keys; `anonymous`: send no key
    ///
    /// - `pages`: how many more pages to read by `x-pagination-next-cursor`; `then`: the query of those pages, if it differs
    ///
    /// - `fails`: both servers must respond with a status of 500 or above
    ///
    /// - `because`: the expected differences, by place in the responses: `{"/error/message": {"by": [CAUSE], "pairs": [[OLD, NEW]]}}`.
    ///   CAUSE is the rule and place of a change between the documents, such as `limit-loosened query parameter pageSize`, or the `key` of
    ///   a note. `pairs` lists all differing values of the old and the new server at that place. At the place `status`, a value is a list:
    ///   the status, and the error message or the ids of the records
    #[arg(long, env = "COUNTERPART_CORPUS", value_name = "FILE", required_unless_present = "examples")]
    corpus: Option<String>,

    /// Send the example requests of both documents, alone or in addition to those of a corpus
    #[arg(long, env = "COUNTERPART_EXAMPLES", value_parser = switch())]
    examples: bool,

    /// Send each successful write that has an idempotency key twice more: with the same body, and with a different body
    #[arg(long, env = "COUNTERPART_REPEAT", value_parser = switch())]
    repeat: bool,

    /// The API key for the old server, sent as its document says
    #[arg(long, env = "COUNTERPART_OLD_KEY", value_name = "KEY", hide_env_values = true)]
    old_key: Option<String>,

    /// The API key for the new server
    #[arg(long, env = "COUNTERPART_NEW_KEY", value_name = "KEY", hide_env_values = true)]
    new_key: Option<String>,

    /// Further keys by name, as JSON: `{"NAME": {"old": KEY, "new": KEY}}`
    #[arg(long, env = "COUNTERPART_KEYS", value_name = "FILE")]
    keys: Option<String>,

    /// The document of the old server [default: `/openapi.json` of the server]
    #[arg(long, env = "COUNTERPART_OLD_DOCUMENT", value_name = "DOCUMENT")]
    old_document: Option<String>,

    /// The document of the new server
    #[arg(long, env = "COUNTERPART_NEW_DOCUMENT", value_name = "DOCUMENT")]
    new_document: Option<String>,

    /// Notes on behaviour that no document shows, as for `contract diff`; a line of the corpus refers to a note by its `key`
    #[arg(long, env = "COUNTERPART_NOTES", value_name = "FILE")]
    notes: Option<String>,

    /// Treat times as equal that differ by no more than this many seconds: for servers that were filled one after the other
    ///
    /// Times within an hour of now are equal in any case.
    #[arg(long, env = "COUNTERPART_TIMES_WITHIN", value_name = "SECONDS", default_value_t = 0)]
    times_within: u32,

    /// A regular expression for texts that depend on chance: two texts that match it are equal. May be repeated
    ///
    /// UUIDs of version 7 are equal in any case.
    #[arg(long, env = "COUNTERPART_CHANCE", value_name = "REGEX")]
    chance: Vec<Regex>,

    /// The form of the report
    #[arg(long, env = "COUNTERPART_REPLAY_FORMAT", value_enum, default_value_t = ReplayFormat::Text)]
    format: ReplayFormat,

    /// The output file, instead of standard output
    #[arg(long, env = "COUNTERPART_REPLAY_OUTPUT", value_name = "FILE")]
    output: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ReplayFormat {
    /// For people: each request with a difference that is not documented, and the totals
    Text,
    /// JSON: `{requests, unexplained: [{request, faults, answers}], seen: [KEY], unseen: [KEY]}`; `seen` has the keys of the documented
    /// differences that a response showed, `unseen` those of the others
    Json,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyPair {
    old: String,
    new: String,
}

const KEYS: &str = r#"{"reader": {"old": "…", "new": "…"}}"#;

/// One of the two servers of a replay, with its document and its API keys.
struct ReplayedServer {
    /// The base URL, without a slash at its end.
    base: String,
    document: Document,
    credential: Option<Credential>,
    key: Option<String>,
    keys: BTreeMap<String, String>,
}

impl ReplayCommand {
    /// Sends all requests to both servers, compares the responses and writes the report. Returns whether every difference is documented.
    pub fn run(self) -> Result<bool, Failed> {
        let keys: BTreeMap<String, KeyPair> = self.keys.as_deref().map(|file| json(file, "keys", KEYS)).transpose()?.unwrap_or_default();
        let of = |side: fn(&KeyPair) -> &String| keys.iter().map(|(name, pair)| (name.clone(), side(pair).clone())).collect();
        let servers = [
            ReplayedServer::new(&self.old, self.old_document.as_deref(), self.old_key.clone(), of(|pair| &pair.old))?,
            ReplayedServer::new(&self.new, self.new_document.as_deref(), self.new_key.clone(), of(|pair| &pair.new))?,
        ];
        let documents = servers.each_ref().map(|server| &server.document);
        let mut report = diff(documents[0], documents[1]);
        if let Some(file) = &self.notes {
            let notes: Notes = json(file, "notes", NOTES)?;
            // `annotate` adds the notes to the report, and returns the mismatches between notes and changes. A replay uses only the notes
            // on behaviour that no document shows (`unshown`). These notes belong to no change, so the mismatches are ignored.
            _ = report.annotate(&notes);
        }
        let times_within = i64::from(self.times_within) * 1000;
        let clocks_and_ids = ClocksAndIds::real();
        let comparison = Comparison { now: clocks_and_ids.now().millis(), times_within, chance: self.chance.clone() };
        let mut replay = replay::Replay::new(documents, &report, comparison);

        let requests = self.requests(documents)?;
        let http = client(Policy::none()).map_err(Failed)?;
        let run = clocks_and_ids.ids.fresh();
        let (bar, moved) = progress::bar();
        for (number, mut request) in requests.iter().cloned().enumerate() {
            const KEY: &str = "idempotency-key";
            let takes_key = documents.iter().any(|document| document.takes_header(&request, KEY));
            if takes_key && !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(KEY)) {
                request.headers.push((KEY.to_owned(), format!("replay-{run}-{number}")));
            }
            let mut answers = exchange(&http, &servers, &[request.clone(), request.clone()])?;
            let first = if request.then.is_some() { request.unexplained() } else { request.clone() };
            replay.add(&first, &answers);
            for _ in 0..request.pages {
                let cursors = answers.each_ref().map(|answer| answer.header("x-pagination-next-cursor").map(str::to_owned));
                let [Some(old), Some(new)] = cursors else { break };
                // Each server continues with its own cursor.
                let pages = [old, new].map(|cursor| request.page(&cursor));
                answers = exchange(&http, &servers, &pages)?;
                replay.add(&pages[1], &answers);
            }
            if self.repeat && takes_key && answers.iter().all(|answer| answer.status == 200) {
                let again = request.unexplained();
                let body = again.body.clone().map(|body| body + " ");
                for request in [again.clone(), Request { body, ..again }] {
                    replay.add(&request, &exchange(&http, &servers, &[request.clone(), request.clone()])?);
                }
            }
            moved.iter().for_each(|moved| moved(number as u64 + 1, requests.len() as u64));
        }
        bar.iter().for_each(|bar| bar.finish_and_clear());

        let found = replay.finish();
        let shown = match self.format {
            ReplayFormat::Text => found.text(),
            ReplayFormat::Json => found.json(),
        };
        match &self.output {
            Some(file) => fs::write(file, shown + "\n").map_err(|error| Failed(format!("{file} cannot be written: {error}")))?,
            None => print(&shown)?,
        }
        Ok(found.unexplained.is_empty())
    }

    fn requests(&self, documents: [&Document; 2]) -> Result<Vec<Request>, Failed> {
        let mut requests = match &self.corpus {
            Some(file) => corpus(&text(file)?).map_err(|error| Failed(format!("{file}, {error}")))?,
            None => vec![],
        };
        if self.examples {
            let found = examples(documents[0], documents[1]);
            if found.is_empty() {
                note("warning: the documents have no example requests");
            }
            requests.extend(found);
        }
        if requests.is_empty() {
            return Err(Failed("there is no request to send".to_owned()));
        }
        Ok(requests)
    }
}

/// Sends the first request to the first server and the second request to the second server. Returns both responses.
fn exchange(http: &Client, servers: &[ReplayedServer; 2], requests: &[Request; 2]) -> Result<[Answer; 2], Failed> {
    let [old, new] = [0, 1].map(|side| servers[side].answer(http, &requests[side]));
    Ok([old?, new?])
}

impl ReplayedServer {
    fn new(url: &Url, from: Option<&str>, key: Option<String>, keys: BTreeMap<String, String>) -> Result<Self, Failed> {
        if !["http", "https"].contains(&url.scheme()) || url.host().is_none() {
            return Err(Failed(format!("{url} is no address of a server such as http://127.0.0.1:8080")));
        }
        let origin = url.origin().ascii_serialization();
        let document = document(from.unwrap_or(&format!("{origin}/openapi.json")))?;
        let path = if url.path() == "/" { document.server_path() } else { url.path().trim_end_matches('/') };
        let credential = document.credential();
        if credential.is_none() && (key.is_some() || !keys.is_empty()) {
            return Err(Failed(format!("the document of {url} names neither a header for an API key nor a bearer token")));
        }
        Ok(Self { base: format!("{origin}{path}"), credential, key, keys, document })
    }

    fn key(&self, request: &Request) -> Result<Option<&str>, Failed> {
        match &request.caller {
            Caller::Anonymous => Ok(None),
            Caller::Default => Ok(self.key.as_deref()),
            Caller::Named(name) => match self.keys.get(name) {
                Some(key) => Ok(Some(key)),
                None => Err(Failed(format!("{request}: the file of --keys has no key {name}"))),
            },
        }
    }

    fn answer(&self, http: &Client, request: &Request) -> Result<Answer, Failed> {
        let query = if request.query.is_empty() { String::new() } else { format!("?{}", request.query) };
        let address = format!("{}{}{query}", self.base, request.path);
        let failed = |reason: String| Failed(format!("{} {address}: {reason}", request.method));
        let method = Method::from_bytes(request.method.as_bytes()).map_err(|error| failed(error.to_string()))?;
        let mut sent = http.request(method, &address);
        for (name, value) in &request.headers {
            sent = sent.header(name, value);
        }
        match (&self.credential, self.key(request)?) {
            (Some(Credential::Header(name)), Some(key)) => sent = sent.header(name, key),
            (Some(Credential::Bearer), Some(key)) => sent = sent.bearer_auth(key),
            _ => {}
        }
        if let Some(body) = &request.body {
            sent = sent.body(body.clone());
        }
        Handle::current().block_on(async {
            let response = sent.send().await.map_err(|error| failed(explained(&error)))?;
            let header = |(name, value): (&reqwest::header::HeaderName, &reqwest::header::HeaderValue)| {
                (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            };
            let (status, headers) = (response.status().as_u16(), response.headers().iter().map(header).collect());
            let text = response.text().await.map_err(|error| failed(explained(&error)))?;
            Ok(Answer { status, headers, text })
        })
    }
}
