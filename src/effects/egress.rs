//! Where outgoing calls may go (S35; reliability O1 to O3).
//!
//! Checked twice, because the HTTP client asks its resolver for names only: addresses written in the
//! URL before the request, and each resolved address, which is then the one connected to. Loopback
//! and private addresses are allowed: every URL called from here is the operator's own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Url};

use crate::protocol::error::chain;

const USER_AGENT: &str = concat!("turnd/", env!("CARGO_PKG_VERSION"));

/// Why an address is never called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("it is not a URL")]
    NotAUrl,
    #[error("it is neither http nor https")]
    Scheme,
    #[error("it holds a user name or password")]
    UserInfo,
    #[error("it holds a query or a fragment")]
    Query,
    #[error("it leads to {0} address")]
    Address(&'static str),
    #[error("this machine has no CA certificates to verify https with")]
    NoRoots,
}

/// The client for every outgoing call.
#[derive(Debug, Clone)]
pub struct Egress {
    client: Client,
    /// The system's CA certificates are there; without them only `http` can be called.
    has_roots: bool,
}

impl Egress {
    pub fn new(connect_max: Duration) -> Self {
        let builder = || {
            Client::builder()
                .user_agent(USER_AGENT)
                .redirect(Policy::none())
                .no_proxy()
                .connect_timeout(connect_max)
                .dns_resolver(Arc::new(CheckedResolver))
        };
        // Building fails without CA certificates; the demo model and plain http need none.
        let (client, has_roots) = match builder().build() {
            Ok(client) => (client, true),
            Err(error) => {
                tracing::warn!(error = chain(&error), "https calls will fail: no CA certificates");
                (without_roots(builder()), false)
            }
        };
        Self { client, has_roots }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The URL of `path` under `base_url`, if it may be called.
    pub fn endpoint(&self, base_url: &str, path: &str) -> Result<Url, Refusal> {
        let base = Url::parse(base_url).map_err(|_| Refusal::NotAUrl)?;
        if base.query().is_some() || base.fragment().is_some() {
            return Err(Refusal::Query);
        }
        let joined = format!("{}{path}", base_url.trim_end_matches('/'));
        let url = Url::parse(&joined).map_err(|_| Refusal::NotAUrl)?;
        match url.scheme() {
            "http" | "https" => {}
            _ => return Err(Refusal::Scheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::UserInfo);
        }
        let host = url.host_str().ok_or(Refusal::NotAUrl)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        // The addresses of a name are checked when it is resolved.
        if let Ok(address) = host.parse() {
            check(address)?;
        }
        if url.scheme() == "https" && !self.has_roots {
            return Err(Refusal::NoRoots);
        }
        Ok(url)
    }
}

#[expect(clippy::expect_used, reason = "with no roots to load, only a broken build can fail here")]
fn without_roots(builder: ClientBuilder) -> Client {
    builder.tls_certs_only([]).build().expect("a client without roots")
}

/// Refuses what no provider, worker or connector lives at.
pub fn check(address: IpAddr) -> Result<(), Refusal> {
    let refused = match unmapped(address) {
        IpAddr::V4(v4) => refused_v4(v4),
        IpAddr::V6(v6) => refused_v6(v6),
    };
    refused.map_or(Ok(()), |kind| Err(Refusal::Address(kind)))
}

fn refused_v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [169, 254, ..] => Some("a link-local"),
        // Alibaba Cloud; Azure.
        [100, 100, 100, 200] | [168, 63, 129, 16] => Some("a cloud metadata"),
        // All of 0.0.0.0/8 means "this network"; 0.0.0.0 connects to loopback.
        [0, ..] => Some("an unspecified"),
        [224..=239, ..] => Some("a multicast"),
        [255, 255, 255, 255] => Some("a broadcast"),
        _ => None,
    }
}

fn refused_v6(address: Ipv6Addr) -> Option<&'static str> {
    match address.segments() {
        [0xfe80..=0xfebf, ..] => Some("a link-local"),
        // AWS; Google Cloud.
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => {
            Some("a cloud metadata")
        }
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("an unspecified"),
        [0xff00..=0xffff, ..] => Some("a multicast"),
        _ => None,
    }
}

/// The IPv4 address that an IPv6 one stands for: mapped, or behind the well-known NAT64 prefix.
fn unmapped(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    let embedded = match v6.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            let [.., a, b, c, d] = v6.octets();
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => v6.to_ipv4_mapped(),
    };
    embedded.map_or(address, IpAddr::V4)
}

/// The system's resolver without the addresses that are refused.
struct CheckedResolver;

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(allowed(found.collect())?)
        })
    }
}

fn allowed(found: Vec<SocketAddr>) -> Result<Addrs, Refusal> {
    let mut refusal = None;
    let mut allowed = Vec::new();
    for address in found {
        match check(address.ip()) {
            Ok(()) => allowed.push(address),
            Err(why) => refusal = Some(why),
        }
    }
    match refusal {
        Some(why) if allowed.is_empty() => Err(why),
        Some(_) | None => Ok(Box::new(allowed.into_iter())),
    }
}

#[cfg(test)]
mod tests;
