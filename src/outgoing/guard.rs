//! Which addresses may be called.
//!
//! 1. Link-local addresses (where clouds keep the secrets of their machines), multicast and unspecified ones: never.
//! 2. Addresses of this machine and of private networks: only where the URL itself says so, by writing the address, or
//!    by a name that can have no other (`localhost`, a bare name, `.internal`, `.local`, `.lan`, `.home.arpa`). So no
//!    answer of a public name server can lead a call inside.
//! 3. All others may be called.
//!
//! Names are judged by the addresses that are then called, not by an earlier look-up.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;

/// What an address may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Anywhere.
    Public,
    /// Here, or in a private network.
    Private,
    /// Never called.
    Forbidden,
}

/// What this address is.
pub fn reach(ip: IpAddr) -> Reach {
    match ip {
        IpAddr::V4(ip) => reach_v4(ip),
        IpAddr::V6(ip) => embedded_v4(ip).map_or_else(|| reach_v6(ip), reach_v4),
    }
}

fn reach_v4(ip: Ipv4Addr) -> Reach {
    let [a, b, ..] = ip.octets();
    if ip.is_link_local() || ip.is_multicast() || ip.is_broadcast() || a == 0 || a >= 240 {
        return Reach::Forbidden;
    }
    // 100.64/10 is shared between carriers, 198.18/15 is for measuring.
    let shared = (a == 100 && (64..128).contains(&b)) || (a == 198 && (18..20).contains(&b));
    if ip.is_loopback() || ip.is_private() || shared { Reach::Private } else { Reach::Public }
}

fn reach_v6(ip: Ipv6Addr) -> Reach {
    let first = ip.segments()[0];
    // fe80::/10, and fec0::/10, which once meant the same for a site.
    let link_local = first & 0xff80 == 0xfe80;
    if ip.is_unspecified() || ip.is_multicast() || link_local {
        return Reach::Forbidden;
    }
    if ip.is_loopback() || first & 0xfe00 == 0xfc00 { Reach::Private } else { Reach::Public }
}

/// The IPv4 address that an IPv6 address stands for: mapped, compatible, NAT64 and 6to4.
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = ip.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0, 0, high @ 1..=0xffff, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

/// Whether a name can only mean something inside: here, or in the network of whoever wrote it.
pub fn is_inside(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let inside = [".localhost", ".internal", ".local", ".lan", ".home.arpa"];
    !name.contains('.') || inside.iter().any(|end| name.ends_with(end))
}

/// Looks names up, and leaves out the addresses that may not be called.
#[derive(Debug, Clone)]
pub(super) struct GuardedNames;

impl tower_service::Service<Name> for GuardedNames {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        Box::pin(async move { Ok(look_up(name.as_str(), 0).await?.into_iter()) })
    }
}

/// The addresses of a name that may be called; at least one.
pub(super) async fn look_up(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let allowed = permitted(name, tokio::net::lookup_host((name, port)).await?);
    if allowed.is_empty() {
        return Err(io::Error::other("its name leads to no address that may be called"));
    }
    Ok(allowed)
}

/// Those of the addresses found for a name that may be called.
pub fn permitted(name: &str, found: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let inside = is_inside(name);
    found
        .filter(|address| match reach(address.ip()) {
            Reach::Public => true,
            Reach::Private => inside,
            Reach::Forbidden => false,
        })
        .collect()
}
