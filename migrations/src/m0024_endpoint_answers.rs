//! Column for the response of a webhook endpoint to a failed delivery attempt.
//!
//! Attempts from before this migration and attempts of an older build have no response.

crate::migration!(
    "m0024_endpoint_answers",
    up: r"
-- The beginning of the body of a response that reports a failure.
ALTER TABLE attempts ADD COLUMN answer TEXT
",
    down: "ALTER TABLE attempts DROP COLUMN answer"
);
