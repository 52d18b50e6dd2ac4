//! The endpoints for operators: liveness probe, readiness probe, and the metrics page.

use std::{sync::Arc, time::Duration};

use poem::{
    IntoResponse, Response, handler,
    http::{StatusCode, header},
    web::Data,
};

use crate::{
    http::machinery::shared_state::SharedState,
    readiness::Readiness,
    revision,
    search::{IndexState, SearchService},
    store,
};

fn text(media_type: &'static str, body: impl Into<poem::Body>) -> Response {
    Response::builder().content_type(media_type).header(header::X_CONTENT_TYPE_OPTIONS, "nosniff").body(body)
}

/// Liveness probe: responds while the process runs.
#[handler]
pub(super) fn healthz() -> Response {
    let body = serde_json::json!({ "status": "ok", "revision": revision::NAME, "version": env!("CARGO_PKG_VERSION") });
    text("application/json", body.to_string())
}

/// Readiness probe: responds whether the process can do its work, and if it cannot, why.
#[handler]
pub(super) async fn readyz(Data(readiness): Data<&Readiness>) -> Response {
    let (reasons, warnings) = (readiness.reasons().await, readiness.warnings());
    let (status, mut body) = if reasons.is_empty() {
        (StatusCode::OK, serde_json::json!({ "status": "ready" }))
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, serde_json::json!({ "status": "not ready", "reasons": reasons }))
    };
    if !warnings.is_empty() {
        body["warnings"] = warnings.into();
    }
    text("application/json", body.to_string()).with_status(status).into_response()
}

pub(super) const METRICS: &str = "/metrics";

/// The time-out of the metrics page for reading from the database.
const METRICS_READ_TIMEOUT: Duration = Duration::from_secs(3);

#[handler]
pub(super) async fn metrics_page(Data(state): Data<&Arc<SharedState>>, Data(searches): Data<&SearchService>) -> Response {
    let db = state.service.db();
    let slow = |_| store::Error::Unavailable(format!("it did not answer within {} seconds", METRICS_READ_TIMEOUT.as_secs()));
    let read = tokio::time::timeout(METRICS_READ_TIMEOUT, db.backlogs()).await.map_err(slow).flatten();
    if let Err(error) = &read {
        tracing::warn!(%error, "the metrics page lacks the gauges of the database");
    }
    state.metrics.refused_log_copies(db.refused_log_copies());
    state.metrics.database(read.ok().as_ref(), state.service.clocks_and_ids().now());
    state.metrics.db_connections(db.postgres_connections());
    match searches.state().await {
        Ok(IndexState { lag, is_ready, bytes }) => state.metrics.search_index(lag, is_ready, bytes),
        Err(error) => tracing::warn!(%error, "the metrics page lacks the state of the search index"),
    }
    text("application/openmetrics-text; version=1.0.0; charset=utf-8", state.metrics.page())
}
