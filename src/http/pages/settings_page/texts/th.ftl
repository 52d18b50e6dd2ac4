# The texts of the settings page in Thai (Project Fluent), with the messages of `en.ftl`.

## Words that several tabs use

title = การตั้งค่าสำหรับนักพัฒนา
sections = หมวด
actions = การดำเนินการ
cancel = ยกเลิก
close = ปิด
save = บันทึก
copy = คัดลอก
edit = แก้ไข
delete = ลบ
remove = นำออก
rotate = เปลี่ยนรหัสลับ
end = เพิกถอน
older = เก่ากว่านี้
try-again = ลองอีกครั้ง
loading = กำลังโหลด …
name = ชื่อ
scopes = ขอบเขตสิทธิ์
status = สถานะ
created = สร้างเมื่อ
expires = หมดอายุ
events = เหตุการณ์
account = บัญชี
address = ที่อยู่ URL
every-account = ทุกบัญชี
never = ไม่เคย
none = ไม่มี

## The gate: the sign-in page, which is shown without a session

gate-help = เจ้าของร้านและผู้ดูแลร้านเข้าสู่ระบบด้วยลิงก์ที่ใช้ได้ครั้งเดียว ผู้ให้บริการเซิร์ฟเวอร์สร้างลิงก์ด้วยคำสั่งนี้:
gate-validity = ลิงก์ใช้ได้ภายใน 15 นาที และเซสชันที่เปิดด้วยลิงก์มีอายุ 12 ชั่วโมง
gate-email = อีเมล
gate-email-hint = อีเมลของคุณที่ร้านบันทึกไว้ หากคุณเป็นเจ้าของร้านหรือผู้ดูแลร้าน ระบบจะส่งลิงก์ไปที่อีเมลนี้
gate-send = ส่งลิงก์ให้ฉัน
gate-sent = หาก { $email } เป็นอีเมลของเจ้าของร้านหรือผู้ดูแลร้าน ระบบกำลังส่งลิงก์ไปให้ ลิงก์ใช้ได้ครั้งเดียวภายใน 15 นาที หากไม่ได้รับลิงก์ โปรดขอให้เจ้าของร้านเพิ่มคุณในทีม
signed-out = คุณออกจากระบบแล้ว
not-signed-in = คุณยังไม่ได้เข้าสู่ระบบ
gate-link-refused = ลิงก์นี้ถูกใช้ไปแล้ว หรือเก่ากว่า 15 นาที โปรดขอลิงก์ใหม่
still-signed-in = { $reason } คุณยังอยู่ในระบบ
unreachable = ติดต่อเซิร์ฟเวอร์ไม่ได้
answered = เซิร์ฟเวอร์ตอบกลับด้วยรหัส { $status }

## The head of the page

who = { $name }, { $role }, ใช้ได้ถึง { $time } น.
role-owner = เจ้าของร้าน
role-admin = ผู้ดูแลร้าน
role-agent = พนักงาน
zone = เวลาที่แสดงเป็นเขตเวลา { $zone }
language = ภาษา
sign-out = ออกจากระบบ
api-docs = เอกสาร API
settings-docs = API การตั้งค่า

## Dialogs

secret-warning = <strong>โปรดคัดลอกตอนนี้ รหัสลับจะไม่แสดงอีก</strong>
secret-stored = เก็บไว้แล้ว
copied = คัดลอกแล้ว
selected = เลือกข้อความไว้แล้ว โปรดคัดลอกด้วยแป้นพิมพ์

## Rotated secrets

end-former-secret = ให้รหัสลับทั้งหมดใช้ไม่ได้ทันที ยกเว้นรหัสใหม่
former-secret-ended = รหัสลับเดิมทั้งหมดใช้ไม่ได้แล้ว

## API keys

