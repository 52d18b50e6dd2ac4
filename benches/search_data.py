#!/usr/bin/env python3
"""Prints import lines of a shop with messages in English, Thai, Chinese and Vietnamese, the same bytes on every run. The argument is the
number of messages.

A quarter of the messages contain `order`, a quarter contain `สินค้า`, and 48 contain `zyxquark`. The English messages also contain rare
words from a list of 20,000 invented words."""
import json, random, sys

count = int(sys.argv[1])
r = random.Random(42).random
CONVERSATIONS = max(1, count // 20)
EN = ("refund shipping delivery late package broken damaged replacement invoice payment card failed charge twice cancel account password "
      "reset email address change size color wrong item missing tracking number courier return label warehouse stock available discount "
      "coupon code apply checkout error page help please thanks today tomorrow yesterday week shop product quality question answer").split()
TH = ("สวัสดีค่ะ ขอบคุณครับ ชำรุดค่ะ ยังไม่ได้รับเลย ต้องการคืนเงิน เลขพัสดุคืออะไร จัดส่งเมื่อไหร่ ชำระเงินแล้ว ขอเปลี่ยนที่อยู่จัดส่ง สอบถามราคา "
      "มีสีอื่นไหมคะ รอนานมากแล้ว ติดต่อเจ้าหน้าที่ ใบเสร็จรับเงิน ส่วนลดใช้ไม่ได้ ยกเลิกคำสั่งซื้อ").split()
ZH = "你好 请问什么时候发货 我要退款 包裹还没收到 商品损坏了 订单号是多少 可以换货吗 优惠券无法使用 付款失败 谢谢 请尽快处理 地址写错了 物流信息没有更新 发票怎么开".split()
VI = "xin chào|đơn hàng của tôi|chưa nhận được hàng|tôi muốn hoàn tiền|sản phẩm bị hỏng|khi nào giao hàng|cảm ơn bạn|đổi địa chỉ giao hàng|còn hàng không|hủy đơn hàng".split("|")
SYLLABLES = "ba be bi bo ka ke ki ko la le li lo ma me mi mo na ne ni no ra re ri ro sa se si so ta te ti to va ve vi vo".split()


def pick(words): return words[int(len(words) * r())]


TAIL = [pick(SYLLABLES) + pick(SYLLABLES) + pick(SYLLABLES) + pick(["", "n", "s", "t"]) for _ in range(20000)]


def some(words, most): return [pick(words) for _ in range(1 + int(r() * most))]


def text(number):
    x = r()
    if x < .4:
        words = [pick(EN) if r() < .75 else TAIL[int(20000 * r() ** 4)] for _ in range(3 + int(r() * 20))]
        if r() < .625: words.insert(int(r() * len(words)), "order")
        said = " ".join(words)
    elif x < .7:
        said = "".join(some(TH, 4))
        if r() < .83: said = ("สินค้า" + said) if r() < .5 else (said + "สินค้า")
    elif x < .85: said = "，".join(some(ZH, 4))
    else: said = ", ".join(some(VI, 4))
    if r() < .05: said += " #ORD-%08d" % int(r() * 1e8)
    return said + (" zyxquark" if number % (count // 48 or 1) == 7 and number // (count // 48 or 1) < 48 else "")


def put(kind, **record): sys.stdout.write('{"kind":"%s","record":%s}\n' % (kind, json.dumps(record, ensure_ascii=False)))
def at(second): return "2025-%02d-%02dT%02d:%02d:%02d.%03dZ" % (1 + second // 2419200 % 12, 1 + second // 86400 % 28, second // 3600 % 24, second // 60 % 60, second % 60, int(r() * 1000))


day = at(0)
put("account", id="a", channel="widget", name="Chat", status="healthy")
for n in range(CONVERSATIONS):
    name = "%s %s" % (pick(TAIL).title(), pick(TAIL).title())
    put("contact", id="k%d" % n, fullName=name, firstName=name, email="k%d@example.com" % n, phone="+668%08d" % n, createdAt=day, updatedAt=at(n))
    put("conversation", id="c%d" % n, channel="widget", accountId="a", contactId="k%d" % n, displayName=name, referenceId="r%d" % n, labelIds=[], isSpam=False, createdAt=day, updatedAt=day)
for n in range(count):
    # The ids are UUIDs of version 7, whose order is that of the messages.
    uuid = "%08x-%04x-7%03x-8%03x-%012x" % (n >> 16, n & 0xffff, int(r() * 4096), int(r() * 4096), int(r() * (1 << 48)))
    put("message", id=uuid, conversationId="c%d" % int(r() * CONVERSATIONS), direction="inbound", sentAt=at(n * 28 * 86400 * 12 // count), text=text(n))
