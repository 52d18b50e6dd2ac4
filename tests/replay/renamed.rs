//! Properties of a message that the revisions name differently: the older revision has them in `payload`, the newer one beside the other
//! properties.

use serde_json::{Value, json};

use crate::{client::Answer, corpus::Request};

/// The places where the two values do not mean the same.
pub fn faults(request: &Request, answers: &[Answer; 2]) -> Vec<String> {
    if request.operation() != "GET /messages" || answers.iter().any(|answer| answer.status != 200) {
        return vec![];
    }
    let [older, newer] = answers.each_ref().map(Answer::ok);
    let rows = older.as_array().into_iter().flatten().zip(newer.as_array().into_iter().flatten());
    let mut found = Vec::new();
    for (older, newer) in rows {
        let direction = if older["sentByRecipient"] == true { "inbound" } else { "outbound" };
        for (name, meant) in [
            ("messageDirection", &json!(direction)),
            ("messageCategory", &json!("message")),
            ("text", &older["payload"]["text"]),
            ("images", &older["payload"]["images"]),
        ] {
            // An absent property and null count as equal here; neither document allows null.
            let said: &Value = &newer[name];
            if said != meant {
                found.push(format!("{name} of {} is {said}, where the older revision says {meant}", newer["id"]));
            }
        }
    }
    found
}