keys = คีย์ API
keys-hint = คำขอส่งคีย์ในเฮดเดอร์ <code>x-api-key</code> คีย์หมดอายุหกเดือนหลังจากสร้างหรือเปลี่ยนรหัสลับครั้งล่าสุด
keys-empty = ยังไม่มีคีย์ API
key = คีย์
key-last-used = ใช้ล่าสุด
key-as = ในนามของ { $name }
key-acts-as-hint = สิ่งที่เขียนด้วยคีย์นี้จะบันทึกในชื่อของผู้ใช้นี้ ส่วนสิ่งที่คีย์ทำได้ขึ้นอยู่กับขอบเขตเท่านั้น
key-acts-as = ดำเนินการในนามของ
key-acts-as-owner = { $name } ซึ่งเป็นเจ้าของร้านที่อยู่นานที่สุด
key-acts-as-you = คุณ
key-scopes-hint = สิทธิ์เขียนรวมสิทธิ์อ่านของสิ่งเดียวกันไว้แล้ว
key-no-scope = โปรดเลือกขอบเขตสิทธิ์อย่างน้อยหนึ่งรายการ
key-everything = อ่านและเขียนทุกอย่าง
key-reads = อ่าน { $nouns }
key-writes = อ่านและเขียน { $nouns }
key-status-active = ใช้งานอยู่
key-status-inactive = ถูกระงับ
key-status-expired = หมดอายุแล้ว
key-create = สร้างคีย์
key-edit = แก้ไขคีย์
key-secret = รหัสลับของ “{ $name }”
key-secret-note = ใครก็ตามที่มีรหัสลับนี้ทำได้ทุกอย่างที่คีย์ทำได้
key-created = สร้างคีย์ “{ $name }” แล้ว
key-changed = แก้ไขคีย์ “{ $name }” แล้ว
key-rotate = เปลี่ยนรหัสลับของ “{ $name }” หรือไม่
key-rotate-text = คีย์จะได้รหัสลับใหม่และหมดอายุในอีกหกเดือน รหัสลับปัจจุบันยังใช้ได้อีกสองชั่วโมง เว้นแต่คุณจะเลือกช่องด้านล่าง
key-rotate-note = รหัสลับเดิมยังใช้ได้ถึง { $time } น.
key-rotated = เปลี่ยนรหัสลับของคีย์ “{ $name }” แล้ว
key-suspend = ระงับ
key-suspend-title = ระงับ “{ $name }” หรือไม่
key-suspend-text = ทุกคำขอที่ใช้คีย์นี้จะถูกปฏิเสธจนกว่าจะเปิดใช้งานอีกครั้ง วันหมดอายุไม่เปลี่ยน
key-suspended = ระงับคีย์ “{ $name }” แล้ว
key-activate = เปิดใช้งาน
key-activated = คีย์ “{ $name }” ใช้งานได้แล้ว
key-delete = ลบ “{ $name }” หรือไม่
key-delete-text = รหัสลับทั้งหมดของคีย์นี้จะใช้ไม่ได้ทันทีและถาวร
key-deleted = ลบคีย์ “{ $name }” แล้ว

## Webhooks

