//! Tests of GET /labels: the order of the list, and the search by name.

use serde_json::json;

use crate::{client::Answer, harness::one};

/// The ids of all labels of store `one`, most recently updated first.
const ALL: [&str; 7] = ["lab-percent", "lab-tie-b", "lab-tie-a", "lab-viet", "lab-wide", "lab-late", "lab-vip"];

fn search(term: &str) -> Answer {
    one().get("/labels").query("searchTerm", term).send()
}

#[test]
fn labels_come_most_recently_updated_first() {
    let answer = one().get("/labels").send();
    answer.lists(&ALL);
    assert_eq!(answer.row("lab-late"), json!({"id": "lab-late", "label": "Late delivery", "color": "#00ff00"}));
    assert_eq!(answer.header("x-pagination-page-size"), Some("20"));
}

#[test]
fn a_search_term_is_found_anywhere_without_regard_to_case_and_form() {
    search("vip").lists(&["lab-vip"]);
    search("DELIV").lists(&["lab-late"]);
    search("FULL").lists(&["lab-wide"]);
    search("đơn HÀNG").lists(&["lab-viet"]);
    search("tre\u{302}\u{303}").lists(&["lab-viet"]);
    search("tied").lists(&["lab-tie-b", "lab-tie-a"]);
    search("nowhere").lists(&[]);
}

#[test]
fn wildcards_in_a_search_term_stand_for_themselves() {
    search("00%").lists(&["lab-percent"]);
    search("e_t").lists(&["lab-percent"]);
    search("%%%").lists(&[]);
    search("V_P").lists(&[]);
}

#[test]
fn a_search_term_is_measured_after_trimming() {
    search("  vip ").lists(&["lab-vip"]);
    for blank in ["", "   ", "\t"] {
        search(blank).lists(&ALL);
    }
    for short in ["v", "vi", " vi ", "ไๆ"] {
        search(short).refuses("searchTerm");
    }
    search(&"ไ".repeat(100)).lists(&[]);
    search(&"ไ".repeat(101)).refuses("searchTerm");
}
