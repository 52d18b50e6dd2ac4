//! The records of the demo shop, as lines of an import file (NDJSON). `counterpart demo` imports them. [`lines`] returns the same lines for
//! the same `now`. Every instant is before `now`, except the ends of snoozes and the call-back times in ticket fields.

use serde_json::{Value, json};

use crate::domain::{ids::UserId, send_requests::Send, stores_and_accounts::CHANNELS, time::Timestamp};

/// The numbers of contacts and conversations in the demo store.
const CONTACTS: usize = 60;
const CONVERSATIONS: usize = 80;

/// The number of channels in the demo store. They are the first of [`CHANNELS`], since both revisions of the API, A and B, have these.
const DEMO_CHANNELS: usize = 10;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

const PEOPLE: [(&str, &str); 12] = [
    ("สมชาย", "ใจดี"),
    ("พิมพ์ชนก", "ศรีสุข"),
    ("王", "伟"),
    ("李", "娜"),
    ("Nguyễn", "Thị Hoa"),
    ("Trần", "Minh Đức"),
    ("Grace", "Okafor"),
    ("James", "Miller"),
    ("ณัฐพล", "วงศ์ทอง"),
    ("陈", "静"),
    ("Phạm", "Văn Long"),
    ("Sofia", "Rossi"),
];

/// Dialogues, grouped by language: the customer's question, the shop's answer, the customer's reply, the shop's second answer.
const DIALOGUES: [(&str, &str, &str, &str); 12] = [
    ("สวัสดีค่ะ สั่งของไปเมื่อวันจันทร์ ยังไม่ได้รับเลย", "สวัสดีค่ะ ขอหมายเลขคำสั่งซื้อหน่อยนะคะ", "ORD-20418 ค่ะ", "พัสดุถึงวันพรุ่งนี้ค่ะ ขออภัยที่ล่าช้านะคะ"),
    ("สินค้าที่ได้รับชำรุด ขอคืนเงินได้ไหมครับ", "ได้ครับ รบกวนส่งรูปสินค้าให้หน่อยครับ", "ส่งให้แล้วครับ", "ดำเนินการคืนเงินแล้วครับ ภายใน 3 วันทำการ"),
    ("มีไซซ์ M สีดำไหมคะ", "มีค่ะ เหลือ 4 ตัว", "งั้นเอา 1 ตัวค่ะ", "จองไว้ให้แล้วนะคะ"),
    ("你好,请问我的订单什么时候发货?", "您好,今天下午会发出。", "谢谢!", "不客气,物流单号稍后发给您。"),
    ("收到的杯子碎了,可以换货吗?", "非常抱歉,我们马上给您补发一个。", "好的,需要寄回吗?", "不需要,您留着就好。"),
    ("优惠券用不了", "请问提示什么错误?", "说已经过期了", "已为您重新发放一张,有效期七天。"),
    (
        "Chào shop, đơn hàng của tôi đến đâu rồi?",
        "Dạ, đơn đang ở kho Thủ Đức ạ.",
        "Khi nào giao tới?",
        "Dự kiến chiều mai ạ, shop sẽ nhắn bạn.",
    ),
    ("Tôi muốn đổi địa chỉ giao hàng", "Bạn gửi giúp shop địa chỉ mới nhé.", "12 Lê Lợi, Quận 1", "Shop đã cập nhật, cảm ơn bạn!"),
    (
        "Hi, I was charged twice for one order.",
        "I am sorry about that. Could you send the last four digits of the card?",
        "It ends in 4242.",
        "Found it: the second charge is refunded today.",
    ),
    (
        "Is the blue backpack back in stock?",
        "It is, since this morning.",
        "Great, can you hold one for me?",
        "Done. It is reserved for 24 hours.",
    ),
    ("The discount code SPRING does not work.", "It starts tomorrow at 9:00.", "Oh, I see.", "Here is an early one for you: HELLO10."),
    (
        "I need an invoice for my company.",
        "Happy to help. Which name and tax number should it show?",
        "Rossi Srl, IT01234567890",
        "Sent to your e-mail just now.",
    ),
];