webhooks = เว็บฮุก
webhooks-hint = ระบบส่งเหตุการณ์ไปยังปลายทางทันทีที่เกิดขึ้น โดยลงลายเซ็นตามรูปแบบ Standard Webhooks
webhooks-empty = ยังไม่มีเว็บฮุก
webhook-log = ประวัติการส่ง
webhook-test = ส่งเหตุการณ์ทดสอบ
webhook-rotate = เปลี่ยนรหัสลับ
webhook-disable = ปิดใช้งาน
webhook-enable = เปิดใช้งาน
webhook-kinds-hint = หากเลือกทั้งหมด จะรวมชนิดที่เพิ่มในภายหลังด้วย
webhook-account-hint = หากเลือกบัญชีเดียว จะไม่ส่งเหตุการณ์ของผู้ติดต่อ
webhook-no-kind = โปรดเลือกชนิดของเหตุการณ์อย่างน้อยหนึ่งชนิด
webhook-choose-all = เลือกทั้งหมด
webhook-choose-none = ไม่เลือกเลย
webhook-every-kind = ทุกชนิด
webhook-failing-since = ส่งไม่สำเร็จทุกครั้งตั้งแต่ { $time }
webhook-disabled-reason = ถูกปิดใช้งาน: { $reason }
webhook-no-reason = ไม่มีบันทึกเหตุผล
webhook-state-enabled = ใช้งานอยู่
webhook-state-failing = ส่งไม่สำเร็จ
webhook-state-disabled = ถูกปิดใช้งาน
webhook-add = เพิ่มเว็บฮุก
webhook-edit = แก้ไขเว็บฮุก
webhook-secret = รหัสลับสำหรับลายเซ็น
webhook-secret-of = รหัสลับสำหรับลายเซ็นของ { $url }
webhook-secret-note = โปรดส่งให้ผู้ดูแลปลายทาง ซึ่งใช้รหัสลับนี้ตรวจสอบว่าสิ่งที่ได้รับมาจากเซิร์ฟเวอร์นี้
webhook-added = เพิ่มเว็บฮุกแล้ว
webhook-changed = แก้ไขเว็บฮุกแล้ว
webhook-rotate-title = เปลี่ยนรหัสลับสำหรับลายเซ็นหรือไม่
webhook-rotate-text = สิ่งที่ส่งไปยัง { $url } จะลงลายเซ็นด้วยรหัสลับใหม่ และลงด้วยรหัสลับปัจจุบันควบคู่ไปอีก 24 ชั่วโมง เว้นแต่คุณจะเลือกช่องด้านล่าง
webhook-rotate-note = ระบบลงลายเซ็นด้วยรหัสลับเดิมควบคู่ไปอีก 24 ชั่วโมง
webhook-rotated = เปลี่ยนรหัสลับแล้ว
webhook-tested = กำลังส่งเหตุการณ์ทดสอบ
webhook-disable-title = ปิดใช้งานเว็บฮุกหรือไม่
webhook-disable-text = จะไม่ส่งเหตุการณ์ไปยัง { $url } อีก และทิ้งเหตุการณ์ที่รอส่งอยู่
webhook-disabled = ปิดใช้งานเว็บฮุกแล้ว
webhook-enabled = เปิดใช้งานเว็บฮุกแล้ว ส่งเหตุการณ์ที่พลาดไปซ้ำได้จากประวัติการส่ง
webhook-delete-title = ลบเว็บฮุกหรือไม่
webhook-delete-text = จะไม่ส่งเหตุการณ์ไปยัง { $url } อีก และลบประวัติการส่งอย่างถาวร
webhook-deleted = ลบเว็บฮุกแล้ว

## Delivery log

deliveries = ประวัติการส่ง
deliveries-hint = การส่งทุกครั้ง ครั้งล่าสุดอยู่บนสุด รายการปรับปรุงเองขณะที่แสดงอยู่
deliveries-empty = ยังไม่มีการส่ง
delivery-webhook = เว็บฮุก
delivery-time = เวลา
delivery-event = เหตุการณ์
delivery-attempt = ครั้งที่
delivery-answer = คำตอบ
delivery-outcome = ผล
delivery-next = ครั้งถัดไป
delivery-no-answer = ไม่มีคำตอบ
delivery-millis = { $millis } มิลลิวินาที
outcome-delivered = ส่งถึงแล้ว
outcome-retrying = จะลองอีก
outcome-failed = ส่งไม่สำเร็จ และลองใหม่แล้ว
outcome-given_up = เลิกส่ง
outcome-disabled = ถูกปิดใช้งาน
outcome-late = ช้าเกินไป
delivery-details = รายละเอียด
delivery-title = การส่ง { $kind } ครั้งที่ { $number }
delivery-sent = เนื้อหาของคำขอ
delivery-status = สถานะ { $status } หลังจาก { $millis } มิลลิวินาที
delivery-none = ไม่มีคำตอบ: { $reason }
replay = ส่งซ้ำ
replay-range = ส่งซ้ำ …
replay-title = ส่งเหตุการณ์ซ้ำ
replay-from = ตั้งแต่
replay-until = จนถึง
replay-zone = ตามเขตเวลาของคุณ ช่องที่ว่างไว้ไม่จำกัดช่วง
replay-missing = เฉพาะเหตุการณ์ที่ไม่เคยส่งถึงและไม่ได้รอส่งอยู่
replay-count = นับ
replay-none = ไม่มีเหตุการณ์ให้ส่ง
replay-counted = จะส่ง { $count } เหตุการณ์
replay-go = ส่ง { $count } เหตุการณ์
replay-queued = นำ { $count } เหตุการณ์เข้าคิวแล้ว
replay-one = กำลังส่งเหตุการณ์อีกครั้ง
replay-not = เหตุการณ์นี้กำลังส่งอยู่แล้ว หรือเว็บฮุกไม่ได้รับเหตุการณ์ชนิดนี้อีก

