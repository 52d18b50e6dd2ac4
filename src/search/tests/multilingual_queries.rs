//! Table test: queries in many scripts against the messages and contacts of a shop.

use super::*;

const MESSAGES: &[(&str, &str)] = &[
    ("th1", "สวัสดีค่ะ สินค้าชำรุด ขอคืนเงินค่ะ"),
    ("th2", "ขอบคุณครับ ได้รับสินค้าแล้ว"),
    ("th3", "ยังไม่ได้รับพัสดุเลย ติดตามเลขพัสดุ TH123456789 ให้หน่อย"),
    ("th4", "น้ำหอมกลิ่นกุหลาบมีไหมคะ"),
    ("th5", "ต้องการเปลี่ยนที่อยู่จัดส่ง เบอร์ 081-234-5678"),
    ("th6", "โปรโมชั่นลด ๕๐% หมดเขตเมื่อไหร่"),
    ("th7", "การบ้าน"),
    ("zh1", "你好，请问什么时候发货？"),
    ("zh2", "我要退款，商品损坏了"),
    ("zh3", "訂單號是多少"),
    ("zh4", "包裹还没收到，物流信息没有更新"),
    ("zh5", "优惠券无法使用 code SAVE20"),
    ("ja1", "カタカナとひらがなの商品はありますか"),
    ("ja2", "ｶﾀﾛｸﾞを送ってください"),
    ("vi1", "Đơn hàng của tôi chưa nhận được hàng"),
    ("vi2", "tôi muốn hoàn tiền cho sản phẩm bị hỏng"),
    ("vi3", "don hang bi huy roi"),
    ("en1", "Where is my order? It was shipped yesterday"),
    ("en2", "Refund please, the ORDERS arrived broken"),
    ("en3", "Invoice no. 2024-0042 for john.smith@example.com"),
    ("en4", "Crème brûlée at the café, naïve résumé"),
    ("en5", "Call me: +66 81 234 5678 (evening)"),
    ("en6", "100% cotton, size XL/XXL; don't iron"),
    ("lo1", "ສະບາຍດີ ສິນຄ້າຂອງຂ້ອຍຢູ່ໃສ"),
    ("km1", "សួស្តី\u{200b}តើ\u{200b}ទំនិញ\u{200b}មកដល់\u{200b}ពេលណា"),
    ("my1", "မင်္ဂလာပါ ကျွန်တော့်အော်ဒါ ဘယ်မှာလဲ"),
    ("ko1", "주문한 상품이 아직 안 왔어요"),
    ("ru1", "Где мой заказ? Ещё не пришёл"),
    ("el1", "Πού είναι η παραγγελία μου;"),
    ("mix", "iPhone15手机壳ราคาเท่าไหร่ครับ"),
    ("em1", "ขอบคุณมาก 🙏🏽👍"),
    ("em2", "Love it ❤️ 👩‍👧"),
    ("em3", "ส่งจาก 🇹🇭 ราคา ฿250"),
    ("url", "https://shop.example/item?id=998877&ref=line"),
];