/// The id of a contact with conversations, for the example request that `demo` prints.
pub const FIRST_CONTACT: &str = "contact-001";

/// Returns the demo store as lines of an import file (NDJSON), one record each.
pub fn lines(now: Timestamp) -> impl Iterator<Item = String> {
    let demo = DemoData { now: now.millis() };
    let parts: [fn(&DemoData) -> Vec<Value>; 5] =
        [DemoData::team, DemoData::accounts, DemoData::definitions, DemoData::contacts, DemoData::conversations];
    parts.into_iter().flat_map(move |part| part(&demo)).map(|line| line.to_string())
}

/// Returns the drafts of the demo store: messages to contacts that an assistant proposes, and that a user has to approve.
pub fn drafts() -> [Send; 2] {
    [
        ("conv-011", "Your parcel left our warehouse this morning. It arrives tomorrow."),
        ("conv-031", "We are sorry. Please send us a photo."),
    ]
    .map(|(conversation, text)| Send::Text { conversation_id: conversation.into(), text: text.to_owned() })
}

struct DemoData {
    now: i64,
}

fn line(kind: &str, mut record: Value) -> Value {
    // Properties that are null are removed, so that callers can pass optional values.
    if let Some(record) = record.as_object_mut() {
        record.retain(|_, value| !value.is_null());
    }
    json!({ "kind": kind, "record": record })
}

/// Returns the user id of the store's owner.
pub fn owner() -> UserId {
    user_id(1).into()
}

fn user_id(number: usize) -> String {
    format!("5eed0000-0000-4000-8000-{number:012x}")
}

impl DemoData {
    fn at(&self, ago: i64) -> String {
        Timestamp::from_millis(self.now - ago).to_string()
    }

    fn team(&self) -> Vec<Value> {
        let mut lines = vec![
            line("role", json!({"id": "owner", "name": "Owner", "kind": "owner"})),
            line("role", json!({"id": "admin", "name": "Admin", "kind": "admin"})),
            line("role", json!({"id": "agent", "name": "Agent", "kind": "agent"})),
        ];
        let names = ["Mali Srisuk", "Ken Tanaka", "Linh Nguyễn", "陈晓明", "Amara Okoye"];
        for (number, (name, role)) in names.into_iter().zip(["owner", "admin", "agent", "agent", "agent"]).enumerate() {
            let (id, email) = (format!("seat-{}", number + 1), format!("agent{}@demo.example", number + 1));
            let created = self.at((200 - number as i64) * DAY);
            lines.push(line(
                "user",
                json!({"id": id, "userId": user_id(number + 1), "name": name, "email": email, "roleId": role, "createdAt": created}),
            ));
        }
        lines.push(line(
            "user",
            json!({"id": "seat-6", "email": "new.colleague@demo.example", "roleId": "agent", "createdAt": self.at(DAY)}),
        ));
        for (id, name, description, users) in [
            ("team-front", "Front desk", Some("Answers first"), vec![user_id(1), user_id(3), user_id(4)]),
            ("team-returns", "Returns", Some("Refunds and replacements"), vec![user_id(2), user_id(5)]),
            ("team-night", "Night shift", None, vec![]),
        ] {
            lines.push(line(
                "team",
                json!({"id": id, "name": name, "description": description, "users": users, "createdAt": self.at(180 * DAY)}),
            ));
        }
        for (number, (label, color)) in [
            ("VIP", "#d4af37"),
            ("Refund", "#c0392b"),
            ("ด่วน", "#e67e22"),
            ("物流", "#2980b9"),
            ("Bảo hành", "#27ae60"),
            ("Wholesale", "#8e44ad"),
        ]
        .into_iter()
        .enumerate()
        {
            let at = self.at((150 - number as i64) * DAY);
            lines.push(line(
                "label",
                json!({"id": format!("label-{}", number + 1), "label": label, "color": color, "createdAt": at, "updatedAt": at}),
            ));
        }
        lines
    }

