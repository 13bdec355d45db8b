//! Who is calling: client tokens, API keys, and the principal that a credential stands for.
//!
//! Nothing here knows HTTP: the edge hands over the bytes of `Authorization` and the time.

pub mod api_key;
pub mod blob_url;
pub mod client_token;
pub mod principal;

pub use api_key::ApiKeys;
pub use blob_url::{BlobGrant, BlobUrls};
pub use client_token::{ClientPrincipal, ClientTokens};
pub use principal::{Authenticator, Refused, bearer};
