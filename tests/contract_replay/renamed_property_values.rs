//! Comparison of message properties that the two revisions of the API name differently. For example, the older revision has the text in
//! `payload.text`, the newer one in `text`.

use serde_json::{Value, json};

use super::ReplayServers;

/// The ids of conversations whose messages together have every property of a message.
const CONVERSATIONS: [&str; 4] = ["conv-main", "conv-mail", "conv-wa", "conv-drunk"];

/// Reads the messages from both servers. Returns a description of each property whose values in the two revisions do not mean the same.
pub fn faults(sides: &ReplayServers) -> Vec<String> {
    let mut found = Vec::new();
    for conversation in CONVERSATIONS {
        let query = [("conversationId", conversation), ("pageSize", "15")];
        let [older, newer] = [0, 1].map(|side| {
            let call = sides.api(side, "reads").call("GET", "/messages");
            let call = query.iter().fold(call, |call, (name, value)| call.query(name, value));
            call.attempt().unwrap_or_else(|error| panic!("no messages of {conversation}: {error}")).ok()
        });
        let rows: Vec<_> = older.as_array().into_iter().flatten().zip(newer.as_array().into_iter().flatten()).collect();
        assert!(!rows.is_empty(), "{conversation} has no messages");
        for (older, newer) in rows {
            let direction = if older["sentByRecipient"] == true { "inbound" } else { "outbound" };
            for (name, meant) in [
                ("messageDirection", &json!(direction)),
                ("messageCategory", &json!("message")),
                ("text", &older["payload"]["text"]),
                ("images", &older["payload"]["images"]),
            ] {
                // An absent property and null count as equal here. The OpenAPI document of neither revision allows null.
                let value: &Value = &newer[name];
                if value != meant {
                    found.push(format!("{name} of {} is {value}, where the older revision says {meant}", newer["id"]));
                }
            }
        }
    }
    found
}