## Drafts

drafts = ฉบับร่าง
drafts-hint = ข้อความที่ผู้ช่วยเสนอ แต่ละข้อความส่งเมื่อมีคนอนุมัติ และหมดอายุหลังจากเจ็ดวัน
drafts-empty = ไม่มีฉบับร่างให้ตรวจ
draft-message = ข้อความ
draft-to = ถึง
draft-recipient = ถึง { $contact } ผ่าน { $account }
draft-by = โดย
draft-made = สร้างเมื่อ
draft-review = ตรวจ
draft-title = ตรวจฉบับร่าง
draft-talk = การสนทนา
draft-send = ส่ง
draft-discard = ทิ้ง
draft-contact = ผู้ติดต่อ
draft-store = ร้าน
draft-no-text = (ไม่มีข้อความ)
draft-fixed = แก้ไขข้อความนี้ที่นี่ไม่ได้
draft-edited = มีคนแก้ไขฉบับร่างระหว่างนี้ ตอนนี้ข้อความเป็นดังนี้
draft-news = ผู้ติดต่อเขียนมาหลังจากสร้างฉบับร่าง โปรดอ่านข้อความล่าสุด หากฉบับร่างยังเหมาะสมให้กดส่ง
draft-was-sent = กำลังส่งข้อความไปยังช่องทาง
draft-discard-title = ทิ้งฉบับร่างหรือไม่
draft-discard-text = ข้อความนี้จะไม่ถูกส่ง
draft-discarded = ทิ้งฉบับร่างแล้ว

## Undelivered messages

undelivered = ยังส่งไม่ถึง
undelivered-hint = ข้อความที่ช่องทางยังไม่รับ ข้อความที่ส่งไม่สำเร็จส่งซ้ำได้ภายใน 30 วัน
undelivered-empty = ไม่มีข้อความที่รอส่ง และไม่มีข้อความที่ส่งไม่สำเร็จ
undelivered-message = ข้อความ
undelivered-contact = ถึง
undelivered-sent = เขียนเมื่อ
undelivered-state = สถานะ
undelivered-reason = สาเหตุ
undelivered-next = ครั้งถัดไป
undelivered-failed = ส่งไม่สำเร็จ
undelivered-pending = รอส่ง
undelivered-attempts = ลองแล้ว { $count } ครั้ง
undelivered-no-bridge = บัญชีนี้ไม่มีบริดจ์ จึงยังไม่ได้เชื่อมกับช่องทางใด เจ้าของหรือผู้ดูแลร้านตั้งค่าบริดจ์ได้ในแท็บบัญชี
undelivered-no-text = (ไม่มีข้อความ)
undelivered-again = ส่งอีกครั้ง
undelivered-now = ลองเดี๋ยวนี้
undelivered-queued = กำลังส่งข้อความอีกครั้ง
undelivered-delivered = ช่องทางรับข้อความถึง { $contact } แล้ว
undelivered-more = รายการแสดงไม่เกิน { $limit } ข้อความต่อสถานะ

