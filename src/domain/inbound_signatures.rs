//! Verifies the Standard Webhooks signatures of inbound messages from a bridge, with replay protection. A bridge is an external
//! program that connects a channel account to this server.
//!
//! The signature covers the id, the time and the body of the request. A request is accepted only within five minutes of the time that its
//! header states, and only once.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use sha2::{Digest, Sha256};

use super::{ids::AccountId, time::Timestamp, webhooks::SigningSecret};

/// The headers of a signed request.
pub const ID: &str = "webhook-id";
pub const TIME: &str = "webhook-timestamp";
pub const SIGNATURE: &str = "webhook-signature";

/// The maximum difference between the time that a request states and the time of the server, in milliseconds.
const TOLERANCE_MILLIS: i64 = 5 * 60 * 1000;
/// How long an accepted request is remembered, in milliseconds after the time that the request states. This is longer than the tolerance,
/// since the clocks of server processes differ: a process whose clock is slow would accept a repetition of the request for longer than the
/// other processes.
const REMEMBERED_MILLIS: i64 = 60 * 60 * 1000;

const MAX_ID_BYTES: usize = 256;
/// At most this many signatures of a request are checked. A sender adds one signature for each of its secrets.
const MAX_SIGNATURES: usize = 16;

/// The signature of a request, as its headers state it; not verified yet.
#[derive(Clone, Debug)]
pub struct RequestSignature {
    id: String,
    /// The time exactly as the request states it: the signature covers this text.
    time: String,
    seconds: i64,
    /// The decoded signatures of the signature header (HMAC-SHA256, version `v1`).
    macs: Vec<Vec<u8>>,
}

/// A signed request that was verified and must not be accepted again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedSignature {
    pub account_id: AccountId,
    /// SHA-256 of the request's id and time, in hexadecimal.
    pub digest: String,
    pub expires_at: Timestamp,
}