    fn accounts(&self) -> Vec<Value> {
        let mut lines = Vec::new();
        for (number, channel) in CHANNELS.into_iter().take(DEMO_CHANNELS).enumerate() {
            let at = self.at((170 - number as i64) * DAY);
            // Only the owner and the returns team may read the e-mails of the outlook account.
            let users = (channel == "outlook").then(|| [user_id(1), user_id(2), user_id(5)]);
            let metadata = (channel == "instagram").then(|| json!({"userName": "demo.shop", "country": "TH", "followerCount": 12840}));
            let status = if channel == "shopee" { "degraded" } else { "healthy" };
            lines.push(line(
                "account",
                json!({"id": format!("acc-{channel}"), "channel": channel, "name": format!("Demo shop on {channel}"), "status": status,
                    "lastAuthorizedAt": at, "metadata": metadata, "userIds": users, "createdAt": at, "updatedAt": at}),
            ));
        }
        let at = self.at(190 * DAY);
        lines.push(line(
            "account",
            json!({"id": "acc-facebook-old", "channel": "facebook", "name": "Former page", "status": "disconnected", "createdAt": at, "updatedAt": at}),
        ));
        for (id, name, language, status, category, body) in [
            ("tpl-shipped", "order_shipped", "en", "APPROVED", "UTILITY", "Hi {{1}}, your order {{2}} is on its way."),
            ("tpl-shipped-th", "order_shipped", "th", "APPROVED", "UTILITY", "คุณ {{1}} คำสั่งซื้อ {{2}} จัดส่งแล้วค่ะ"),
            ("tpl-welcome", "welcome", "en", "APPROVED", "MARKETING", "Welcome to the demo shop!"),
            ("tpl-sale", "summer_sale", "vi", "PAUSED", "MARKETING", "Giảm giá {{1}} đến hết {{2}}."),
            ("tpl-code", "login_code", "en", "PENDING", "AUTHENTICATION", "{{1}} is your code."),
        ] {
            lines.push(line(
                "template",
                json!({"id": id, "accountId": "acc-whatsapp", "name": name, "parameter_format": "POSITIONAL", "language": language,
                    "status": status, "category": category, "components": [{"type": "BODY", "text": body}]}),
            ));
        }
        lines
    }

