# The texts of the settings page in English (Project Fluent). `th.ftl` has the same messages in Thai; a test checks that.
# A message without arguments may contain markup. A message with arguments is shown as plain text.

## Words that several tabs use

title = Developer settings
sections = Sections
actions = Actions
cancel = Cancel
close = Close
save = Save
copy = Copy
edit = Edit
delete = Delete
remove = Remove
rotate = Rotate
end = Revoke
older = Older
try-again = Try again
loading = Loading …
name = Name
scopes = Scopes
status = Status
created = Created
expires = Expires
events = Events
account = Account
address = Address
every-account = every account
never = never
none = none

## The gate: the sign-in page, which is shown without a session

gate-help = Owners and admins of a store sign in with a link that works once. The operator of the server prints one:
gate-validity = The link is valid for 15 minutes, the session that it opens for 12 hours.
gate-email = E-mail
gate-email-hint = Your address, as the store knows it. If you are an owner or admin, a link is sent to it.
gate-send = Send me a link
gate-sent = If { $email } is the address of an owner or admin, a link is on its way. It works once, within 15 minutes. If none comes, ask an owner of the store to add you to the team.
signed-out = You are signed out.
not-signed-in = You are not signed in.
gate-link-refused = This link was used already, or is older than 15 minutes. Ask for a new one.
still-signed-in = { $reason } You are still signed in.
unreachable = The server cannot be reached.
answered = The server answered { $status }.

## The head of the page

who = { $name }, { $role }, until { $time }
role-owner = owner
role-admin = admin
role-agent = agent
zone = Times are in the time zone { $zone }.
language = Language
sign-out = Sign out
api-docs = API documentation
settings-docs = Settings API

## Dialogs

secret-warning = <strong>Copy it now. It is not shown again.</strong>
secret-stored = I have stored it
copied = Copied.
selected = Selected; copy it with the keyboard.

## Rotated secrets

end-former-secret = All secrets but the new one stop working at once.
former-secret-ended = No former secret works any longer.

## API keys

keys = API keys
keys-hint = A request carries a key in the header <code>x-api-key</code>. A key expires six months after it was created or last rotated.
keys-empty = There are no API keys yet.
key = Key
key-last-used = Last used
key-as = as { $name }
key-acts-as = Acts as
key-acts-as-hint = What is written with the key is recorded in the name of this user. Only the scopes say what the key may do.
key-acts-as-owner = { $name }, the store's oldest owner
key-acts-as-you = you
key-scopes-hint = A write scope contains its read scope.
key-no-scope = Choose at least one scope.
key-everything = read and write everything
key-reads = read { $nouns }
key-writes = read and write { $nouns }
key-status-active = active
key-status-inactive = suspended
key-status-expired = expired
key-create = Create key
key-edit = Edit key
key-secret = Secret of “{ $name }”
key-secret-note = Anyone who has the secret can do what the key may do.
key-created = The key “{ $name }” was created.
key-changed = The key “{ $name }” was changed.
key-rotate = Rotate “{ $name }”?
key-rotate-text = The key gets a new secret and expires six months from now. The current secret stays valid for two hours, unless you tick the box below.
key-rotate-note = The former secret stays valid until { $time }.
key-rotated = The key “{ $name }” was rotated.
key-suspend = Suspend
key-suspend-title = Suspend “{ $name }”?
key-suspend-text = Every request with the key is refused until the key is activated again. Its expiry does not move.
key-suspended = The key “{ $name }” is suspended.
key-activate = Activate
key-activated = The key “{ $name }” is active.
key-delete = Delete “{ $name }”?
key-delete-text = All secrets of the key stop working at once and permanently.
key-deleted = The key “{ $name }” was deleted.

## Webhooks

