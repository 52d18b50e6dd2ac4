//! HTTP client of the change feed: reads pages, and distinguishes temporary failures from permanent ones.

use std::time::Duration;

use reqwest::{Client, Response, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    cli::http_client::explained,
    domain::{ids::StoreId, ndjson_records::RecordKind},
    store::change_feed_copy::CopiedRecord,
};

/// Why a page could not be read.
#[derive(Debug)]
pub enum FetchError {
    /// The server is unreachable or busy, and a later attempt may succeed. The duration is the pause that the server asked for, if any.
    Passing(String, Option<Duration>),
    /// The server no longer keeps the changes after the given position.
    Gone,
    /// The failure is permanent: a later attempt would fail as well.
    Lasting(String),
}

/// A page of the snapshot or of the feed.
#[derive(Debug)]
pub struct FetchedPage {
    pub store: StoreId,
    pub records: Vec<CopiedRecord>,
    /// The sequence number after which the change feed continues: the parameter `after` of the next request for changes.
    pub next_after: i64,
    /// Whether the server had no further change after this page.
    pub is_last: bool,
}

/// A server, and the token to read from it.
#[derive(Debug)]
pub struct FeedClient {
    pub client: Client,
    pub url: String,
    pub token: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageEnvelope {
    store_id: String,
    data: Vec<PageItem>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageItem {
    kind: String,
    id: String,
    record: Option<Box<RawValue>>,
    #[serde(default)]
    as_stored: bool,
}

impl FeedClient {
    /// Reads a page of the snapshot: records of the kind `kind`, with ids greater than `after_id`.
    pub async fn records(&self, kind: RecordKind, after_id: Option<&str>, limit: usize) -> Result<FetchedPage, FetchError> {
        let mut query = vec![("kind", kind.name().to_owned()), ("limit", limit.to_string())];
        query.extend(after_id.map(|id| ("afterId", id.to_owned())));
        self.page("changes/snapshot", &query).await
    }

    /// Reads a page of the change feed. The page is empty if there is no change for `wait` seconds.
    pub async fn changes(&self, after: i64, wait: u64, limit: usize) -> Result<FetchedPage, FetchError> {
        let query = [("after", after.to_string()), ("wait", wait.to_string()), ("limit", limit.to_string())];
        self.page("changes", &query).await
    }

    async fn page(&self, path: &str, query: &[(&str, String)]) -> Result<FetchedPage, FetchError> {
        let address = format!("{}/settings/v1/{path}", self.url.trim_end_matches('/'));
        let unsent = |error: reqwest::Error| FetchError::Passing(format!("{} does not answer: {}", self.url, explained(&error)), None);
        let mut target = reqwest::Url::parse(&address).map_err(|error| FetchError::Lasting(format!("`{address}` is no URL: {error}")))?;
        target.query_pairs_mut().extend_pairs(query);
        let response = self.client.get(target).bearer_auth(&self.token).send().await.map_err(unsent)?;
        if !response.status().is_success() {
            return Err(refused(&address, response).await);
        }
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let strange = |what: &str| FetchError::Lasting(format!("{address} is no feed of a counterpart server: {what}"));
        let next_after = header("x-next-after").and_then(|text| text.parse().ok()).ok_or_else(|| strange("it sends no `x-next-after`"))?;
        let is_last = header("x-up-to-date").is_some_and(|text| text == "true");
        let bytes = response.bytes().await.map_err(unsent)?;
        let PageEnvelope { store_id, data } = serde_json::from_slice(&bytes).map_err(|error| strange(&error.to_string()))?;
        let records = data.into_iter().map(|item| {
            let kind = RecordKind::of(&item.kind).ok_or_else(|| {
                strange(&format!("it has records of the kind `{}`, which this version does not know; update this program", item.kind))
            })?;
            Ok(CopiedRecord { kind, id: item.id, record: item.record.map(|raw| raw.get().to_owned()), as_stored: item.as_stored })
        });
        Ok(FetchedPage { store: store_id.into(), records: records.collect::<Result<_, _>>()?, next_after, is_last })
    }
}

async fn refused(address: &str, response: Response) -> FetchError {
    let status = response.status();
    let pause = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok()).map(Duration::from_secs);
    let bytes = response.bytes().await.unwrap_or_default();
    let body: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let reason = body["error"]["message"].as_str().unwrap_or("without a reason").to_owned();
    match status {
        StatusCode::GONE => FetchError::Gone,
        StatusCode::TOO_MANY_REQUESTS => FetchError::Passing(format!("{address} answers {status}: {reason}"), pause),
        _ if status.is_server_error() => FetchError::Passing(format!("{address} answers {status}: {reason}"), pause),
        StatusCode::UNAUTHORIZED => FetchError::Lasting(format!(
            "the token in COUNTERPART_TOKEN is refused: {reason}; `counterpart settings token` prints one for an owner or admin"
        )),
        StatusCode::NOT_FOUND => FetchError::Lasting(format!(
            "{address} answers 404: --url must be the base URL of a counterpart server that has a feed of changes"
        )),
        _ => FetchError::Lasting(format!("{address} answers {status}: {reason}")),
    }
}
