//! The address of a PostgreSQL database: connection options from a URL, which may name several hosts as libpq's URLs do.
//!
//! If a URL names several hosts, one of them is the primary and the others are standbys, any of which may become the primary. Connections
//! are made only to the primary.

use std::{net::IpAddr, str::FromStr};

use sqlx::{ConnectOptions, postgres::PgConnectOptions};

use crate::store::{Error, Result};

/// The connection options for each host of a URL.
#[derive(Clone)]
pub(in crate::store) struct ServerAddress {
    first: PgConnectOptions,
    /// The options for the other hosts. They differ from `first` in host and port only.
    others: Vec<PgConnectOptions>,
    /// Whether connections are made only to a host that accepts writes (libpq's `target_session_attrs=read-write`).
    read_write: bool,
}

impl ServerAddress {
    pub fn first(&self) -> &PgConnectOptions {
        &self.first
    }

    pub fn hosts(&self) -> impl Iterator<Item = &PgConnectOptions> {
        std::iter::once(&self.first).chain(&self.others)
    }

    pub fn is_read_write(&self) -> bool {
        self.read_write
    }

    /// Returns whether the primary may move from one host to another.
    pub fn has_several_hosts(&self) -> bool {
        !self.others.is_empty()
    }

    /// Returns the address with changed options for every host.
    #[must_use]
    pub fn with(self, change: impl Fn(PgConnectOptions) -> PgConnectOptions) -> Self {
        Self { first: change(self.first), others: self.others.into_iter().map(change).collect(), read_write: self.read_write }
    }
}

impl FromStr for ServerAddress {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self> {
        let (url, wanted) = without_target_session_attrs(url);
        let read_write = match wanted.as_deref() {
            None => None,
            Some("any") => Some(false),
            Some("read-write" | "primary") => Some(true),
            Some(other) => {
                return Err(Error::Unavailable(format!(
                    "`target_session_attrs={other}` in the database URL is not supported; write `read-write`, or leave it out"
                )));
            }
        };
        let mut hosts = urls_by_host(&url)
            .iter()
            .map(|url| PgConnectOptions::from_str(url).map(ConnectOptions::disable_statement_logging))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|error| Error::Unavailable(format!("the database URL cannot be read: {error}")))?;
        let others = hosts.split_off(1);
        let Some(first) = hosts.pop() else { return Err(Error::Unavailable("the database URL names no server".to_owned())) };
        let several = !others.is_empty();
        if several && std::iter::once(&first).chain(&others).any(|options| options.get_socket().is_some()) {
            return Err(Error::Unavailable(
                "the database URL names several hosts: each must be reached by TCP, not by a Unix socket".to_owned(),
            ));
        }
        if several && read_write == Some(false) {
            let right = "write `target_session_attrs=read-write`, or leave it out";
            return Err(Error::Unavailable(format!(
                "the database URL names several hosts, of which only the primary accepts writes; {right}"
            )));
        }
        Ok(Self { first, others, read_write: read_write.unwrap_or(several) })
    }
}

/// Splits the parameter `target_session_attrs` off a URL, since sqlx does not know it.
fn without_target_session_attrs(url: &str) -> (String, Option<String>) {
    let Some((base, query)) = url.split_once('?') else { return (url.to_owned(), None) };
    let (wanted, rest): (Vec<&str>, Vec<&str>) = query.split('&').partition(|pair| pair.starts_with("target_session_attrs="));
    let value = wanted.last().and_then(|pair| pair.split_once('=')).map(|(_, value)| value.to_owned());
    (if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) }, value)
}

/// Returns one URL for each host of the URL's comma-separated list of hosts.
fn urls_by_host(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("://") else { return vec![url.to_owned()] };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    hosts.split(',').map(|host| format!("{scheme}://{user}{host}{path}")).collect()
}

/// Returns whether all hosts of a URL are on this machine, judging by their names or addresses.
pub fn is_local_server(url: &str) -> bool {
    ServerAddress::from_str(url).is_ok_and(|address| address.hosts().all(is_local))
}

fn is_local(options: &PgConnectOptions) -> bool {
    // If the URL names no host, the folder of a Unix socket takes its place.
    let host = options.get_host().trim_matches(['[', ']']);
    options.get_socket().is_some()
        || host.starts_with('/')
        || host.eq_ignore_ascii_case("localhost")
        || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_may_name_several_hosts() {
        let address = ServerAddress::from_str("postgres://u%40:p@one.example,[::1]:6543,192.0.2.1:7/data?sslmode=require").unwrap();
        let hosts: Vec<_> = address.hosts().map(|options| (options.get_host(), options.get_port(), options.get_username())).collect();
        assert_eq!(hosts, [("one.example", 5432, "u@"), ("[::1]", 6543, "u@"), ("192.0.2.1", 7, "u@")]);
        assert!(address.has_several_hosts() && address.is_read_write());
        assert!(address.hosts().all(|options| options.get_database() == Some("data")));
    }

    #[test]
    fn target_session_attrs_is_read() {
        for (query, read_write) in [
            ("", false),
            ("?target_session_attrs=read-write", true),
            ("?sslmode=prefer&target_session_attrs=primary", true),
            ("?target_session_attrs=any", false),
        ] {
            let address = ServerAddress::from_str(&format!("postgres://u@h/d{query}")).unwrap();
            assert_eq!((address.is_read_write(), address.has_several_hosts()), (read_write, false), "{query}");
        }
    }

    #[test]
    fn unusable_addresses_are_refused_with_a_reason() {
        for (url, reason) in [
            ("postgres://u@h/d?target_session_attrs=standby", "`target_session_attrs=standby`"),
            ("postgres://u@a,b/d?target_session_attrs=any", "several hosts"),
            ("postgres://u@a,%2Fvar%2Frun/d", "Unix socket"),
            ("postgres://u@a:x,b/d", "cannot be read"),
            ("postgres://u@a,/d", "empty host"),
        ] {
            let error = ServerAddress::from_str(url).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(reason), "{url}: {error}");
        }
    }

    #[test]
    fn an_address_is_local_if_all_its_hosts_are() {
        assert!(is_local_server("postgres://u@localhost,127.0.0.1:6543/d"));
        assert!(!is_local_server("postgres://u@localhost,db.example/d"));
    }
}