    fn definitions(&self) -> Vec<Value> {
        let at = self.at(160 * DAY);
        let mut lines = Vec::new();
        let tree =
            json!([{"value": "Delivery", "children": [{"value": "Late"}, {"value": "Lost"}]}, {"value": "Payment"}, {"value": "Product"}]);
        let tags = json!([{"value": "gift"}, {"value": "fragile"}, {"value": "express"}]);
        for (number, (id, name, display, data, options)) in [
            ("topic", "Topic", "select", "string", Some(&tree)),
            ("orderNumber", "Order number", "text", "string", None),
            ("details", "Details", "multiline_text", "string", None),
            ("items", "Items", "integer", "number", None),
            ("weight", "Weight in kg", "decimal", "number", None),
            ("boughtOn", "Bought on", "date", "date", None),
            ("callBackAt", "Call back at", "datetime", "date", None),
            ("warranty", "Under warranty", "yes_no", "boolean", None),
            ("parcel", "Parcel", "multi_select", "string", Some(&tags)),
            ("tracking", "Tracking page", "url", "string", None),
            ("photo", "Photo", "file", "string", None),
        ]
        .into_iter()
        .enumerate()
        {
            let late = json!([{"ticketFieldId": "topic", "operator": "equals", "value": "Late"}]);
            lines.push(line(
                "ticketField",
                json!({"id": id, "name": name, "displayType": display, "dataType": data, "sortOrder": number + 1, "isRequired": id == "topic",
                    "active": id != "photo", "selectOptions": options, "regex": (id == "orderNumber").then_some("^ORD-[0-9]{5}$"),
                    "maxItems": (display == "multi_select").then_some(3), "showConditions": (id == "tracking").then_some(late),
                    "accountIds": (id == "weight").then_some(["acc-lazada", "acc-shopee"]), "createdAt": at, "updatedAt": at}),
            ));
        }
        let tiers = json!([{"value": "gold"}, {"value": "silver"}, {"value": "bronze"}]);
        let likes = json!([{"value": "bags"}, {"value": "shoes"}, {"value": "tea"}]);
        for (number, (id, name, display, data, options)) in [
            ("tier", "Tier", "select", "string", Some(&tiers)),
            ("nickname", "Nickname", "text", "string", None),
            ("remarks", "Remarks", "multiline_text", "string", None),
            ("visits", "Visits", "integer", "number", None),
            ("birthday", "Birthday", "date", "date", None),
            ("lastVisit", "Last visit", "datetime", "date", None),
            ("newsletter", "Newsletter", "yes_no", "boolean", None),
            ("likes", "Likes", "multi_select", "string", Some(&likes)),
            ("contract", "Contract", "file", "string", None),
        ]
        .into_iter()
        .enumerate()
        {
            lines.push(line(
                "contactField",
                json!({"id": id, "name": name, "displayType": display, "dataType": data, "sortOrder": number + 1, "active": id != "contract",
                    "selectOptions": options, "maxItems": (display == "multi_select").then_some(3)}),
            ));
        }
        lines
    }

    fn contacts(&self) -> Vec<Value> {
        let contact = |n: usize| {
            let (first, last) = PEOPLE[n % PEOPLE.len()];
            let created = self.at((200 - n as i64) * DAY);
            let updated = self.at((n as i64 % 30) * DAY + HOUR);
            let custom = n.is_multiple_of(2).then(|| {
                json!({"tier": (["gold", "silver", "bronze"][n % 3]), "visits": n % 9, "newsletter": n.is_multiple_of(4), "likes": ["tea", "bags"],
                    "birthday": format!("19{:02}-0{}-1{}", 60 + n % 40, 1 + n % 9, n % 9)})
            });
            let custom_at = custom.as_ref().map(|_| updated.clone());
            line(
                "contact",
                json!({"id": contact_id(n), "fullName": format!("{first} {last}"), "firstName": first, "lastName": last,
                    "email": (n % 5 != 4).then(|| format!("customer{n}@mail.example")), "phone": (n % 4 != 3).then(|| format!("+6680{n:07}")),
                    "secondaryEmails": n.is_multiple_of(15).then(|| [format!("customer{n}@work.example")]),
                    "addresses": n.is_multiple_of(6).then(|| [format!("{} Sukhumvit Road, Bangkok", n + 10)]),
                    "note": n.is_multiple_of(10).then_some("Prefers to be called in the evening"),
                    "customFields": custom, "customFieldsUpdatedAt": custom_at, "createdAt": created, "updatedAt": updated}),
            )
        };
        (0..CONTACTS).map(contact).collect()
    }