impl RequestSignature {
    /// Reads the signature from the headers of a request. An error names the header that is wrong.
    pub fn read(id: Option<&str>, time: Option<&str>, signature: Option<&str>) -> Result<Self, String> {
        let missing = |name: &str| format!("`{name}` is missing; a signed request has `{ID}`, `{TIME}` and `{SIGNATURE}`");
        let id = id.ok_or_else(|| missing(ID))?;
        // The signed text is `ID.TIME.BODY`. It must be possible to divide the text into its three parts in one way only, so that a
        // signature cannot be used for another id, time or body. The body, a JSON object, begins at the first `{`, since the id must not
        // contain `{`. The time has no dot, so it stands between the last two dots before the body.
        if id.is_empty() || id.len() > MAX_ID_BYTES || !id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'{') {
            return Err(format!("`{ID}` must have 1 to {MAX_ID_BYTES} visible ASCII characters other than `{{`"));
        }
        let time = time.ok_or_else(|| missing(TIME))?;
        let digits = (1..=12).contains(&time.len()) && time.bytes().all(|byte| byte.is_ascii_digit()) && !time.starts_with('0');
        let seconds = time.parse().ok().filter(|_| digits);
        let seconds = seconds.ok_or_else(|| format!("`{TIME}` must be the time in Unix seconds, such as 1780300800"))?;
        let macs: Vec<Vec<u8>> = signature
            .ok_or_else(|| missing(SIGNATURE))?
            .split(' ')
            .filter_map(|one| BASE64.decode(one.strip_prefix("v1,")?).ok())
            .take(MAX_SIGNATURES)
            .collect();
        if macs.is_empty() {
            return Err(format!("`{SIGNATURE}` must hold a signature such as `v1,` and HMAC-SHA256 in Base64"));
        }
        Ok(Self { id: id.to_owned(), time: time.to_owned(), seconds, macs })
    }

    /// Whether the time of the request differs from `now` by no more than the tolerance.
    pub fn is_current(&self, now: Timestamp) -> bool {
        let seconds = Timestamp::from_millis(self.seconds * 1000);
        (now.plus_millis(-TOLERANCE_MILLIS)..=now.plus_millis(TOLERANCE_MILLIS)).contains(&seconds)
    }

    /// Whether the request was signed with one of the secrets. The comparison of signatures takes constant time.
    pub fn is_by_one_of(&self, secrets: &[SigningSecret], body: &[u8]) -> bool {
        secrets.iter().fold(false, |found, secret| found | secret.verifies(&self.id, &self.time, body, &self.macs))
    }

    /// Returns the record by which a repetition of the request is detected.
    pub fn accepted(&self, account_id: AccountId) -> AcceptedSignature {
        let digest = Sha256::digest(format!("{}.{}", self.id, self.time));
        let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        AcceptedSignature { account_id, digest, expires_at: Timestamp::from_millis(self.seconds * 1000).plus_millis(REMEMBERED_MILLIS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNED: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn read(id: &str, time: &str, signature: &str) -> Result<RequestSignature, String> {
        RequestSignature::read(Some(id), Some(time), Some(signature))
    }

    #[test]
    fn the_standard_webhooks_example_is_verified_and_altered_requests_are_not() {
        // The example of the Standard Webhooks specification.
        let secret = SigningSecret(BASE64.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap());
        let (id, time, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", br#"{"test": 2432232314}"#);
        let other = SigningSecret(vec![0; 32]);
        let secrets = [other.clone(), secret.clone()];
        assert!(read(id, time, SIGNED).unwrap().is_by_one_of(&secrets, body));
        assert!(read(id, time, &format!("v1a,AAAA v1,AAAA {SIGNED}")).unwrap().is_by_one_of(&secrets, body));
        assert!(!read(id, time, SIGNED).unwrap().is_by_one_of(&[other], body));
        assert!(!read(id, time, SIGNED).unwrap().is_by_one_of(&[], body));
        assert!(!read(id, time, SIGNED).unwrap().is_by_one_of(&secrets, br#"{"test": 2432232315}"#));
        assert!(!read(id, "1614265331", SIGNED).unwrap().is_by_one_of(&secrets, body));
        assert!(!read("msg", time, SIGNED).unwrap().is_by_one_of(&secrets, body));
        // A part of the right signature does not suffice.
        assert!(!read(id, time, "v1,g0hM9SsE+OTPJTGt").unwrap().is_by_one_of(&secrets, body));
    }

    #[test]
    fn errors_for_malformed_signature_headers_name_the_header() {
        for (id, time, signature, name) in [
            ("", "1", SIGNED, ID),
            ("a b", "1", SIGNED, ID),
            ("a{", "1", SIGNED, ID),
            ("é", "1", SIGNED, ID),
            (&"x".repeat(257), "1", SIGNED, ID),
            ("a", "", SIGNED, TIME),
            ("a", "+1", SIGNED, TIME),
            ("a", "-1", SIGNED, TIME),
            ("a", "01", SIGNED, TIME),
            ("a", "1.0", SIGNED, TIME),
            ("a", "9999999999999", SIGNED, TIME),
            ("a", "1", "", SIGNATURE),
            ("a", "1", "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", SIGNATURE),
            ("a", "1", "v2,AAAA", SIGNATURE),
            ("a", "1", "v1,*", SIGNATURE),
        ] {
            let error = read(id, time, signature).unwrap_err();
            assert!(error.starts_with(&format!("`{name}` must")), "{id} {time} {signature}: {error}");
        }
        assert!(RequestSignature::read(None, Some("1"), Some(SIGNED)).unwrap_err().starts_with("`webhook-id` is missing"));
        assert!(RequestSignature::read(Some("a"), None, Some(SIGNED)).unwrap_err().starts_with("`webhook-timestamp` is missing"));
        assert!(RequestSignature::read(Some("a"), Some("1"), None).unwrap_err().starts_with("`webhook-signature` is missing"));
    }

    #[test]
    fn a_signature_timestamp_may_be_five_minutes_early_or_late() {
        let now = Timestamp::from_millis(1_780_300_800_000);
        for (seconds, is_current) in [(0, true), (300, true), (301, false), (-300, true), (-301, false), (1_000_000_000, false)] {
            let time = (1_780_300_800_i64 + seconds).to_string();
            assert_eq!(read("a", &time, SIGNED).unwrap().is_current(now), is_current, "{seconds}");
        }
        let digest = |id: &str, time: &str| read(id, time, SIGNED).unwrap().accepted("a".into()).digest;
        assert_eq!(digest("a", "1"), digest("a", "1"));
        assert!(digest("a", "1") != digest("a", "2") && digest("a", "1") != digest("b", "1") && digest("a.1", "2") != digest("a", "12"));
    }
}
