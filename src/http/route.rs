//! Which path is which. By hand: a slice pattern per route, nothing allocated, all of it in view.

use http::Method;

/// A path that the server knows. Session ids are the segment as it stands in the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route<'p> {
    Health,
    Ready,
    ClientInput,
    ClientSession(&'p str),
    ClientStream(&'p str),
    MachineTokens,
    MachineSubmit,
    MachineStream(&'p str),
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
        let route = match segments.get(..count)? {
            ["healthz"] => Self::Health,
            ["readyz"] => Self::Ready,
            ["api", "client", "sessions", "input"] => Self::ClientInput,
            ["api", "client", "sessions", id] => Self::ClientSession(id),
            ["api", "client", "sessions", id, rest @ ..] if *rest == ["events", "stream"] => {
                Self::ClientStream(id)
            }
            ["api", "machine", "client-tokens"] => Self::MachineTokens,
            ["api", "machine", "sessions", "submit"] => Self::MachineSubmit,
            ["api", "machine", "sessions", id, rest @ ..] if *rest == ["events", "stream"] => {
                Self::MachineStream(id)
            }
            _ => return None,
        };
        Some(route)
    }

    /// The one method of the route.
    pub fn method(self) -> Method {
        match self {
            Self::Health
            | Self::Ready
            | Self::ClientSession(_)
            | Self::ClientStream(_)
            | Self::MachineStream(_) => Method::GET,
            Self::ClientInput | Self::MachineTokens | Self::MachineSubmit => Method::POST,
        }
    }

    /// What `Allow` lists.
    pub fn allow(self) -> &'static str {
        match (self.method() == Method::GET, self.is_client()) {
            (true, true) => "GET, OPTIONS",
            (true, false) => "GET",
            (false, true) => "POST, OPTIONS",
            (false, false) => "POST",
        }
    }

    /// Whether a browser may call it from a page of another origin (S10).
    pub fn is_client(self) -> bool {
        match self {
            Self::ClientInput | Self::ClientSession(_) | Self::ClientStream(_) => true,
            Self::Health
            | Self::Ready
            | Self::MachineTokens
            | Self::MachineSubmit
            | Self::MachineStream(_) => false,
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
            ("/api/client/sessions/input", Some(Route::ClientInput)),
            ("/api/client/sessions/s1", Some(Route::ClientSession("s1"))),
            ("/api/client/sessions/s1/events/stream", Some(Route::ClientStream("s1"))),
            ("/api/client/sessions/input/events/stream", Some(Route::ClientStream("input"))),
            ("/api/machine/client-tokens", Some(Route::MachineTokens)),
            ("/api/machine/sessions/submit", Some(Route::MachineSubmit)),
            ("/api/machine/sessions/s1/events/stream", Some(Route::MachineStream("s1"))),
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