/// A query and the ids of the messages that it finds, sorted; the order of the hits is not checked.
const QUERIES: &[(&str, &[&str])] = &[
    // Thai: whole words, parts of compound words, queries that cross word boundaries, single graphemes.
    ("สินค้า", &["th1", "th2"]),
    ("สินค้าชำรุด", &["th1"]),
    ("ชำรุด", &["th1"]),
    ("คืนเงิน", &["th1"]),
    ("ขอคืน", &["th1"]),
    ("พัสดุ", &["th3"]),
    ("เลขพัสดุ", &["th3"]),
    ("น้ำ", &["th4"]),
    ("นํ้าหอม", &["th4"]),
    ("ที่อยู่จัดส่ง", &["th5"]),
    ("ได้รับ", &["th2", "th3"]),
    ("รับสิน", &["th2"]),
    ("การ", &["th5", "th7"]),
    ("กา", &["th5", "th7"]),
    ("ขอบคุณ", &["em1", "th2"]),
    ("สวัสดี ขอคืนเงิน", &["th1"]),
    ("ชำรุดสินค้า", &[]),
    ("๕๐", &["th6"]),
    ("50", &["th6"]),
    ("ๆ", &[]),
    // Chinese: two characters, a single character, text cut at any position. A traditional character does not match its simplified form.
    ("你好", &["zh1"]),
    ("发货", &["zh1"]),
    ("候发", &["zh1"]),
    ("退款", &["zh2"]),
    ("商品", &["ja1", "zh2"]),
    ("货", &["zh1"]),
    ("没", &["zh4"]),
    ("物流信息没有更新", &["zh4"]),
    ("订单", &[]),
    ("訂單", &["zh3"]),
    ("号是多少", &[]),
    ("號是多", &["zh3"]),
    ("优惠券 save", &["zh5"]),
    // Japanese: half-width and full-width forms match each other; voiced and unvoiced kana do not.
    ("カタカナ", &["ja1"]),
    ("カタログ", &["ja2"]),
    ("ひらがな", &["ja1"]),
    ("ひらかな", &[]),
    ("ありますか", &["ja1"]),
    // Vietnamese: texts with and without diacritics match each other.
    ("đơn hàng", &["vi1", "vi3"]),
    ("don hang", &["vi1", "vi3"]),
    ("DON HANG", &["vi1", "vi3"]),
    ("hoàn tiền", &["vi2"]),
    ("hoan tien", &["vi2"]),
    ("san pham hong", &["vi2"]),
    ("hủy rồi", &["vi3"]),
    // English: words, prefixes of the last word only, never the middle of a word.
    ("order", &["en1", "en2"]),
    ("orders", &["en2"]),
    ("ord", &["en1", "en2"]),
    ("ord my", &[]),
    ("rder", &[]),
    ("ship yesterday", &[]),
    ("shipped yest", &["en1"]),
    ("refund broken", &["en2"]),
    ("creme brulee", &["en4"]),
    ("CAFÉ", &["en4"]),
    ("resume", &["en4"]),
    ("don't", &["en6", "vi1"]),
    ("xl", &["en6"]),
    ("100%", &["en6"]),
    ("no such word", &[]),
    // Lao, Khmer with invisible spaces, Burmese.
    ("ສິນຄ້າ", &["lo1"]),
    ("ຢູ່ໃສ", &["lo1"]),
    ("ທຳ", &[]),
    ("ទំនិញ", &["km1"]),
    ("តើទំនិញ", &["km1"]),
    ("អរគុណ", &[]),
    ("အော်ဒါ", &["my1"]),
    ("မင်္ဂလာ", &["my1"]),
    // Korean, Russian, Greek.
    ("주문", &["ko1"]),
    ("상품이 아직", &["ko1"]),
    ("еще", &["ru1"]),
    ("Ещё пришел", &["ru1"]),
    ("παραγγελια", &["el1"]),
    ("ΠΟΎ ΕΊΝΑΙ", &["el1"]),
    // Several scripts in one text, without a space between them.
    ("iphone15", &["mix"]),
    ("手机壳", &["mix"]),
    ("手机 ราคา", &["mix"]),
    ("iphone15手机", &["mix"]),
    ("ราคา", &["em3", "mix"]),
    // Numbers: any four or more adjacent digits, across separators, with and without the country code.
    ("0812345678", &["en5", "th5"]),
    ("081 234 5678", &["en5", "th5"]),
    ("+66812345678", &["en5"]),
    ("2345", &["en5", "th3", "th5"]),
    ("45678", &["en5", "th3", "th5"]),
    ("345-678", &["en5", "th3", "th5"]),
    ("9988", &["url"]),
    ("234", &["en5", "th5"]),
    ("TH123456789", &["th3"]),
    ("2024-0042", &["en3"]),
    ("0042", &["en3"]),
    // E-mail addresses, whole and in parts.
    ("john.smith@example.com", &["en3"]),
    ("JOHN.SMITH@EXAMPLE", &["en3"]),
    ("john", &["en3"]),
    ("smith@example.com", &["en3"]),
    ("smith.john@example.com", &[]),
    ("example.com", &["en3"]),
    ("shop.example", &["url"]),
    // Emoji, whatever the skin tone, and other symbols.
    ("👍", &["em1"]),
    ("🙏", &["em1"]),
    ("👍🏿", &["em1"]),
    ("❤", &["em2"]),
    ("👩", &["em2"]),
    ("👩‍👧", &["em2"]),
    ("🇹🇭", &["em3"]),
    ("🇻🇳", &[]),
    ("฿250", &["em3"]),
    ("thanks 👍", &[]),
    // Query syntax of other search engines: it is searched for as text, or ignored.
    ("\"order\"", &["en1", "en2"]),
    ("order AND refund", &[]),
    ("order*", &["en1", "en2"]),
    ("-refund", &["en2"]),
    ("text:order", &[]),
    ("\"*()", &[]),
    ("\0", &[]),
    ("'; DROP TABLE messages; --", &[]),
];

