//! Which path is which. By hand: a slice pattern per route, nothing allocated, all of it in view.

use http::Method;

/// Everything below it may be called by pages of other origins (S10).
pub const CLIENT_PREFIX: &str = "/api/client/";

/// A path that the server knows, by API: each has its own credential. Ids are the segments as they
/// stand in the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route<'p> {
    Health,
    Ready,
    Client(ClientRoute<'p>),
    Machine(MachineRoute<'p>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientRoute<'p> {
    Input,
    Sessions,
    Session(&'p str),
    Stream(&'p str),
    Interrupt(&'p str),
    Cancel(&'p str),
    Blob(BlobPath<'p>),
    BlobUrl(BlobPath<'p>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineRoute<'p> {
    Tokens,
    Submit,
    Session(&'p str),
    Stream(&'p str),
    Interrupt(&'p str),
    Cancel(&'p str),
    Blob(BlobPath<'p>),
    Owner(&'p str),
}

/// A blob of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobPath<'p> {
    pub session: &'p str,
    pub hex: &'p str,
}

impl<'p> Route<'p> {
    /// The route of a path; none for an unknown one.
    pub fn of(path: &'p str) -> Option<Self> {
        let mut segments = [""; 7];
        let mut count = 0;
        for segment in path.strip_prefix('/')?.split('/') {
            *segments.get_mut(count)? = segment;
            count += 1;
        }
        match segments.get(..count)? {
            ["healthz"] => Some(Self::Health),
            ["readyz"] => Some(Self::Ready),
            ["api", "client", rest @ ..] => ClientRoute::of(rest).map(Self::Client),
            ["api", "machine", rest @ ..] => MachineRoute::of(rest).map(Self::Machine),
            _ => None,
        }
    }

    /// The methods that the route takes, as `Allow` lists them. A preflight is answered before.
    pub fn allow(self) -> &'static str {
        match self {
            Self::Health | Self::Ready => "GET, HEAD",
            Self::Client(route) => route.allow(),
            Self::Machine(route) => route.allow(),
        }
    }

    /// Whether the route takes `method`.
    pub fn takes(self, method: &Method) -> bool {
        self.allow().split(", ").any(|allowed| allowed == method.as_str())
    }

    /// Whether a browser may call it from a page of another origin (S10).
    pub fn is_client(self) -> bool {
        match self {
            Self::Client(_) => true,
            Self::Health | Self::Ready | Self::Machine(_) => false,
        }
    }
}

impl<'p> ClientRoute<'p> {
    fn of(segments: &[&'p str]) -> Option<Self> {
        match *segments {
            ["sessions"] => Some(Self::Sessions),
            ["sessions", "input"] => Some(Self::Input),
            ["sessions", id] => Some(Self::Session(id)),
            ["sessions", id, "events", "stream"] => Some(Self::Stream(id)),
            ["sessions", id, "interrupt"] => Some(Self::Interrupt(id)),
            ["sessions", id, "cancel"] => Some(Self::Cancel(id)),
            ["sessions", session, "blobs", hex] => Some(Self::Blob(BlobPath { session, hex })),
            ["sessions", session, "blobs", hex, "url"] => {
                Some(Self::BlobUrl(BlobPath { session, hex }))
            }
            _ => None,
        }
    }

    fn allow(self) -> &'static str {
        match self {
            Self::Sessions | Self::Stream(_) | Self::Blob(_) | Self::BlobUrl(_) => "GET, OPTIONS",
            Self::Session(_) => "GET, PATCH, DELETE, OPTIONS",
            Self::Input | Self::Interrupt(_) | Self::Cancel(_) => "POST, OPTIONS",
        }
    }
}

impl<'p> MachineRoute<'p> {
    fn of(segments: &[&'p str]) -> Option<Self> {
        match *segments {
            ["client-tokens"] => Some(Self::Tokens),
            ["sessions", "submit"] => Some(Self::Submit),
            ["sessions", id] => Some(Self::Session(id)),
            ["sessions", id, "events", "stream"] => Some(Self::Stream(id)),
            ["sessions", id, "interrupt"] => Some(Self::Interrupt(id)),
            ["sessions", id, "cancel"] => Some(Self::Cancel(id)),
            ["sessions", session, "blobs", hex] => Some(Self::Blob(BlobPath { session, hex })),
            ["owners", id] => Some(Self::Owner(id)),
            _ => None,
        }
    }

    fn allow(self) -> &'static str {
        match self {
            Self::Stream(_) | Self::Blob(_) => "GET",
            Self::Session(_) => "PATCH, DELETE",
            Self::Owner(_) => "DELETE",
            Self::Tokens | Self::Submit | Self::Interrupt(_) | Self::Cancel(_) => "POST",
        }
    }
}

#[cfg(test)]
mod tests;