webhooks = Webhooks
webhooks-hint = Events are sent to an endpoint as they happen, signed in the form of Standard Webhooks.
webhooks-empty = There are no webhooks yet.
webhook-log = Delivery log
webhook-test = Send test event
webhook-rotate = Rotate secret
webhook-disable = Disable
webhook-enable = Enable
webhook-kinds-hint = If all are ticked, kinds that are added later are included.
webhook-account-hint = If one account is chosen, events of contacts are not sent.
webhook-no-kind = Choose at least one kind of event.
webhook-choose-all = Choose all
webhook-choose-none = Choose none
webhook-every-kind = every kind
webhook-failing-since = Every attempt has failed since { $time }.
webhook-disabled-reason = Disabled: { $reason }.
webhook-no-reason = no reason is recorded
webhook-state-enabled = enabled
webhook-state-failing = failing
webhook-state-disabled = disabled
webhook-add = Add webhook
webhook-edit = Edit webhook
webhook-secret = Signing secret
webhook-secret-of = Signing secret of { $url }
webhook-secret-note = Give it to the people who run the endpoint: with it they verify that a delivery comes from this server.
webhook-added = The webhook was added.
webhook-changed = The webhook was changed.
webhook-rotate-title = Rotate the signing secret?
webhook-rotate-text = Deliveries to { $url } are signed with a new secret. For 24 hours they are also signed with the current one, unless you tick the box below.
webhook-rotate-note = For 24 hours deliveries are also signed with the former secret.
webhook-rotated = The secret was rotated.
webhook-tested = A test event is on its way.
webhook-disable-title = Disable the webhook?
webhook-disable-text = No more events are sent to { $url }, and the events that wait for it are dropped.
webhook-disabled = The webhook is disabled.
webhook-enabled = The webhook is enabled. Events that it missed can be replayed from its delivery log.
webhook-delete-title = Delete the webhook?
webhook-delete-text = No more events are sent to { $url }, and its delivery log is deleted permanently.
webhook-deleted = The webhook was deleted.

## Delivery log

deliveries = Delivery log
deliveries-hint = Every delivery attempt, the newest first. The list refreshes itself while it is visible.
deliveries-empty = Nothing was sent yet.
delivery-webhook = Webhook
delivery-time = Time
delivery-event = Event
delivery-attempt = Attempt
delivery-answer = Answer
delivery-outcome = Outcome
delivery-next = Next attempt
delivery-no-answer = no answer
delivery-millis = { $millis } ms
outcome-delivered = delivered
outcome-retrying = retrying
outcome-failed = failed, tried again
outcome-given_up = given up
outcome-disabled = disabled
outcome-late = late
delivery-details = Details
delivery-title = { $kind }, attempt { $number }
delivery-sent = Body of the request
delivery-status = Status { $status }, after { $millis } ms.
delivery-none = There was none: { $reason }.
replay = Replay
replay-range = Replay …
replay-title = Replay events
replay-from = From
replay-until = Until
replay-zone = In your time zone. An empty field sets no limit.
replay-missing = Only events that were never delivered and are not waiting
replay-count = Count
replay-none = There is nothing to send.
replay-counted =
    { $count ->
        [one] { $count } event would be sent.
       *[other] { $count } events would be sent.
    }
replay-go =
    { $count ->
        [one] Send { $count } event
       *[other] Send { $count } events
    }
replay-queued =
    { $count ->
        [one] { $count } event queued.
       *[other] { $count } events queued.
    }
replay-one = The event is on its way again.
replay-not = The event is being sent already, or the webhook no longer subscribes to it.

## Drafts

drafts = Drafts
drafts-hint = Messages that an assistant proposes. Each is sent once a person releases it, and expires after seven days.
drafts-empty = There are no drafts to review.
draft-message = Message
draft-to = To
draft-recipient = To { $contact }, over { $account }.
draft-by = By
draft-made = Made
draft-review = Review
draft-title = Review a draft
draft-talk = The conversation
draft-send = Send
draft-discard = Discard
draft-contact = Contact
draft-store = Store
draft-no-text = (no text)
draft-fixed = This message cannot be edited here.
draft-edited = Somebody edited the draft meanwhile. This is how it reads now.
draft-news = The contact wrote after the draft was made. Read the last messages; if the draft still fits, send it.
draft-was-sent = The message is on its way to the channel.
draft-discard-title = Discard the draft?
draft-discard-text = Its message is never sent.
draft-discarded = The draft was discarded.

## Undelivered messages

undelivered = Undelivered
undelivered-hint = Messages that their channel has not accepted. Those that failed can be sent again for 30 days.
undelivered-empty = No message waits, and none has failed.
undelivered-message = Message
undelivered-contact = To
undelivered-sent = Written
undelivered-state = State
undelivered-reason = Reason
undelivered-next = Next attempt
undelivered-failed = failed
undelivered-pending = waiting
undelivered-attempts =
    { $count ->
        [one] { $count } attempt
       *[other] { $count } attempts
    }