fn messages() -> Vec<Searchable> {
    let of = |store| (0..).zip(MESSAGES).map(move |(at, (id, text))| message(store, id, at, text));
    of("s").chain(of("t")).collect()
}

#[test]
fn multilingual_queries_find_the_expected_messages() {
    let (view, _index, _home) = indexed(&messages());
    for (query, expected) in QUERIES {
        let found = view.search(&search(SearchableKind::Message, query, 100)).unwrap();
        assert_eq!(ids(&found.hits), *expected, "{query:?}");
    }
}

#[test]
fn the_overlay_and_the_index_return_the_same_hits_and_scores() {
    let (committed, _index, _home) = indexed(&messages());
    let (mut fresh, _other, _there) = indexed(&[]);
    put_in_overlay(&mut fresh, &messages());
    for (query, expected) in QUERIES {
        let page = search(SearchableKind::Message, query, 100);
        let found = fresh.search(&page).unwrap();
        assert_eq!(ids(&found.hits), *expected, "{query:?}");
        // With equal weights, a search of the index (`committed`) and a search of the overlay (`fresh`) return the same hits with the same
        // scores.
        let first = committed.search(&search(SearchableKind::Message, query, 1)).unwrap();
        let Some(best) = first.hits.first() else { continue };
        let rank = Some(Rank { score: u32::MAX, weights: first.weights.clone() });
        let mut rest = page;
        rest.page.after = Some(Position { at: 0, id: String::new(), rank, as_of: None });
        let (there, here) = (committed.search(&rest).unwrap().hits, fresh.search(&rest).unwrap().hits);
        assert_eq!((there.first(), &there), (Some(best), &here), "{query:?}");
    }
}

#[test]
fn contacts_are_found_by_all_their_properties_together() {
    let contact = |id: &str, texts: &[&str]| Searchable {
        store: "s".into(),
        noun: SearchableKind::Contact,
        id: id.into(),
        at: 0,
        texts: texts.iter().map(|text| (*text).to_owned()).collect(),
    };
    let (view, _index, _home) = indexed(&[
        contact("mia", &["Mia Nguyễn", "Mia.N@Example.com", "+66812345678", "mia@work.example", "+66900000001", "Likes tea"]),
        contact("som", &["สมชาย ใจดี", "+66899999999", "ชอบกาแฟ"]),
        contact("li", &["李小龙", "li@example.com"]),
        contact("split", &["Ann", "b@c.example"]),
    ]);
    for (query, expected) in [
        ("mia", &["mia"][..]),
        ("nguyen tea", &["mia"]),
        ("mia.n@example.com", &["mia"]),
        ("mia@work", &["mia"]),
        ("0812345678", &["mia"]),
        ("6690", &["mia"]),
        ("9999", &["som"]),
        ("0899999999", &["som"]),
        ("สมชาย", &["som"]),
        ("ใจดี กาแฟ", &["som"]),
        ("小龙", &["li"]),
        ("李", &["li"]),
        ("example", &["li", "mia", "split"]),
        ("example.com", &["li", "mia"]),
        // The words of an address form a phrase, except the last word, which may be in another property: here `c` and `b`.
        ("ann@c", &["split"]),
        ("ann@b", &["split"]),
        ("tea coffee", &[]),
    ] {
        let found = view.search(&search(SearchableKind::Contact, query, 100)).unwrap();
        assert_eq!(ids(&found.hits), expected, "{query:?}");
        assert!(view.search(&search(SearchableKind::Message, query, 100)).unwrap().hits.is_empty());
    }
}