    fn conversations(&self) -> Vec<Value> {
        let mut lines = Vec::new();
        let mut number = 1000;
        for n in 0..CONVERSATIONS {
            let channel = CHANNELS[n % DEMO_CHANNELS];
            let contact = n % CONTACTS;
            let (first, last) = PEOPLE[contact % PEOPLE.len()];
            let (id, spam, mail) = (format!("conv-{:03}", n + 1), n % 27 == 26, matches!(channel, "gmail" | "outlook"));
            // The youngest conversation is 27 hours old, the oldest 90 days.
            let began = (CONVERSATIONS - n) as i64 * 27 * HOUR;
            let labels: Vec<String> = (1..=6).filter(|label| (n + label) % 5 == 0).map(|label| format!("label-{label}")).collect();
            let reference = if channel == "whatsapp" { format!("+6690{n:07}") } else { format!("{channel}-thread-{n}") };
            lines.push(line(
                "conversation",
                json!({"id": id, "channel": channel, "accountId": format!("acc-{channel}"), "contactId": contact_id(contact),
                    "displayName": format!("{first} {last}"), "referenceId": reference, "labelIds": labels, "isSpam": spam,
                    "unreadMsgCnt": n % 3, "emailSubject": mail.then(|| format!("About my order ORD-{:05}", 20400 + n)),
                    "createdAt": self.at(began), "updatedAt": self.at(began - 20 * MINUTE)}),
            ));
            // Half of the conversations have two tickets: an older one, which is closed, and a newer one.
            let rounds = if n % 2 == 0 { 2 } else { 1 };
            for round in 0..rounds {
                let opened = began - round * 12 * HOUR;
                let (open, follow_up) = (round + 1 == rounds && n % 5 != 0, round > 0);
                number += 1;
                lines.push(self.ticket(n, round, number, &id, opened, open, follow_up, spam));
                lines.extend(self.messages(n, round, &id, opened, open && n % 3 == 0));
            }
            if n % 4 == 0 {
                let text = if n % 8 == 0 {
                    format!("<@{}:Ken Tanaka@> please look at the refund", user_id(2))
                } else {
                    "ลูกค้าประจำ ดูแลเป็นพิเศษ".to_owned()
                };
                lines.push(line(
                    "comment",
                    json!({"id": format!("note-{:03}", n + 1), "conversationId": id, "text": text, "createdBy": user_id(1 + n % 5), "sentAt": self.at(began - 9 * MINUTE)}),
                ));
            }
        }
        lines
    }

    #[expect(clippy::too_many_arguments, reason = "one ticket's facts, written once")]
    fn ticket(
        &self,
        n: usize,
        round: i64,
        number: usize,
        conversation: &str,
        opened: i64,
        open: bool,
        follow_up: bool,
        spam: bool,
    ) -> Value {
        let closed = (!open).then(|| self.at(opened - 3 * HOUR));
        let mut fields = json!({"topic": (["Late", "Payment", "Product", "Lost"][n % 4]), "orderNumber": format!("ORD-{:05}", 20400 + n)});
        if n.is_multiple_of(3) {
            fields["items"] = json!(1 + n % 6);
            fields["parcel"] = json!(["gift", "express"]);
            fields["callBackAt"] = json!(self.at(-DAY));
        }
        if n.is_multiple_of(4) {
            fields["warranty"] = json!(n.is_multiple_of(8));
            fields["weight"] = json!(0.5 + n as f64);
            fields["boughtOn"] = json!("2026-01-15");
        }
        if !open {
            fields["isConverted"] = json!(n.is_multiple_of(3));
            fields["salesRevenue"] = json!(490.5 + n as f64);
            fields["salesRevenueCurrency"] = json!("THB");
            fields["aiCsat"] = json!(["good", "neutral"][n % 2]);
        }
        let assignee = (n % 3 != 1).then(|| user_id(1 + n % 5));
        let resolution = (!open).then(|| ["human", "automation", "ai_full_resolution", "ai_partial_resolution"][n % 4]);
        line(
            "ticket",
            json!({"id": format!("ticket-{:03}-{round}", n + 1), "ticketNumber": number.to_string(), "isOpen": open, "isSpam": spam,
                "isFollowUp": follow_up, "openedAt": self.at(opened), "closedAt": closed, "conversationId": conversation,
                "snoozedUntil": (open && n % 11 == 1).then(|| self.at(-2 * DAY)), "assigneeUserId": assignee,
                "handledBy": (!open && n.is_multiple_of(2)).then(|| user_id(1 + n % 5)), "ticketFields": fields, "resolutionStatus": resolution,
                "ticketFieldsUpdatedAt": self.at(opened - 10 * MINUTE), "createdAt": self.at(opened),
                "updatedAt": self.at(if open { opened - 10 * MINUTE } else { opened - 3 * HOUR })}),
        )
    }

