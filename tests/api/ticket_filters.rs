//! Tests of the filters of POST /tickets/list, except the filters on field values.

use serde_json::{Value, json};

use crate::{
    REV_A,
    fixture::{ANN, BO, GHOST, NAMELESS, at},
    harness::one,
    tickets::{HISTORY, OPEN, list},
};

#[track_caller]
fn advanced(filters: Value) -> crate::client::Answer {
    list(json!({"statuses": ["open", "closed"], "advancedFilters": filters}))
}

#[test]
fn statuses_choose_open_closed_or_all() {
    list(json!({"statuses": ["open"]})).lists(&OPEN);
    list(json!({"statuses": []})).lists(&OPEN);
    list(json!({"statuses": ["open", "open"]})).lists(&OPEN);
    list(json!({"statuses": ["closed"]})).lists(&["t-second", "t-first"]);
}

#[test]
fn filtering_by_both_statuses_includes_snoozed_tickets() {
    let expected = [&OPEN[..15], &["t-mail"], &HISTORY].concat();
    list(json!({"statuses": ["open", "closed"]})).lists(&expected);
    list(json!({"statuses": ["closed", "open"]})).lists(&expected);
}

#[test]
fn a_conversation_filter_alone_includes_closed_tickets_in_the_newer_revision() {
    let expected: &[&str] = if REV_A { &["t-third"] } else { &HISTORY };
    list(json!({"conversationId": "conv-main"})).lists(expected);
    for absent in [
        json!({"statuses": []}),
        json!({"statuses": null}),
        json!({"isSpam": false}),
        json!({"isSpam": null}),
        json!({"unassigned": false}),
        json!({"advancedFilters": {}}),
        json!({"advancedFilters": null}),
        json!({"advancedFilters": {"ticketFields": []}}),
        json!({"accountIds": [], "assigneeUserIds": null, "handledByUserIds": [], "resolutionStatuses": [], "isFollowUp": null}),
    ] {
        let mut body = absent;
        body["conversationId"] = json!("conv-main");
        list(body).lists(expected);
    }
}

#[test]
fn a_conversation_filter_with_another_filter_lists_only_open_tickets() {
    for other in [json!({"isFollowUp": true}), json!({"statuses": ["open"]}), json!({"accountIds": ["acc-line"]})] {
        let mut body = other;
        body["conversationId"] = json!("conv-main");
        list(body).lists(&["t-third"]);
    }
}

#[test]
fn a_conversation_filter_alone_includes_snoozed_tickets_but_not_spam() {
    list(json!({"conversationId": "conv-mail"})).lists(if REV_A { &[] } else { &["t-mail"] });
    list(json!({"conversationId": "conv-mail", "statuses": ["open"]})).lists(&[]);
    list(json!({"conversationId": "conv-spam"})).lists(&[]);
    list(json!({"conversationId": "conv-spam", "isSpam": true})).lists(&["t-spam"]);
}

#[test]
fn spam_is_listed_only_when_asked_for() {
    list(json!({"isSpam": true})).lists(&["t-spam"]);
    list(json!({"isSpam": false})).lists(&OPEN);
}

#[test]
fn filters_by_account_assignee_and_handler_match_any_given_id() {
    list(json!({"accountIds": ["acc-gone", "acc-wa", "acc-two"]})).lists(&["t-gone", "t-woke"]);
    list(json!({"assigneeUserIds": [BO]})).lists(&["t-woke", "t-third"]);
    list(json!({"assigneeUserIds": [NAMELESS, GHOST]})).lists(&["t-gone", "t-drunk"]);
    list(json!({"handledByUserIds": [ANN, GHOST], "statuses": ["open", "closed"]})).lists(&["t-gone", "t-third", "t-second", "t-first"]);
}

#[test]
fn an_unknown_id_in_a_filter_matches_nothing() {
    for filter in [
        json!({"conversationId": "nobody"}),
        json!({"conversationId": "conv-two"}),
        json!({"accountIds": ["nobody"]}),
        json!({"assigneeUserIds": ["not-a-uuid"]}),
        json!({"handledByUserIds": ["nobody"]}),
        json!({"advancedFilters": {"labels": {"operator": "contains_any", "labelIds": ["nobody"]}}}),
    ] {
        list(filter).lists(&[]);
    }
}

#[test]
fn the_resolution_status_none_matches_tickets_without_a_resolution() {
    let all = |statuses: Value| list(json!({"statuses": ["open", "closed"], "resolutionStatuses": statuses}));
    all(json!(["human"])).lists(&["t-first"]);
    all(json!(["automation", "ai_full_resolution"])).lists(&["t-woke", "t-second"]);
    all(json!(["ai_partial_resolution"])).lists(&[]);
    all(json!(["none"])).lists(&[&OPEN[..14], &["t-mail", "t-third"]].concat());
    all(json!(["none", "human"])).lists(&[&OPEN[..14], &["t-mail", "t-third", "t-first"]].concat());
}