## Accounts

accounts = บัญชีช่องทาง
accounts-hint = ใครใช้บัญชีช่องทางใดได้บ้าง และบริดจ์ที่เชื่อมต่อช่องทางของบัญชี
accounts-empty = ยังไม่มีบัญชีช่องทาง
account-open-to = เปิดให้
account-every-user = ผู้ใช้ทุกคน
account-users = ผู้ใช้
account-users-hint = หากไม่เลือกใครเลย ผู้ใช้ทุกคนใช้บัญชีนี้ได้ ผู้ที่เสียสิทธิ์จะไม่ได้รับมอบหมายทิกเก็ตของบัญชีนี้อีก
account-access = เปลี่ยนสิทธิ์เข้าถึง
account-access-title = สิทธิ์เข้าถึง { $name }
account-access-changed = เปลี่ยนสิทธิ์เข้าถึง { $name } แล้ว ทิกเก็ตที่ไม่มีผู้รับผิดชอบแล้ว: { $count }
bridge = บริดจ์
bridge-hint = ระบบส่งมอบข้อความของบัญชีไปที่นั่น โดยลงลายเซ็นตามรูปแบบ Standard Webhooks
bridge-set = ตั้งค่าบริดจ์
bridge-change = เปลี่ยนบริดจ์
bridge-rotate = เปลี่ยนรหัสลับของบริดจ์
bridge-remove = นำบริดจ์ออก
bridge-title = บริดจ์ของ { $name }
bridge-secret = รหัสลับของบริดจ์
bridge-secret-note = บริดจ์ใช้รหัสลับนี้ตรวจสอบข้อความ และลงลายเซ็นข้อความที่นำเข้ามา
bridge-saved = บันทึกบริดจ์ของ { $name } แล้ว
bridge-secret-of = รหัสลับของบริดจ์ { $name }
bridge-rotate-title = เปลี่ยนรหัสลับของบริดจ์ { $name } หรือไม่
bridge-rotate-text = ข้อความจะลงลายเซ็นด้วยรหัสลับใหม่ และลงด้วยรหัสลับปัจจุบันควบคู่ไปอีก 24 ชั่วโมง เว้นแต่คุณจะเลือกช่องด้านล่าง
bridge-rotate-note = ระบบลงลายเซ็นด้วยรหัสลับเดิมควบคู่ไปอีก 24 ชั่วโมง
bridge-rotated = เปลี่ยนรหัสลับแล้ว
bridge-remove-title = นำบริดจ์ของ { $name } ออกหรือไม่
bridge-remove-text = จะไม่ส่งมอบข้อความของบัญชีนี้อีก ข้อความที่รออยู่จะส่งไม่สำเร็จ
bridge-removed = นำบริดจ์ของ { $name } ออกแล้ว

## Team