    fn messages(&self, n: usize, round: i64, conversation: &str, opened: i64, waiting: bool) -> Vec<Value> {
        let (ask, answer, more, end) = DIALOGUES[(n + round as usize * 5) % DIALOGUES.len()];
        let contact = n % CONTACTS;
        let (first, last) = PEOPLE[contact % PEOPLE.len()];
        let texts = [ask, answer, more, end];
        // If the customer waits for a reply, the shop's second answer is left out.
        let count = if waiting { 3 } else { 4 };
        let message = |(place, text): (usize, &str)| {
            let (inbound, author) = (place % 2 == 0, user_id(1 + n % 5));
            let automatic = place == 1 && n.is_multiple_of(7);
            let sender = if inbound {
                json!({"id": contact_id(contact), "name": format!("{first} {last}"), "type": "contact"})
            } else if automatic {
                json!({"id": "welcome-bot", "name": "Welcome bot", "type": "bot"})
            } else {
                json!({"id": author, "type": "user"})
            };
            let id = format!("msg-{:03}-{round}-{place}", n + 1);
            line(
                "message",
                json!({"id": id, "conversationId": conversation, "direction": if inbound { "inbound" } else { "outbound" },
                    "sentAt": self.at(opened - place as i64 * 4 * MINUTE), "text": text,
                    "images": (inbound && place == 2 && n % 6 == 1).then_some(["https://demo.example/images/parcel.jpg"]),
                    "type": automatic.then_some("auto_response"), "authorUserId": (!inbound && !automatic).then_some(&author),
                    "isSentFromApp": (!inbound).then_some(n.is_multiple_of(2)), "sender": sender, "externalId": format!("ext-{id}")}),
            )
        };
        texts.into_iter().take(count).enumerate().map(message).collect()
    }
}

fn contact_id(number: usize) -> String {
    format!("contact-{:03}", number + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-06-01T08:00:00Z".parse().unwrap()
    }

    #[test]
    fn the_demo_is_deterministic_and_of_a_plausible_size() {
        let all: Vec<String> = lines(now()).collect();
        assert_eq!(all, lines(now()).collect::<Vec<_>>());
        let count = |kind: &str| all.iter().filter(|line| line.contains(&format!("\"kind\":\"{kind}\",\"record\""))).count();
        assert_eq!((count("contact"), count("conversation"), count("ticket")), (60, 80, 120));
        assert!((400..500).contains(&count("message")), "{}", count("message"));
    }

    #[tokio::test]
    async fn the_demo_data_can_be_imported() {
        use crate::{
            domain::clock::ClocksAndIds,
            service::{
                import,
                store_creation_and_settings::{StoreSettings, create_store},
            },
            store::Db,
        };
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&format!("sqlite://{}", folder.path().join("demo.db").display()), 1, None).await.unwrap();
        db.migrate_up().await.unwrap();
        let (clocks_and_ids, id) = (ClocksAndIds::real(), "demo".into());
        let settings = StoreSettings { name: Some("Demo".to_owned()), ..Default::default() };
        create_store(&db, &clocks_and_ids, id, settings).await.unwrap();
        let spool = import::RereadableInput::of_lines(lines(now())).unwrap();
        let summary = import::run(&db, &clocks_and_ids, &"demo".into(), spool, import::Options::default()).await.unwrap();
        assert!(summary.total() > 700);
    }

    #[test]
    fn the_demo_fits_the_schema_of_imports() {
        let validator = jsonschema::validator_for(&crate::service::import::schema()).unwrap();
        for line in lines(Timestamp::from_millis(1_800_000_000_000)) {
            let errors: Vec<String> = validator.iter_errors(&serde_json::from_str(&line).unwrap()).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{line}: {errors:?}");
        }
    }
}