#[test]
fn unassigned_lists_tickets_without_an_assignee() {
    let expected: Vec<_> = OPEN.into_iter().filter(|id| !["t-gone", "t-drunk", "t-woke", "t-third"].contains(id)).collect();
    list(json!({"unassigned": true})).lists(&expected);
    list(json!({"unassigned": false})).lists(&OPEN);
    list(json!({"unassigned": true, "assigneeUserIds": []})).lists(&expected);
    list(json!({"unassigned": false, "assigneeUserIds": [BO]})).lists(&["t-woke", "t-third"]);
}

#[test]
fn unassigned_and_assignees_exclude_each_other() {
    let message = list(json!({"unassigned": true, "assigneeUserIds": [BO]})).fails(400);
    assert!(message.starts_with("`body.unassigned`") || message.starts_with("`body.assigneeUserIds`"), "{message}");
}

#[test]
fn the_follow_up_filter_selects_or_excludes_follow_up_tickets() {
    list(json!({"isFollowUp": true})).lists(&["t-third"]);
    list(json!({"isFollowUp": false})).lists(&OPEN[..15]);
}

#[test]
fn a_ticket_is_listed_only_if_all_filters_match() {
    list(json!({"assigneeUserIds": [BO], "accountIds": ["acc-wa", "acc-line"], "isFollowUp": false})).lists(&["t-woke"]);
}

#[test]
fn the_label_filter_matches_the_labels_of_the_conversation() {
    let labels = |operator: &str, ids: Value| list(json!({"advancedFilters": {"labels": {"operator": operator, "labelIds": ids}}}));
    labels("contains_any", json!(["lab-vip", "lab-late"])).lists(&["t-quiet", "t-third"]);
    labels("contains_all", json!(["lab-vip", "lab-late"])).lists(&["t-third"]);
    labels("contains_all", json!(["lab-late", "lab-late"])).lists(&["t-quiet", "t-third"]);
    labels("contains_any", json!(["lab-unknown"])).lists(&["t-quiet"]);
    let others: Vec<_> = OPEN.into_iter().filter(|id| !["t-quiet", "t-third"].contains(id)).collect();
    labels("does_not_contain_any", json!(["lab-late", "nobody"])).lists(&others);
    advanced(json!({"labels": {"operator": "contains_any", "labelIds": ["lab-vip"]}})).lists(&HISTORY);
}

#[test]
fn a_label_filter_takes_one_to_ten_ids_and_a_known_operator() {
    let eleven: Vec<_> = (0..11).map(|n| format!("lab-{n}")).collect();
    for (labels, field) in [
        (json!({"operator": "contains_any", "labelIds": []}), "body.advancedFilters.labels.labelIds"),
        (json!({"operator": "contains_any", "labelIds": eleven}), "body.advancedFilters.labels.labelIds"),
        (json!({"operator": "contains_any"}), "body.advancedFilters.labels.labelIds"),
        (json!({"labelIds": ["lab-vip"]}), "body.advancedFilters.labels.operator"),
        (json!({"operator": "equal", "labelIds": ["lab-vip"]}), "body.advancedFilters.labels.operator"),
    ] {
        advanced(json!({"labels": labels})).refuses(field);
    }
    advanced(json!({"labels": {"operator": "contains_any", "labelIds": &eleven[..10]}})).lists(&[]);
}

#[test]
fn waiting_counts_from_the_first_unanswered_message_and_ignores_automatic_answers() {
    let waiting = |minutes: Value| list(json!({"advancedFilters": {"waitingForReply": {"value": minutes}}}));
    waiting(json!(0)).lists(&["t-wait", "t-gone", "t-drunk", "t-woke"]);
    waiting(json!(20)).lists(&["t-wait", "t-gone", "t-drunk", "t-woke"]);
    waiting(json!(300)).lists(&["t-gone", "t-drunk", "t-woke"]);
    waiting(json!(2_000_000_000)).lists(&[]);
}

#[test]
fn the_waiting_filter_matches_only_open_tickets() {
    advanced(json!({"waitingForReply": {"value": 1}})).lists(&["t-wait", "t-gone", "t-drunk", "t-woke", "t-mail"]);
    list(json!({"statuses": ["closed"], "advancedFilters": {"waitingForReply": {"value": 0}}})).lists(&[]);
}

#[test]
fn waiting_takes_a_whole_number_of_minutes() {
    for value in [json!(-1), json!(1.5), json!("5"), json!(true)] {
        advanced(json!({"waitingForReply": {"value": value}})).refuses("body.advancedFilters.waitingForReply.value");
    }
    advanced(json!({"waitingForReply": {}})).refuses("body.advancedFilters.waitingForReply.value");
}