undelivered-no-bridge = The account has no bridge, so no channel is attached to it. An owner or admin can set one under Accounts.
undelivered-no-text = (no text)
undelivered-again = Send again
undelivered-now = Try now
undelivered-queued = The message is being sent again.
undelivered-delivered = The message to { $contact } was accepted by its channel.
undelivered-more = The list shows { $limit } messages of a state at most.

## Accounts

accounts = Accounts
accounts-hint = Who may work on each channel account, and the bridge that attaches its channel.
accounts-empty = There are no channel accounts yet.
account-open-to = Open to
account-every-user = every user
account-users = Users
account-users-hint = If no user is ticked, the account is open to every user. Users who lose access lose their tickets of the account.
account-access = Change access
account-access-title = Access to { $name }
account-access-changed = The access to { $name } was changed. Tickets without an assignee now: { $count }.
bridge = Bridge
bridge-hint = Messages of the account are handed over there, signed in the form of Standard Webhooks.
bridge-set = Set bridge
bridge-change = Change bridge
bridge-rotate = Rotate bridge secret
bridge-remove = Remove bridge
bridge-title = Bridge of { $name }
bridge-secret = Secret of the bridge
bridge-secret-note = With it the bridge verifies messages, and signs those that it brings in.
bridge-saved = The bridge of { $name } was saved.
bridge-secret-of = Secret of the bridge of { $name }
bridge-rotate-title = Rotate the secret of { $name }'s bridge?
bridge-rotate-text = Messages are signed with a new secret. For 24 hours they are also signed with the current one, unless you tick the box below.
bridge-rotate-note = For 24 hours messages are also signed with the former secret.
bridge-rotated = The secret was rotated.
bridge-remove-title = Remove the bridge of { $name }?
bridge-remove-text = Messages of the account are no longer handed over. Those that still wait fail.
bridge-removed = The bridge of { $name } was removed.

## Team

team = Team
team-hint-link = Everyone who works for the store. An owner or admin may use this page, and signs in with a link that works once, within 15 minutes. The operator of the server prints it with this command, with the user id from the list:
team-hint-mail = Everyone who works for the store. An owner or admin may use this page, and signs in with a link that works once, within 15 minutes. The sign-in page sends it to the e-mail address in this list.
team-empty = The team has no users yet.
team-role = Role
team-user-id = User id
team-member = member
team-invited = invited
team-add = Add a person
team-role-hint = An owner may change everything, an admin all settings but other owners. An agent has no access to this page.
team-added-mail = { $name } was added. A link to this page is on its way to { $email }; it works for 15 minutes.
team-added-no-mail = { $name } was added, but no link was sent: { $reason }
team-added-link = { $name } was added. The command above prints a link for the user id { $userId }.
team-added-agent = { $name } was added.
team-set-role = Change role
team-role-of = Role of { $name }
team-role-set = The role of { $name } is { $role } now.
team-send-link = Send link
team-link-sent = A link to this page is on its way to { $email }; it works for 15 minutes.
team-remove = Remove { $name }?
team-remove-text = The seat is removed at once and permanently. Tickets lose this assignee, sessions and tokens end, and API keys in this name act in the name of the store's oldest owner from then on.
team-removed = { $name } was removed. Tickets without an assignee now: { $count }.

## Sessions

sessions = Sessions
sessions-hint = Sessions of browsers, tokens of programs, and links that were not used yet. Each ends at once when it is revoked.
sessions-empty = No session, token or link has access at the moment.
session-who = Who
session-kind = Kind
session-permits = Permits
session-made = Created
session-ends = Expires
session-everything = everything
session-sent-to = sent to { $email }
session-this = this session
credential-link = link
credential-session = session
credential-token = token
credential-of-link = link of { $name }
credential-of-session = session of { $name }
credential-of-token = token of { $name }
credential-end-link = The link no longer opens a session.
credential-end-session = The browser that uses it is signed out at once.
credential-end-token = Programs that use it are refused at once.
credential-end = Revoke the { $credential }?
credential-ended = The { $credential } was revoked.

## Changes

changes = Changes
changes-hint = Changes on this page, with a machine's token and by the command line, the newest first.
changes-empty = Nothing was changed yet.
change-time = Time
change-who = Who
change = Change
change-detail = Detail
change-system = the server
change-command_line = command line
change-via-session = by session
change-via-token = by token
