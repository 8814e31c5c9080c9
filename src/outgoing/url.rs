//! A URL that we call. Its path or query often is the secret that lets one call it, so it is never shown.

use std::{fmt, net::IpAddr};

use secrecy::{ExposeSecret, SecretString};
use url::{Host, Url};

use super::guard::{Reach, reach};

/// Longest URL, in bytes.
const URL_MAX: usize = 2_000;

/// A URL that may be called.
#[derive(Clone)]
pub struct CallUrl(SecretString);

/// Why a URL may not be called: the rest of a sentence that begins with the variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}; its value is not shown because it may hold a secret")]
pub struct CallUrlError(&'static str);

impl CallUrl {
    /// Reads a URL; nothing is looked up or called.
    pub fn parse(text: &str) -> Result<Self, CallUrlError> {
        let shape = CallUrlError("must be a URL such as `https://alerts.example.org/hook`, without a fragment");
        let url = Url::parse(text).map_err(|_| shape)?;
        if !matches!(url.scheme(), "http" | "https") || url.fragment().is_some() || text.len() > URL_MAX {
            return Err(shape);
        }
        let ip = match url.host() {
            Some(Host::Ipv4(ip)) => Some(IpAddr::V4(ip)),
            Some(Host::Ipv6(ip)) => Some(IpAddr::V6(ip)),
            Some(Host::Domain(_)) => None,
            None => return Err(shape),
        };
        if ip.is_some_and(|ip| reach(ip) == Reach::Forbidden) {
            return Err(CallUrlError("must not lead to a link-local, multicast or unspecified address"));
        }
        Ok(Self(url.as_str().into()))
    }

    pub(super) fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// The same URL with `word` as one more step of its path, and a value in its query.
    pub(super) fn with_step(&self, word: &str, (name, value): (&str, &str)) -> Self {
        let mut url = Url::parse(self.expose()).unwrap_or_else(|error| unreachable!("it was one before: {error}"));
        if !word.is_empty()
            && let Ok(mut path) = url.path_segments_mut()
        {
            path.pop_if_empty().push(word);
        }
        url.query_pairs_mut().append_pair(name, value);
        Self(url.as_str().into())
    }

    /// Where it leads.
    pub(super) fn place(&self) -> Option<(Host<String>, u16)> {
        let url = Url::parse(self.expose()).ok()?;
        Some((url.host()?.to_owned(), url.port_or_known_default()?))
    }

    /// Scheme and host, for people.
    pub fn origin(&self) -> String {
        Url::parse(self.expose()).map(|url| url.origin().ascii_serialization()).unwrap_or_default()
    }
}

impl fmt::Debug for CallUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallUrl")
    }
}
