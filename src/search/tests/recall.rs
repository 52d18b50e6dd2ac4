//! Property test of recall: the search finds every generated message that contains the folded query.

use unicode_segmentation::UnicodeSegmentation;

use super::*;
use crate::search::analysis::fold;

const MESSAGES: usize = 20_000;
const QUERIES: usize = 25;

/// The vocabulary of each script without spaces. The test combines these pieces at random.
const SCRIPTS: [(&str, &[&str]); 6] = [
    (
        "Thai",
        &[
            "สวัสดี",
            "ค่ะ",
            "ครับ",
            "สินค้า",
            "ชำรุด",
            "ได้รับ",
            "แล้ว",
            "น้ำหอม",
            "ต้องการ",
            "คืนเงิน",
            "พัสดุ",
            "ที่อยู่",
            "จัดส่ง",
            "ใบเสร็จ",
            "เมื่อไหร่",
            "ไม่",
            "ยัง",
            "ฯ",
            "ๆ",
            "กำลัง",
        ],
    ),
    ("Lao", &["ສະບາຍດີ", "ສິນຄ້າ", "ຂ້ອຍ", "ຢູ່ໃສ", "ຂອບໃຈ", "ເງິນ", "ສົ່ງ", "ຄຳ", "ຖາມ", "ບໍ່", "ໄດ້ຮັບ", "ແລ້ວ"]),
    ("Khmer", &["សួស្តី", "ទំនិញ", "មកដល់", "ពេលណា", "អរគុណ", "ប្រាក់", "តម្លៃ", "ប៉ុន្មាន", "ខ្ញុំ", "ចង់", "ទិញ", "បាន"]),
    ("Burmese", &["မင်္ဂလာပါ", "ကျွန်တော်", "အော်ဒါ", "ဘယ်မှာ", "လဲ", "ကျေးဇူး", "ပစ္စည်း", "ငွေ", "ပြန်", "အမ်း", "ရောက်", "ပြီ"]),
    (
        "Han",
        &["你好", "请问", "什么", "时候", "发货", "退款", "商品", "损坏", "了", "訂單", "物流", "信息", "没有", "更新", "谢", "𠮷", "々"],
    ),
    ("Kana", &["カタログ", "を", "ください", "ありがとう", "ｻｲｽﾞ", "は", "が", "ございます", "か\u{3099}", "スーパー", "ヴ", "ご注文"]),
];
const WORDS: &[&str] = &[
    "order",
    "Refund",
    "đơn",
    "hàng",
    "Straße",
    "CAFÉ",
    "заказ",
    "Ещё",
    "παραγγελία",
    "주문",
    "naïve",
    "ORD-4711",
    "2024",
    "a",
    "no",
    "hello",
    "मेरा",
    "ऑर्डर",
    "طلب",
    "ok👍",
];

/// A seeded random generator: the same numbers on every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

fn texts(dice: &mut Dice) -> Vec<String> {
    let text = |_| {
        let mut text = String::new();
        for _ in 0..1 + dice.below(8) {
            if dice.below(4) == 0 {
                text.push_str([" ", ", ", "\u{200b}", "！", "\n"][dice.below(5)]);
            }
            let pieces = dice.pick(&SCRIPTS).1;
            match dice.below(3) {
                0 => text.push_str(&format!(" {} ", dice.pick(WORDS))),
                _ => (0..1 + dice.below(4)).for_each(|_| text.push_str(pieces[dice.below(pieces.len())])),
            }
        }
        text
    };
    (0..MESSAGES).map(text).collect()
}

fn found(view: &IndexSnapshot, query: &str) -> HashSet<usize> {
    let search = search(SearchableKind::Message, query, u32::try_from(MESSAGES).unwrap());
    view.search(&search).unwrap().hits.iter().map(|hit| hit.id.parse().unwrap()).collect()
}

/// Combines a text from the vocabulary `pieces` of a script, and returns a random part of it: at most six graphemes.
fn part(dice: &mut Dice, pieces: &[&str]) -> String {
    let run: String = (0..1 + dice.below(3)).map(|_| *dice.pick(pieces)).collect();
    let graphemes: Vec<&str> = run.graphemes(true).collect();
    let from = dice.below(graphemes.len());
    let length = 2 + dice.below(5);
    graphemes[from..(from + length).min(graphemes.len())].concat()
}

#[test]
fn searches_find_every_text_that_contains_the_query() {
    let mut dice = Dice(7);
    let texts = texts(&mut dice);
    let records: Vec<Searchable> = (0..).zip(&texts).map(|(at, text)| message("s", &at.to_string(), at, text)).collect();
    let folded: Vec<String> = texts.iter().map(|text| fold(text)).collect();
    let (view, _index, _home) = indexed(&records);
    for (script, pieces) in SCRIPTS {
        let (mut asked, mut expected) = (0, 0);
        while asked < QUERIES {
            let query = part(&mut dice, pieces);
            if query.graphemes(true).count() < 2 {
                continue;
            }
            asked += 1;
            let (needle, hits) = (fold(&query), found(&view, &query));
            let boundaries = |text: &str, at: usize| on_boundaries(text, at, needle.len());
            for (number, text) in folded.iter().enumerate() {
                if text.match_indices(&needle).any(|(at, _)| boundaries(text, at)) {
                    expected += 1;
                    assert!(hits.contains(&number), "{script}: {query:?} misses {text:?}");
                }
            }
        }
        assert!(expected > 500, "{script}: the queries find hardly anything: {expected}");
    }
    for word in WORDS {
        let (needle, hits) = (fold(word), found(&view, word));
        let missed =
            folded.iter().enumerate().find(|(number, text)| text.split_whitespace().any(|one| one == needle) && !hits.contains(number));
        assert_eq!(missed, None, "{word}");
        assert!(!hits.is_empty(), "{word}");
    }
}

/// Whether a part of a text begins and ends at grapheme boundaries.
fn on_boundaries(text: &str, from: usize, length: usize) -> bool {
    let mut cursor = unicode_segmentation::GraphemeCursor::new(from, text.len(), true);
    let begins = cursor.is_boundary(text, 0).unwrap();
    cursor.set_cursor(from + length);
    begins && cursor.is_boundary(text, 0).unwrap()
}