team = ทีม
team-hint-link = ทุกคนที่ทำงานให้ร้าน เจ้าของร้านและผู้ดูแลร้านใช้หน้านี้ได้ โดยเข้าสู่ระบบด้วยลิงก์ที่ใช้ได้ครั้งเดียวภายใน 15 นาที ผู้ให้บริการเซิร์ฟเวอร์สร้างลิงก์ด้วยคำสั่งนี้ โดยใส่รหัสผู้ใช้จากรายการ:
team-hint-mail = ทุกคนที่ทำงานให้ร้าน เจ้าของร้านและผู้ดูแลร้านใช้หน้านี้ได้ โดยเข้าสู่ระบบด้วยลิงก์ที่ใช้ได้ครั้งเดียวภายใน 15 นาที หน้าเข้าสู่ระบบส่งลิงก์ไปที่อีเมลในรายการนี้
team-empty = ยังไม่มีสมาชิก
team-role = บทบาท
team-user-id = รหัสผู้ใช้
team-member = สมาชิก
team-invited = ได้รับเชิญแล้ว
team-add = เพิ่มสมาชิก
team-role-hint = เจ้าของร้านเปลี่ยนได้ทุกอย่าง ผู้ดูแลร้านเปลี่ยนการตั้งค่าได้ทั้งหมด ยกเว้นเจ้าของร้านคนอื่น พนักงานใช้หน้านี้ไม่ได้
team-added-mail = เพิ่ม { $name } แล้ว ระบบกำลังส่งลิงก์มาหน้านี้ไปที่ { $email } ลิงก์ใช้ได้ 15 นาที
team-added-no-mail = เพิ่ม { $name } แล้ว แต่ส่งลิงก์ไม่ได้: { $reason }
team-added-link = เพิ่ม { $name } แล้ว คำสั่งด้านบนสร้างลิงก์ด้วยรหัสผู้ใช้ { $userId }
team-added-agent = เพิ่ม { $name } แล้ว
team-set-role = เปลี่ยนบทบาท
team-role-of = บทบาทของ { $name }
team-role-set = ตอนนี้ { $name } มีบทบาทเป็น{ $role }
team-send-link = ส่งลิงก์
team-link-sent = ระบบกำลังส่งลิงก์มาหน้านี้ไปที่ { $email } ลิงก์ใช้ได้ 15 นาที
team-remove = นำ { $name } ออกหรือไม่
team-remove-text = สมาชิกจะถูกนำออกทันทีและถาวร ทิกเก็ตจะไม่มีผู้รับผิดชอบคนนี้อีก เซสชันและโทเคนสิ้นสุดลง และเจ้าของร้านที่อยู่นานที่สุดจะเป็นผู้รับผิดชอบคีย์ API ของสมาชิกคนนี้แทน
team-removed = นำ { $name } ออกแล้ว ทิกเก็ตที่ไม่มีผู้รับผิดชอบแล้ว: { $count }

## Sessions

sessions = เซสชัน
sessions-hint = เซสชันของเบราว์เซอร์ โทเคนของโปรแกรม และลิงก์ที่ยังไม่ได้ใช้ รายการที่เพิกถอนจะสิ้นสุดทันที
sessions-empty = ขณะนี้ไม่มีใครเข้าถึงได้
session-who = ผู้ใช้
session-kind = ชนิด
session-permits = สิทธิ์
session-made = สร้างเมื่อ
session-ends = สิ้นสุด
session-everything = ทุกอย่าง
session-sent-to = ส่งไปที่ { $email }
session-this = เซสชันนี้
credential-link = ลิงก์
credential-session = เซสชัน
credential-token = โทเคน
credential-of-link = ลิงก์ของ { $name }
credential-of-session = เซสชันของ { $name }
credential-of-token = โทเคนของ { $name }
credential-end-link = ลิงก์จะเปิดเซสชันไม่ได้อีก
credential-end-session = ผู้ที่ใช้อยู่จะออกจากระบบทันที
credential-end-token = โปรแกรมที่ใช้อยู่จะถูกปฏิเสธทันที
credential-end = เพิกถอน{ $credential } หรือไม่
credential-ended = เพิกถอน{ $credential } แล้ว

## Changes

changes = การเปลี่ยนแปลง
changes-hint = การเปลี่ยนแปลงบนหน้านี้ ด้วยโทเคนของโปรแกรม และจากบรรทัดคำสั่ง ครั้งล่าสุดอยู่บนสุด
changes-empty = ยังไม่มีการเปลี่ยนแปลง
change-time = เวลา
change-who = ผู้ใช้
change = การเปลี่ยนแปลง
change-detail = รายละเอียด
change-system = เซิร์ฟเวอร์
change-command_line = บรรทัดคำสั่ง
change-via-session = ด้วยเซสชัน
change-via-token = ด้วยโทเคน
