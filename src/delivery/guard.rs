//! Where nothing is delivered to: networks that are not the public internet's.
//!
//! A name is judged by the addresses that it has at the moment of the connection, and the connection goes to those very
//! addresses; so neither a name that changes between the look and the connection nor another spelling of an address gets
//! around it.

use std::{
    net::{IpAddr, SocketAddr},
    sync::LazyLock,
};

use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// Networks by what the registries of IANA say of them: all that is not globally reachable, and what leads back into such.
const FORBIDDEN: [&str; 34] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    // IPv4 inside of IPv6, whose end is not what it seems: compatible, translated, 6to4, Teredo.
    "::/96",
    "::ffff:0:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "2002::/16",
    "2001::/32",
    "100::/64",
    "2001:2::/48",
    "2001:10::/28",
    "2001:20::/28",
    "2001:db8::/32",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/9",
    "ff00::/8",
];

static NETWORKS: LazyLock<Vec<IpNet>> = LazyLock::new(|| FORBIDDEN.iter().filter_map(|network| network.parse().ok()).collect());

/// Whether an address is one that everybody on the internet means the same machine by.
pub fn is_public(address: IpAddr) -> bool {
    let address = match address {
        IpAddr::V6(six) => six.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    };
    !NETWORKS.iter().any(|network| network.contains(&address))
}

/// Whether connections to all addresses are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Targets {
    /// Public ones alone.
    Public,
    /// All: for development and tests.
    Any,
}

/// What a connection to an address that is not allowed fails with.
#[derive(Debug, thiserror::Error)]
#[error("the address is not a public one; nothing is delivered to it")]
pub struct Refused;

impl Targets {
    fn allow(self, address: IpAddr) -> bool {
        self == Self::Any || is_public(address)
    }

    /// Judges an address that a URL spells out, in whatever notation: no name is looked up for it.
    pub fn check(self, url: &Url) -> Result<(), Refused> {
        let address = match url.host() {
            Some(Host::Ipv4(four)) => IpAddr::V4(four),
            Some(Host::Ipv6(six)) => IpAddr::V6(six),
            Some(Host::Domain(_)) => return Ok(()),
            None => return Err(Refused),
        };
        if self.allow(address) { Ok(()) } else { Err(Refused) }
    }
}

impl Resolve for Targets {
    /// Addresses of a name, those that are allowed.
    fn resolve(&self, name: Name) -> Resolving {
        let targets = *self;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let allowed: Vec<SocketAddr> = found.iter().copied().filter(|address| targets.allow(address.ip())).collect();
            if allowed.is_empty() {
                return Err(if found.is_empty() { "the name has no address".into() } else { Refused.into() });
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn every_network_is_one() {
        assert_eq!(NETWORKS.len(), FORBIDDEN.len());
    }

    #[test]
    fn what_is_not_public_is_refused_in_every_notation() {
        for text in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://127.0.0.1.:80/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.1/",
            "http://017700000001/",
            "http://0177.0.0.01/",
            "http://127.255.255.254/",
            "http://0.0.0.0/",
            "http://0/",
            "http://0.1.2.3/",
            "http://10.0.0.1/",
            "http://10.255.255.255/",
            "http://0xa000001/",
            "http://012.0.0.1/",
            "http://172.16.0.1/",
            "http://172.31.255.255/",
            "http://192.168.0.1/",
            "http://192.168.255.255/",
            "http://3232235521/",
            "http://169.254.169.254/",
            "http://0xa9fea9fe/",
            "http://2852039166/",
            "http://0251.0376.0251.0376/",
            "http://169.254.0.1/",
            "http://100.64.0.1/",
            "http://100.100.100.200/",
            "http://100.127.255.255/",
            "http://192.0.0.192/",
            "http://192.0.2.1/",
            "http://198.18.0.1/",
            "http://198.19.255.255/",
            "http://198.51.100.1/",
            "http://203.0.113.1/",
            "http://224.0.0.1/",
            "http://239.255.255.255/",
            "http://240.0.0.1/",
            "http://255.255.255.255/",
            "http://192.88.99.1/",
            "http://[::]/",
            "http://[::1]/",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::ffff:a9fe:a9fe]/",
            "http://[::ffff:10.0.0.1]/",
            "http://[::127.0.0.1]/",
            "http://[::ffff:0:7f00:1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[64:ff9b:1::1]/",
            "http://[2002:7f00:1::]/",
            "http://[2002:a9fe:a9fe::]/",
            "http://[2001:0:7f00:1::]/",
            "http://[fe80::1]/",
            "http://[febf::1]/",
            "http://[fec0::1]/",
            "http://[fc00::1]/",
            "http://[fd00:ec2::254]/",
            "http://[ff02::1]/",
            "http://[2001:db8::1]/",
            "http://[100::1]/",
            "http://①②⑦.0.0.1/",
            "http://１２７.0.0.1/",
        ] {
            let url = Url::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!(Targets::Public.check(&url).is_err(), "{text} is taken for public, as {url}");
            assert!(Targets::Any.check(&url).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_public_is_allowed() {
        for text in ["1.1.1.1", "8.8.8.8", "100.63.255.255", "172.15.0.1", "172.32.0.1", "198.17.0.1", "223.255.255.255", "2606:4700::1111"]
        {
            let address: IpAddr = text.parse().unwrap();
            assert!(is_public(address), "{text}");
        }
        assert!(is_public(IpAddr::V6(Ipv4Addr::new(1, 1, 1, 1).to_ipv6_mapped())));
        assert!(!is_public(IpAddr::V6(Ipv6Addr::LOCALHOST)));
    }
}