#[test]
fn opening_time_between_includes_its_bounds_and_greater_or_less_exclude_them() {
    let opened = |filter: Value| advanced(json!({"openedAt": filter}));
    let (low, high) = (at("03-03T08:00"), at("03-05T08:00"));
    opened(json!({"operator": "between", "min": low, "max": high})).lists(&["t-third", "t-second"]);
    opened(json!({"operator": "between", "min": low, "max": low})).lists(&["t-second"]);
    opened(json!({"operator": "less_than", "value": low})).lists(&["t-woke", "t-first"]);
    opened(json!({"operator": "greater_than", "value": at("04-10T08:00")})).lists(&["t-wait"]);
    opened(json!({"operator": "between", "min": "2025-03-03T15:00:00+07:00", "max": "2025-03-03T15:00:00.000+07:00"})).lists(&["t-second"]);
}

#[test]
fn opening_times_finer_than_a_millisecond_neither_miss_nor_add_tickets() {
    let opened = |filter: Value| advanced(json!({"openedAt": filter}));
    let behind = |day: &str, finer: &str| at(&format!("{day}T08:00:00.{finer}"));
    for finer in ["0001", "000000001", "000000000001"] {
        opened(json!({"operator": "less_than", "value": behind("03-03", finer)})).lists(&["t-woke", "t-second", "t-first"]);
        opened(json!({"operator": "greater_than", "value": behind("04-10", finer)})).lists(&["t-wait"]);
        opened(json!({"operator": "between", "min": behind("03-03", finer), "max": behind("03-05", finer)})).lists(&["t-third"]);
        opened(json!({"operator": "between", "min": behind("03-03", finer), "max": behind("03-03", "0002")})).lists(&[]);
    }
    let reversed = json!({"operator": "between", "min": behind("03-03", "0002"), "max": behind("03-03", "0001")});
    opened(reversed).refuses("body.advancedFilters.openedAt.min");
    opened(json!({"operator": "less_than", "value": "2025-03-03T10:00:60Z"})).refuses("body.advancedFilters.openedAt.value");
}

#[test]
fn the_opening_time_filter_requires_valid_operands_and_ordered_bounds() {
    let (low, high) = (at("03-03T08:00"), at("03-05T08:00"));
    for filter in [
        json!({"operator": "between", "min": low}),
        json!({"operator": "between", "max": high}),
        json!({"operator": "between", "value": low}),
        json!({"operator": "between", "min": high, "max": low}),
        json!({"operator": "less_than"}),
        json!({"operator": "greater_than", "min": low}),
        json!({"operator": "greater_than", "value": "2025-03-03"}),
        json!({"operator": "greater_than", "value": 5}),
        json!({"operator": "equal", "value": low}),
        json!({"value": low}),
    ] {
        let message = advanced(json!({"openedAt": filter})).fails(400);
        assert!(message.starts_with("`body.advancedFilters.openedAt"), "{filter}: {message}");
    }
}

#[test]
fn an_error_names_the_filter_with_a_wrong_type_or_unknown_value() {
    for (body, field) in [
        (json!({"statuses": "open"}), "body.statuses"),
        (json!({"statuses": ["Open"]}), "body.statuses[0]"),
        (json!({"statuses": ["open", "snoozed"]}), "body.statuses[1]"),
        (json!({"conversationId": 5}), "body.conversationId"),
        (json!({"accountIds": ["acc-line", 5]}), "body.accountIds[1]"),
        (json!({"assigneeUserIds": [null]}), "body.assigneeUserIds[0]"),
        (json!({"resolutionStatuses": ["robot"]}), "body.resolutionStatuses[0]"),
        (json!({"unassigned": "true"}), "body.unassigned"),
        (json!({"isFollowUp": 1}), "body.isFollowUp"),
        (json!({"isSpam": "no"}), "body.isSpam"),
        (json!({"advancedFilters": []}), "body.advancedFilters"),
        (json!({"advancedFilters": {"labels": 1}}), "body.advancedFilters.labels"),
    ] {
        list(body).refuses(field);
    }
}

#[test]
fn a_misspelt_filter_is_refused_rather_than_ignored() {
    list(json!({"status": ["closed"]})).refuses("body.status");
    list(json!({"advancedFilters": {"label": {}}})).refuses("body.advancedFilters.label");
    list(json!({"advancedFilters": {"openedAt": {"operator": "less_than", "value": at("03-03T08:00"), "from": 1}}}))
        .refuses("body.advancedFilters.openedAt.from");
    let field = json!({"ticketFieldId": "f-text", "operator": "is_empty", "values": []});
    list(json!({"advancedFilters": {"ticketFields": [field]}})).refuses("body.advancedFilters.ticketFields[0].values");
}

#[test]
fn null_members_are_absent_filters() {
    list(json!({
        "statuses": null, "conversationId": null, "accountIds": null, "assigneeUserIds": null, "handledByUserIds": null,
        "resolutionStatuses": null, "unassigned": null, "isFollowUp": null, "isSpam": null, "advancedFilters": null,
    }))
    .lists(&OPEN);
    list(json!({"advancedFilters": {"labels": null, "ticketFields": null, "waitingForReply": null, "openedAt": null}})).lists(&OPEN);
    one().post("/tickets/list", json!([])).send().fails(400);
}
