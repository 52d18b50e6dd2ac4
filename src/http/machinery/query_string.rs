//! Parsing of the query string of a request.

use super::error_responses::ApiError;

/// The query of a request: decoded names and values in their order.
#[derive(Clone)]
pub struct QueryString(Vec<(String, String)>);

impl QueryString {
    pub fn read(query: &str) -> Self {
        Self(url::form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// Refuses the list notation of PHP and Rails, `name[]=a`, which would otherwise be ignored silently.
    pub fn refuse_brackets(&self, name: &str) -> Result<(), ApiError> {
        let spelt = |key: &&String| key.strip_prefix(name).is_some_and(|rest| rest.starts_with('[') && rest.ends_with(']'));
        match self.0.iter().map(|(key, _)| key).find(spelt) {
            Some(key) => Err(ApiError::field(key, format!("is not supported; send `{name}=a,b`, or `{name}=a&{name}=b`"))),
            None => Ok(()),
        }
    }

    /// Returns the values that were sent under a name, in their order.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}
