//! Which path is which. By hand: a slice pattern per route, nothing allocated, all of it in view.

use http::Method;

/// Everything below it may be called by pages of other origins (S10).
pub const CLIENT_PREFIX: &str = "/api/client/";

/// A path that the server knows, by API: each has its own credential. Session ids are the segment
/// as it stands in the path.
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
    Session(&'p str),
    Stream(&'p str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineRoute<'p> {
    Tokens,
    Submit,
    Stream(&'p str),
}

impl<'p> Route<'p> {
    /// The route of a path; none for an unknown one.
    pub fn of(path: &'p str) -> Option<Self> {
        let mut segments = [""; 6];
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

    /// Whether the route takes `method`, beside the preflights of browsers.
    pub fn takes(self, method: &Method) -> bool {
        let probe = matches!(self, Self::Health | Self::Ready) && *method == Method::HEAD;
        *method == self.method() || probe
    }

    fn method(self) -> Method {
        match self {
            Self::Health
            | Self::Ready
            | Self::Client(ClientRoute::Session(_) | ClientRoute::Stream(_))
            | Self::Machine(MachineRoute::Stream(_)) => Method::GET,
            Self::Client(ClientRoute::Input)
            | Self::Machine(MachineRoute::Tokens | MachineRoute::Submit) => Method::POST,
        }
    }

    /// What `Allow` lists.
    pub fn allow(self) -> &'static str {
        match (self, self.method() == Method::GET) {
            (Self::Health | Self::Ready, _) => "GET, HEAD",
            (Self::Client(_), true) => "GET, OPTIONS",
            (Self::Client(_), false) => "POST, OPTIONS",
            (Self::Machine(_), true) => "GET",
            (Self::Machine(_), false) => "POST",
        }
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
        match segments {
            ["sessions", "input"] => Some(Self::Input),
            ["sessions", id] => Some(Self::Session(id)),
            ["sessions", id, "events", "stream"] => Some(Self::Stream(id)),
            _ => None,
        }
    }
}

impl<'p> MachineRoute<'p> {
    fn of(segments: &[&'p str]) -> Option<Self> {
        match segments {
            ["client-tokens"] => Some(Self::Tokens),
            ["sessions", "submit"] => Some(Self::Submit),
            ["sessions", id, "events", "stream"] => Some(Self::Stream(id)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_route_or_none() {
        for (path, route) in [
            ("/healthz", Some(Route::Health)),
            ("/readyz", Some(Route::Ready)),
            ("/api/client/sessions/input", Some(Route::Client(ClientRoute::Input))),
            ("/api/client/sessions/s1", Some(Route::Client(ClientRoute::Session("s1")))),
            (
                "/api/client/sessions/s1/events/stream",
                Some(Route::Client(ClientRoute::Stream("s1"))),
            ),
            (
                "/api/client/sessions/input/events/stream",
                Some(Route::Client(ClientRoute::Stream("input"))),
            ),
            ("/api/machine/client-tokens", Some(Route::Machine(MachineRoute::Tokens))),
            ("/api/machine/sessions/submit", Some(Route::Machine(MachineRoute::Submit))),
            (
                "/api/machine/sessions/s1/events/stream",
                Some(Route::Machine(MachineRoute::Stream("s1"))),
            ),
            ("/api/machine/sessions/s1", None),
            ("/api/client/sessions/s1/events", None),
            ("/api/client/sessions/s1/events/stream/x", None),
            ("/api/client/sessions/s1/", None),
            ("/", None),
            ("", None),
            ("healthz", None),
            ("/healthz/", None),
        ] {
            assert_eq!(Route::of(path), route, "{path}");
        }
    }
}
